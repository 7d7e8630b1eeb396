// SPDX-License-Identifier: BSD-3-Clause
// The sender's side of the order of messages: posting with a number, and what is kept of peers
// that left with messages on their way.
#include "uct/ofi/core/ep.h"
#include "uct/ofi/core/sequence.h"
#include "uct/ofi/rdm/rdm_iface.h"

#include <algorithm>
#include <cstring>
#include <rdma/fi_endpoint.h>

namespace uct::ofi {

ssize_t ep::post_numbered(buffer_op *b)
{
    size_t prefix = owner().limit.prefix;
    b->pieces.iov[0] = {b->data - prefix, prefix + b->length};
    b->pieces.descs[0] = b->desc;
    return post_numbered(b, 1, b->cq_data, nullptr);
}

bool ep::order_full() const
{
    return remote && remote->order && remote->order->full();
}

// The first piece is of the buffer and begins with room for the prefix.
ssize_t ep::post_numbered(buffer_op *b, size_t pieces, uint64_t data, uct_completion_t *completion)
{
    send_order &order = *remote->order;
    if (order.full()) {
        return -FI_EAGAIN;
    }
    order_prefix prefix = order.prefix();
    memcpy(b->data - sizeof(prefix), &prefix, sizeof(prefix));
    fi_msg message{.msg_iov = b->pieces.iov,
                   .desc = b->pieces.descs,
                   .iov_count = pieces,
                   .addr = address,
                   .context = static_cast<fi_context2 *>(b),
                   .data = data | am_sequenced};
    ssize_t ret =
        fi_sendmsg(target, &message, FI_REMOTE_CQ_DATA | FI_COMPLETION | FI_DELIVERY_COMPLETE);
    if (ret == 0) {
        b->order = &order;
        b->number = order.posted();
        posted(b, op::kind::numbered_send, completion);
        ring();
    }
    return ret;
}

void rdm_iface::remove_left()
{
    std::erase_if(left_peers_, [this](left_peer &left) {
        return left.order->idle() && fi_av_remove(av_.get(), &left.address, 1, 0) == 0;
    });
}

// What is on its way to a peer that comes back would be dropped if its numbers began anew.
bool rdm_iface::take_left(peer &p)
{
    auto left = std::find_if(left_peers_.begin(), left_peers_.end(),
                             [&](const left_peer &l) { return l.id == p.id && !l.lost; });
    if (left == left_peers_.end()) {
        return false;
    }
    p.order = std::move(left->order);
    p.address = left->address;
    left_peers_.erase(left);
    return true;
}

} // namespace uct::ofi
