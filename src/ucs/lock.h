// SPDX-License-Identifier: BSD-3-Clause
// A recursive lock that is nothing when its owner is used by one thread only. Whether it locks is
// decided once, at creation. It is taken for every message and every poll, nearly always by one
// thread at a time: then it costs one exchange and no call.
//
// Letting go is a plain store and a look at whether a thread sleeps. A thread that goes to sleep
// first counts itself and then has every thread fenced (ucs/process_fence.h): the holder's look
// either finds it, or the store before that look is seen by the sleeper, which looks once more.
#pragma once

#include "ucs/compiler.h"

#include <atomic>
#include <mutex>

namespace ucs {

class opt_lock {
  public:
    explicit opt_lock(bool enabled);
    opt_lock(const opt_lock &) = delete;
    opt_lock &operator=(const opt_lock &) = delete;

    void lock()
    {
        if (UCS_UNLIKELY(!try_lock())) {
            wait();
            holder_.store(__builtin_thread_pointer(), std::memory_order_relaxed);
        }
    }
    // False: another thread has it.
    bool try_lock()
    {
        if (UCS_UNLIKELY(enabled_)) {
            void *self = __builtin_thread_pointer();
            // Only this thread stores its own id there.
            if (holder_.load(std::memory_order_relaxed) == self) {
                ++depth_;
                return true;
            }
            if (UCS_UNLIKELY(!try_take())) {
                return false;
            }
            holder_.store(self, std::memory_order_relaxed);
        }
        return true;
    }
    void unlock()
    {
        if (UCS_UNLIKELY(enabled_)) {
            if (depth_ > 0) {
                --depth_;
                return;
            }
            holder_.store(nullptr, std::memory_order_relaxed);
            held_.store(0, std::memory_order_release);
            if (UCS_UNLIKELY(holder_fences_)) {
                std::atomic_thread_fence(std::memory_order_seq_cst);
            } else {
                std::atomic_signal_fence(std::memory_order_seq_cst);
            }
            if (UCS_UNLIKELY(sleepers_.load(std::memory_order_relaxed) > 0)) {
                wake();
            }
        }
    }
    bool enabled() const { return enabled_; }

  private:
    bool try_take()
    {
        int expected = 0;
        return held_.compare_exchange_strong(expected, 1, std::memory_order_acquire);
    }
    UCS_NOINLINE void wait();
    UCS_NOINLINE void wake();

    const bool enabled_;
    const bool holder_fences_;
    unsigned depth_ = 0;              // of the holder, beyond the first
    std::atomic<void *> holder_ = {}; // nullptr: none
    std::atomic<int> held_ = 0;
    std::atomic<int> sleepers_ = 0;
};

using opt_guard = std::lock_guard<opt_lock>;

} // namespace ucs
