// SPDX-License-Identifier: BSD-3-Clause
//
// Kinds of memory: buffers lie where the processor loads and stores, which managed memory does.
// What is a device's, by the caller's word or the driver's, is refused. Numbers that mean "unknown"
// in some version of UCX (5, 6, 9 and above) count as not told.
#pragma once

#include "ucp/core/context.h"
#include "ucs/compiler.h"
#include "ucs/device_memory.h"

#include <ucp/api/ucp.h>

namespace ucp {

inline bool is_device_memory(unsigned type) noexcept
{
    return type < UCS_MEMORY_TYPE_LAST &&
           !ucs::device_memory::is_host(static_cast<ucs_memory_type_t>(type));
}

// The caller's word is taken for a kind that it names.
inline bool is_known_memory(unsigned type) noexcept
{
    return type <= UCS_MEMORY_TYPE_ROCM_MANAGED || type == UCS_MEMORY_TYPE_ZE_DEVICE ||
           type == UCS_MEMORY_TYPE_ZE_MANAGED;
}

// UCS_OK, or UNSUPPORTED with a line in the log if `length` bytes at `address`, called `what`, are
// a device's.
ucs_status_t check_address(const char *call, const char *what, const void *address,
                           size_t length) noexcept;

// The same for a buffer of any datatype, of which param may say what memory it is. param may be
// NULL.
UCS_NOINLINE ucs_status_t examine_buffer(const char *call, const ucp_request_param_t *param,
                                         const void *buffer, size_t count,
                                         ucp_datatype_t dt) noexcept;

// Whether an operation goes on without a look at its buffer. param may be NULL.
UCS_ALWAYS_INLINE bool takes_as_is(const ucp_context *context, uint64_t feature,
                                   const ucp_request_param_t *param) noexcept
{
    return UCS_LIKELY(context->takes_any_buffer(feature) &&
                      !(param && param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMORY_TYPE));
}

// What else is to be said of it: INVALID_PARAM if the context has not the feature, UNSUPPORTED for
// memory of a device, both with a line in the log.
UCS_NOINLINE ucs_status_t examine(const char *call, const ucp_context *context, uint64_t feature,
                                  const ucp_request_param_t *param, const void *buffer,
                                  size_t count, ucp_datatype_t dt) noexcept;

inline ucs_status_t check_operation(const char *call, const ucp_context *context, uint64_t feature,
                                    const ucp_request_param_t *param, const void *buffer,
                                    size_t count, ucp_datatype_t dt) noexcept
{
    return takes_as_is(context, feature, param)
               ? UCS_OK
               : examine(call, context, feature, param, buffer, count, dt);
}

inline ucp_datatype_t datatype_of(const ucp_request_param_t *param) noexcept
{
    return param->op_attr_mask & UCP_OP_ATTR_FIELD_DATATYPE ? param->datatype
                                                            : ucp_dt_make_contig(1);
}

} // namespace ucp
