// SPDX-License-Identifier: BSD-3-Clause
// The log sink: see log.h. A line is formatted into one buffer and written with one write(2), so
// lines of several threads and processes do not mix.
#include "ucs/log.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace ucs::log {
namespace {

constexpr const char *level_names[] = {"FATAL", "ERROR", "WARN", "DIAG", "INFO",
                                       "DEBUG", "TRACE", "REQ",  "DATA"};
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

const char *host_name()
{
    static const std::string name = [] {
        char buffer[64] = "";
        gethostname(buffer, sizeof(buffer) - 1);
        buffer[strcspn(buffer, ".")] = '\0';
        return std::string(buffer);
    }();
    return name.c_str();
}

int open_log_file()
{
    const char *pattern = getenv("UCX_LOG_FILE");
    if (!pattern || !*pattern) {
        return STDERR_FILENO;
    }
    std::string path;
    for (const char *p = pattern; *p; ++p) {
        if (p[0] == '%' && (p[1] == 'h' || p[1] == 'p')) {
            path += p[1] == 'h' ? host_name() : std::to_string(getpid());
            ++p;
        } else {
            path += *p;
        }
    }
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    return fd >= 0 ? fd : STDERR_FILENO;
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

void write(level l, const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);

    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    if (sink_t sink = current_sink.load(std::memory_order_acquire)) {
        sink(l, base, line, text);
        return;
    }

    static const int fd = open_log_file();
    timeval now;
    gettimeofday(&now, nullptr);
    char buffer[1280];
    int length =
        snprintf(buffer, sizeof(buffer), "[%lu.%06lu] [%s:%d:%ld] %16s:%-4d UCX  %-5s %s\n",
                 static_cast<unsigned long>(now.tv_sec), static_cast<unsigned long>(now.tv_usec),
                 host_name(), getpid(), syscall(SYS_gettid), base, line,
                 level_names[static_cast<int>(l)], text);
    size_t size = std::min(static_cast<size_t>(length), sizeof(buffer) - 1);
    // A log that cannot be written has nowhere to report that.
    [[maybe_unused]] ssize_t written = ::write(fd, buffer, size);
}

} // namespace ucs::log
