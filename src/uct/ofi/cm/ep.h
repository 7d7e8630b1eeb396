// SPDX-License-Identifier: BSD-3-Clause
// The endpoint that the user holds: its callbacks and a connection. It passes calls to the
// connection under the engine's mutex.
#pragma once

#include "uct/base/cm.h"
#include "uct/ofi/cm/conn.h"

#include <memory>

namespace uct::ofi {

class cm_ep final : public uct::cm_ep {
  public:
    // A client or a server, by the parameters, which were checked. Throws ucs::error. Fills *handle
    // before a callback can run.
    cm_ep(uct_cm &cm, std::shared_ptr<cm_engine> engine, const uct_ep_params_t &params,
          uct_ep_h *handle);
    ~cm_ep() override;

    ucs_status_t connect(const uct_ep_connect_params_t *params) override;
    ucs_status_t disconnect(unsigned flags) override;
    ucs_status_t conn_notify() override;
    ucs_status_t query(uct_ep_attr_t *attr) override;

    // Where a member is nullptr the user did not ask.
    struct callbacks {
        uct_cm_ep_resolve_callback_t resolve;
        uct_cm_ep_priv_data_pack_callback_t pack;
        uct_cm_ep_client_connect_callback_t connect;
        uct_cm_ep_server_conn_notify_callback_t notify;
        uct_ep_disconnect_cb_t disconnect;
        void *user_data;
    };
    const callbacks &user() const { return callbacks_; }

  private:
    void create_client(const uct_ep_params_t &params, uct_ep_h *handle);
    void create_server(const uct_ep_params_t &params, uct_ep_h *handle);
    void answer(cm_conn *request, const void *data, size_t length, uct_ep_h *handle);

    std::shared_ptr<cm_engine> engine_; // where the connection runs: the listener's, or the cm's
    callbacks callbacks_;
    cm_conn *conn_ = nullptr;
};

} // namespace uct::ofi
