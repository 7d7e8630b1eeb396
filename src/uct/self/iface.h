// SPDX-License-Identifier: BSD-3-Clause
// The interface of `self`: a message is copied into a descriptor and waits in a queue until the
// interface is progressed.
#pragma once

#include "ucs/mpool.h"
#include "ucs/sys.h"
#include "uct/base/config.h"
#include "uct/base/iface.h"
#include "uct/base/md.h"

namespace uct::self {

constexpr size_t max_pieces = 16;
constexpr size_t max_header = 512;

class iface;

// A message on its way; the payload follows, headroom in front of it.
struct message {
    uct_recv_desc_t release;
    iface *home;
    message *next;
    char *payload;
    size_t length;
    uint8_t id;
};

class iface final : public uct::iface {
  public:
    iface(uct_worker &worker, uct_md &md, const uct_iface_params_t &params,
          const uct_iface_config &config);

    size_t segment() const { return segment_; }

    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p);
    ucs_status_t query(uct_iface_attr_t *attr);
    ucs_status_t get_device_address(uct_device_addr_t *address);
    ucs_status_t get_address(uct_iface_addr_t *address);
    int is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address);
    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned) { return UCS_OK; }
    ucs_status_t event_fd_get(int *fd);
    ucs_status_t event_arm(unsigned events);
    unsigned progress();
    void close() { delete this; }

    // nullptr: too many wait. What the user keeps does not count.
    message *get()
    {
        return UCS_LIKELY(queued_ < most_queued_) ? static_cast<message *>(messages_.get())
                                                  : nullptr;
    }
    void put(message *m) { messages_.put(m); }
    void send(message *m, uint8_t id, size_t length)
    {
        m->id = id;
        m->length = length;
        queue_.push(m);
        ++queued_;
        if (UCS_UNLIKELY(armed_)) {
            wake();
        }
    }

  private:
    UCS_NOINLINE unsigned deliver_queued();
    ~iface();
    UCS_NOINLINE void wake();

    struct address {
        uint64_t id;
    };

    const uint64_t id_ = ucs::random_u64();
    const size_t segment_;
    const size_t max_num_eps_; // asked for; 0: none
    const unsigned most_queued_;
    ucs::mpool_base messages_;
    ucs::queue<message, &message::next> queue_;
    unsigned queued_ = 0;
    int event_fd_ = -1;
    bool armed_ = false; // a sender wakes the thread that sleeps on event_fd_
};

} // namespace uct::self
