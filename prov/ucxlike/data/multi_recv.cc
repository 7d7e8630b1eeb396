// SPDX-License-Identifier: BSD-3-Clause
//
// Buffers that take one message after the other (FI_MULTI_RECV).
#include "prov/ucxlike/data/rx.h"

#include "prov/ucxlike/queue/cq.h"

namespace ucxlike {

// The part of a multi-receive buffer that a message of this length gets.
rx_op *rx_queue::slice(rx_op *multi, size_t length)
{
    rx_op *r = eng_->rx_ops.get();
    if (!r) {
        return nullptr;
    }
    r->owner = multi->owner;
    r->context = multi->context;
    r->flags = multi->flags;
    r->key = multi->key;
    r->total = multi->total - multi->used;
    r->count = 1;
    r->iov[0] = {static_cast<char *>(multi->iov[0].iov_base) + multi->used, r->total};
    r->parent = multi;
    multi->used += std::min(length, r->total);
    ++multi->children;
    size_t least = (multi->owner ? multi->owner->min_multi_recv : limit::min_multi_recv);
    if (multi->total - multi->used < std::max<size_t>(least, 1)) {
        plain_.remove(multi);
        multi->retired = true;
    }
    return r;
}

// The buffer has no room for the next message: it goes back to the application.
void rx_queue::retire(rx_op *multi)
{
    plain_.remove(multi);
    multi->retired = true;
    if (multi->children) {
        return;
    }
    if (cq *q = cq_of(multi->owner)) {
        q->write({multi->context, FI_MULTI_RECV, 0, nullptr, 0, 0, FI_ADDR_NOTAVAIL});
    }
    eng_->rx_ops.put(multi);
}

// Takes the messages that wait, as far as they go in, and stays posted if there is room for more.
void rx_queue::post_multi(rx_op *multi)
{
    plain_.add_recv(multi);
    while (auto *u = static_cast<msg_in *>(plain_.find_msg(multi->key, 0))) {
        if (multi->used && u->length > multi->total - multi->used) {
            retire(multi);
            return;
        }
        rx_op *part = slice(multi, u->length);
        if (!part) {
            return;
        }
        bool last = multi->retired;
        plain_.remove(u);
        take(part, u);
        if (last) {
            return;
        }
    }
    if (closed_ && multi->is_waiting()) {
        plain_.remove(multi);
        fail(multi, closed_);
    }
}

} // namespace ucxlike
