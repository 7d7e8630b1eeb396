// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/data/rx.h"

#include "prov/ucxlike/data/srx.h"
#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"

#include "ucs/copy.h"

#include <cstdlib>

namespace ucxlike {

// Eager messages above this size stay in UCP's buffer, if UCP lets us, instead of being copied.
static constexpr size_t hold_above = 1024;

rx_queue::~rx_queue()
{
    while (rx_op *r = recvs_.pop_front()) {
        eng_->rx_ops.put(r);
    }
    while (auto *r = static_cast<rx_op *>(tagged_.any_recv())) {
        tagged_.remove(r);
        eng_->rx_ops.put(r);
    }
    // Receives under way end without a word: their callbacks find no owner.
    while (rx_op *r = active_.pop_front()) {
        r->queue = nullptr;
        r->parent = nullptr;
    }
    while (msg_in *u = msgs_.pop_front()) {
        drop(u);
    }
    while (auto *u = static_cast<msg_in *>(tagged_.first_msg())) {
        tagged_.remove(u);
        drop(u);
    }
    for (auto &[context, u] : claimed_) {
        drop(u);
    }
}

UCS_ALWAYS_INLINE rx_op *rx_queue::make(endpoint *ep, const recv_call &c)
{
    rx_op *r = eng_->rx_ops.get();
    if (UCS_UNLIKELY(!r)) {
        return nullptr;
    }
    r->owner = ep;
    r->context = c.context;
    r->flags = c.flags;
    r->what = {c.tag, c.ignore, c.source};
    r->total = 0;
    r->count = c.count;
    for (size_t i = 0; i < c.count; ++i) {
        r->iov[i] = c.iov[i];
        r->total += c.iov[i].iov_len;
    }
    r->parent = nullptr;
    r->used = 0;
    r->children = 0;
    r->retired = false;
    return r;
}

// ---- completion ----

// The message is in its place. Who wants to know of the delivery is told before the receive
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
            if (UCS_UNLIKELY(ep->recv_cntr)) {
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

// Where a receive without a message is reported.
cq *rx_queue::cq_of(const endpoint *ep) const
{
    if (ep) {
        return ep->rx_cq;
    }
    if (own_cq_) {
        return own_cq_;
    }
    return members_.empty() ? nullptr : members_.front()->rx_cq;
}

// A receive that no message will fill.
void rx_queue::fail(rx_op *r, int error)
{
    endpoint *ep = r->owner;
    if (cq *q = cq_of(ep)) {
        uint64_t flags = FI_RECV | (r->flags & FI_TAGGED ? FI_TAGGED : FI_MSG);
        q->write_error({r->context, flags, 0, r->count ? r->iov[0].iov_base : nullptr, 0,
                        r->what.tag, FI_ADDR_NOTAVAIL},
                       error, error);
    }
    if (ep && ep->recv_cntr) {
        ep->recv_cntr->count_error();
    }
    if (r->children) {
        r->retired = true;
        return;
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
        memcpy(r->iov[i].iov_base, from, n);
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

// ---- unexpected messages ----

ucs_status_t rx_queue::keep(msg_in *u, conn *from, const wire::message &m, void *data,
                            size_t length, const ucp_am_recv_param_t *param)
{
    u->from = from;
    u->owner = from->owner;
    u->m = m;
    u->length = length;
    u->claimed = false;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        u->how = msg_in::data::rendezvous;
        u->bytes = data;
        return UCS_INPROGRESS;
    }
    if (length > hold_above && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)) {
        u->how = msg_in::data::held;
        u->bytes = data;
        return UCS_INPROGRESS;
    }
    u->how = msg_in::data::copied;
    u->bytes = length <= sizeof(u->inline_bytes) ? u->inline_bytes : malloc(length);
    if (UCS_UNLIKELY(!u->bytes)) {
        PROV_WARN(EP_DATA, "no memory for an unexpected message of %zu bytes\n", length);
        u->how = msg_in::data::lost; // the receive that it meets ends with an error
        return UCS_OK;
    }
    if (length) {
        memcpy(u->bytes, data, length);
    }
    return UCS_OK;
}

void rx_queue::drop(msg_in *u)
{
    if (u->how == msg_in::data::held || u->how == msg_in::data::rendezvous) {
        ucp_am_data_release(eng_->worker, u->bytes);
    } else if (u->how == msg_in::data::copied && u->bytes != u->inline_bytes) {
        free(u->bytes);
    }
    eng_->msgs.put(u);
}

// An unexpected message meets its receive.
void rx_queue::take(rx_op *r, msg_in *u)
{
    if (u->how == msg_in::data::rendezvous) {
        deliver(r, u->from, u->m, u->bytes, u->length, true);
        eng_->msgs.put(u);
        return;
    }
    if (UCS_UNLIKELY(u->how == msg_in::data::lost)) {
        r->from = u->from;
        r->m = u->m;
        r->length = 0;
        finish(r, FI_ENOMEM);
        drop(u);
        return;
    }
    deliver(r, u->from, u->m, u->bytes, u->length, false);
    drop(u);
}

ucs_status_t rx_queue::tagged_arrived(conn *from, const wire::message &m, void *data, size_t length,
                                      const ucp_am_recv_param_t *param)
{
    auto *r = static_cast<rx_op *>(tagged_.match_recv({m.tag, from}));
    if (UCS_LIKELY(r)) {
        return deliver(r, from, m, data, length, param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    }
    msg_in *u = eng_->msgs.get();
    if (!u) {
        eng_->give_up(from);
        return UCS_ERR_NO_MEMORY;
    }
    u->tagged = true;
    ucs_status_t st = keep(u, from, m, data, length, param);
    tagged_.add_msg(u, {m.tag, from});
    return st;
}

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
    r->what = multi->what;
    r->total = multi->total - multi->used;
    r->count = 1;
    r->iov[0] = {static_cast<char *>(multi->iov[0].iov_base) + multi->used, r->total};
    r->parent = multi;
    multi->used += std::min(length, r->total);
    ++multi->children;
    size_t least = (multi->owner ? multi->owner->min_multi_recv : limit::min_multi_recv);
    if (multi->total - multi->used < std::max<size_t>(least, 1)) {
        multi->node.unlink();
        multi->retired = true;
    }
    return r;
}

// The buffer has no room for the next message: it goes back to the application.
void rx_queue::retire(rx_op *multi)
{
    multi->node.unlink();
    multi->retired = true;
    if (multi->children) {
        return;
    }
    if (cq *q = cq_of(multi->owner)) {
        q->write({multi->context, FI_MULTI_RECV, 0, nullptr, 0, 0, FI_ADDR_NOTAVAIL});
    }
    eng_->rx_ops.put(multi);
}

ucs_status_t rx_queue::message_arrived(conn *from, const wire::message &m, void *data,
                                       size_t length, const ucp_am_recv_param_t *param)
{
    bool rendezvous = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    for (rx_op *r : recvs_) {
        if (r->what.source && r->what.source != from) {
            continue;
        }
        if (UCS_LIKELY(!(r->flags & FI_MULTI_RECV))) {
            r->node.unlink();
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
    msgs_.push_back(u);
    return st;
}

// ---- posting ----

ssize_t rx_queue::post(endpoint *ep, const recv_call &c, size_t)
{
    rx_op *r = make(ep, c);
    if (UCS_UNLIKELY(!r)) {
        return -FI_EAGAIN;
    }
    if (UCS_LIKELY(msgs_.empty())) {
        if (UCS_UNLIKELY(closed_ != 0)) {
            fail(r, closed_);
        } else {
            recvs_.push_back(r);
        }
        return 0;
    }
    if (c.flags & FI_MULTI_RECV) {
        recvs_.push_back(r);
        for (msg_in *u : msgs_) {
            if (c.source && u->from != c.source) {
                continue;
            }
            if (r->used && u->length > r->total - r->used) {
                retire(r);
                return 0;
            }
            bool last = false;
            rx_op *part = slice(r, u->length);
            if (!part) {
                return 0;
            }
            last = r->retired;
            u->node.unlink();
            take(part, u);
            if (last) {
                return 0;
            }
        }
        if (closed_ && r->node.linked()) {
            r->node.unlink();
            fail(r, closed_);
        }
        return 0;
    }
    for (msg_in *u : msgs_) {
        if (!c.source || u->from == c.source) {
            u->node.unlink();
            take(r, u);
            return 0;
        }
    }
    if (closed_) {
        fail(r, closed_);
    } else {
        recvs_.push_back(r);
    }
    return 0;
}

UCS_ALWAYS_INLINE ssize_t rx_queue::post_tagged(endpoint *ep, const recv_call &c)
{
    rx_op *r = make(ep, c);
    if (UCS_UNLIKELY(!r)) {
        return -FI_EAGAIN;
    }
    r->flags |= FI_TAGGED;
    if (auto *u = static_cast<msg_in *>(tagged_.match_msg(r->what))) {
        take(r, u);
    } else if (UCS_UNLIKELY(closed_ != 0)) {
        fail(r, closed_);
    } else {
        tagged_.add_recv(r, r->what);
    }
    return 0;
}

// Where a message is told of that no receive takes.
cq *rx_queue::cq_of(const endpoint *ep, const msg_in *u)
{
    const endpoint *of = ep ? ep : u->from->owner;
    return of ? of->rx_cq : nullptr;
}

ssize_t rx_queue::peek(endpoint *ep, const recv_call &c)
{
    if (!(c.flags & FI_PEEK)) {
        return claim(ep, c);
    }
    tag_policy::pattern what = {c.tag, c.ignore, c.source};
    auto *u = static_cast<msg_in *>(tagged_.find_msg(what));
    if (!u) {
        // An application that peeks in a loop reads error entries, which progresses nothing.
        eng_->progress();
        u = static_cast<msg_in *>(tagged_.find_msg(what));
    }
    if (!u) {
        cq *q = cq_of(ep);
        if (!q && !ep) {
            return -FI_ENOMSG;
        }
        if (q) {
            q->write_error({c.context, FI_RECV | FI_TAGGED, 0, nullptr, 0, c.tag, FI_ADDR_NOTAVAIL},
                           FI_ENOMSG, FI_ENOMSG);
        }
        return 0;
    }
    if (c.flags & FI_CLAIM) {
        bool added = false;
        if (int error = guard([&] {
                added = claimed_.emplace(c.context, u).second;
                return 0;
            })) {
            return error;
        }
        PROV_CHECK_ARG(EP_DATA, added,
                       "fi_trecvmsg: FI_CLAIM: this context has a claimed message already\n");
    }
    if (c.flags & (FI_CLAIM | FI_DISCARD)) {
        tagged_.remove(u);
    }
    if (cq *q = cq_of(ep, u)) {
        q->write({c.context,
                  FI_RECV | FI_TAGGED | (u->m.flags & wire::has_data ? FI_REMOTE_CQ_DATA : 0),
                  u->length, nullptr, u->m.data, u->m.tag, u->from->addr});
    }
    if (c.flags & FI_DISCARD) {
        drop(u);
    }
    return 0;
}

// FI_CLAIM without FI_PEEK: the message that a peek claimed for this context.
ssize_t rx_queue::claim(endpoint *ep, const recv_call &c)
{
    auto it = claimed_.find(c.context);
    if (it == claimed_.end()) {
        PROV_WARN(EP_DATA, "fi_trecvmsg: FI_CLAIM: no message was claimed with this context\n");
        return -FI_EINVAL;
    }
    msg_in *u = it->second;
    if (c.flags & FI_DISCARD) {
        claimed_.erase(it);
        if (cq *q = cq_of(ep, u)) {
            q->write(
                {c.context, FI_RECV | FI_TAGGED, 0, nullptr, u->m.data, u->m.tag, u->from->addr});
        }
        drop(u);
        return 0;
    }
    rx_op *r = make(ep, c);
    if (!r) {
        return -FI_EAGAIN;
    }
    claimed_.erase(it);
    r->flags |= FI_TAGGED;
    take(r, u);
    return 0;
}

bool rx_queue::cancel(void *context)
{
    rx_op *found = nullptr;
    for (rx_op *r : recvs_) {
        if (r->context == context) {
            found = r;
            r->node.unlink();
            break;
        }
    }
    if (!found) {
        tagged_.for_each_recv([&](tag_matcher::recv_entry *e) {
            auto *r = static_cast<rx_op *>(e);
            if (!found && r->context == context) {
                found = r;
            }
        });
        if (found) {
            tagged_.remove(found);
        }
    }
    if (!found) {
        return false;
    }
    fail(found, FI_ECANCELED);
    return true;
}

void rx_queue::flush(int error)
{
    closed_ = error;
    while (rx_op *r = recvs_.pop_front()) {
        fail(r, error);
    }
    while (auto *r = static_cast<rx_op *>(tagged_.any_recv())) {
        tagged_.remove(r);
        fail(r, error);
    }
}

void rx_queue::purge(conn *from)
{
    for (msg_in *u : msgs_) {
        if (u->from == from) {
            u->node.unlink();
            drop(u);
        }
    }
    std::vector<msg_in *> gone;
    while (auto *u = static_cast<msg_in *>(tagged_.find_msg({0, ~0ull, from}))) {
        tagged_.remove(u);
        gone.push_back(u);
    }
    for (msg_in *u : gone) {
        drop(u);
    }
    std::erase_if(claimed_, [this, from](const auto &claim) {
        bool its = claim.second->from == from;
        if (its) {
            drop(claim.second);
        }
        return its;
    });
}

// ---- the calls ----

namespace {

struct target {
    endpoint *ep;
    rx_queue *queue;
};

UCS_ALWAYS_INLINE target endpoint_target(fid_ep *f)
{
    auto *ep = static_cast<endpoint *>(f);
    return {ep, ep->rx};
}

ssize_t recv_untagged(target t, const iovec *iov, size_t count, fi_addr_t src, void *context,
                      uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, count <= limit::iov, "fi_recvv: count %zu is over %zu\n", count,
                   limit::iov);
    PROV_CHECK_ARG(EP_DATA, iov || !count, "fi_recvmsg: msg_iov must not be NULL\n");
    PROV_CHECK_ARG(EP_DATA, !(flags & FI_MULTI_RECV) || count == 1,
                   "fi_recvmsg: FI_MULTI_RECV takes one buffer\n");
    PROV_CHECK_ARG(EP_DATA, t.queue, "fi_recv: the endpoint is not enabled\n");
    ucs::opt_guard g(t.queue->eng()->lock);
    const conn *source = t.ep ? t.ep->source(src) : nullptr;
    return t.queue->post(t.ep, {iov, count, 0, 0, source, context, flags}, 0);
}

UCS_ALWAYS_INLINE ssize_t recv_tagged(target t, const iovec *iov, size_t count, fi_addr_t src,
                                      uint64_t tag, uint64_t ignore, void *context, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, count <= limit::iov, "fi_trecvv: count %zu is over %zu\n", count,
                   limit::iov);
    PROV_CHECK_ARG(EP_DATA, iov || !count, "fi_trecvmsg: msg_iov must not be NULL\n");
    PROV_CHECK_ARG(EP_DATA, t.queue, "fi_trecv: the endpoint is not enabled\n");
    ucs::opt_guard g(t.queue->eng()->lock);
    const conn *source = t.ep ? t.ep->source(src) : nullptr;
    recv_call c = {iov, count, tag, ignore, source, context, flags};
    if (UCS_UNLIKELY(flags & (FI_PEEK | FI_CLAIM | FI_DISCARD))) {
        return t.queue->peek(t.ep, c);
    }
    return t.queue->post_tagged(t.ep, c);
}

// What fi_recvmsg and fi_trecvmsg take; FI_MORE is a hint.
constexpr uint64_t recv_flags = FI_COMPLETION | FI_MULTI_RECV | FI_MORE | FI_RECV;
constexpr uint64_t trecv_flags =
    FI_COMPLETION | FI_PEEK | FI_CLAIM | FI_DISCARD | FI_MORE | FI_RECV | FI_TAGGED;

// fi_recvmsg's flags replace the defaults, except for selective completion.
uint64_t call_flags(target t, uint64_t flags)
{
    return t.ep && !t.ep->rx_selective ? flags | FI_COMPLETION : flags;
}

} // namespace

ssize_t msg_recv(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, void *context)
{
    iovec iov = {buf, len};
    return recv_untagged(endpoint_target(f), &iov, 1, src, context,
                         static_cast<endpoint *>(f)->rx_flags);
}

ssize_t msg_recvv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src, void *context)
{
    return recv_untagged(endpoint_target(f), iov, count, src, context,
                         static_cast<endpoint *>(f)->rx_flags);
}

ssize_t msg_recvmsg(fid_ep *f, const fi_msg *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_recvmsg: msg must not be NULL\n");
    if (ssize_t error = check_flags("fi_recvmsg", flags, recv_flags)) {
        return error;
    }
    target t = endpoint_target(f);
    return recv_untagged(t, m->msg_iov, m->iov_count, m->addr, m->context, call_flags(t, flags));
}

ssize_t tagged_recv(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, uint64_t tag,
                    uint64_t ignore, void *context)
{
    iovec iov = {buf, len};
    return recv_tagged(endpoint_target(f), &iov, 1, src, tag, ignore, context,
                       static_cast<endpoint *>(f)->rx_flags & ~FI_MULTI_RECV);
}

ssize_t tagged_recvv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src,
                     uint64_t tag, uint64_t ignore, void *context)
{
    return recv_tagged(endpoint_target(f), iov, count, src, tag, ignore, context,
                       static_cast<endpoint *>(f)->rx_flags & ~FI_MULTI_RECV);
}

