// SPDX-License-Identifier: BSD-3-Clause
//
// How put, get and atomics begin: inside the call on memory that is mapped here, or as one message;
// else as a request, which looks again when its turn comes, since a fence may hold it until then.
//
// An operation is a type with
//   args, request              what the caller gives, what waits
//   counted                    its ucs::stats::flow
//   check(args, param)         UCS_OK, or what the call returns
//   length(args or *request)   bytes at the target; 0: there is nothing to do
//   at_mapped(args, mapped, length)
//                              does it there
//   at_once(args, length)      sends it without a request; NO_RESOURCE: it cannot
//   make(args, param, &req)    a request; an error: there is none
//   at_mapped(req, mapped)     does it there; how it ended
//   start(req)                 chooses its protocol; returns what progress() returns
#pragma once

#include "ucp/rma/rma.h"

namespace ucp {

template <class Op>
ucs_status_t rma_start_progress(typename Op::request *req) noexcept
{
    char *mapped = direct_address(req->rkey, req->address, Op::length(*req), Op::counted);
    if (!mapped) {
        return Op::start(req);
    }
    complete(req, Op::at_mapped(req, mapped));
    return UCS_OK;
}

// Returns what the call returns. param may be NULL, where the caller wants no request.
template <class Op>
ucs_status_ptr_t rma_post(const typename Op::args &a, const ucp_request_param_t *param) noexcept
{
    ucs_status_t status = Op::check(a, param);
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    ucp_ep *ep = a.ep;
    ucs::opt_guard guard(ep->worker->lock);
    size_t length = Op::length(a);
    status = length == 0 ? UCS_OK : UCS_ERR_NO_RESOURCE;
    if (length != 0 && Op::is_contig(a) && ep->check_usable() == UCS_OK) {
        if (char *mapped = direct_address(a.rkey, a.address, length, Op::counted)) {
            Op::at_mapped(a, mapped, length);
            status = UCS_OK;
        } else if (ep->can_send()) {
            status = Op::at_once(a, length);
        }
    }
    using request = typename Op::request;
    if (UCS_LIKELY(status != UCS_ERR_NO_RESOURCE)) {
        return param ? post_return_imm(ep->worker, request::is, status, param)
                     : UCS_STATUS_PTR(status);
    }
    request *req;
    status = Op::make(a, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    req->progress = typed<rma_start_progress<Op>>;
    req->abort = abort_simple;
    return rma_start(req, param);
}

// What a put and a get have in common.
struct rma_operation {
    using args = rma_args;
    using request = rma_request;

    static ucs_status_t check(const rma_args &a, const ucp_request_param_t *param) noexcept
    {
        return check_rma(a, param);
    }
    static size_t length(const rma_args &a) noexcept
    {
        return a.count ? dt_length(a.dt, a.buffer, a.count) : 0;
    }
    static size_t length(const rma_request &req) noexcept { return req.dt.length(); }
    static bool is_contig(const rma_args &a) noexcept
    {
        return (a.dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG;
    }
    // By a lane, where one reaches the memory, else on messages.
    static ucs_status_t start_by(rma_request *req, const proto_table *of_lanes, uint8_t right,
                                 const ep_config::tables &messages) noexcept
    {
        const proto_range *range =
            req->dt.is_contig() ? lane_range(req->ep, of_lanes, req->rkey, req->dt.length(), right)
                                : nullptr;
        return range && try_protocol(req, *range) ? req->progress(req)
                                                  : start_protocol(req, messages);
    }
};

} // namespace ucp
