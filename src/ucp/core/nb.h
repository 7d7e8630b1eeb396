// SPDX-License-Identifier: BSD-3-Clause
//
// The older calls, ucp_*_nb(), as the newer ones with their parameters.
#pragma once

#include <ucp/api/ucp.h>

namespace ucp {

// A newer callback gets what the older one gets and the user's data behind it, or a pointer to
// const in place of a pointer: the older one can be called as if it were such.
template <class Newer, class Older>
Newer newer_callback(Older cb) noexcept
{
    return reinterpret_cast<Newer>(reinterpret_cast<void (*)()>(cb));
}

// What the mask names is set, nothing else. cb may be NULL.
inline ucp_request_param_t nb_param(ucp_send_callback_t cb) noexcept
{
    ucp_request_param_t param;
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK;
    param.cb.send = newer_callback<ucp_send_nbx_callback_t>(cb);
    return param;
}

} // namespace ucp
