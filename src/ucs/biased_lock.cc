// SPDX-License-Identifier: BSD-3-Clause
// The visitor's side of the lock, and the owner's wait for a visitor.
#include "ucs/biased_lock.h"

#include "ucs/process_fence.h"

namespace ucs {

biased_lock::biased_lock() : owner_fences_(!process_fence_works()) {}

#ifdef UCS_BIASED_LOCK_IS_MUTEX

bool biased_lock::try_visit()
{
    return mutex_.try_lock();
}

void biased_lock::end_visit()
{
    mutex_.unlock();
}

void biased_lock::wait_for_visitor() {}

#else

bool biased_lock::try_visit()
{
    if (inside_.load(std::memory_order_relaxed)) {
        return false; // without the fence, which interrupts the owner
    }
    visited_.store(1, std::memory_order_relaxed);
    if (owner_fences_) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
        process_fence();
    }
    if (inside_.load(std::memory_order_acquire)) {
        end_visit();
        return false;
    }
    return true;
}

void biased_lock::end_visit()
{
    visited_.store(0, std::memory_order_release);
    visited_.notify_one();
}

// The visitor leaves soon, whether it found us or not.
void biased_lock::wait_for_visitor()
{
    while (visited_.load(std::memory_order_acquire) != 0) {
        visited_.wait(1, std::memory_order_acquire);
    }
}

#endif

} // namespace ucs
