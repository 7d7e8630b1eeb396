// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of RMA: all of them reduce to one function.
#include "prov/ucxlike/data/rma.h"

#include "prov/ucxlike/data/tx.h"

namespace ucxlike {

tx_op *begin_access(endpoint *ep, fi_addr_t dest, unsigned options, ssize_t *error)
{
    int failed;
    conn *to = ep->route(dest, &failed);
    if (!to) {
        *error = failed;
        return nullptr;
    }
    *error = -FI_EAGAIN;
    if (ep->inflight >= ep->tx_limit || held_by_fence(to, options)) {
        return nullptr;
    }
    tx_op *op = ep->eng->tx_ops.get();
    if (!op) {
        return nullptr;
    }
    op->eng = ep->eng;
    op->owner = ep;
    op->to = to;
    op->error = 0;
    op->tag = 0;
    op->length = 0;
    op->count = 0;
    op->ack_id = ep->eng->acks.try_add(op);
    if (!op->ack_id) {
        ep->eng->tx_ops.put(op);
        return nullptr;
    }
    op->pending = tx_op::wait_ack;
    return op;
}

size_t finish_access_header(endpoint *ep, tx_op *op, wire::builder &b, uint16_t what,
                            unsigned *flags)
{
    *flags = 0;
    if (op->to->tx_id == 0) {
        b.say_hello(ep->hello_for(op->to));
        *flags = UCP_AM_SEND_FLAG_REPLY;
    }
    return b.finish(op->to->tx_id, what);
}

namespace {

enum class kind { write, read };

struct rma_call {
    const iovec *iov;
    size_t count;
    fi_addr_t peer;
    uint64_t address;
    uint64_t key;
    uint64_t data;
    void *context;
};

ssize_t post(fid_ep *f, kind k, unsigned options, const rma_call &c)
{
    auto *ep = static_cast<endpoint *>(f);
    PROV_CHECK_ARG(EP_DATA, c.count <= limit::iov && (c.iov || !c.count),
                   "fi_rma: iov_count %zu is over %zu\n", c.count, limit::iov);
    ucs::opt_guard g(ep->eng->lock);
    ssize_t error;
    tx_op *op = begin_access(ep, c.peer, options, &error);
    if (!op) {
        return error;
    }
    op->context = c.context;
    op->cq_flags = FI_RMA | (k == kind::write ? FI_WRITE : FI_READ);
    op->options = op_options(options);
    size_t total = 0;
    for (size_t i = 0; i < c.count; ++i) {
        op->iov[i] = {c.iov[i].iov_base, c.iov[i].iov_len};
        total += c.iov[i].iov_len;
    }
    op->count = c.count;
    op->length = total;

    wire::builder b(op->header);
    if (options & tx_data) {
        b.data(c.data);
    }
    b.ack(op->ack_id);
    b.rma({c.address, c.key, total});
    unsigned am_flags;
    if (k == kind::read) {
        size_t header = finish_access_header(ep, op, b, wire::read, &am_flags);
        return tx_post(op, wire::am_rma, header, nullptr, 0, false, am_flags);
    }
    size_t header = finish_access_header(ep, op, b, wire::write, &am_flags);
    if (options & tx_inject) {
        size_t at = 0;
        for (size_t i = 0; i < c.count; ++i) {
            if (c.iov[i].iov_len) {
                memcpy(op->inject + at, c.iov[i].iov_base, c.iov[i].iov_len);
            }
            at += c.iov[i].iov_len;
        }
        return tx_post(op, wire::am_rma, header, op->inject, total, false, am_flags);
    }
    if (c.count == 1) {
        return tx_post(op, wire::am_rma, header, c.iov[0].iov_base, total, false, am_flags);
    }
    return tx_post(op, wire::am_rma, header, op->iov, c.count, true, am_flags);
}

ssize_t post_msg(fid_ep *f, kind k, const fi_msg_rma *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_rma: msg must not be NULL\n");
    PROV_CHECK_ARG(EP_DATA, m->rma_iov_count == 1 && m->rma_iov,
                   "fi_rma: rma_iov_count must be 1\n");
    PROV_CHECK_ARG(EP_DATA, m->msg_iov || !m->iov_count, "fi_rma: msg_iov must not be NULL\n");
    if (ssize_t error = check_flags("fi_rma", flags, tx_call_flags | FI_READ | FI_WRITE | FI_RMA)) {
        return error;
    }
    if (flags & FI_MULTICAST) {
        return -FI_EOPNOTSUPP;
    }
    unsigned options = static_cast<endpoint *>(f)->tx_options(flags);
    if (options & tx_inject) {
        size_t total = 0;
        for (size_t i = 0; i < m->iov_count; ++i) {
            total += m->msg_iov[i].iov_len;
        }
        PROV_CHECK_ARG(EP_DATA, total <= limit::inject, "fi_rma: %zu bytes cannot be injected\n",
                       total);
    }
    return post(f, k, options,
                {m->msg_iov, m->iov_count, m->addr, m->rma_iov->addr, m->rma_iov->key, m->data,
                 m->context});
}

ssize_t read(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, uint64_t addr, uint64_t key,
             void *context)
{
    iovec iov = {buf, len};
    return post(f, kind::read, defaults(f), {&iov, 1, src, addr, key, 0, context});
}

ssize_t readv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src, uint64_t addr,
              uint64_t key, void *context)
{
    return post(f, kind::read, defaults(f), {iov, count, src, addr, key, 0, context});
}

ssize_t readmsg(fid_ep *f, const fi_msg_rma *m, uint64_t flags)
{
    return post_msg(f, kind::read, m, flags);
}

ssize_t write(fid_ep *f, const void *buf, size_t len, void *, fi_addr_t dest, uint64_t addr,
              uint64_t key, void *context)
{
    iovec iov = {const_cast<void *>(buf), len};
    return post(f, kind::write, defaults(f), {&iov, 1, dest, addr, key, 0, context});
}

ssize_t writev(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t dest, uint64_t addr,
               uint64_t key, void *context)
{
    return post(f, kind::write, defaults(f), {iov, count, dest, addr, key, 0, context});
}

ssize_t writemsg(fid_ep *f, const fi_msg_rma *m, uint64_t flags)
{
    return post_msg(f, kind::write, m, flags);
}

ssize_t inject_data(fid_ep *f, const void *buf, size_t len, unsigned options, uint64_t data,
                    fi_addr_t dest, uint64_t addr, uint64_t key)
{
    PROV_CHECK_ARG(EP_DATA, len <= limit::inject, "fi_inject_write: len %zu is over %zu\n", len,
                   limit::inject);
    iovec iov = {const_cast<void *>(buf), len};
    return post(f, kind::write, tx_inject | options, {&iov, 1, dest, addr, key, data, nullptr});
}

ssize_t inject(fid_ep *f, const void *buf, size_t len, fi_addr_t dest, uint64_t addr, uint64_t key)
{
    return inject_data(f, buf, len, 0, 0, dest, addr, key);
}

ssize_t writedata(fid_ep *f, const void *buf, size_t len, void *, uint64_t data, fi_addr_t dest,
                  uint64_t addr, uint64_t key, void *context)
{
    iovec iov = {const_cast<void *>(buf), len};
    return post(f, kind::write, defaults(f) | tx_data, {&iov, 1, dest, addr, key, data, context});
}

ssize_t injectdata(fid_ep *f, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
                   uint64_t addr, uint64_t key)
{
    return inject_data(f, buf, len, tx_data, data, dest, addr, key);
}

} // namespace

fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = readv,
    .readmsg = readmsg,
    .write = write,
    .writev = writev,
    .writemsg = writemsg,
    .inject = inject,
    .writedata = writedata,
    .injectdata = injectdata,
};

fi_ops_rma no_rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = no_op,
    .readv = no_op,
    .readmsg = no_op,
    .write = no_op,
    .writev = no_op,
    .writemsg = no_op,
    .inject = no_op,
    .writedata = no_op,
    .injectdata = no_op,
};

} // namespace ucxlike
