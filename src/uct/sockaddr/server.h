// SPDX-License-Identifier: BSD-3-Clause
// An interface that listens. A request is answered by uct_iface_accept() or uct_iface_reject();
// accepted connections are the interface's, and last until the client leaves or it closes.
#pragma once

#include "uct/sockaddr/iface.h"

#include <set>
#include <string>

namespace uct::sockaddr_mode {

class server final : public iface {
  public:
    server(uct_md &md, uct_worker &worker, const uct_iface_params_t &params);

    // The endpoints are the interface's own.
    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p);
    ucs_status_t accept(uct_conn_request_h request);
    ucs_status_t reject(uct_conn_request_h request);

  private:
    ~server() override;

    static void on_request(uct_listener_h listener, void *arg,
                           const uct_cm_listener_conn_request_args_t *args);
    static void on_notify(uct_ep_h ep, void *arg, const uct_cm_ep_server_conn_notify_args_t *args);
    static void on_disconnect(uct_ep_h ep, void *arg);
    void hand_out(uct_conn_request_h request, const std::string &data);
    void drop(uct_ep_h ep);

    uct_sockaddr_conn_request_callback_t callback_;
    void *callback_arg_;
    bool anywhere_;                     // the callback may run on another thread
    uct_listener_h listener_ = nullptr; // of use until it is destroyed, also meanwhile

    std::mutex mutex_; // taken before the connection manager's
    bool closing_ = false;
    std::set<uct_conn_request_h> queued_; // for the worker's progress
    std::set<uct_ep_h> accepted_;
};

const uct_iface_ops_t &server_table();

} // namespace uct::sockaddr_mode
