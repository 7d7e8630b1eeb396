// SPDX-License-Identifier: BSD-3-Clause
// See peer_srx.h.
#include "uct/ofi/quirks/peer_srx.h"

#if UCXLIKE_PEER_SRX

#include "uct/ofi/core/error.h"
#include "uct/ofi/core/iface.h"

namespace uct::ofi {

bool peer_srx::taken_by(const md &domain)
{
    // There shm has no receives of tagged messages for us (see limits::tagged): all come here.
    return domain.on_node() && fi_version() == FI_VERSION(1, 17);
}

peer_srx::peer_srx(iface &home, unsigned most)
{
    static_assert(sizeof(size_t) == sizeof(uint64_t), "get() serves messages with and without tag");
    // None is queued: there is a buffer, or the core asks again later.
    static fi_ops_srx_owner owner_ops = {
        .size = sizeof(fi_ops_srx_owner),
        .get_msg = get,
        .get_tag = get,
        .queue_msg = [](fi_peer_rx_entry *) { return -FI_ENOSYS; },
        .queue_tag = [](fi_peer_rx_entry *) { return -FI_ENOSYS; },
        .free_entry = [](fi_peer_rx_entry *) {}, // the buffer's own
    };
    peer_ops_.size = sizeof(peer_ops_);
    shared_.ep_fid.fid.fclass = FI_CLASS_SRX_CTX;
    shared_.owner_ops = &owner_ops;
    shared_.peer_ops = &peer_ops_;
    shared_.home = &home;
    shared_.most = most;
}

void peer_srx::bind(fid_domain *domain, fid_ep *endpoint)
{
    fi_rx_attr attr{};
    attr.op_flags = FI_PEER;
    fi_peer_srx_context context{.size = sizeof(context), .srx = &shared_};
    fid_ep *none = nullptr;
    check(fi_srx_context(domain, &attr, &none, &context), "fi_srx_context with FI_PEER");
    check(fi_ep_bind(endpoint, &shared_.ep_fid.fid, 0), "fi_ep_bind to a peer's receive context");
}

void peer_srx::prepare(receive_op *r)
{
    r->peer = {};
    fi_peer_rx_entry &entry = r->peer.entry;
    entry.flags = FI_COMPLETION;
    entry.context = static_cast<fi_context2 *>(r);
    entry.count = 1;
    entry.desc = &r->desc;
    entry.iov = &r->peer.piece;
}

// From the core's progress, with its locks held.
int peer_srx::get(fid_peer_srx *srx, fi_addr_t, uint64_t, fi_peer_rx_entry **entry)
{
    auto *self = static_cast<shared *>(srx);
    iface &home = *self->home;
    receive_op *r = UCS_LIKELY(self->taken < self->most) ? home.get_receive() : nullptr;
    if (UCS_UNLIKELY(!r)) {
        return -FI_EAGAIN; // the message stays where its sender put it
    }
    ++self->taken;
    // The core moves the piece on while it copies.
    r->peer.piece = {.iov_base = r->payload, .iov_len = home.limit.segment};
    r->peer.entry.srx = srx;
    *entry = &r->peer.entry;
    return 0;
}

} // namespace uct::ofi

#endif
