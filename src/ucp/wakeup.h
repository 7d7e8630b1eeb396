// SPDX-License-Identifier: BSD-3-Clause
//
// One descriptor that tells a sleeping user that the worker has something to do: an epoll set of
// the interfaces' descriptors and an eventfd of our own, for signals and connection events.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>

struct ucp_worker;

namespace ucp {

struct wakeup {
    // external_fd: the user's epoll set, to which ours is added with `user_data`; -1: none.
    wakeup(ucp_worker *worker, int external_fd, void *user_data);
    ~wakeup();
    wakeup(const wakeup &) = delete;
    wakeup &operator=(const wakeup &) = delete;

    // UCS_ERR_BUSY: there are events, progress first. UCS_OK: the descriptor becomes readable with
    // the next event. The order inside makes sure that none is lost in between.
    ucs_status_t arm() noexcept;
    // Any thread.
    void signal() noexcept;
    void wait() noexcept;

    ucp_worker *const worker;
    int epoll_fd = -1;
    int event_fd = -1;
    int external_fd = -1;
};

} // namespace ucp
