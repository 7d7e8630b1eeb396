// SPDX-License-Identifier: BSD-3-Clause
// How a state of shared memory that the living leave after microseconds is told from one that a
// killed process has left behind.
#pragma once

#include "ucs/sys.h"

#include <cstdint>
#include <time.h>

namespace uct::ofi {

// Asks again and again until `lasts` says no, or for much longer than a living process needs, even
// one that was descheduled for tens of milliseconds. There is no event to wait for: who would make
// it is dead. On a busy machine the samples themselves come late, so that neither their number nor
// the time says enough alone.
template <class F>
bool outlasts_the_living(F &&lasts)
{
    constexpr uint64_t patience_ns = 300'000'000;
    constexpr int samples = 20;
    constexpr timespec interval = {.tv_sec = 0, .tv_nsec = 1000000};
    uint64_t limit = ucs::monotonic_ns() + patience_ns;
    for (int i = 0; i < samples || ucs::monotonic_ns() < limit; ++i) {
        if (!lasts()) {
            return false;
        }
        nanosleep(&interval, nullptr);
    }
    return true;
}

} // namespace uct::ofi
