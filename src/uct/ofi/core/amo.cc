// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations: by the CPU on memory that is mapped here, else by the core, whose completion
// means that the target has done it. The operands travel in a buffer of the interface, because the
// caller's are free when the call returns.
#include "uct/base/atomic.h"
#include "uct/ofi/core/ep.h"

#include <cstring>
#include <rdma/fi_atomic.h>

namespace uct::ofi {

namespace {

template <class T>
constexpr fi_datatype datatype = sizeof(T) == 4 ? FI_UINT32 : FI_UINT64;

// By UCT_ATOMIC_OP_*.
constexpr fi_op core_op[] = {FI_SUM, FI_BAND, FI_BOR, FI_BXOR, FI_ATOMIC_WRITE, FI_CSWAP};

bool core_has(const ofi::md &domain, fi_datatype type, fi_op op, uint64_t flags)
{
    fi_atomic_attr attr{};
    return fi_query_atomic(domain.domain.get(), type, op, &attr, flags) == 0 && attr.count > 0;
}

bool has(uint64_t mask, unsigned op)
{
    return op < UCT_ATOMIC_OP_LAST && (mask & UCS_BIT(op));
}

} // namespace

atomic_ops find_atomics(const ofi::md &domain, fi_datatype type)
{
    atomic_ops found{};
    // Before libfabric 2.3 verbs sends the operands' addresses in place of their values.
    bool broken = domain.provider.verbs() && fi_version() < FI_VERSION(2, 3);
    if (!(domain.info->caps & FI_ATOMIC) || broken) {
        return found;
    }
    for (unsigned op = UCT_ATOMIC_OP_ADD; op <= UCT_ATOMIC_OP_XOR; ++op) {
        found.post |= core_has(domain, type, core_op[op], 0) ? UCS_BIT(op) : 0;
    }
    for (unsigned op = UCT_ATOMIC_OP_ADD; op <= UCT_ATOMIC_OP_SWAP; ++op) {
        found.fetch |= core_has(domain, type, core_op[op], FI_FETCH_ATOMIC) ? UCS_BIT(op) : 0;
    }
    if (core_has(domain, type, FI_CSWAP, FI_COMPARE_ATOMIC)) {
        found.fetch |= UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    }
    return found;
}

// One operation, with a result or without. compare: of a compare and swap.
template <class T>
UCS_ALWAYS_INLINE ucs_status_t ep::atomic(bool fetches, unsigned op, T value, T compare, T *result,
                                          uint64_t remote, uct_rkey_t key,
                                          uct_completion_t *completion)
{
    const limits &limit = owner().limit;
    const atomic_ops &ops = sizeof(T) == 4 ? limit.atomic32 : limit.atomic64;
    if (UCS_UNLIKELY(!has(fetches ? ops.fetch : ops.post, op))) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (UCS_UNLIKELY(!atomic_aligned<T>(remote))) {
        return misaligned_atomic(remote, sizeof(T));
    }
    if (UCS_UNLIKELY(fenced_)) {
        return no_resource();
    }
    const rkey *k = rkey::of(key);
    if (char *at = k->mapped(remote, sizeof(T))) {
        auto *memory = reinterpret_cast<T *>(at);
        return op == UCT_ATOMIC_OP_CSWAP ? cpu_compare_swap(compare, value, memory, result)
                                         : cpu_atomic(op, value, memory, result);
    }
    fi_addr_t to;
    ucs_status_t status = reach(key, &to);
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    buffer_op *b = owner().get_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    memcpy(b->data, &value, sizeof(value));
    memcpy(b->data + atomic_compare, &compare, sizeof(compare));
    b->length = sizeof(T);
    b->arg = result;
    ssize_t ret = send_atomic(b, fetches, op, datatype<T>, to, remote - k->offset, k->key);
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, b);
    }
    posted(b, fetches ? op::kind::fetch : op::kind::atomic, completion);
    ring();
    return fetches ? UCS_INPROGRESS : UCS_OK;
}

// The operands are in the buffer.
UCS_ALWAYS_INLINE ssize_t ep::send_atomic(buffer_op *b, bool fetches, unsigned op, fi_datatype type,
                                          fi_addr_t to, uint64_t remote, uint64_t key)
{
    const limits &limit = owner().limit;
    fi_ioc operand{b->data, 1};
    fi_ioc comparand{b->data + atomic_compare, 1};
    fi_ioc before{b->data + atomic_result, 1};
    fi_rma_ioc where{remote, 1, key};
    fi_msg_atomic message{.msg_iov = &operand,
                          .desc = &b->desc,
                          .iov_count = 1,
                          .addr = to,
                          .rma_iov = &where,
                          .rma_iov_count = 1,
                          .datatype = type,
                          .op = core_op[op],
                          .context = static_cast<fi_context2 *>(b),
                          .data = 0};
    if (op == UCT_ATOMIC_OP_CSWAP) {
        return fi_compare_atomicmsg(target, &message, &comparand, &b->desc, 1, &before, &b->desc, 1,
                                    FI_COMPLETION);
    }
    if (fetches || limit.post_by_fetch) {
        return fi_fetch_atomicmsg(target, &message, &before, &b->desc, 1, FI_COMPLETION);
    }
    return fi_atomicmsg(target, &message, limit.atomic_flags | FI_COMPLETION);
}

ucs_status_t ep::atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t key)
{
    return atomic<uint32_t>(false, op, value, 0, nullptr, remote, key, nullptr);
}

ucs_status_t ep::atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t key)
{
    return atomic<uint64_t>(false, op, value, 0, nullptr, remote, key, nullptr);
}

ucs_status_t ep::atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion)
{
    return op == UCT_ATOMIC_OP_CSWAP
               ? UCS_ERR_UNSUPPORTED // uct_ep_atomic_cswap32()
               : atomic<uint32_t>(true, op, value, 0, result, remote, key, completion);
}

ucs_status_t ep::atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion)
{
    return op == UCT_ATOMIC_OP_CSWAP
               ? UCS_ERR_UNSUPPORTED // uct_ep_atomic_cswap64()
               : atomic<uint64_t>(true, op, value, 0, result, remote, key, completion);
}

ucs_status_t ep::atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t key,
                                uint32_t *result, uct_completion_t *completion)
{
    return atomic<uint32_t>(true, UCT_ATOMIC_OP_CSWAP, swap, compare, result, remote, key,
                            completion);
}

ucs_status_t ep::atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t key,
                                uint64_t *result, uct_completion_t *completion)
{
    return atomic<uint64_t>(true, UCT_ATOMIC_OP_CSWAP, swap, compare, result, remote, key,
                            completion);
}

} // namespace uct::ofi
