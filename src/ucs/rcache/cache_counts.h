// SPDX-License-Identifier: BSD-3-Clause
// What a cache of registered memory did so far, and what it has.
#pragma once

#include <cstdint>

namespace ucs {

struct cache_counts {
    uint64_t hits = 0;
    uint64_t registrations = 0;
    uint64_t single = 0;  // registered for one use
    uint64_t evicted = 0; // given back to make room
    uint64_t gone = 0;    // their memory went
    uint64_t regions = 0;
    uint64_t bytes = 0;
};

} // namespace ucs
