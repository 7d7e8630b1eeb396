// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting for a quiet round of the transports, or for many rounds under constant traffic.
#include "ucp/rndv/settle.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/proto/proto.h"
#include "ucp/rndv/rndv.h"

namespace ucp {

namespace {

// More than the messages that fit between two processes.
constexpr unsigned ROUNDS_UNDER_TRAFFIC = 512;

} // namespace

bool settling::concerns(const ucp_request *req) noexcept
{
    const ucp_ep *ep = req->ep;
    const lane &l = ep->lanes[req->rndv.lane];
    return ep->err_mode != UCP_ERR_HANDLING_MODE_NONE &&
           ep->worker->context->resources[l.iface->resource].cls == tl_class::shm;
}

void settling::add(ucp_request *req)
{
    req->abort = abort_simple; // nothing is in flight any more
    if (!(req->flags & REQ_LISTED)) {
        req->ep->add_outstanding(req);
    }
    reads_.push_back({request_wire_id(req), 0});
    req->worker->schedule();
}

void settling::run_round(ucp_worker *worker, unsigned transport_count) noexcept
{
    std::vector<read> reads;
    reads.swap(reads_);
    for (read &r : reads) {
        ucp_request *req = find_request(worker, r.id, PHASE_RNDV_GET);
        if (!req || req->ep->check_usable() != UCS_OK) {
            continue; // aborted, now or soon
        }
        if (transport_count == 0 || ++r.rounds >= ROUNDS_UNDER_TRAFFIC) {
            rndv_get_finish(req);
        } else {
            reads_.push_back(r);
        }
    }
}

} // namespace ucp
