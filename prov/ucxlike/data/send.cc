// SPDX-License-Identifier: BSD-3-Clause
//
// The calls that send: all of them reduce to one function.
#include "prov/ucxlike/connect/mc.h"
#include "prov/ucxlike/connect/rdm.h"
#include "prov/ucxlike/data/tx.h"

namespace ucxlike {

namespace {

struct send_call {
    const void *buffer; // of a single piece
    size_t length;
    const iovec *iov; // of several
    size_t count;
    fi_addr_t dest;
    uint64_t tag;
    uint64_t data;
    void *context;
};

struct payload {
    const void *buffer;
    size_t count;
    bool is_iov;
};

// Where UCP finds the data: the caller's memory, or for an injected message the operation's.
UCS_ALWAYS_INLINE payload take_data(tx_op *op, unsigned options, const send_call &c)
{
    if (UCS_UNLIKELY(c.iov)) {
        size_t count = 0;
        if (options & tx_inject) {
            for (size_t i = 0; i < c.count; ++i) {
                if (c.iov[i].iov_len) {
                    memcpy(op->inject + count, c.iov[i].iov_base, c.iov[i].iov_len);
                }
                count += c.iov[i].iov_len;
            }
            return {op->inject, count, false};
        }
        for (; count < c.count; ++count) {
            op->iov[count] = {c.iov[count].iov_base, c.iov[count].iov_len};
        }
        return {op->iov, count, true};
    }
    if (!(options & tx_inject)) {
        return {c.buffer, c.length, false};
    }
    if (c.length) {
        memcpy(op->inject, c.buffer, c.length);
    }
    return {op->inject, c.length, false};
}

UCS_ALWAYS_INLINE uint64_t send_flags(unsigned options)
{
    return FI_SEND | (options & tx_tagged ? FI_TAGGED : FI_MSG);
}

UCS_ALWAYS_INLINE wire::builder begin_header(uint8_t *at, unsigned options, const send_call &c)
{
    wire::builder b(at);
    if (options & tx_tagged) {
        b.tag(c.tag);
    }
    if (options & tx_data) {
        b.data(c.data);
    }
    return b;
}

UCS_ALWAYS_INLINE void set_up(tx_op *op, endpoint *ep, unsigned options, const send_call &c)
{
    op->eng = ep->eng;
    op->owner = ep;
    op->context = c.context;
    op->cq_flags = send_flags(options);
    op->options = op_options(options);
    op->pending = 0;
    op->error = 0;
    op->tag = c.tag;
}

// Writes the header, with the receiver's id of the group if it goes to one, and hands it to UCP.
UCS_ALWAYS_INLINE ssize_t post(tx_op *op, conn *to, unsigned options, const send_call &c,
                               const payload &p, uint64_t group_id)
{
    endpoint *ep = op->owner;
    op->to = to;
    wire::builder b = begin_header(op->header, options, c);
    if (UCS_UNLIKELY(options & (tx_deliver | tx_transmit))) {
        op->ack_id = ep->eng->acks.try_add(op);
        if (!op->ack_id) {
            op->eng->tx_ops.put(op);
            return -FI_EAGAIN;
        }
        op->pending = tx_op::wait_ack;
        b.ack(op->ack_id);
        if (options & tx_transmit) {
            b.ack_on_arrival();
        }
    }
    if (group_id) {
        b.group(group_id);
    }
    unsigned am_flags = 0;
    if (UCS_UNLIKELY(to->tx_id == 0)) {
        b.say_hello(ep->hello_for(to));
        am_flags = UCP_AM_SEND_FLAG_REPLY;
    }
    size_t header_length = b.finish(to->tx_id, wire::none);
    return tx_post(op, options & tx_tagged ? wire::am_tagged : wire::am_msg, header_length,
                   p.buffer, p.count, p.is_iov, am_flags);
}

// To every receiver of a group, over the connection to it.
UCS_NOINLINE ssize_t send_to_group(endpoint *ep, unsigned options, const send_call &c)
{
    group *g = ep->group_at(c.dest);
    PROV_CHECK_ARG(EP_DATA, g, "FI_MULTICAST: dest_addr 0x%lx is not fi_mc_addr of a group\n",
                   c.dest);
    if (!g->can_send()) {
        return -FI_EOPBADSTATE;
    }
    ep->eng->read_mail();             // members that were heard before this call are sent to
    auto &receivers = g->receivers(); // changes here and in progress only
    if (g->must_wait()) {
        return -FI_EAGAIN;
    }
    if (ep->inflight && ep->inflight + receivers.size() > ep->tx_limit) {
        return -FI_EAGAIN;
    }
    if (options & tx_inject) {
        for (auto &m : receivers) {
            if (m.receiver->tx_id == 0) {
                return ep->not_yet(m.receiver);
            }
        }
    }
    tx_op *whole = ep->eng->tx_ops.get();
    if (!whole) {
        return -FI_EAGAIN;
    }
    set_up(whole, ep, options, c);
    whole->to = nullptr;
    whole->count = receivers.size() + 1;
    payload p = take_data(whole, options, c);
    for (auto &m : receivers) {
        tx_op *op = m.receiver->tx ? ep->eng->tx_ops.get() : nullptr;
        if (!op) {
            if (m.receiver->tx) {
                whole->error = FI_ENOMEM;
            }
            tx_part_finished(whole, ep);
            continue;
        }
        set_up(op, ep, options, c);
        op->options |= tx_op::part;
        op->whole = whole;
        if (post(op, m.receiver, options, c, p, m.id) < 0) {
            whole->error = FI_ENOMEM;
            tx_part_finished(whole, ep);
        }
    }
    tx_part_finished(whole, ep);
    return 0;
}

enum class at_once { sent, not_now, not_so };

// A message that asks for nothing needs no operation, if the lane takes it at once. Otherwise
// nothing has happened: the lane has no room, or the message needs an operation.
UCS_ALWAYS_INLINE at_once send_at_once(endpoint *ep, conn *to, unsigned options, const send_call &c)
{
    if (UCS_UNLIKELY(c.iov || c.length > limit::inject || to->tx_id == 0 ||
                     options & (tx_deliver | tx_transmit))) {
        return at_once::not_so;
    }
    uint8_t header[wire::plain_header];
    wire::builder b = begin_header(header, options, c);
    size_t header_length = b.finish(to->tx_id, wire::none);
    ucp_request_param_t p;
    p.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
    ucs_status_ptr_t r =
        ucp_am_send_nbx(to->tx->ep, options & tx_tagged ? wire::am_tagged : wire::am_msg, header,
                        header_length, c.buffer, c.length, &p);
    if (UCS_UNLIKELY(r != nullptr)) {
        return UCS_PTR_STATUS(r) == UCS_ERR_NO_RESOURCE ? at_once::not_now : at_once::not_so;
    }
    to->tx->promised = true;
    report_success(ep, c.context, send_flags(options), !(options & tx_complete));
    return at_once::sent;
}

UCS_ALWAYS_INLINE ssize_t send(fid_ep *f, unsigned options, const send_call &c)
{
    endpoint *ep = static_cast<endpoint *>(f);
    engine *e = ep->eng;
    ucs::opt_guard g(e->lock);
    if (UCS_UNLIKELY(options & (tx_group | tx_fence))) {
        if (options & tx_group) {
            return options & tx_fence ? -FI_EOPNOTSUPP : send_to_group(ep, options, c);
        }
        int unreachable;
        conn *behind = ep->route(c.dest, &unreachable);
        if (behind && held_by_fence(behind, options)) {
            return -FI_EAGAIN;
        }
    }
    int error;
    conn *to = ep->route(c.dest, &error);
    if (UCS_UNLIKELY(!to)) {
        return error;
    }
    if (UCS_UNLIKELY(ep->inflight >= ep->tx_limit)) {
        return -FI_EAGAIN;
    }
    at_once tried = send_at_once(ep, to, options, c);
    if (UCS_LIKELY(tried == at_once::sent)) {
        return 0;
    }
    // The caller does not wait for an injected message: to get connected, or to leave, it must not
    // depend on the caller's further progress.
    if (UCS_UNLIKELY(options & tx_inject)) {
        if (to->tx_id == 0) {
            return ep->not_yet(to);
        }
        if (tried == at_once::not_now && !(options & tx_complete)) {
            return -FI_EAGAIN;
        }
    }
    tx_op *op = e->tx_ops.get();
    if (UCS_UNLIKELY(!op)) {
        return -FI_EAGAIN;
    }
    set_up(op, ep, options, c);
    return post(op, to, options, c, take_data(op, options, c), 0);
}

// The calls with flags and an iovec.
ssize_t send_flags(fid_ep *f, unsigned options, const iovec *iov, size_t count, send_call &c,
                   uint64_t flags)
{
    endpoint *ep = static_cast<endpoint *>(f);
    if (ssize_t error = check_flags("fi_sendmsg", flags, tx_call_flags | FI_SEND | FI_TAGGED)) {
        return error;
    }
    PROV_CHECK_ARG(EP_DATA, iov || !count, "fi_sendmsg: msg_iov must not be NULL\n");
    PROV_CHECK_ARG(EP_DATA, count <= limit::iov, "fi_sendmsg: iov_count %zu is over %zu\n", count,
                   limit::iov);
    options |= ep->tx_options(flags);
    if (options & tx_inject) {
        size_t total = 0;
        for (size_t i = 0; i < count; ++i) {
            total += iov[i].iov_len;
        }
        PROV_CHECK_ARG(EP_DATA, total <= limit::inject,
                       "fi_sendmsg: %zu bytes cannot be injected\n", total);
    }
    if (count == 1) {
        c.buffer = iov[0].iov_base;
        c.length = iov[0].iov_len;
    } else if (count > 1) {
        c.iov = iov;
        c.count = count;
    }
    return send(f, options, c);
}

UCS_ALWAYS_INLINE unsigned inject_options(fid_ep *f)
{
    return tx_inject | (defaults(f) & tx_group);
}

#define CHECK_INJECT(len)                                                                          \
    PROV_CHECK_ARG(EP_DATA, (len) <= limit::inject, "fi_inject: len %zu is over %zu\n", (len),     \
                   limit::inject)

ssize_t msg_send(fid_ep *f, const void *buf, size_t len, void *, fi_addr_t dest, void *context)
{
    return send(f, defaults(f), {buf, len, nullptr, 0, dest, 0, 0, context});
}

ssize_t msg_sendv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t dest, void *context)
{
    send_call c = {nullptr, 0, nullptr, 0, dest, 0, 0, context};
    return send_flags(f, 0, iov, count, c, static_cast<endpoint *>(f)->tx_flags);
}

ssize_t msg_sendmsg(fid_ep *f, const fi_msg *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_sendmsg: msg must not be NULL\n");
    send_call c = {nullptr, 0, nullptr, 0, m->addr, 0, m->data, m->context};
    return send_flags(f, 0, m->msg_iov, m->iov_count, c, flags);
}

ssize_t msg_inject(fid_ep *f, const void *buf, size_t len, fi_addr_t dest)
{
    CHECK_INJECT(len);
    return send(f, inject_options(f), {buf, len, nullptr, 0, dest, 0, 0, nullptr});
}

ssize_t msg_senddata(fid_ep *f, const void *buf, size_t len, void *, uint64_t data, fi_addr_t dest,
                     void *context)
{
    return send(f, defaults(f) | tx_data, {buf, len, nullptr, 0, dest, 0, data, context});
}

ssize_t msg_injectdata(fid_ep *f, const void *buf, size_t len, uint64_t data, fi_addr_t dest)
{
    CHECK_INJECT(len);
    return send(f, inject_options(f) | tx_data, {buf, len, nullptr, 0, dest, 0, data, nullptr});
}

ssize_t tagged_send(fid_ep *f, const void *buf, size_t len, void *, fi_addr_t dest, uint64_t tag,
                    void *context)
{
    return send(f, defaults(f) | tx_tagged, {buf, len, nullptr, 0, dest, tag, 0, context});
}

ssize_t tagged_sendv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t dest,
                     uint64_t tag, void *context)
{
    send_call c = {nullptr, 0, nullptr, 0, dest, tag, 0, context};
    return send_flags(f, tx_tagged, iov, count, c, static_cast<endpoint *>(f)->tx_flags);
}

