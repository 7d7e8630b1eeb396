// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations on memory that this process maps, by the CPU. T is uint32_t or uint64_t.
#pragma once

#include "ucs/compiler.h"

#include <uct/api/uct.h>

#include <cstdint>

namespace uct {

// Every operation of the two calls: what uct_iface_attr says of memory that is mapped here.
constexpr uint64_t cpu_atomic_post = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) |
                                     UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR);
constexpr uint64_t cpu_atomic_fetch =
    cpu_atomic_post | UCS_BIT(UCT_ATOMIC_OP_SWAP) | UCS_BIT(UCT_ATOMIC_OP_CSWAP);

template <class T>
bool atomic_aligned(uint64_t address)
{
    return address % sizeof(T) == 0;
}

// *result: what was there before; may be nullptr. target is aligned to its size.
template <class T>
ucs_status_t cpu_atomic(unsigned op, T value, T *target, T *result) noexcept
{
    T before;
    switch (op) {
    case UCT_ATOMIC_OP_ADD:
        before = __atomic_fetch_add(target, value, __ATOMIC_SEQ_CST);
        break;
    case UCT_ATOMIC_OP_AND:
        before = __atomic_fetch_and(target, value, __ATOMIC_SEQ_CST);
        break;
    case UCT_ATOMIC_OP_OR:
        before = __atomic_fetch_or(target, value, __ATOMIC_SEQ_CST);
        break;
    case UCT_ATOMIC_OP_XOR:
        before = __atomic_fetch_xor(target, value, __ATOMIC_SEQ_CST);
        break;
    case UCT_ATOMIC_OP_SWAP:
        before = __atomic_exchange_n(target, value, __ATOMIC_SEQ_CST);
        break;
    default:
        return UCS_ERR_UNSUPPORTED;
    }
    if (result) {
        *result = before;
    }
    return UCS_OK;
}

template <class T>
ucs_status_t cpu_compare_swap(T compare, T swap, T *target, T *result) noexcept
{
    *result = compare;
    __atomic_compare_exchange_n(target, result, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return UCS_OK;
}

// Logs that an address is not aligned for an atomic operation; returns UCS_ERR_INVALID_PARAM.
UCS_NOINLINE ucs_status_t misaligned_atomic(uint64_t address, size_t size);

} // namespace uct
