// SPDX-License-Identifier: BSD-3-Clause
//
// Checking, every UCX_KEEPALIVE_INTERVAL, that the peers of endpoints with error handling can still
// be reached. Processes on this node are watched by their pidfd; this finds hosts and links that
// went without a word.
#pragma once

#include "ucp/core/worker.h"
#include "ucs/async.h"

#include <atomic>
#include <cstdint>

namespace ucp {

class keepalive {
  public:
    keepalive(ucp_worker *worker, double interval, unsigned eps_per_round);

    // Checks the next endpoints in turn; in progress.
    void run_round() noexcept;

  private:
    ucp_worker *worker_;
    unsigned eps_per_round_;
    size_t next_ = 0;
    std::atomic<bool> due_{false}; // an event for progress is on its way
    event_promise promise_;
    ucs::async_watch timer_; // last: its callback uses the others
};

} // namespace ucp
