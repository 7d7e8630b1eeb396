// SPDX-License-Identifier: BSD-3-Clause
// The way of the library's own lines to the handlers of ucs/debug/log_def.h.
#pragma once

#include <ucs/debug/log_def.h>

namespace ucs::log {

// Gives a line to this library's handlers, or to those of a libucs in the process in which a
// program pushed one: a program's handlers are there when it uses the drop-in libraries.
void hand_out(ucs_log_level_t level, const char *file, unsigned line, const char *function,
              const char *text);

} // namespace ucs::log
