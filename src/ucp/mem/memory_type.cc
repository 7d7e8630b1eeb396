// SPDX-License-Identifier: BSD-3-Clause
//
// Where the driver of a device may know a buffer, and where the caller says what memory it is.
#include "ucp/mem/memory_type.h"

#include "ucp/core/raw_value.h"
#include "ucs/check.h"

namespace ucp {

namespace {

ucs_status_t examine_entries(const char *call, const ucp_dt_iov_t *iov, size_t count) noexcept
{
    for (size_t i = 0; i < count; ++i) {
        ucs_status_t status =
            check_address(call, "an entry of the list", iov[i].buffer, iov[i].length);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

const char *feature_name(uint64_t feature) noexcept
{
    switch (feature) {
    case UCP_FEATURE_TAG:
        return "UCP_FEATURE_TAG";
    case UCP_FEATURE_AM:
        return "UCP_FEATURE_AM";
    case UCP_FEATURE_STREAM:
        return "UCP_FEATURE_STREAM";
    case UCP_FEATURE_RMA:
        return "UCP_FEATURE_RMA";
    default:
        return "UCP_FEATURE_AMO32 and UCP_FEATURE_AMO64";
    }
}

bool has(const ucp_request_param_t *param, uint32_t field) noexcept
{
    return param && (param->op_attr_mask & field) != 0;
}

} // namespace

ucs_status_t check_address(const char *call, const char *what, const void *address,
                           size_t length) noexcept
{
    if (length == 0 || !address) {
        return UCS_OK;
    }
    ucs_memory_type_t type = ucs::device_memory::find(address).type;
    if (ucs::device_memory::is_host(type)) {
        return UCS_OK;
    }
    ucs_error("%s: %s %p is %s, which is not supported: use memory of the host", call, what,
              address, ucs::device_memory::name(type));
    return UCS_ERR_UNSUPPORTED;
}

ucs_status_t examine(const char *call, const ucp_context *context, uint64_t feature,
                     const ucp_request_param_t *param, const void *buffer, size_t count,
                     ucp_datatype_t dt) noexcept
{
    UCS_CHECK_ARG(context->has_feature(feature), "%s: the context was created without %s", call,
                  feature_name(feature));
    return examine_buffer(call, param, buffer, count, dt);
}

ucs_status_t examine_buffer(const char *call, const ucp_request_param_t *param, const void *buffer,
                            size_t count, ucp_datatype_t dt) noexcept
{
    if (has(param, UCP_OP_ATTR_FIELD_MEMORY_TYPE)) {
        unsigned type = raw_value(param->memory_type);
        if (is_device_memory(type)) {
            ucs_error("%s: param->memory_type %u, %s, is not supported: use memory of the host",
                      call, type, ucs::device_memory::name(static_cast<ucs_memory_type_t>(type)));
            return UCS_ERR_UNSUPPORTED;
        }
        if (is_known_memory(type)) {
            return UCS_OK;
        }
    }
    // What is registered was asked for then.
    if (!ucs::device_memory::possible() || !buffer || has(param, UCP_OP_ATTR_FIELD_MEMH)) {
        return UCS_OK;
    }
    switch (dt & UCP_DATATYPE_CLASS_MASK) {
    case UCP_DATATYPE_CONTIG:
        return check_address(call, "buffer", buffer, count * (dt >> UCP_DATATYPE_SHIFT));
    case UCP_DATATYPE_IOV:
        return examine_entries(call, static_cast<const ucp_dt_iov_t *>(buffer), count);
    default:
        return UCS_OK; // the program's own functions touch it, or its blocks are asked for alone
    }
}

} // namespace ucp

void ucp_context::look_for_drivers() noexcept
{
    ucs::device_memory::look();
    unexamined.store(ucs::device_memory::possible() ? 0 : features, std::memory_order_relaxed);
}
