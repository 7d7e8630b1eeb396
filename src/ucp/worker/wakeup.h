// SPDX-License-Identifier: BSD-3-Clause
//
// One descriptor that tells a sleeping user that the worker has something to do: an epoll set of
// the interfaces' descriptors and an eventfd of our own, for signals and connection events. Where
// an interface has no descriptor, a timer ends each sleep: UCX_WAKEUP_INTERVAL.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <ctime>

struct ucp_worker;

namespace ucp {

// UCP_WAKEUP_* as UCT_EVENT_*.
unsigned uct_events_of(unsigned events) noexcept;

struct wakeup {
    // external_fd: the user's epoll set, to which ours is added with `user_data`; -1: none.
    // uct_events: what the interfaces wake for. edge: only what is new makes the descriptor ready.
    wakeup(ucp_worker *worker, int external_fd, void *user_data, unsigned uct_events, bool edge);
    ~wakeup();
    wakeup(const wakeup &) = delete;
    wakeup &operator=(const wakeup &) = delete;

    // The worker's interfaces that are not watched yet. Throws ucs::error.
    void watch_ifaces();
    // UCS_ERR_BUSY: there are events, progress first. UCS_OK: the descriptor becomes readable with
    // the next event. The order inside makes sure that none is lost in between.
    ucs_status_t arm() noexcept;
    // Any thread.
    void signal() noexcept;
    void wait() noexcept;
    // Until the 8 bytes around `address` change, the worker has something to do, or a tenth of a
    // second is over: a change may have come before the call.
    void wait_memory(const void *address) noexcept;

    ucp_worker *const worker;
    const unsigned uct_events;
    int epoll_fd = -1;
    int event_fd = -1;
    int external_fd = -1;

  private:
    void close_all() noexcept;
    void open_timer();
    void start_timer() noexcept;
    bool needs_polling() const noexcept;

    const bool edge_;
    size_t watched_ = 0; // of the worker's interfaces
    std::atomic<bool> signaled_ = false;
    bool unwatched_ = false; // an interface has no descriptor: only polling finds what it has
    int timer_fd_ = -1;      // -1 as well where the interval is 0: there is no sleep then
    timespec interval_ = {};
};

} // namespace ucp
