// SPDX-License-Identifier: BSD-3-Clause
// Put, get and atomic operations: done by the processor before the call returns.
#include "uct/base/atomic.h"
#include "uct/self/ep.h"

namespace uct::self {

namespace {

template <class T>
ucs_status_t apply(unsigned op, T value, uint64_t remote, T *result)
{
    if (UCS_UNLIKELY(!atomic_aligned<T>(remote))) {
        return misaligned_atomic(remote, sizeof(T));
    }
    if (UCS_UNLIKELY(!result && op == UCT_ATOMIC_OP_SWAP)) {
        return UCS_ERR_UNSUPPORTED; // a swap without its result is a put
    }
    return cpu_atomic(op, value, reinterpret_cast<T *>(remote), result);
}

template <class T>
ucs_status_t compare_swap(T compare, T swap, uint64_t remote, T *result)
{
    if (UCS_UNLIKELY(!atomic_aligned<T>(remote))) {
        return misaligned_atomic(remote, sizeof(T));
    }
    return cpu_compare_swap(compare, swap, reinterpret_cast<T *>(remote), result);
}

} // namespace

ucs_status_t ep::put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t)
{
    copy_bytes(memory_at(remote), buffer, length);
    return UCS_OK;
}

ssize_t ep::put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t)
{
    return static_cast<ssize_t>(pack(memory_at(remote), arg));
}

ucs_status_t ep::put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *)
{
    gather(memory_at(remote), iov, count);
    return UCS_OK;
}

ucs_status_t ep::get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t)
{
    copy_bytes(buffer, memory_at(remote), length);
    return UCS_OK;
}

ucs_status_t ep::get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t, uct_completion_t *)
{
    unpack(arg, memory_at(remote), length);
    return UCS_OK;
}

ucs_status_t ep::get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t,
                           uct_completion_t *)
{
    scatter(iov, count, memory_at(remote));
    return UCS_OK;
}

ucs_status_t ep::atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t)
{
    return apply<uint32_t>(op, value, remote, nullptr);
}

ucs_status_t ep::atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t)
{
    return apply<uint64_t>(op, value, remote, nullptr);
}

ucs_status_t ep::atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *)
{
    return apply<uint32_t>(op, value, remote, result);
}

ucs_status_t ep::atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t, uct_completion_t *)
{
    return apply<uint64_t>(op, value, remote, result);
}

ucs_status_t ep::atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t,
                                uint32_t *result, uct_completion_t *)
{
    return compare_swap(compare, swap, remote, result);
}

ucs_status_t ep::atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t,
                                uint64_t *result, uct_completion_t *)
{
    return compare_swap(compare, swap, remote, result);
}

} // namespace uct::self