ssize_t tagged_recvmsg(fid_ep *f, const fi_msg_tagged *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_trecvmsg: msg must not be NULL\n");
    if (ssize_t error = check_flags("fi_trecvmsg", flags, trecv_flags)) {
        return error;
    }
    target t = endpoint_target(f);
    return recv_tagged(t, m->msg_iov, m->iov_count, m->addr, m->tag, m->ignore, m->context,
                       call_flags(t, flags));
}

// Receives of a shared context belong to no endpoint: the completion goes where the message came.
static ssize_t srx_recv(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, void *context)
{
    iovec iov = {buf, len};
    return recv_untagged({nullptr, static_cast<srx *>(f)->queue()}, &iov, 1, src, context,
                         FI_COMPLETION);
}

static ssize_t srx_recvv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src,
                         void *context)
{
    return recv_untagged({nullptr, static_cast<srx *>(f)->queue()}, iov, count, src, context,
                         FI_COMPLETION);
}

static ssize_t srx_recvmsg(fid_ep *f, const fi_msg *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_recvmsg: msg must not be NULL\n");
    if (ssize_t error = check_flags("fi_recvmsg", flags, recv_flags)) {
        return error;
    }
    return recv_untagged({nullptr, static_cast<srx *>(f)->queue()}, m->msg_iov, m->iov_count,
                         m->addr, m->context, flags | FI_COMPLETION);
}

