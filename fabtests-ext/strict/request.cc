// SPDX-License-Identifier: BSD-3-Clause
// A request on its way into the inner core, and the iovecs that it keeps.
#include "strict/strict.h"

namespace strict {

namespace {

iovec poison(size_t i)
{
    return {reinterpret_cast<void *>(0xdead000000000000ull + i), 0xdead0000 + i};
}

} // namespace

void request::keep_iovecs(const profile &p)
{
    if (!p.keeps_iovecs) {
        caller = nullptr;
    }
    for (size_t i = 0; caller && i < count; ++i) {
        const_cast<iovec *>(caller)[i] = poison(i);
    }
}

void request::check_iovecs(const profile &p) const
{
    for (size_t i = 0; caller && i < count; ++i) {
        iovec wanted = poison(i);
        if (caller[i].iov_base != wanted.iov_base || caller[i].iov_len != wanted.iov_len) {
            forbid(p, "an iovec was changed before its operation was over");
        }
        const_cast<iovec *>(caller)[i] = pieces[i];
    }
}

ssize_t request::post(fid_ep *inner)
{
    uint64_t f = flags | FI_COMPLETION;
    fi_msg message{pieces, nullptr, count, to, this, data};
    fi_msg_tagged tagged{pieces, nullptr, count, to, tag, ignore, this, data};
    fi_msg_rma rma{pieces, nullptr, count, to, &where, 1, this, data};
    fi_rma_ioc there{where.addr, operand.count, where.key};
    fi_msg_atomic atomic_message{&operand, nullptr, 1, to, &there, 1, type, op, this, data};
    switch (what) {
    case kind::send:
        return fi_sendmsg(inner, &message, f);
    case kind::tagged_send:
        return fi_tsendmsg(inner, &tagged, f);
    case kind::receive:
        return fi_recvmsg(inner, &message, f);
    case kind::tagged_receive:
        return fi_trecvmsg(inner, &tagged, f);
    case kind::write:
        return fi_writemsg(inner, &rma, f);
    case kind::read:
        return fi_readmsg(inner, &rma, f);
    case kind::atomic:
        return fi_atomicmsg(inner, &atomic_message, f);
    case kind::fetch:
        return fi_fetch_atomicmsg(inner, &atomic_message, &result, nullptr, 1, f);
    case kind::swap:
        return fi_compare_atomicmsg(inner, &atomic_message, &compare, nullptr, 1, &result, nullptr,
                                    1, f);
    }
    return -FI_EINVAL;
}

} // namespace strict
