// SPDX-License-Identifier: BSD-3-Clause
// A report as text, and its way to where UCX_STATS_DEST says.
#pragma once

#include "ucs/stats/registry.h"

#include <string>

namespace ucs::stats {

std::string to_text(const report &whole);
std::string to_json(const report &whole);
std::string to_prometheus(const report &whole);

// Nothing where this process counted nothing. Logs what fails.
void write_report() noexcept;

} // namespace ucs::stats
