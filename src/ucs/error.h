// SPDX-License-Identifier: BSD-3-Clause
// Control-path errors. A constructor acquires its resource or throws ucs::error; guard() is the one
// place that turns exceptions into statuses, at the C ABI.
#pragma once

#include "ucs/compiler.h"
#include "ucs/log.h"

#include <ucs/type/status.h>

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

namespace ucs {

class error : public std::exception {
  public:
    // printf-like; the text says what failed and why, the status is what the caller of the API
    // gets.
    __attribute__((format(printf, 3, 4))) error(ucs_status_t status, const char *format, ...)
        : status_(status)
    {
        char text[512];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        text_ = text;
    }

    ucs_status_t status() const noexcept { return status_; }
    const char *what() const noexcept override { return text_.c_str(); }

  private:
    ucs_status_t status_;
    std::string text_;
};

// How many exceptions that guard() took were allocations that failed, in this thread, since
// a caller set it to 0: UCS_ERR_NO_MEMORY may also mean a limit of the system's, or memory of a
// device.
inline thread_local unsigned failed_allocations = 0;

// Runs f, which returns nothing or a status. Every exception becomes a status and one log line, of
// the error level or another one.
template <log::level level = log::level::error, class F>
ucs_status_t guard(F &&f) noexcept
{
    auto tell = [](const char *what) {
        if (log::enabled(level)) {
            log::write(level, __FILE__, __LINE__, "", "%s", what);
        }
    };
    try {
        if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
            f();
            return UCS_OK;
        } else {
            return f();
        }
    } catch (const error &e) {
        tell(e.what());
        return e.status();
    } catch (const std::bad_alloc &) {
        ++failed_allocations;
        tell("out of memory");
        return UCS_ERR_NO_MEMORY;
    } catch (const std::exception &e) {
        tell(e.what());
        return UCS_ERR_IO_ERROR;
    }
}

// For a caller that expects it to fail.
template <class F>
ucs_status_t guard_quietly(F &&f) noexcept
{
    return guard<log::level::debug>(f);
}

} // namespace ucs
