// SPDX-License-Identifier: BSD-3-Clause
// An interface over connected core endpoints: it listens on its device, makes one connection to
// each peer when an endpoint is first asked for, and receives from all of them through one shared
// receive context.
#pragma once

#include "uct/ofi/address.h"
#include "uct/ofi/connection.h"
#include "uct/ofi/iface.h"

#include <map>
#include <memory>
#include <vector>

namespace uct::ofi {

class msg_iface final : public iface {
  public:
    msg_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
              const uct_iface_config &config);

    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p);
    ucs_status_t query(uct_iface_attr_t *attr);
    ucs_status_t get_device_address(uct_device_addr_t *address);
    ucs_status_t get_address(uct_iface_addr_t *address);
    int is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address);
    ucs_status_t event_fd_get(int *fd_p);
    ucs_status_t event_arm(unsigned events);
    unsigned progress();
    void close();

    // An endpoint that leaves has sent what it could; the connection stays.
    connection *find(uint64_t id);

  private:
    ~msg_iface() override;

    void listen();
    std::vector<fid_t> wait_fids() const;
    void open_receives(unsigned count);
    fid_ptr<fid_ep> make_endpoint(fi_info *info, connection *context);
    void connect(connection &c, const sockaddr_storage &to);
    connection &connect_to(const device_address &device, const msg_address &address);

    UCS_NOINLINE unsigned poll_eq();
    void on_request(fi_info *info, const hello &from, size_t length);
    void accept(fi_info *info, connection &c);
    void refuse(fi_info *info, refusal why);
    void on_connected(connection *c);
    void on_eq_error();
    void on_refused(connection *c, ucs_status_t status, refusal why);
    void end(connection *c, ucs_status_t status);
    void expire();
    void on_error(op *o, ucs_status_t status) override;
    hello about(uint64_t target, refusal why) const;
    connection *of(fid_t fid);
    unsigned fail_broken();

    uint64_t id_;
    uint64_t timeout_ns_;
    sockaddr_storage own_{};
    fid_ptr<fid_eq> eq_;
    fid_ptr<fid_pep> pep_;
    fid_ptr<fid_ep> srx_;
    std::map<uint64_t, std::unique_ptr<connection>> connections_; // by the peer's id
    std::vector<std::unique_ptr<connection>>
        loops_; // the accepted side of connections to ourselves
    std::vector<std::pair<connection *, ucs_status_t>> broken_; // an operation failed
    unsigned pending_ = 0;                                      // connections that are not up yet
    unsigned rounds_ = 0;                                       // since the event queue was read
    int epoll_fd_ = -1;
};

} // namespace uct::ofi
