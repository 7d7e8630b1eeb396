// SPDX-License-Identifier: BSD-3-Clause
// Says when the peers of an interface are to be checked. The timer runs on the helper thread, the
// checks in progress; the descriptor wakes a thread that sleeps until there is something to
// progress.
#pragma once

#include "ucs/async.h"

#include <atomic>
#include <cstdint>

namespace uct::ofi {

class keepalive {
  public:
    explicit keepalive(uint64_t interval_ns); // throws ucs::error
    keepalive(const keepalive &) = delete;
    keepalive &operator=(const keepalive &) = delete;
    ~keepalive();

    int fd() const { return fd_; } // readable while a check is due
    bool due() const { return due_.load(std::memory_order_relaxed); }
    // The check is being made; the next one is due after an interval.
    void begun();

  private:
    std::atomic<bool> due_ = false;
    int fd_;
    ucs::async_watch timer_; // uses the members before it
};

} // namespace uct::ofi
