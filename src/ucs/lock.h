// SPDX-License-Identifier: BSD-3-Clause
// A recursive lock that is nothing when its owner is used by one thread only. Whether it locks is
// decided once, at creation.
#pragma once

#include "ucs/compiler.h"

#include <mutex>

namespace ucs {

class opt_lock {
  public:
    explicit opt_lock(bool enabled) : enabled_(enabled) {}

    void lock()
    {
        if (UCS_UNLIKELY(enabled_)) {
            mutex_.lock();
        }
    }
    void unlock()
    {
        if (UCS_UNLIKELY(enabled_)) {
            mutex_.unlock();
        }
    }
    bool enabled() const { return enabled_; }

  private:
    const bool enabled_;
    std::recursive_mutex mutex_;
};

using opt_guard = std::lock_guard<opt_lock>;

} // namespace ucs
