// SPDX-License-Identifier: BSD-3-Clause
//
// Functions for slots of the ops tables that an object does not serve. libfabric's inline calls
// test no pointer, so every slot needs one: `no_op` converts to a function of any signature that
// returns -FI_ENOSYS (0 where the result is unsigned or a pointer).
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>
#include <type_traits>

namespace ucxlike {

struct no_op_t {
    template <class R, class... A>
    using function = R (*)(A...);

    template <class R, class... A>
    constexpr operator function<R, A...>() const
    {
        return [](A...) -> R {
            if constexpr (std::is_pointer_v<R>) {
                return nullptr;
            } else if constexpr (std::is_unsigned_v<R>) {
                return 0;
            } else {
                return -FI_ENOSYS;
            }
        };
    }
};

inline constexpr no_op_t no_op = {};

// The calls on the fid of an object that can be closed and nothing else.
constexpr fi_ops only_close(int (*close)(fid_t))
{
    return {
        .size = sizeof(fi_ops),
        .close = close,
        .bind = no_op,
        .control = no_op,
        .ops_open = no_op,
        .tostr = no_op,
        .ops_set = no_op,
    };
}

} // namespace ucxlike
