// SPDX-License-Identifier: BSD-3-Clause
// What UCX's API has no words for: which components need a library of others, so that it is not
// loaded for nothing, and why a memory domain does not open. The lists are made at their first call
// and live as long as the process.
#pragma once

#include <uct/api/uct.h>

#include <string>
#include <vector>

namespace uct {

// The process itself and our shared memory, in order of preference.
const std::vector<uct_component_h> &own_components();

// One for each core provider that is here, in order of preference. The first call loads libfabric
// and asks its providers for their devices, which takes tens of milliseconds and more.
const std::vector<uct_component_h> &core_components();

// uct_md_open() that logs nothing: why it failed is text for the caller's own message.
ucs_status_t open_md(uct_component_h component, const char *name, const uct_md_config_t *config,
                     uct_md_h *md_p, std::string *why);

} // namespace uct
