// SPDX-License-Identifier: BSD-3-Clause
// Connections by address and port: what stands behind the handles of a connection manager, its
// listeners and its endpoints. A transport derives from these; uct/api/cm.cc calls them. Methods
// throw ucs::error unless they return a status.
#pragma once

#include <uct/api/uct.h>
#include <uct/api/v2/uct_v2.h>

// The head is an interface, because uct.h finds the calls of an endpoint through one. Only the
// slots of a connection endpoint do something.
struct uct_cm : uct_iface {
    explicit uct_cm(uct_component &component);
    uct_cm(const uct_cm &) = delete;
    uct_cm &operator=(const uct_cm &) = delete;
    virtual ~uct_cm() = default; // listeners and endpoints are gone

    virtual void query(uct_cm_attr_t *attr) const = 0;
    virtual uct_listener *listen(const sockaddr *address, const uct_listener_params_t &params) = 0;
    // A client (params has SOCKADDR) or a server (CONN_REQUEST, used up in every case).
    // That the client of a request has gone is a status, not an exception.
    virtual ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p) = 0;

    uct_component &component;
};

namespace uct {

class cm_listener : public uct_listener {
  public:
    // Waits until a running conn_request_cb has returned, unless called in it.
    virtual ~cm_listener() = default;
    virtual void query(uct_listener_attr_t *attr) const = 0;
    virtual ucs_status_t reject(uct_conn_request_h request) = 0;
};

// The methods have the names and arguments of the interface table's slots.
class cm_ep : public uct_ep {
  public:
    // Waits until a running callback of this endpoint has returned, unless called in it.
    virtual ~cm_ep() = default;
    virtual ucs_status_t connect(const uct_ep_connect_params_t *params) = 0;
    virtual ucs_status_t disconnect(unsigned flags) = 0;
    virtual ucs_status_t conn_notify() = 0;
    virtual ucs_status_t query(uct_ep_attr_t *attr) = 0;
    void destroy() { delete this; }
};

} // namespace uct
