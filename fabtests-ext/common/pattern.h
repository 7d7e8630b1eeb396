// SPDX-License-Identifier: BSD-3-Clause
// Bytes for messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Fills data so that a byte of another place or of another seed is seen. The bytes repeat, for
// tests are compiled without optimisation and the sanitizers look at each access; they do after a
// number of them that is prime, so that a piece of a message in the place of another one is seen,
// too.
inline void fill_pattern(void *data, size_t length, unsigned seed)
{
    constexpr size_t period = 4093;
    auto *p = static_cast<uint8_t *>(data);
    uint32_t x = seed * 2654435761u + 1;
    for (size_t i = 0, n = std::min(length, period); i < n; ++i) {
        x = x * 1664525u + 1013904223u;
        p[i] = static_cast<uint8_t>(x >> 24);
    }
    for (size_t filled = period; filled < length; filled += filled) {
        memcpy(p + filled, p, std::min(length - filled, filled));
    }
}
