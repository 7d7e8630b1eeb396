// SPDX-License-Identifier: BSD-3-Clause
//
// Put and get of lists on both sides: see sgl.cc.
#pragma once

#include "ucp/rma/rma.h"

namespace ucp {

using rma_call = ucs_status_ptr_t (*)(const rma_args &a, const ucp_request_param_t *param) noexcept;

// Whether the caller means lists; anything but both sides as lists is an error that sgl() tells.
inline bool is_sgl(ucp_datatype_t dt, const ucp_request_param_t *param) noexcept
{
    return (dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_SGL ||
           (param->op_attr_mask & UCP_OP_ATTR_FIELD_REMOTE_DATATYPE) != 0;
}

// post: put or get.
ucs_status_ptr_t sgl(rma_call post, const rma_args &a, const ucp_request_param_t *param) noexcept;

} // namespace ucp
