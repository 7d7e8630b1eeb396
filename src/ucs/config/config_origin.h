// SPDX-License-Identifier: BSD-3-Clause
// Where the value of a setting comes from, for listings.
#pragma once

#include "ucs/config/config.h"

#include <string>

namespace ucs::config {

struct origin {
    enum class kind { deflt, file, environment };
    kind from = kind::deflt;
    std::string name; // the file, or the variable; "" for the default
};

// As fill() without a prefix and without a file of the caller's finds it.
origin origin_of(const table &t, const field &f);

} // namespace ucs::config
