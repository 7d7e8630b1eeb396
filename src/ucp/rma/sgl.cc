// SPDX-License-Identifier: BSD-3-Clause
//
// Put and get of lists on both sides (UCP_DATATYPE_SGL): one operation for each block, each the way
// it would go alone, and one request that ends with the last of them.
#include "ucp/rma/sgl.h"

#include "ucs/log.h"
#include "ucs/wire/checked.h"

namespace ucp {

namespace {

constexpr uint64_t LOCAL_NEEDED = UCP_DT_LOCAL_SGL_FIELD_BUFFERS | UCP_DT_LOCAL_SGL_FIELD_LENGTHS;
constexpr uint64_t REMOTE_NEEDED = UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS |
                                   UCP_DT_REMOTE_SGL_FIELD_LENGTHS | UCP_DT_REMOTE_SGL_FIELD_RKEYS;

// Both sides with what is not set filled in.
struct lists {
    const ucp_dt_local_sgl_t &local;
    const ucp_dt_remote_sgl_t &remote;

    size_t blocks(size_t i) const
    {
        return local.field_mask & UCP_DT_LOCAL_SGL_FIELD_COUNTS ? local.counts[i] : 1;
    }
    size_t stride(size_t i) const
    {
        return local.field_mask & UCP_DT_LOCAL_SGL_FIELD_STRIDES ? local.strides[i]
                                                                 : local.lengths[i];
    }
    bool has_memhs() const { return (local.field_mask & UCP_DT_LOCAL_SGL_FIELD_MEMHS) != 0; }
    ucp_mem *memh(size_t i) const { return has_memhs() ? local.memhs[i] : nullptr; }
    // Every block of the element lies in its registration.
    bool covered(size_t i) const
    {
        const mapping m = {0, reinterpret_cast<uintptr_t>(memh(i)->address), memh(i)->length,
                           memh(i)};
        size_t span;
        return !__builtin_mul_overflow(blocks(i) - 1, stride(i), &span) &&
               ucs::checked_sum(&span, span, local.lengths[i]) &&
               m.holds(reinterpret_cast<uintptr_t>(local.buffers[i]), span);
    }
};

bool has(const ucp_request_param_t *param, uint32_t field)
{
    return (param->op_attr_mask & field) != 0;
}

ucs_status_t check_element(const char *call, const ucp_ep *ep, const lists &l, size_t i) noexcept
{
    size_t length = l.local.lengths[i];
    UCS_CHECK_ARG(length == 0 || l.blocks(i) <= SIZE_MAX / length,
                  "%s: element %zu of the local list is too long", call, i);
    size_t total = l.blocks(i) * length;
    UCS_CHECK_ARG(total == l.remote.lengths[i],
                  "%s: element %zu has %zu bytes in the local list and %zu in the remote one", call,
                  i, total, l.remote.lengths[i]);
    if (total == 0) {
        return UCS_OK;
    }
    UCS_CHECK_ARG(l.local.buffers[i], "%s: the buffer of element %zu must not be NULL", call, i);
    UCS_CHECK_ARG(!l.has_memhs() || (l.memh(i) && l.covered(i)),
                  "%s: the memory handle of element %zu is NULL or does not hold the buffer", call,
                  i);
    UCS_CHECK_ARG(l.remote.rkeys[i], "%s: the key of element %zu must not be NULL", call, i);
    UCS_CHECK_ARG(l.remote.rkeys[i]->ep == ep, "%s: the key of element %zu is of another endpoint",
                  call, i);
    return UCS_OK;
}

ucs_status_t check_lists(const rma_args &a, const ucp_request_param_t *param) noexcept
{
    UCS_CHECK_ARG(a.ep, "%s: ep must not be NULL", a.call);
    ucs_status_t known = check_operation(a.call, a.ep->worker->context, UCP_FEATURE_RMA, param,
                                         a.buffer, a.count, a.dt);
    if (known != UCS_OK) {
        return known;
    }
    UCS_CHECK_ARG((a.dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_SGL &&
                      has(param, UCP_OP_ATTR_FIELD_REMOTE_DATATYPE) &&
                      (param->remote_datatype & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_SGL,
                  "%s: lists must be on both sides: param->datatype and param->remote_datatype",
                  a.call);
    UCS_CHECK_ARG(a.address == UCP_REMOTE_ADDR_INVALID && a.rkey == UCP_RKEY_INVALID,
                  "%s: lists have addresses and keys of their own: remote_addr and rkey must be "
                  "UCP_REMOTE_ADDR_INVALID and UCP_RKEY_INVALID",
                  a.call);
    UCS_CHECK_ARG(!has(param, UCP_OP_ATTR_FIELD_REMOTE_COUNT) || param->remote_count == a.count,
                  "%s: param->remote_count %zu must be count, %zu", a.call, param->remote_count,
                  a.count);
    if (a.count == 0) {
        return UCS_OK;
    }
    UCS_CHECK_ARG(has(param, UCP_OP_ATTR_FIELD_REMOTE) && param->remote,
                  "%s: param->remote must point to a ucp_dt_remote_sgl_t", a.call);
    UCS_CHECK_ARG(a.buffer, "%s: buffer must point to a ucp_dt_local_sgl_t", a.call);
    lists l = {*static_cast<const ucp_dt_local_sgl_t *>(a.buffer),
               *static_cast<const ucp_dt_remote_sgl_t *>(param->remote)};
    UCS_CHECK_ARG((l.local.field_mask & LOCAL_NEEDED) == LOCAL_NEEDED,
                  "%s: the local list needs buffers and lengths", a.call);
    UCS_CHECK_ARG((l.remote.field_mask & REMOTE_NEEDED) == REMOTE_NEEDED,
                  "%s: the remote list needs remote_addrs, lengths and rkeys", a.call);
    for (size_t i = 0; i < a.count; ++i) {
        ucs_status_t status = check_element(a.call, a.ep, l, i);
        if (status != UCS_OK) {
            return status;
        }
    }
    return UCS_OK;
}

void count_down(ucp_request *whole, ucs_status_t status) noexcept
{
    uct_completion_update_status(&whole->comp, status);
    if (--whole->comp.count == 0) {
        complete(whole, whole->comp.status);
    }
}

void block_done(void *, ucs_status_t status, void *user_data)
{
    count_down(static_cast<ucp_request *>(user_data), status);
}

// One block, as an operation of its own; the user has no request of it.
void post_block(ucp_request *whole, rma_call post, const rma_args &block, ucp_mem *memh) noexcept
{
    ucp_request_param_t param;
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA |
                         (memh ? UCP_OP_ATTR_FIELD_MEMH : 0);
    param.cb.send = block_done;
    param.user_data = whole;
    param.memh = memh;
    ++whole->comp.count;
    ucs_status_ptr_t ptr = post(block, &param);
    if (UCS_PTR_IS_PTR(ptr)) {
        ucp_request_release(ptr); // ucp_request_free() would forget the callback
    } else {
        count_down(whole, UCS_PTR_STATUS(ptr));
    }
}

void post_element(ucp_request *whole, rma_call post, const rma_args &a, const lists &l,
                  size_t i) noexcept
{
    size_t length = l.local.lengths[i];
    for (size_t k = 0; length != 0 && k < l.blocks(i); ++k) {
        post_block(whole, post,
                   {a.call, a.ep, static_cast<char *>(l.local.buffers[i]) + k * l.stride(i), length,
                    ucp_dt_make_contig(1), l.remote.remote_addrs[i] + k * length,
                    l.remote.rkeys[i]},
                   l.memh(i));
    }
}

} // namespace

ucs_status_ptr_t sgl(rma_call post, const rma_args &a, const ucp_request_param_t *param) noexcept
{
    ucs_status_t status = check_lists(a, param);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    ucp_worker *worker = a.ep->worker;
    ucs::opt_guard guard(worker->lock);
    status = a.ep->check_usable();
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    if (has(param, UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    auto *whole = request_get<ucp_request>(worker, param);
    if (!whole) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    whole->flags |= REQ_POSTING;
    whole->ep = a.ep;
    whole->comp = {nullptr, 1, UCS_OK};
    for (size_t i = 0; i < a.count; ++i) {
        post_element(whole, post, a,
                     {*static_cast<const ucp_dt_local_sgl_t *>(a.buffer),
                      *static_cast<const ucp_dt_remote_sgl_t *>(param->remote)},
                     i);
    }
    count_down(whole, UCS_OK);
    return post_return(whole, param);
}

} // namespace ucp
