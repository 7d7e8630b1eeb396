// SPDX-License-Identifier: BSD-3-Clause
//
// Receives are posted and taken back: the calls of endpoints and of shared receive contexts.
#include "prov/ucxlike/data/rx.h"

#include "prov/ucxlike/data/srx.h"
#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"

namespace ucxlike {

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
                        r->key.tag, FI_ADDR_NOTAVAIL},
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

ssize_t rx_queue::post(endpoint *ep, const recv_call &c)
{
    rx_op *r = make(ep, c);
    if (UCS_UNLIKELY(!r)) {
        return -FI_EAGAIN;
    }
    auto *u = static_cast<msg_in *>(plain_.find_msg(r->key, 0));
    if (UCS_UNLIKELY(u != nullptr)) {
        if (c.flags & FI_MULTI_RECV) {
            post_multi(r);
        } else {
            plain_.remove(u);
            take(r, u);
        }
    } else if (UCS_UNLIKELY(closed_ != 0)) {
        fail(r, closed_);
    } else {
        plain_.add_recv(r);
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
    if (auto *u = static_cast<msg_in *>(tagged_.find_msg(r->key, r->ignore))) {
        tagged_.remove(u);
        take(r, u);
    } else if (UCS_UNLIKELY(closed_ != 0)) {
        fail(r, closed_);
    } else {
        tagged_.add_recv(r);
    }
    return 0;
}

rx_op *rx_queue::withdraw(matcher &from, void *context)
{
    auto *r = static_cast<rx_op *>(from.find_recv_if(
        [context](matcher::recv_entry *e) { return static_cast<rx_op *>(e)->context == context; }));
    if (r) {
        from.remove(r);
    }
    return r;
}

bool rx_queue::cancel(void *context)
{
    rx_op *r = withdraw(plain_, context);
    if (!r) {
        r = withdraw(tagged_, context);
    }
    if (!r) {
        return false;
    }
    fail(r, FI_ECANCELED);
    return true;
}

void rx_queue::flush(int error)
{
    closed_ = error;
    for (matcher *m : {&plain_, &tagged_}) {
        while (auto *r = static_cast<rx_op *>(m->first_recv())) {
            m->remove(r);
            fail(r, error);
        }
    }
}

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
    return t.queue->post(t.ep, {iov, count, 0, 0, source, context, flags});
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

// fi_recvmsg's flags replace the defaults, except for selective completion. A shared context has no
// queue of its own to select for.
uint64_t call_flags(target t, uint64_t flags)
{
    return t.ep && t.ep->rx_selective ? flags : flags | FI_COMPLETION;
}

// Receives of a shared context belong to no endpoint: the completion goes where the message came.
target srx_target(fid_ep *f)
{
    return {nullptr, static_cast<srx *>(f)->queue()};
}

ssize_t recv_message(target t, const fi_msg *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_recvmsg: msg must not be NULL\n");
    if (ssize_t error = check_flags("fi_recvmsg", flags, recv_flags)) {
        return error;
    }
    return recv_untagged(t, m->msg_iov, m->iov_count, m->addr, m->context, call_flags(t, flags));
}

ssize_t recv_tagged_message(target t, const fi_msg_tagged *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_trecvmsg: msg must not be NULL\n");
    if (ssize_t error = check_flags("fi_trecvmsg", flags, trecv_flags)) {
        return error;
    }
    return recv_tagged(t, m->msg_iov, m->iov_count, m->addr, m->tag, m->ignore, m->context,
                       call_flags(t, flags));
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
    return recv_message(endpoint_target(f), m, flags);
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
    return recv_tagged_message(endpoint_target(f), m, flags);
}

static ssize_t srx_recv(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, void *context)
{
    iovec iov = {buf, len};
    return recv_untagged(srx_target(f), &iov, 1, src, context, FI_COMPLETION);
}

static ssize_t srx_recvv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src,
                         void *context)
{
    return recv_untagged(srx_target(f), iov, count, src, context, FI_COMPLETION);
}

static ssize_t srx_recvmsg(fid_ep *f, const fi_msg *m, uint64_t flags)
{
    return recv_message(srx_target(f), m, flags);
}

static ssize_t srx_trecv(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, uint64_t tag,
                         uint64_t ignore, void *context)
{
    iovec iov = {buf, len};
    return recv_tagged(srx_target(f), &iov, 1, src, tag, ignore, context, FI_COMPLETION);
}

static ssize_t srx_trecvv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src,
                          uint64_t tag, uint64_t ignore, void *context)
{
    return recv_tagged(srx_target(f), iov, count, src, tag, ignore, context, FI_COMPLETION);
}

static ssize_t srx_trecvmsg(fid_ep *f, const fi_msg_tagged *m, uint64_t flags)
{
    return recv_tagged_message(srx_target(f), m, flags);
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
