// SPDX-License-Identifier: BSD-3-Clause
// An interface over connected core endpoints: it listens on its device, makes one connection to
// each peer when an endpoint is first asked for, and receives from all of them through one shared
// receive context.
#pragma once

#include "ucs/biased_lock.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/core/iface.h"
#include "uct/ofi/fabric/routes.h"
#include "uct/ofi/msg/companion.h"
#include "uct/ofi/msg/connection.h"

#include <map>
#include <memory>
#include <vector>

namespace uct::ofi {

class msg_iface final : public iface {
  public:
    msg_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
              const uct_iface_config &config);

    ucs_status_t query(uct_iface_attr_t *attr);
    ucs_status_t get_device_address(uct_device_addr_t *address);
    ucs_status_t get_address(uct_iface_addr_t *address) { return write_address(address); }
    int is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address);
    ucs_status_t event_fd_get(int *fd_p);
    ucs_status_t event_arm(unsigned events);
    unsigned progress();
    void close();
    void probe(ep &e) override;
    void send_gathered() override
    {
        if (companion_) {
            companion_->send_gathered();
        }
    }

    // An endpoint that leaves has sent what it could; the connection stays.
    connection *find(uint64_t id);

    // What the core needs besides; before the first progress.
    void join(std::unique_ptr<companion> c) { companion_ = std::move(c); }

    // The program's threads own it, a thread of the companion visits.
    ucs::biased_lock &lock() { return lock_; }
    // Shows that peers read, among other things; -1: the core has none.
    int reads_fd() const;
    // Lets the core answer what peers read, and leaves what arrived where it is: true if there is
    // such, and the thread that sleeps for it is woken.
    bool serve_reads();

  private:
    ~msg_iface() override;

    void listen(port_range ports);
    int listen_at(uint16_t port);
    int listen_within(port_range ports);
    void deliver_gathered(char *data, size_t length) override;
    std::vector<fid_t> wait_fids() const;
    void open_receives(unsigned count, bool at_once);
    void open_endpoint(connection &c, fi_info *info);
    void connect(ep &from, const peer_address &to) override;
    void check_peers() override;
    void look_after(const std::vector<connection *> &connected);
    void note_broken(connection &c, ucs_status_t status);
    void for_each_ep(const std::function<void(ep &)> &call) override;
    ucs_status_t write_address(uct_iface_addr_t *address) override;
    void begin(connection &c, sockaddr_storage to);
    void connect_again(connection &c);
    connection &connect_to(const device_address &device, const msg_address &address);

    unsigned read_queue();
    UCS_NOINLINE unsigned poll_eq();
    void on_request(fi_info *info, const hello *from);
    bool keeps(connection &existing, const hello &from);
    void accept(fi_info *info, connection &c, const hello &from);
    void refuse(fi_info *info, refusal why);
    ucs::spoken hear(const void *bytes, size_t length, hello *said) const;
    void on_connected(connection *c, const hello *answer);
    void on_eq_error();
    void on_refused(connection *c, ucs_status_t status, refusal why);
    void end(connection *c, ucs_status_t status);
    void set_deadline(connection &c, uint64_t when);
    void expire();
    UCS_NOINLINE void end_silent();
    void on_error(op *o, ucs_status_t status) override;
    hello about(uint64_t target, refusal why) const;
    unsigned fail_broken();

    uint64_t id_;
    uint64_t timeout_ns_;
    uint64_t silence_ns_;    // of a connection that has not asked for anything; UINT64_MAX: any
    uint64_t next_look_ = 0; // at those
    handshake_watch handshakes_;
    unsigned looks_ = 0;    // at the event queue, since the clock was read for them
    uint64_t attempts_ = 0; // connections begun
    sockaddr_storage own_{};
    routes routes_;
    fid_ptr<fid_eq> eq_;
    fid_ptr<fid_pep> pep_;
    fid_ptr<fid_ep> srx_;
    endpoint_index<connection> endpoints_;
    pending_connections pending_; // are not up yet
    waiting_connections waiting_; // of them, those that wait for the peer's request
    std::map<uint64_t, std::unique_ptr<connection>> connections_; // by the peer's id
    std::vector<std::unique_ptr<connection>>
        loops_;                 // the accepted side of connections to ourselves
    broken_connections broken_; // an operation failed
    unsigned rounds_ = 0;       // since the event queue was read
    ucs::biased_lock lock_;
    std::unique_ptr<companion> companion_;
    bool exposed_ = false; // the companion knows that memory is
};

uct_iface *open_msg_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config);

} // namespace uct::ofi
