// SPDX-License-Identifier: BSD-3-Clause
//
// What put, get and atomics share. Memory of a peer on the node that can be mapped is reached with
// loads and stores; else the lane's put and get; else software at the target, which checks every
// access against the mapping that the key names. Atomics are loads and stores or software, so that
// all of them on one word are atomic to each other.
#pragma once

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/mem/memory_type.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucs/check.h"
#include "ucs/stats/stats.h"

namespace ucp {

struct rma_args {
    const char *call;
    ucp_ep *ep;
    void *buffer;
    size_t count;
    ucp_datatype_t dt;
    uint64_t address;
    ucp_rkey *rkey;
};

ucs_status_ptr_t put(const rma_args &a, const ucp_request_param_t *param) noexcept;
ucs_status_ptr_t get(const rma_args &a, const ucp_request_param_t *param) noexcept;

// Common checks; UCS_OK, or the status to return. param may be NULL.
ucs_status_t check_rma(const rma_args &a, const ucp_request_param_t *param) noexcept;

// The first use of a key, and with UCX_STATS_DEST every one.
UCS_NOINLINE char *slow_direct_address(ucp_rkey *rkey, uint64_t address, size_t length,
                                       ucs::stats::flow what) noexcept;

inline char *mapped_address(ucp_rkey *rkey, uint64_t address, size_t length) noexcept
{
    if (!rkey->direct || address < rkey->base || length > rkey->length ||
        address - rkey->base > rkey->length - length || !rkey->ep->direct_allowed()) {
        return nullptr;
    }
    return static_cast<char *>(rkey->direct) + (address - rkey->base);
}

// The mapped address of [address, + length), nullptr if the key's memory is not mapped or does not
// hold it, or a fence forbids its use. what: the operation that follows.
inline char *direct_address(ucp_rkey *rkey, uint64_t address, size_t length,
                            ucs::stats::flow what) noexcept
{
    if (UCS_UNLIKELY(!rkey->plain)) {
        return slow_direct_address(rkey, address, length, what);
    }
    return mapped_address(rkey, address, length);
}

// A put or a get.
struct rma_request : data_request {
    using data_request::data_request;

    uint64_t address; // of the target's memory
    ucp_rkey *rkey;
    size_t share_end; // of the bytes that the current rail takes
    size_t remaining; // get by messages: bytes to come
    uint8_t rail;     // of the key
};

// A request for these arguments. *req_p is unchanged when it fails.
inline ucs_status_t make_rma_request(const rma_args &a, data_way way,
                                     const ucp_request_param_t *param, rma_request **req_p) noexcept
{
    ucs_status_t status = make_request(a.ep, way, a.buffer, a.count, a.dt, param, req_p);
    if (status != UCS_OK) {
        return status;
    }
    (*req_p)->address = a.address;
    (*req_p)->rkey = a.rkey;
    return UCS_OK;
}

// Stands for "in progress, no request" between put()/get() and the nbi calls.
inline char nbi_tag;

// Starts it.
inline ucs_status_ptr_t rma_start(ucp_request *req, const ucp_request_param_t *param) noexcept
{
    if (param) {
        return send_request(req, param);
    }
    send_internal(req);
    return &nbi_tag;
}

// Whether an operation that needs `right` may use the lane's own puts and gets.
inline bool lane_serves(ucp_ep *ep, const ucp_rkey *rkey, uint8_t right) noexcept
{
    ep->lane_rma_wanted = true;
    ep->note_unfenced();
    return rkey->first.lane != NO_LANE && UCS_LIKELY(!(rkey->denied & right)) &&
           UCS_LIKELY(!ep->lane_rma_fenced());
}

// How an operation on memory that a lane reaches goes; nullptr: as one on memory that none reaches.
inline const proto_range *lane_range(ucp_ep *ep, const proto_table *tables, const ucp_rkey *rkey,
                                     size_t length, uint8_t right) noexcept
{
    if (rkey->first.lane == NO_LANE) {
        return nullptr;
    }
    const proto_range &range = tables[rkey->first.lane].select(length);
    return !range.proto->native || lane_serves(ep, rkey, right) ? &range : nullptr;
}

// Blocks until the operation is done.
ucs_status_t rma_wait(ucp_worker *worker, ucs_status_ptr_t ptr) noexcept;

} // namespace ucp
