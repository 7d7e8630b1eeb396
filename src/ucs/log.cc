// SPDX-License-Identifier: BSD-3-Clause
// Levels, and the way of a line to the sink or the handlers: see log.h.
#include "ucs/log.h"

#include "ucs/log_handlers.h"

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <strings.h>

namespace ucs::log {
namespace {

struct level_value {
    const char *text;
    level value;
};

// UCX's names; those after data are levels of a debug build there.
constexpr level_value level_values[] = {{"fatal", level::fatal},
                                        {"error", level::error},
                                        {"warn", level::warn},
                                        {"diag", level::diag},
                                        {"info", level::info},
                                        {"debug", level::debug},
                                        {"trace", level::trace},
                                        {"req", level::trace_req},
                                        {"trace_req", level::trace_req},
                                        {"data", level::trace_data},
                                        {"trace_data", level::trace_data},
                                        {"async", level::trace_data},
                                        {"func", level::trace_data},
                                        {"poll", level::trace_data}};

static_assert(static_cast<int>(level::trace_data) == UCS_LOG_LEVEL_TRACE_DATA);

std::atomic<sink_t> current_sink{nullptr};

int level_from_env()
{
    const char *value = getenv("UCX_LOG_LEVEL");
    level l = level::warn;
    if (value) {
        parse_level(value, &l);
    }
    return static_cast<int>(l);
}

} // namespace

int current_level = level_from_env();

bool parse_level(const char *text, level *l) noexcept
{
    for (const level_value &v : level_values) {
        if (!strcasecmp(text, v.text)) {
            *l = v.value;
            return true;
        }
    }
    return false;
}

void set_level(level l)
{
    current_level = static_cast<int>(l);
}

void set_sink(sink_t sink)
{
    current_sink.store(sink, std::memory_order_release);
}

void write(level l, const char *file, int line, const char *function, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);

    if (sink_t sink = current_sink.load(std::memory_order_acquire)) {
        const char *base = strrchr(file, '/');
        sink(l, base ? base + 1 : file, line, text);
        return;
    }
    hand_out(static_cast<ucs_log_level_t>(l), file, static_cast<unsigned>(line), function, text);
}

} // namespace ucs::log
