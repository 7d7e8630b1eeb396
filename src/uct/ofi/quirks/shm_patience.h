// SPDX-License-Identifier: BSD-3-Clause
// How a state of shared memory that the living leave after microseconds is told from one that a
// killed process has left behind.
#pragma once

#include "ucs/sys.h"

#include <cstdint>
#include <span>
#include <string>
#include <time.h>

namespace uct::ofi {

// Whether a process is stopped (SIGSTOP, a debugger) that has one of these files of /dev/shm
// mapped.
bool is_stopped_with(std::span<const std::string> names);

enum class lasting {
    no,
    yes,         // no process holds it any more
    cannot_tell, // it may be of a process that is stopped, and goes on from there one day
};

// Asks again and again until `lasts` says no, or for much longer than a living process needs, even
// one that was descheduled for tens of milliseconds. There is no event to wait for: the process
// that would make it is dead. On a busy machine the samples themselves come late, so that neither
// their number nor the time says enough alone. The names are of the files with the state.
template <class F>
lasting outlasts_the_living(std::span<const std::string> names, F &&lasts)
{
    constexpr uint64_t patience_ns = 300'000'000;
    constexpr int samples = 20;
    constexpr timespec interval = {.tv_sec = 0, .tv_nsec = 1000000};
    uint64_t limit = ucs::monotonic_ns() + patience_ns;
    for (int i = 0; i < samples || ucs::monotonic_ns() < limit; ++i) {
        if (!lasts()) {
            return lasting::no;
        }
        nanosleep(&interval, nullptr);
    }
    return is_stopped_with(names) ? lasting::cannot_tell : lasting::yes;
}

} // namespace uct::ofi
