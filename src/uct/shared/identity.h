// SPDX-License-Identifier: BSD-3-Clause
// What processes have in common, as numbers that they tell each other.
#pragma once

#include "ucs/sys.h"

#include <cstdint>

namespace uct {

inline uint64_t mix(uint64_t hash, uint64_t value)
{
    hash ^= value + 0x9e3779b97f4a7c15ull + (hash << 6) + (hash >> 2);
    return hash * 0xff51afd7ed558ccdull;
}

// Processes with equal values can share memory.
inline uint64_t shared_memory_identity()
{
    const ucs::host_identity &h = ucs::this_host();
    return mix(mix(mix(h.boot, h.pid_ns), h.user_ns), h.uid);
}

// Processes with equal values have the same loopback device.
inline uint64_t network_identity()
{
    const ucs::host_identity &h = ucs::this_host();
    return mix(h.boot, h.net_ns);
}

} // namespace uct
