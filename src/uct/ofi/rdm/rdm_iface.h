// SPDX-License-Identifier: BSD-3-Clause
// An interface over one connectionless core endpoint and its address vector: shared memory, and the
// cores with native reliable datagrams.
#pragma once

#include "uct/ofi/core/address.h"
#include "uct/ofi/core/ep.h"
#include "uct/ofi/core/iface.h"
#include "uct/ofi/rdm/idle_polls.h"
#include "uct/ofi/rdm/node.h"
#include "uct/ofi/rdm/tag.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace uct::ofi {

// What the core has of an interface. In one process it maps each region once, so that an endpoint
// may not be closed while others here send to it: those share it until they hear of its end.
struct core_endpoint {
    std::shared_ptr<fid_fabric> fabric;
    std::shared_ptr<fid_domain> domain;
    fid_ptr<fid_cq> cq;
    fid_ptr<fid_av> av;
    fid_ptr<fid_ep> ep;
};

// A remote interface that endpoints of ours send to.
struct peer {
    uint64_t id;
    fi_addr_t address;
    std::string name; // the core's address
    rdm_address about;
    std::unique_ptr<neighbour> near;   // on-node
    std::unique_ptr<send_order> order; // where messages have a prefix
    // The endpoints that carry its regions: that of its own domain, in keys of it first.
    struct carrier {
        std::string name;
        fi_addr_t address;
    };
    static constexpr size_t most_carriers = 16;
    std::vector<carrier> carriers;
    ucs::list<ep, &ep::sibling> eps;
    // While there is no connection; 0: not refused. Of sends, and of pings.
    uint64_t refused_since = 0;
    uint64_t refused_last = 0;
    uint64_t unanswered_since = 0;
    size_t refs = 0; // endpoints, also those that left the list because they failed
    bool failed = false;
    bool unfinished = false; // its endpoints ended before what they had posted
    bool stuck = false;      // so they did because it had died
    uint64_t buried = 0;     // when, among the dead without endpoints
    ucs_status_t cause = UCS_ERR_CONNECTION_RESET; // of its death
    std::atomic<bool> dead = false;                // also set by other threads
    class rdm_iface *home;
    std::shared_ptr<core_endpoint> kept; // closed in this one

    ~peer();
    // Lets go of what a dead peer without endpoints needs no more.
    void rest();
};

class rdm_iface final : public iface {
  public:
    rdm_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
              const uct_iface_config &config, make_node *on_node);

    ucs_status_t query(uct_iface_attr_t *attr);
    ucs_status_t get_device_address(uct_device_addr_t *address);
    ucs_status_t get_address(uct_iface_addr_t *address) { return write_address(address); }
    int is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address);
    ucs_status_t event_fd_get(int *fd_p);
    ucs_status_t event_arm(unsigned events);
    ucs_status_t tag_recv_zcopy(uct_tag_t tag, uct_tag_t mask, const uct_iov_t *iov, size_t count,
                                uct_tag_context_t *context);
    ucs_status_t tag_recv_cancel(uct_tag_context_t *context, int force);
    unsigned progress();
    void close();
    ucs::biased_lock &lock() { return idle_polls_->lock; }
    uint64_t polls() const { return idle_polls_->polls(); } // for tests; where the core needs them

    // An endpoint to the peer is gone.
    void forget(peer &p) override;
    // The core refused a send of an endpoint that has sent nothing yet. One that makes connections
    // by itself tries for ever: after the time that a connection may take, without a longer pause
    // between the tries, the peer counts as unreachable. Others have no room, also for long.
    void not_reached(peer &p) override;
    void left_with_core(peer &p, bool failed) override;
    bool move_core() override;
    bool find_carrier(ep &from, const std::string &name, fi_addr_t *to_p) override;

  private:
    ~rdm_iface() override;

    static unsigned poll_locked(void *arg);
    void connect(ep &from, const peer_address &to) override;
    void check_peers() override;
    ucs_status_t arm_node();
    ucs_status_t arm_queue();
    void for_each_ep(const std::function<void(ep &)> &call) override;
    ucs_status_t write_address(uct_iface_addr_t *address) override;
    void open_endpoint(const uct_iface_config &config);
    address_kind own_kind() const;
    bool read_peer(const uct_iface_addr_t *from, size_t available, rdm_address *about) const;
    peer &find_peer(const rdm_address &about, const char *name);
    peer &wake(peer &p);
    void look_after(peer &p);
    void insert_address(peer &p);
    void remove_addresses(peer &p);
    // Peers that left: see left_peer. False: the peer was none of them.
    bool take_left(peer &p);
    void remove_left();
    void put_to_rest(peer &p);
    void clear_away(peer &p);
    void bury(peer &p);
    void bury_resting();
    void bury_closed();
    void remove_dead();
    static bool watch_local(peer &p);
    void tell_local_peers();
    unsigned bury_dead();
    bool greet_newcomers(); // false: there is no news
    unsigned hear_news();
    void declare_dead(peer &p, ucs_status_t cause);
    void process_died(peer &p);
    // It takes whatever has a connection, and makes a new one when that is lost.
    bool connects_itself() const { return domain.provider.sockets(); }
    sockaddr_storage own_sockaddr() const;
    void on_error(op *o, ucs_status_t status) override;
    static bool fails_alone(const op &o, ucs_status_t status);
    void on_unowned(op *o, ucs_status_t status) override;

    std::unique_ptr<tag_receives> tags_; // when the user first shows interest
    fid_ptr<fid_av> av_;
    fid_ptr<fid_ep> ep_;
    uint64_t id_;
    uint64_t timeout_ns_;
    std::string name_;
    std::unique_ptr<node> node_;                  // on-node
    const std::atomic<uint32_t> *news_ = nullptr; // of it
    std::map<uint64_t, std::unique_ptr<peer>> peers_;
    std::map<uint64_t, std::unique_ptr<peer>> resting_; // see forget()
    // Of peers that left while messages were on their way: those have their numbers and the
    // address.
    struct left_peer {
        uint64_t id;
        std::unique_ptr<send_order> order;
        fi_addr_t address;
        bool lost; // it is taken for dead
    };
    std::vector<left_peer> left_peers_;
    uint32_t epochs_ = 0; // of orders, ever
    uint64_t buried_ = 0;
    std::atomic<bool> someone_died_ = false;
    std::unique_ptr<idle_polls> idle_polls_; // where a core needs its target to poll
};

uct_iface *open_rdm_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config);

} // namespace uct::ofi
