// SPDX-License-Identifier: BSD-3-Clause
// What the environment asks for and does not get: variables that do not exist, variables of UCX
// that have no meaning here, and names of things that are not on this machine. Each is reported
// once in a process; with UCX_STRICT=y it is an error.
#pragma once

#include "ucs/config/config.h"

#include <string>
#include <vector>

namespace ucs::config {

struct finding {
    std::string text; // names the variable
    bool misleading;  // the user would believe something that is not so: a warning, or an error
};

// Looks at every UCX_ variable of the environment and reports nothing.
std::vector<finding> check_environment();

// The name of `known` nearest to a mistyped one, or "".
std::string nearest(const std::string &name, const std::vector<std::string> &known);

// A variable that was read outside a table and names something that does not exist. For the rest of
// the process it belongs to what report_environment() finds.
void note_environment(std::string text);

// Logs each finding once in the process, unknown names unless UCX_WARN_UNUSED_ENV_VARS=n. strict:
// throws ucs::error(INVALID_PARAM) with the first misleading one.
void report_environment(bool strict);

} // namespace ucs::config
