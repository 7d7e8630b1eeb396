// SPDX-License-Identifier: BSD-3-Clause
//
// A listener: an address where clients connect, and the user's handler for them.
#pragma once

#include "ucp/connect/cm.h"
#include "ucs/list.h"

#include <memory>

struct ucp_listener {
    ucp_listener(ucp_worker *worker, const ucp_listener_params_t *params);
    ~ucp_listener();
    ucp_listener(const ucp_listener &) = delete;
    ucp_listener &operator=(const ucp_listener &) = delete;

    // From the connection manager's thread. UCS_ERR_REJECTED: the listener is going. Throws
    // bad_alloc.
    ucs_status_t post(std::unique_ptr<ucp_conn_request> request);

    ucp_worker *const worker;
    const uint64_t id; // not of another listener of the worker, also of one that is gone
    uct_listener_h uct = nullptr;
    ucp_listener_conn_handler_t conn = {};
    ucp_listener_accept_handler_t accept = {};
    bool closing = false;                      // guarded by worker->event_mutex
    std::vector<ucp_conn_request *> delivered; // unanswered; guarded by context->lock

  private:
    using requests = ucs::list<ucp_conn_request, &ucp_conn_request::unheard>;
    void take_unheard(requests *unheard) noexcept;
};

namespace ucp {

// The requests that may wait, as UCX_LISTENER_BACKLOG says.
unsigned listener_backlog(const ucp_context &context) noexcept;

} // namespace ucp
