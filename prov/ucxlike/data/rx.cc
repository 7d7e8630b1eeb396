// SPDX-License-Identifier: BSD-3-Clause
//
// A message arrives: it finds its receive, moves to its place, and the receive completes.
#include "prov/ucxlike/data/rx.h"

#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"

#include "ucs/copy.h"

namespace ucxlike {

rx_queue::~rx_queue()
{
    for (matcher *m : {&plain_, &tagged_}) {
        while (auto *r = static_cast<rx_op *>(m->first_recv())) {
            m->remove(r);
            eng_->rx_ops.put(r);
        }
    }
    // Receives under way end without a word: their callbacks find no owner.
    while (rx_op *r = active_.pop_front()) {
        r->queue = nullptr;
        r->parent = nullptr;
    }
    for (matcher *m : {&plain_, &tagged_}) {
        while (auto *u = static_cast<msg_in *>(m->first_msg())) {
            m->remove(u);
            drop(u);
        }
    }
    for (auto &[context, u] : claimed_) {
        drop(u);
    }
}

// ---- completion ----

// The message is in its place. A sender that asked for the delivery is told before the receive
// completes: after that the application may progress no more.
void rx_queue::finish(rx_op *r, int error)
{
    r->error = error;
    if (UCS_LIKELY(!(r->m.flags & wire::has_ack)) || !r->from->tx || acknowledge(r)) {
        report(r);
    }
}

// True when the word is on its way or never will be; else its end reports the receive.
bool rx_queue::acknowledge(rx_op *r)
{
    conn *from = r->from;
    wire::builder b(r->ack);
    b.tag(r->m.ack);
    b.data(static_cast<uint64_t>(r->error));
    ucp_request_param_t p;
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER;
    p.cb.send = on_acknowledged;
    p.user_data = r;
    from->answers();
    ucs_status_ptr_t s = ucp_am_send_nbx(from->tx->ep, wire::am_control, r->ack,
                                         b.finish(from->tx_id, wire::acked), nullptr, 0, &p);
    if (UCS_PTR_IS_ERR(s) && !from->tx->closing) {
        eng_->fail(from->tx, UCS_PTR_STATUS(s)); // the peer waits for the word
    }
    if (!UCS_PTR_IS_PTR(s)) {
        return true;
    }
    r->queue = this;
    ++from->outstanding;
    active_.push_back(r);
    return false;
}

// UCP is done with a receive: `then` goes on with it, if its queue is still there.
template <class F>
void rx_queue::released(void *request, rx_op *r, F &&then)
{
    ucp_request_free(request);
    conn *from = r->from;
    engine *e = from->eng;
    if (rx_queue *q = r->queue) {
        r->node.unlink();
        then(q);
    } else {
        e->rx_ops.put(r);
    }
    if (--from->outstanding == 0) {
        from->drained();
    }
}

void rx_queue::on_acknowledged(void *request, ucs_status_t, void *arg)
{
    auto *r = static_cast<rx_op *>(arg);
    released(request, r, [r](rx_queue *q) { q->report(r); });
}

void rx_queue::report(rx_op *r)
{
    size_t length = std::min(r->length, r->total);
    int error = r->error;
    endpoint *ep = r->owner ? r->owner : r->from->owner;
    uint64_t flags = FI_RECV | (r->flags & FI_TAGGED ? FI_TAGGED : FI_MSG) |
                     (r->m.flags & wire::has_data ? FI_REMOTE_CQ_DATA : 0);
    if (UCS_UNLIKELY(r->parent)) {
        rx_op *multi = r->parent;
        if (--multi->children == 0 && multi->retired) {
            flags |= FI_MULTI_RECV;
            eng_->rx_ops.put(multi);
        }
    }
    if (UCS_LIKELY(ep)) {
        completion c = {r->context, flags,    length,       r->count ? r->iov[0].iov_base : nullptr,
                        r->m.data,  r->m.tag, r->from->addr};
        if (UCS_UNLIKELY((ep->caps & FI_SOURCE_ERR) && c.source == FI_ADDR_NOTAVAIL && !error)) {
            address stranger = r->from->source();
            if (ep->rx_cq) {
                ep->rx_cq->write_error(c, FI_EADDRNOTAVAIL, FI_EADDRNOTAVAIL, 0, &stranger.sa,
                                       stranger.length());
            }
            if (ep->recv_cntr) {
                ep->recv_cntr->count(); // the data has arrived
            }
        } else if (UCS_LIKELY(!error)) {
            if (ep->rx_cq &&
                (!ep->rx_selective || (r->flags & FI_COMPLETION) || (flags & FI_MULTI_RECV))) {
                ep->rx_cq->write(c);
            }
            if (UCS_UNLIKELY(ep->recv_cntr) && !(r->flags & FI_DISCARD)) {
                ep->recv_cntr->count();
            }
        } else {
            size_t over = error == FI_ETRUNC ? r->length - r->total : 0;
            if (ep->rx_cq) {
                ep->rx_cq->write_error(c, error, error, over);
            }
            if (ep->recv_cntr) {
                ep->recv_cntr->count_error();
            }
        }
    }
    eng_->rx_ops.put(r);
}

// ---- moving data ----

static void scatter(const rx_op *r, const void *data, size_t length)
{
    if (UCS_LIKELY(r->count == 1)) {
        ucs::copy_small(r->iov[0].iov_base, data, length);
        return;
    }
    auto *from = static_cast<const char *>(data);
    for (size_t i = 0; i < r->count && length; ++i) {
        size_t n = std::min(length, r->iov[i].iov_len);
        ucs::copy(r->iov[i].iov_base, from, n);
        from += n;
        length -= n;
    }
}

static int fetched(const rx_op *r, ucs_status_t status)
{
    return r->length > r->total ? FI_ETRUNC : errno_of(status);
}

void rx_queue::on_fetched(void *request, ucs_status_t status, size_t, void *arg)
{
    auto *r = static_cast<rx_op *>(arg);
    released(request, r, [r, status](rx_queue *q) { q->finish(r, fetched(r, status)); });
}

// True when the receive is already over.
bool rx_queue::fetch(rx_op *r, void *descriptor)
{
    ucp_request_param_t p;
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv_am = on_fetched;
    p.user_data = r;
    void *buffer = r->count ? r->iov[0].iov_base : nullptr;
    size_t count = std::min(r->length, r->total);
    if (r->count > 1) {
        size_t left = count;
        count = 0;
        for (size_t i = 0; i < r->count && left; ++i) {
            size_t n = std::min(left, r->iov[i].iov_len);
            r->dt[count++] = {r->iov[i].iov_base, n};
            left -= n;
        }
        buffer = r->dt;
        p.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_iov();
    }
    r->queue = this;
    conn *from = r->from;
    ++from->outstanding;
    from->answers();
    active_.push_back(r);
    ucs_status_ptr_t s = ucp_am_recv_data_nbx(eng_->worker, descriptor, buffer, count, &p);
    if (UCS_PTR_IS_PTR(s)) {
        return false;
    }
    r->node.unlink();
    --from->outstanding;
    finish(r, fetched(r, UCS_PTR_STATUS(s)));
    return true;
}

ucs_status_t rx_queue::deliver(rx_op *r, conn *from, const wire::words &m, void *data,
                               size_t length, bool rendezvous)
{
    r->from = from;
    r->m = m;
    r->length = length;
    if (UCS_UNLIKELY(rendezvous)) {
        return fetch(r, data) ? UCS_OK : UCS_INPROGRESS;
    }
    if (UCS_LIKELY(length <= r->total)) {
        scatter(r, data, length);
        finish(r, 0);
    } else {
        scatter(r, data, r->total);
        finish(r, FI_ETRUNC);
    }
    return UCS_OK;
}

// ---- matching ----

ucs_status_t rx_queue::tagged_arrived(conn *from, const wire::message &m, void *data, size_t length,
                                      const ucp_am_recv_param_t *param)
{
    match_key key = {m.tag, from};
    auto *r = static_cast<rx_op *>(tagged_.find_recv(key));
    if (UCS_LIKELY(r)) {
        tagged_.remove(r);
        return deliver(r, from, m, data, length, param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    }
    msg_in *u = eng_->msgs.get();
    if (!u) {
        eng_->give_up(from);
        return UCS_ERR_NO_MEMORY;
    }
    u->tagged = true;
    ucs_status_t st = keep(u, from, m, data, length, param);
    u->key = key;
    tagged_.add_msg(u);
    return st;
}

ucs_status_t rx_queue::message_arrived(conn *from, const wire::message &m, void *data,
                                       size_t length, const ucp_am_recv_param_t *param)
{
    bool rendezvous = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    while (auto *r = static_cast<rx_op *>(plain_.find_recv({0, from}))) {
        if (UCS_LIKELY(!(r->flags & FI_MULTI_RECV))) {
            plain_.remove(r);
            return deliver(r, from, m, data, length, rendezvous);
        }
        if (r->used && length > r->total - r->used) {
            retire(r);
            continue;
        }
        rx_op *part = slice(r, length);
        if (!part) {
            eng_->give_up(from);
            return UCS_ERR_NO_MEMORY;
        }
        return deliver(part, from, m, data, length, rendezvous);
    }
    msg_in *u = eng_->msgs.get();
    if (!u) {
        eng_->give_up(from);
        return UCS_ERR_NO_MEMORY;
    }
    u->tagged = false;
    ucs_status_t st = keep(u, from, m, data, length, param);
    u->key = {0, from};
    plain_.add_msg(u);
    return st;
}

} // namespace ucxlike
