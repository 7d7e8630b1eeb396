// SPDX-License-Identifier: BSD-3-Clause
// Log lines in UCX's form: [time] [host:pid:tid] file:line UCX LEVEL text. The level comes from
// UCX_LOG_LEVEL, the file from UCX_LOG_FILE (%h host, %p pid). The level is tested before the
// arguments are evaluated.
#pragma once

#include "ucs/compiler.h"

#include <cstdint>

namespace ucs::log {

enum class level : int { fatal, error, warn, diag, info, debug, trace, trace_req, trace_data };

extern int current_level; // a value of level; set at load time and by set_level()

inline bool enabled(level l)
{
    return UCS_UNLIKELY(static_cast<int>(l) <= current_level);
}

void set_level(level l);

// Of what a peer can cause again and again, the first ten times and then each power of two have a
// line, so that it does not fill the log. `number` counts from 1.
constexpr bool worth_a_line(uint64_t number)
{
    return number <= 10 || (number & (number - 1)) == 0;
}

// "warn", "req"; false when there is no such level.
bool parse_level(const char *text, level *l) noexcept;

// A sink replaces the handlers of ucs/debug/log_def.h, the last of which writes to the file, so
// that the provider can hand lines to fi_log. nullptr restores the file.
using sink_t = void (*)(level l, const char *file, int line, const char *text);
void set_sink(sink_t sink);

__attribute__((format(printf, 5, 6))) UCS_NOINLINE void
write(level l, const char *file, int line, const char *function, const char *format, ...);

} // namespace ucs::log

#define UCS_LOG_AT(l, ...)                                                                         \
    do {                                                                                           \
        if (::ucs::log::enabled(::ucs::log::level::l)) {                                           \
            ::ucs::log::write(::ucs::log::level::l, __FILE__, __LINE__, __func__, __VA_ARGS__);    \
        }                                                                                          \
    } while (0)

#define ucs_error(...) UCS_LOG_AT(error, __VA_ARGS__)
#define ucs_warn(...) UCS_LOG_AT(warn, __VA_ARGS__)
#define ucs_diag(...) UCS_LOG_AT(diag, __VA_ARGS__)
#define ucs_info(...) UCS_LOG_AT(info, __VA_ARGS__)
#define ucs_debug(...) UCS_LOG_AT(debug, __VA_ARGS__)
#define ucs_trace(...) UCS_LOG_AT(trace, __VA_ARGS__)
