// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of atomics: all of them reduce to one function.
#include "prov/ucxlike/data/atomic.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/tx.h"

namespace ucxlike {

namespace {

// The tag word of an atomic: op, type and form.
constexpr uint64_t pack(fi_datatype type, fi_op op, atomic_form form)
{
    return static_cast<uint64_t>(op) | static_cast<uint64_t>(type) << 8 |
           static_cast<uint64_t>(form) << 16;
}

struct atomic_call {
    const fi_ioc *iov;
    size_t count;
    const fi_ioc *compare;
    size_t compare_count;
    const fi_ioc *result;
    size_t result_count;
    fi_addr_t peer;
    uint64_t address;
    uint64_t key;
    fi_datatype type;
    fi_op op;
    void *context;
};

size_t elements(const fi_ioc *iov, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; ++i) {
        n += iov[i].count;
    }
    return n;
}

uint8_t *gather(uint8_t *to, const fi_ioc *iov, size_t count, size_t size)
{
    for (size_t i = 0; i < count; ++i) {
        if (iov[i].count) {
            memcpy(to, iov[i].addr, iov[i].count * size);
        }
        to += iov[i].count * size;
    }
    return to;
}

ssize_t post_atomic(fid_ep *f, atomic_form form, unsigned options, const atomic_call &c)
{
    auto *ep = static_cast<endpoint *>(f);
    if (!atomic_valid(c.type, c.op, form)) {
        return -FI_EOPNOTSUPP;
    }
    PROV_CHECK_ARG(EP_DATA,
                   c.count <= limit::iov && c.compare_count <= limit::iov &&
                       c.result_count <= limit::iov,
                   "fi_atomic: more than %zu pieces of a buffer\n", limit::iov);
    PROV_CHECK_ARG(EP_DATA,
                   (c.iov || !c.count) && (c.compare || !c.compare_count) &&
                       (c.result || !c.result_count),
                   "fi_atomic: an array of buffers must not be NULL\n");
    size_t size = atomic_size(c.type);
    bool reads = c.op == FI_ATOMIC_READ;
    size_t n = reads ? elements(c.result, c.result_count) : elements(c.iov, c.count);
    PROV_CHECK_ARG(EP_DATA, n && n <= limit::atomic_bytes / size,
                   "fi_atomic: %zu elements; 1 to %zu can be given\n", n,
                   limit::atomic_bytes / size);
    PROV_CHECK_ARG(EP_DATA,
                   (form == atomic_form::write || elements(c.result, c.result_count) == n) &&
                       (form != atomic_form::compare || elements(c.compare, c.compare_count) == n),
                   "fi_atomic: the buffers differ in their number of elements\n");
    ucs::opt_guard g(ep->eng->lock);
    ssize_t error;
    tx_op *op = begin_access(ep, c.peer, options, &error);
    if (!op) {
        return error;
    }
    op->context = c.context;
    op->cq_flags = FI_ATOMIC | (form == atomic_form::write ? FI_WRITE : FI_READ);
    op->options = op_options(options);
    uint8_t *end = op->inject;
    if (!reads) {
        end = gather(end, c.iov, c.count, size);
    }
    if (form == atomic_form::compare) {
        end = gather(end, c.compare, c.compare_count, size);
    }
    for (size_t i = 0; i < c.result_count; ++i) {
        op->iov[i] = {c.result[i].addr, c.result[i].count * size};
    }
    op->count = c.result_count;
    op->length = n * size;
    wire::builder b(op->header);
    b.tag(pack(c.type, c.op, form));
    b.ack(op->ack_id);
    b.rma({c.address, c.key, n});
    unsigned am_flags;
    size_t header = finish_access_header(ep, op, b, wire::atomic, &am_flags);
    return tx_post(op, wire::am_rma, header, op->inject, static_cast<size_t>(end - op->inject),
                   false, am_flags | UCP_AM_SEND_FLAG_EAGER);
}

ssize_t atomic_msg(fid_ep *f, atomic_form form, const fi_msg_atomic *m, const fi_ioc *compare,
                   size_t compare_count, const fi_ioc *result, size_t result_count, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m && m->rma_iov && m->rma_iov_count == 1,
                   "fi_atomicmsg: msg must name one remote region\n");
    PROV_CHECK_ARG(EP_DATA, m->msg_iov || !m->iov_count,
                   "fi_atomicmsg: msg_iov must not be NULL\n");
    if (ssize_t error =
            check_flags("fi_atomicmsg", flags, tx_call_flags | FI_READ | FI_WRITE | FI_ATOMIC)) {
        return error;
    }
    if (flags & (FI_MULTICAST | FI_REMOTE_CQ_DATA)) {
        return -FI_EOPNOTSUPP;
    }
    PROV_CHECK_ARG(
        EP_DATA, m->rma_iov->count == elements(m->msg_iov, m->iov_count) || m->op == FI_ATOMIC_READ,
        "fi_atomicmsg: rma_iov->count %zu differs from the operands'\n", m->rma_iov->count);
    return post_atomic(f, form, static_cast<endpoint *>(f)->tx_options(flags),
                       {m->msg_iov, m->iov_count, compare, compare_count, result, result_count,
                        m->addr, m->rma_iov->addr, m->rma_iov->key, m->datatype, m->op,
                        m->context});
}

ssize_t a_write(fid_ep *f, const void *buf, size_t count, void *, fi_addr_t dest, uint64_t addr,
                uint64_t key, fi_datatype type, fi_op op, void *context)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    return post_atomic(f, atomic_form::write, defaults(f),
                       {&iov, 1, nullptr, 0, nullptr, 0, dest, addr, key, type, op, context});
}

