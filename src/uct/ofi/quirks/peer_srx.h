// SPDX-License-Identifier: BSD-3-Clause
// A shared receive context of ours in the place of the core's own, see fi_peer(3). For each message
// the core asks it for a buffer, and gets one of the interface's pool: no receive is posted,
// queued, matched and freed again, which is more than a quarter of what shm does for a small one.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>
#include <sys/uio.h>

// 1.18 locks differently around the question, and later versions have other fields in the entries.
#if FI_MAJOR_VERSION == 1 && FI_MINOR_VERSION == 17
#define UCXLIKE_PEER_SRX 1
#include <rdma/fi_ext.h>
#else
#define UCXLIKE_PEER_SRX 0
#endif

namespace uct::ofi {

class iface;
class md;
struct receive_op;

#if UCXLIKE_PEER_SRX

// What the core is told of a buffer.
struct peer_receive {
    fi_peer_rx_entry entry;
    iovec piece;
};

class peer_srx {
  public:
    static bool taken_by(const md &domain);
    // most: buffers that the core may have at once.
    peer_srx(iface &home, unsigned most);
    peer_srx(const peer_srx &) = delete;
    peer_srx &operator=(const peer_srx &) = delete;

    // Before the endpoint is enabled; this has to outlive the endpoint. Throws ucs::error.
    void bind(fid_domain *domain, fid_ep *endpoint);
    // Once for each buffer.
    static void prepare(receive_op *r);
    // The message in one was seen in the completion queue.
    void returned() { --shared_.taken; }

  private:
    static int get(fid_peer_srx *srx, fi_addr_t from, uint64_t size_or_tag,
                   fi_peer_rx_entry **entry);

    struct shared : fid_peer_srx {
        iface *home;
        unsigned most;
        unsigned taken;
    } shared_{};
    fi_ops_srx_peer peer_ops_{}; // the core's
};

#else

struct peer_receive {};

class peer_srx {
  public:
    static bool taken_by(const md &) { return false; }
    peer_srx(iface &, unsigned) {}
    void bind(fid_domain *, fid_ep *) {}
    static void prepare(receive_op *) {}
    void returned() {}
};

#endif

} // namespace uct::ofi
