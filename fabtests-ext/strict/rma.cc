// SPDX-License-Identifier: BSD-3-Clause
// Writes, reads and atomic operations: every call becomes a request. Of atomics the calls that take
// a message description are there, for one element of 4 or 8 bytes.
#include "strict/strict.h"

namespace strict {

namespace {

using kind = request::kind;

std::unique_ptr<request> make(kind what, void *context, uint64_t flags, const fi_rma_iov &where)
{
    auto r = std::make_unique<request>();
    r->what = what;
    r->context = context;
    r->flags = flags;
    r->where = where;
    r->reported = true;
    return r;
}

ssize_t one(fid_ep *fid, kind what, const void *buffer, size_t length, void *desc, fi_addr_t to,
            uint64_t address, uint64_t key, uint64_t flags, void *context)
{
    iovec piece{const_cast<void *>(buffer), length};
    auto r = make(what, context, flags, {address, length, key});
    r->reported = !(flags & FI_INJECT);
    return self<ep>(fid)->submit(std::move(r), &piece, &desc, 1, to);
}

ssize_t many(fid_ep *fid, kind what, const fi_msg_rma &m, uint64_t flags)
{
    if (m.rma_iov_count != 1) {
        forbid(self<ep>(fid)->about(), "%zu pieces of remote memory", m.rma_iov_count);
    }
    auto r = make(what, m.context, flags, m.rma_iov[0]);
    r->data = m.data;
    r->caller = m.msg_iov;
    return self<ep>(fid)->submit(std::move(r), m.msg_iov, m.desc, m.iov_count, m.addr);
}

ssize_t vector(fid_ep *fid, kind what, const iovec *iov, void **descs, size_t count, fi_addr_t to,
               uint64_t address, uint64_t key, void *context)
{
    size_t length = 0;
    for (size_t i = 0; i < count; ++i) {
        length += iov[i].iov_len;
    }
    fi_rma_iov where{address, length, key};
    return many(fid, what, {iov, descs, count, to, &where, 1, context, 0}, self<ep>(fid)->tx_flags);
}

ssize_t read(fid_ep *fid, void *buffer, size_t length, void *desc, fi_addr_t from, uint64_t address,
             uint64_t key, void *context)
{
    return one(fid, kind::read, buffer, length, desc, from, address, key, self<ep>(fid)->tx_flags,
               context);
}

ssize_t readv(fid_ep *fid, const iovec *iov, void **descs, size_t count, fi_addr_t from,
              uint64_t address, uint64_t key, void *context)
{
    return vector(fid, kind::read, iov, descs, count, from, address, key, context);
}

ssize_t readmsg(fid_ep *fid, const fi_msg_rma *m, uint64_t flags)
{
    return many(fid, kind::read, *m, flags);
}

ssize_t write(fid_ep *fid, const void *buffer, size_t length, void *desc, fi_addr_t to,
              uint64_t address, uint64_t key, void *context)
{
    return one(fid, kind::write, buffer, length, desc, to, address, key, self<ep>(fid)->tx_flags,
               context);
}

ssize_t writev(fid_ep *fid, const iovec *iov, void **descs, size_t count, fi_addr_t to,
               uint64_t address, uint64_t key, void *context)
{
    return vector(fid, kind::write, iov, descs, count, to, address, key, context);
}

ssize_t writemsg(fid_ep *fid, const fi_msg_rma *m, uint64_t flags)
{
    return many(fid, kind::write, *m, flags);
}

ssize_t inject_write(fid_ep *fid, const void *buffer, size_t length, fi_addr_t to, uint64_t address,
                     uint64_t key)
{
    return one(fid, kind::write, buffer, length, nullptr, to, address, key, FI_INJECT, nullptr);
}

size_t size_of(fi_datatype type)
{
    return type == FI_INT32 || type == FI_UINT32 || type == FI_FLOAT ? 4 : 8;
}

ssize_t atomic(fid_ep *fid, kind what, const fi_msg_atomic &m, const fi_ioc *compare,
               void *const *compare_desc, const fi_ioc *result, void *const *result_desc,
               uint64_t flags)
{
    auto *e = self<ep>(fid);
    const profile &p = e->about();
    if (!(p.caps & FI_ATOMIC)) {
        forbid(p, "an atomic operation");
    }
    if (m.iov_count != 1 || m.msg_iov->count != 1 || m.rma_iov_count != 1) {
        forbid(p, "an atomic operation on more than one element");
    }
    size_t size = size_of(m.datatype);
    auto r = make(what, m.context, flags, {m.rma_iov->addr, size, m.rma_iov->key});
    r->type = m.datatype;
    r->op = m.op;
    r->operand = *m.msg_iov;
    if (compare) {
        e->check_desc(compare->addr, size, compare_desc ? *compare_desc : nullptr);
        r->compare = *compare;
    }
    if (result) {
        e->check_desc(result->addr, size, result_desc ? *result_desc : nullptr);
        r->result = *result;
    }
    iovec piece{m.msg_iov->addr, size};
    return e->submit(std::move(r), &piece, m.desc, 1, m.addr);
}

ssize_t atomicmsg(fid_ep *fid, const fi_msg_atomic *m, uint64_t flags)
{
    return atomic(fid, kind::atomic, *m, nullptr, nullptr, nullptr, nullptr, flags);
}

ssize_t fetchmsg(fid_ep *fid, const fi_msg_atomic *m, fi_ioc *result, void **desc, size_t,
                 uint64_t flags)
{
    return atomic(fid, kind::fetch, *m, nullptr, nullptr, result, desc, flags);
}

ssize_t comparemsg(fid_ep *fid, const fi_msg_atomic *m, const fi_ioc *compare, void **compare_desc,
                   size_t, fi_ioc *result, void **result_desc, size_t, uint64_t flags)
{
    return atomic(fid, kind::swap, *m, compare, compare_desc, result, result_desc, flags);
}

} // namespace

fi_ops_rma rma_ops = {sizeof(fi_ops_rma), read,         readv, readmsg, write, writev,
                      writemsg,           inject_write, no_op, no_op};
fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = no_op,
    .writev = no_op,
    .writemsg = atomicmsg,
    .inject = no_op,
    .readwrite = no_op,
    .readwritev = no_op,
    .readwritemsg = fetchmsg,
    .compwrite = no_op,
    .compwritev = no_op,
    .compwritemsg = comparemsg,
    .writevalid = no_op,
    .readwritevalid = no_op,
    .compwritevalid = no_op,
};

} // namespace strict
