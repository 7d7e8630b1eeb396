// SPDX-License-Identifier: BSD-3-Clause
// The warnings and errors that are logged while an object of this class lives. There is one at a
// time, and one thread that logs.
#pragma once

#include "ucs/log.h"

#include <string>
#include <vector>

class kept_warnings {
  public:
    kept_warnings()
    {
        lines.clear();
        ucs::log::set_sink([](ucs::log::level level, const char *, int, const char *text) {
            if (level <= ucs::log::level::warn) {
                lines.emplace_back(text);
            }
        });
    }
    kept_warnings(const kept_warnings &) = delete;
    kept_warnings &operator=(const kept_warnings &) = delete;
    ~kept_warnings() { ucs::log::set_sink(nullptr); }

    static inline std::vector<std::string> lines;
};