ssize_t a_writev(fid_ep *f, const fi_ioc *iov, void **, size_t count, fi_addr_t dest, uint64_t addr,
                 uint64_t key, fi_datatype type, fi_op op, void *context)
{
    return post_atomic(f, atomic_form::write, defaults(f),
                       {iov, count, nullptr, 0, nullptr, 0, dest, addr, key, type, op, context});
}

ssize_t a_writemsg(fid_ep *f, const fi_msg_atomic *m, uint64_t flags)
{
    return atomic_msg(f, atomic_form::write, m, nullptr, 0, nullptr, 0, flags);
}

ssize_t a_inject(fid_ep *f, const void *buf, size_t count, fi_addr_t dest, uint64_t addr,
                 uint64_t key, fi_datatype type, fi_op op)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    return post_atomic(f, atomic_form::write, tx_inject,
                       {&iov, 1, nullptr, 0, nullptr, 0, dest, addr, key, type, op, nullptr});
}

ssize_t a_readwrite(fid_ep *f, const void *buf, size_t count, void *, void *result, void *,
                    fi_addr_t dest, uint64_t addr, uint64_t key, fi_datatype type, fi_op op,
                    void *context)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    fi_ioc res = {result, count};
    return post_atomic(f, atomic_form::fetch, defaults(f),
                       {&iov, 1, nullptr, 0, &res, 1, dest, addr, key, type, op, context});
}

ssize_t a_readwritev(fid_ep *f, const fi_ioc *iov, void **, size_t count, fi_ioc *result, void **,
                     size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
                     fi_datatype type, fi_op op, void *context)
{
    return post_atomic(
        f, atomic_form::fetch, defaults(f),
        {iov, count, nullptr, 0, result, result_count, dest, addr, key, type, op, context});
}

ssize_t a_readwritemsg(fid_ep *f, const fi_msg_atomic *m, fi_ioc *result, void **,
                       size_t result_count, uint64_t flags)
{
    return atomic_msg(f, atomic_form::fetch, m, nullptr, 0, result, result_count, flags);
}

ssize_t a_compwrite(fid_ep *f, const void *buf, size_t count, void *, const void *compare, void *,
                    void *result, void *, fi_addr_t dest, uint64_t addr, uint64_t key,
                    fi_datatype type, fi_op op, void *context)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    fi_ioc cmp = {const_cast<void *>(compare), count};
    fi_ioc res = {result, count};
    return post_atomic(f, atomic_form::compare, defaults(f),
                       {&iov, 1, &cmp, 1, &res, 1, dest, addr, key, type, op, context});
}

ssize_t a_compwritev(fid_ep *f, const fi_ioc *iov, void **, size_t count, const fi_ioc *compare,
                     void **, size_t compare_count, fi_ioc *result, void **, size_t result_count,
                     fi_addr_t dest, uint64_t addr, uint64_t key, fi_datatype type, fi_op op,
                     void *context)
{
    return post_atomic(f, atomic_form::compare, defaults(f),
                       {iov, count, compare, compare_count, result, result_count, dest, addr, key,
                        type, op, context});
}

ssize_t a_compwritemsg(fid_ep *f, const fi_msg_atomic *m, const fi_ioc *compare, void **,
                       size_t compare_count, fi_ioc *result, void **, size_t result_count,
                       uint64_t flags)
{
    return atomic_msg(f, atomic_form::compare, m, compare, compare_count, result, result_count,
                      flags);
}

int valid(atomic_form form, fi_datatype type, fi_op op, size_t *count)
{
    if (!atomic_valid(type, op, form)) {
        return -FI_EOPNOTSUPP;
    }
    if (count) {
        *count = limit::atomic_bytes / atomic_size(type);
    }
    return 0;
}

} // namespace

int query_atomic(fid_domain *, fi_datatype type, fi_op op, fi_atomic_attr *attr, uint64_t flags)
{
    PROV_CHECK_ARG(DOMAIN, attr, "fi_query_atomic: attr must not be NULL\n");
    PROV_CHECK_ARG(DOMAIN, !(flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED)),
                   "fi_query_atomic: flags 0x%lx are unknown\n", flags);
    atomic_form form = flags & FI_COMPARE_ATOMIC ? atomic_form::compare
                       : flags & FI_FETCH_ATOMIC ? atomic_form::fetch
                                                 : atomic_form::write;
    size_t count;
    int error = valid(form, type, op, &count);
    if (error) {
        return error;
    }
    attr->count = count;
    attr->size = atomic_size(type);
    return 0;
}
fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = a_write,
    .writev = a_writev,
    .writemsg = a_writemsg,
    .inject = a_inject,
    .readwrite = a_readwrite,
    .readwritev = a_readwritev,
    .readwritemsg = a_readwritemsg,
    .compwrite = a_compwrite,
    .compwritev = a_compwritev,
    .compwritemsg = a_compwritemsg,
    .writevalid = [](fid_ep *, fi_datatype type, fi_op op, size_t *count) -> int {
        return valid(atomic_form::write, type, op, count);
    },
    .readwritevalid = [](fid_ep *, fi_datatype type, fi_op op, size_t *count) -> int {
        return valid(atomic_form::fetch, type, op, count);
    },
    .compwritevalid = [](fid_ep *, fi_datatype type, fi_op op, size_t *count) -> int {
        return valid(atomic_form::compare, type, op, count);
    },
};

fi_ops_atomic no_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = no_op,
    .writev = no_op,
    .writemsg = no_op,
    .inject = no_op,
    .readwrite = no_op,
    .readwritev = no_op,
    .readwritemsg = no_op,
    .compwrite = no_op,
    .compwritev = no_op,
    .compwritemsg = no_op,
    .writevalid = no_op,
    .readwritevalid = no_op,
    .compwritevalid = no_op,
};

} // namespace ucxlike
