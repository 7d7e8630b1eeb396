// SPDX-License-Identifier: BSD-3-Clause
// REFUSED(argument, call(...)): the call gives UCS_ERR_INVALID_PARAM and an error line that names
// the argument.
#pragma once

#include "ucs/log.h"

#include <ucs/type/status.h>

#include <gtest/gtest.h>

#include <cctype>
#include <string>
#include <sys/types.h>
#include <vector>

namespace refused {

inline std::vector<std::string> errors;

inline void keep_errors()
{
    ucs::log::set_sink([](ucs::log::level level, const char *, int, const char *text) {
        if (level == ucs::log::level::error) {
            errors.emplace_back(text);
        }
    });
}

inline void let_errors_go()
{
    ucs::log::set_sink(nullptr);
}

inline ucs_status_t as_status(ucs_status_t status)
{
    return status;
}
inline ucs_status_t as_status(ucs_status_ptr_t pointer)
{
    return UCS_PTR_STATUS(pointer);
}
inline ucs_status_t as_status(ssize_t result)
{
    return static_cast<ucs_status_t>(result);
}

// Case and the difference between "_" and " " do not count.
inline std::string plain(std::string text)
{
    for (char &c : text) {
        c = c == '_' ? ' ' : static_cast<char>(tolower(static_cast<unsigned char>(c)));
    }
    return text;
}

inline void expect(ucs_status_t status, const char *call, const std::string &argument)
{
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status)
        << call << ", argument " << argument << ": " << ucs_status_string(status);
    bool named = false;
    std::string all;
    for (const std::string &line : errors) {
        named |= plain(line).find(plain(argument)) != std::string::npos;
        all += "\n  " + line;
    }
    EXPECT_TRUE(named) << call << ": no error line names " << argument << all;
}

} // namespace refused

#define REFUSED(argument, ...)                                                                     \
    do {                                                                                           \
        refused::errors.clear();                                                                   \
        refused::expect(refused::as_status(__VA_ARGS__), #__VA_ARGS__, argument);                  \
    } while (0)
