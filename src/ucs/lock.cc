// SPDX-License-Identifier: BSD-3-Clause
// Waiting for the lock: for a moment awake, as it is seldom held for long, then asleep.
#include "ucs/lock.h"

#include "ucs/process_fence.h"
#include "ucs/processor.h"

namespace ucs {

opt_lock::opt_lock(bool enabled)
    : enabled_(enabled), holder_fences_(enabled && !process_fence_works())
{
}

void opt_lock::wait()
{
    constexpr int tries = 64;
    for (int i = 0; i < tries; ++i) {
        if (held_.load(std::memory_order_relaxed) == 0 && try_take()) {
            return;
        }
        relax();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (!holder_fences_) {
        process_fence();
    }
    while (!try_take()) {
        held_.wait(1, std::memory_order_relaxed);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void opt_lock::wake()
{
    // The wait counts its sleepers, too, and is not fenced by us.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    held_.notify_one();
}

} // namespace ucs
