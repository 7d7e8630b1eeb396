// SPDX-License-Identifier: BSD-3-Clause
//
// Kinds of memory: buffers lie in the host's. What is said to be a device's is refused. Numbers
// above those have changed between versions of UCX, and count as not told.
#pragma once

#include "ucp/core/raw_value.h"
#include "ucs/compiler.h"
#include "ucs/log.h"

#include <ucp/api/ucp.h>

namespace ucp {

inline bool is_device_memory(unsigned type) noexcept
{
    return type >= UCS_MEMORY_TYPE_CUDA && type <= UCS_MEMORY_TYPE_ROCM_MANAGED;
}

// UCS_OK, or the status to return.
inline ucs_status_t check_memory(const char *call, const ucp_request_param_t *param) noexcept
{
    if (UCS_LIKELY(!(param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE))) {
        return UCS_OK;
    }
    unsigned type = raw_value(param->memory_type);
    if (!is_device_memory(type)) {
        return UCS_OK;
    }
    ucs_error("%s: param->memory_type %u: only host memory is supported", call, type);
    return UCS_ERR_UNSUPPORTED;
}

} // namespace ucp
