// SPDX-License-Identifier: BSD-3-Clause
//
// A passive endpoint: a UCP listener. A request waits, unanswered, for fi_accept or fi_reject.
#pragma once

#include "prov/ucxlike/connect/msg.h"

namespace ucxlike {

class pep final : public fid_pep, public acceptor {
  public:
    static int open(fid_fabric *fab, fi_info *info, fid_pep **out, void *context);

    void connected(ucp_conn_request_h request) override;
    conn *identify(link *, const wire::message &) override { return nullptr; }

    void forget(msg_conn *c); // it has an endpoint now, or is gone
    // The address, for an active endpoint that takes this one's place.
    address hand_over();

  private:
    pep(fabric *fab, const fi_info &info, void *context);
    ~pep();
    int assign(address at);
    void requested(msg_conn *c, std::string_view data);

    static int close(fid_t f);
    static int bind(fid_t f, fid_t other, uint64_t flags);
    static int control(fid_t f, int command, void *arg);
    static int setname(fid_t f, void *addr, size_t length);
    static int getname(fid_t f, void *addr, size_t *length);
    static int listen(fid_pep *f);
    static int reject(fid_pep *f, fid_t handle, const void *param, size_t length);
    static int getopt(fid_t f, int level, int name, void *value, size_t *length);
    static fi_ops fid_ops_;
    static fi_ops_ep ep_ops_;
    static fi_ops_cm cm_ops_;

    fabric *fabric_;
    engine *eng_;
    eq *events_ = nullptr;
    fi_info *info_;
    address name_;
    int holder_ = -1; // a socket that keeps the port until fi_listen
    int backlog_;     // requests without an answer yet
    ucp_listener_h listener_ = nullptr;
    std::vector<msg_conn *> conns_;
};

} // namespace ucxlike
