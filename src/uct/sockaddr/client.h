// SPDX-License-Identifier: BSD-3-Clause
// An interface whose endpoints connect to an address, and such an endpoint. A flush of the endpoint
// completes when the server has answered: UCS_OK when it accepted.
#pragma once

#include "uct/sockaddr/iface.h"

#include <string>
#include <vector>

namespace uct::sockaddr_mode {

class client final : public iface {
  public:
    client(uct_md &md, uct_worker &worker, const uct_iface_params_t &params);
    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p);
};

//   connecting ── connected ── ended
//        └────────────────────── ended
class client_ep final : public uct_ep {
  public:
    client_ep(client &owner, const uct_ep_params_t &params);
    client_ep(const client_ep &) = delete;
    client_ep &operator=(const client_ep &) = delete;

    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned) { return status(); }
    ucs_status_t check(unsigned, uct_completion_t *) { return status(); }
    ucs_status_t pending_add(uct_pending_req_t *, unsigned) { return UCS_ERR_BUSY; }
    void pending_purge(uct_pending_purge_callback_t, void *) {} // nothing is ever pending
    ucs_status_t disconnect(unsigned flags);
    void destroy() { delete this; }

  private:
    ~client_ep();

    static ucs_status_t on_resolve(void *arg, const uct_cm_ep_resolve_args_t *args);
    static void on_connect(uct_ep_h ep, void *arg, const uct_cm_ep_client_connect_args_t *args);
    static void on_disconnect(uct_ep_h ep, void *arg);

    void send_request(const uct_cm_ep_priv_data_pack_args_t &args);
    void connected(const uct_cm_remote_data_t &data);
    void end(ucs_status_t status); // and the user is told
    void tell_end(ucs_status_t status);
    void settle(); // what waits for the answer is completed in progress
    ucs_status_t status();
    uct_ep_h connection();

    // Runs a callback of the user at once, or where it may run.
    template <class F>
    void tell(bool anywhere, F &&call);

    client &owner_;
    uct_cm_ep_priv_data_pack_callback_t pack_ = nullptr;
    uct_cm_ep_client_connect_callback_t connect_ = nullptr;
    uct_ep_disconnect_cb_t disconnect_ = nullptr;
    void *user_data_ = nullptr;
    bool anywhere_ = false; // callbacks may run on another thread

    calls later_;
    std::mutex mutex_;
    uct_ep_h connection_ = nullptr; // the connection manager's endpoint
    bool up_ = false;
    ucs_status_t status_ = UCS_OK; // why it ended
    std::vector<uct_completion_t *> waiting_;
};

const uct_iface_ops_t &client_table();

} // namespace uct::sockaddr_mode