static ssize_t srx_trecv(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, uint64_t tag,
                         uint64_t ignore, void *context)
{
    iovec iov = {buf, len};
    return recv_tagged({nullptr, static_cast<srx *>(f)->queue()}, &iov, 1, src, tag, ignore,
                       context, FI_COMPLETION);
}

static ssize_t srx_trecvv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src,
                          uint64_t tag, uint64_t ignore, void *context)
{
    return recv_tagged({nullptr, static_cast<srx *>(f)->queue()}, iov, count, src, tag, ignore,
                       context, FI_COMPLETION);
}

static ssize_t srx_trecvmsg(fid_ep *f, const fi_msg_tagged *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_trecvmsg: msg must not be NULL\n");
    if (ssize_t error = check_flags("fi_trecvmsg", flags, trecv_flags)) {
        return error;
    }
    PROV_CHECK_ARG(EP_DATA, m, "fi_trecvmsg: msg must not be NULL\n");
    return recv_tagged({nullptr, static_cast<srx *>(f)->queue()}, m->msg_iov, m->iov_count, m->addr,
                       m->tag, m->ignore, m->context, flags | FI_COMPLETION);
}

fi_ops_msg srx_msg_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = srx_recv,
    .recvv = srx_recvv,
    .recvmsg = srx_recvmsg,
    .send = no_op,
    .sendv = no_op,
    .sendmsg = no_op,
    .inject = no_op,
    .senddata = no_op,
    .injectdata = no_op,
};

fi_ops_tagged srx_tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    .recv = srx_trecv,
    .recvv = srx_trecvv,
    .recvmsg = srx_trecvmsg,
    .send = no_op,
    .sendv = no_op,
    .sendmsg = no_op,
    .inject = no_op,
    .senddata = no_op,
    .injectdata = no_op,
};

} // namespace ucxlike
