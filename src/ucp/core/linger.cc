// SPDX-License-Identifier: BSD-3-Clause
//
// Polling for a while before sleeping: see linger.h.
#include "ucp/core/linger.h"

#include "ucs/sys.h"

#include <algorithm>

namespace ucp {

namespace {

constexpr double longest = 1; // s
constexpr unsigned most_skipped = 63;
constexpr uint64_t question_interval = 1000000; // ns
constexpr uint64_t crowded_interval = 10000000; // ns; so long nothing is polled for

} // namespace

const linger::machine linger::real = {
    .now = ucs::monotonic_ns,
    .switches = [] { return ucs::usage_of_thread().involuntary; },
};

linger::linger(double limit, const machine &m)
    : machine_(m), limit_(static_cast<uint64_t>(std::clamp(limit, 0.0, longest) * 1e9))
{
}

bool linger::keeps_polling() noexcept
{
    if (limit_ == 0 || (!arrived_ && !polling_)) {
        return false;
    }
    uint64_t now = machine_.now();
    if (arrived_) {
        arrived_ = false;
        if (polling_) {
            skipped_ = 0;
        }
        since_ = now;
        polling_ = begins(now);
    } else if (now - since_ >= limit_) {
        polling_ = false;
        skipped_ = std::min(2 * skipped_ + 1, most_skipped);
        to_skip_ = skipped_;
    }
    return polling_;
}

bool linger::begins(uint64_t now) noexcept
{
    if (to_skip_ > 0) {
        --to_skip_;
        return false;
    }
    return !crowded(now);
}

// A switch long ago says nothing.
bool linger::crowded(uint64_t now) noexcept
{
    if (now < ask_at_) {
        return crowded_;
    }
    uint64_t switches = machine_.switches();
    bool recent = ask_at_ != 0 && now - ask_at_ < crowded_interval;
    crowded_ = recent && switches != switches_;
    switches_ = switches;
    ask_at_ = now + (crowded_ ? crowded_interval : question_interval);
    return crowded_;
}

} // namespace ucp