ssize_t tagged_sendmsg(fid_ep *f, const fi_msg_tagged *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_tsendmsg: msg must not be NULL\n");
    send_call c = {nullptr, 0, nullptr, 0, m->addr, m->tag, m->data, m->context};
    return send_flags(f, tx_tagged, m->msg_iov, m->iov_count, c, flags);
}

ssize_t tagged_inject(fid_ep *f, const void *buf, size_t len, fi_addr_t dest, uint64_t tag)
{
    CHECK_INJECT(len);
    return send(f, inject_options(f) | tx_tagged, {buf, len, nullptr, 0, dest, tag, 0, nullptr});
}

ssize_t tagged_senddata(fid_ep *f, const void *buf, size_t len, void *, uint64_t data,
                        fi_addr_t dest, uint64_t tag, void *context)
{
    return send(f, defaults(f) | tx_tagged | tx_data,
                {buf, len, nullptr, 0, dest, tag, data, context});
}

ssize_t tagged_injectdata(fid_ep *f, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
                          uint64_t tag)
{
    CHECK_INJECT(len);
    return send(f, inject_options(f) | tx_tagged | tx_data,
                {buf, len, nullptr, 0, dest, tag, data, nullptr});
}

} // namespace

// The receive calls are in recv.cc.
ssize_t msg_recv(fid_ep *, void *, size_t, void *, fi_addr_t, void *);
ssize_t msg_recvv(fid_ep *, const iovec *, void **, size_t, fi_addr_t, void *);
ssize_t msg_recvmsg(fid_ep *, const fi_msg *, uint64_t);
ssize_t tagged_recv(fid_ep *, void *, size_t, void *, fi_addr_t, uint64_t, uint64_t, void *);
ssize_t tagged_recvv(fid_ep *, const iovec *, void **, size_t, fi_addr_t, uint64_t, uint64_t,
                     void *);
ssize_t tagged_recvmsg(fid_ep *, const fi_msg_tagged *, uint64_t);

fi_ops_msg msg_ops = {
    .size = sizeof(fi_ops_msg),
    .recv = msg_recv,
    .recvv = msg_recvv,
    .recvmsg = msg_recvmsg,
    .send = msg_send,
    .sendv = msg_sendv,
    .sendmsg = msg_sendmsg,
    .inject = msg_inject,
    .senddata = msg_senddata,
    .injectdata = msg_injectdata,
};

fi_ops_tagged tagged_ops = {
    .size = sizeof(fi_ops_tagged),
    .recv = tagged_recv,
    .recvv = tagged_recvv,
    .recvmsg = tagged_recvmsg,
    .send = tagged_send,
    .sendv = tagged_sendv,
    .sendmsg = tagged_sendmsg,
    .inject = tagged_inject,
    .senddata = tagged_senddata,
    .injectdata = tagged_injectdata,
};

} // namespace ucxlike
