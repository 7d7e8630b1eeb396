// SPDX-License-Identifier: BSD-3-Clause
// A peer that may sleep where the core has no descriptor to wait on. It says so in a word of memory
// that both have; an endpoint to it looks at the word after each post, and wakes it if it is set.
// Where the word is and how the peer is woken, the folder of a kind of core says (shm/doorbell.h),
// which gives endpoints their sleeper.
#pragma once

#include "ucs/compiler.h"

#include <atomic>
#include <cstdint>

namespace uct::ofi {

class sleeper {
  public:
    sleeper() = default;
    sleeper(const sleeper &) = delete;
    sleeper &operator=(const sleeper &) = delete;
    virtual ~sleeper() = default;

    UCS_ALWAYS_INLINE void look()
    {
        if (UCS_UNLIKELY(fence_)) {
            std::atomic_thread_fence(std::memory_order_seq_cst);
        } else {
            std::atomic_signal_fence(std::memory_order_seq_cst);
        }
        if (UCS_UNLIKELY(word_->load(std::memory_order_relaxed) != 0)) {
            wake();
        }
    }
    virtual void wake() = 0;

  protected:
    std::atomic<uint32_t> *word_ = nullptr; // not 0: it sleeps
    bool fence_ = true; // the post is to be seen before the word is read, and the peer cannot help
};

} // namespace uct::ofi
