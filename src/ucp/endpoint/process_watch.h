// SPDX-License-Identifier: BSD-3-Clause
//
// The watch over a process of this node, by its pidfd: one for all endpoints of this process that
// depend on it, of whatever worker. Only so many processes are watched; the peers in others are
// found dead by the transport, later.
#pragma once

#include "ucp/core/worker.h"
#include "ucs/async.h"

#include <memory>
#include <mutex>
#include <sys/types.h>
#include <vector>

namespace ucp {

class process_watch {
  public:
    static constexpr unsigned most = 256; // processes; descriptors are scarce

    // What an endpoint holds of it. When the process ends, the worker gets an event for it.
    class user {
      public:
        user(std::shared_ptr<process_watch> watch, ucp_worker *worker, uint64_t ep_id);
        user(const user &) = delete;
        user &operator=(const user &) = delete;
        ~user();

      private:
        friend class process_watch;
        const std::shared_ptr<process_watch> watch_;
        ucp_worker *const worker_;
        const event_promise promise_;
        const uint64_t ep_id_;
    };

    // nullptr: it cannot be watched. *ended: there is no such process. Throws ucs::error.
    static std::shared_ptr<process_watch> of(pid_t pid, bool *ended);
    explicit process_watch(int pidfd); // owns it; for of()
    process_watch(const process_watch &) = delete;
    process_watch &operator=(const process_watch &) = delete;
    ~process_watch();

  private:
    void tell_all(); // on the helper thread
    static void tell(const user &u) noexcept;

    const int pidfd_;
    std::mutex mutex_; // of what follows
    bool ended_ = false;
    std::vector<user *> users_;
    ucs::async_watch watch_; // uses the members before it
};

} // namespace ucp
