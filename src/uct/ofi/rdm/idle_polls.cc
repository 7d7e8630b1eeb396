// SPDX-License-Identifier: BSD-3-Clause
// The timer: see idle_polls.h.
#include "uct/ofi/rdm/idle_polls.h"

#include "ucs/error.h"
#include "uct/ofi/rdm/rdm_iface.h"

#include <algorithm>

namespace uct::ofi {

namespace {

// Much is to be done soon after an endpoint was opened or closed.
constexpr uint64_t first_ns = 1'000'000;
constexpr uint64_t longest_ns = 16'000'000;
constexpr unsigned moves = 4; // of the core at a time: what came, and the answers to it

} // namespace

void idle_polls::begin() noexcept
{
    interval_ns_ = first_ns;
    if (!timer_) {
        ucs_status_t status = ucs::guard([&] {
            timer_ = ucs::async_watch::timer(
                0, [](void *arg, uint32_t) { static_cast<idle_polls *>(arg)->look(); }, this);
        });
        if (status != UCS_OK) {
            return; // the next endpoint tries again
        }
    }
    timer_.set_interval(interval_ns_);
}

// On the helper thread.
void idle_polls::look()
{
    if (!lock.try_visit()) {
        return; // the program is inside
    }
    bool away = polls_ == polls_seen_;
    polls_seen_ = polls_;
    for (unsigned i = 0; away && i < moves; ++i) {
        home_.move_core();
    }
    if (interval_ns_ < longest_ns) {
        interval_ns_ = std::min(2 * interval_ns_, longest_ns);
        timer_.set_interval(interval_ns_);
    }
    lock.end_visit();
}

} // namespace uct::ofi
