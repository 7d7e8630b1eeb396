// SPDX-License-Identifier: BSD-3-Clause
// An interface of `sm`: its inbox, its bell, the peers that it sends to, and a watch over their
// lives. A timer of the process's helper thread looks about once a second whether the peers are
// still there; what it finds is told in progress, after everything that they had sent.
#pragma once

#include "ucs/async.h"
#include "ucs/mpool.h"
#include "uct/base/iface.h"
#include "uct/sm/address.h"
#include "uct/sm/bell.h"
#include "uct/sm/inbox.h"
#include "uct/sm/md.h"
#include "uct/sm/peer.h"
#include "uct/sm/remote_op.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

namespace uct::sm {

// An arrived message: the headroom stands in front of the payload.
struct descriptor {
    uct_recv_desc_t release;
    class iface *home;
    char *payload;
};

class iface final : public uct::iface {
  public:
    iface(uct_worker &worker, sm::md &domain, const uct_iface_params_t &params,
          const uct_iface_config &config);

    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p);
    ucs_status_t query(uct_iface_attr_t *attr);
    ucs_status_t get_device_address(uct_device_addr_t *to);
    ucs_status_t get_address(uct_iface_addr_t *to);
    int is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *to);
    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned flags);
    ucs_status_t event_fd_get(int *fd_p);
    ucs_status_t event_arm(unsigned events);
    unsigned progress();
    void close() { delete this; }

    size_t segment() const { return segment_; }
    const iface_address &address() const { return address_; }
    // Throws ucs::error. Gives a reference.
    peer &attach(const uct_device_addr_t *device, const void *to);
    // A peer that asked for something; nullptr: it cannot be reached.
    peer *answers_to(const iface_address &to) noexcept;
    void release(peer &p);
    // Something has shown that the peer may be gone: the next progress looks.
    void suspect(peer &p);
    void destroyed(ep &e) // by its user
    {
        if (failing_ == &e) {
            failing_ = nullptr;
        }
    }

    sm::md &domain;
    remote_ops operations;

  private:
    ~iface();

    peer &find_peer(const iface_address &to); // throws ucs::error
    void look();                              // on the helper thread
    UCS_NOINLINE unsigned attend();
    UCS_NOINLINE unsigned stay_armed(unsigned found);
    unsigned receive(unsigned most);
    UCS_NOINLINE unsigned send_waiting(bool idle);
    void declare_gone(peer &p);
    void bury(bool all);

    const size_t segment_;
    const size_t max_num_eps_; // asked for; 0: none
    const std::shared_ptr<inbox> inbox_;
    bell bell_;
    const uint64_t proof_; // peers read it
    const iface_address address_;
    ucs::mpool_base descriptors_;
    descriptor *spare_ = nullptr;
    unsigned round_ = 1;       // messages that the next progress() takes at most
    unsigned vain_rounds_ = 0; // in a row, while something waits for room in a peer's inbox
    ep *failing_ = nullptr;
    std::atomic<bool> attention_ = false; // set by look() and suspect()
    std::atomic<bool> armed_ = false;
    std::atomic<bool> holes_ = false;    // for look()
    std::atomic<bool> bury_all_ = false; // by look()
    std::mutex peers_mutex_;             // of the map, against look()
    std::map<uint64_t, std::unique_ptr<peer>> peers_;
    uint64_t looked_at_ = 0; // the nonce up to which look() has come
    unsigned looks_ = 0;
    ucs::async_watch event_watch_;
    ucs::async_watch timer_; // uses the members before it
};

} // namespace uct::sm
