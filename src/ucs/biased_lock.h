// SPDX-License-Identifier: BSD-3-Clause
// A lock between an owner, which takes it all the time, and a visitor, which seldom wants it and
// may be turned away. The owner pays two plain stores and a load.
//
// Each side stores its own flag and then looks at the other's; each needs its store to be seen
// before its load. The visitor has the time: its membarrier() makes every running thread of the
// process execute a fence, so that the owner needs none. If the owner's load came before that fence
// and found no visitor, its store came before it, too, and the visitor sees it and goes. If it came
// after, it finds the visitor's flag and waits. Where the kernel has no such call the owner
// executes a fence itself.
#pragma once

#include "ucs/compiler.h"

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#define UCS_BIASED_LOCK_IS_MUTEX 1 // the sanitizer does not know membarrier()
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UCS_BIASED_LOCK_IS_MUTEX 1
#endif
#endif
#ifdef UCS_BIASED_LOCK_IS_MUTEX
#include <mutex>
#endif

namespace ucs {

class biased_lock {
  public:
    biased_lock();
    biased_lock(const biased_lock &) = delete;
    biased_lock &operator=(const biased_lock &) = delete;

    // The owner's side, which may nest. Threads that act as the owner exclude each other by other
    // means.
    class owner {
      public:
        explicit owner(biased_lock &lock)
            : lock_(lock), outermost_(!lock.inside_.load(std::memory_order_relaxed))
        {
            if (UCS_LIKELY(outermost_)) {
                lock_.enter();
            }
        }
        owner(const owner &) = delete;
        owner &operator=(const owner &) = delete;
        ~owner()
        {
            if (UCS_LIKELY(outermost_)) {
                lock_.leave();
            }
        }

      private:
        biased_lock &lock_;
        const bool outermost_;
    };

    // The visitor's side: false when the owner is inside.
    bool try_visit();
    void end_visit();
    // Whether the owner was inside a moment ago, for visitors that need not try.
    bool occupied() const { return inside_.load(std::memory_order_relaxed); }

  private:
    void enter()
    {
#ifdef UCS_BIASED_LOCK_IS_MUTEX
        mutex_.lock();
        inside_.store(true, std::memory_order_relaxed);
#else
        inside_.store(true, std::memory_order_relaxed);
        if (UCS_UNLIKELY(owner_fences_)) {
            std::atomic_thread_fence(std::memory_order_seq_cst);
        } else {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        if (UCS_UNLIKELY(visited_.load(std::memory_order_acquire) != 0)) {
            wait_for_visitor();
        }
#endif
    }
    void leave()
    {
        inside_.store(false, std::memory_order_release);
#ifdef UCS_BIASED_LOCK_IS_MUTEX
        mutex_.unlock();
#endif
    }
    UCS_NOINLINE void wait_for_visitor();

    std::atomic<bool> inside_ = false;
    const bool owner_fences_;
    std::atomic<int> visited_ = 0;
#ifdef UCS_BIASED_LOCK_IS_MUTEX
    std::mutex mutex_;
#endif
};

} // namespace ucs
