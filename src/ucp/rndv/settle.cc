// SPDX-License-Identifier: BSD-3-Clause
//
// Waiting for a quiet round of the transports, or for many rounds under constant traffic.
#include "ucp/rndv/settle.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/proto/proto.h"
#include "ucp/rndv/rndv.h"

#include <new>

namespace ucp {

namespace {

// More than the messages that fit between two processes.
constexpr unsigned ROUNDS_UNDER_TRAFFIC = 512;

// Without error handling no endpoint is closed by force.
bool may_have_changed(const rndv_recv_request *req) noexcept
{
    const ucp_ep *ep = req->ep;
    const lane &l = ep->lanes[req->read.lane];
    return ep->err_mode != UCP_ERR_HANDLING_MODE_NONE &&
           ep->worker->context->resources[l.iface->resource].cls == tl_class::shm;
}

bool is_too_early(const rndv_recv_request *req) noexcept
{
    constexpr uint32_t inside = REQ_POSTING | REQ_LATER;
    return (req->flags & inside) == inside;
}

} // namespace

bool settling::concerns(const rndv_recv_request *req) noexcept
{
    return may_have_changed(req) || is_too_early(req);
}

bool settling::add(rndv_recv_request *req) noexcept
{
    uint64_t id = request_wire_id(req);
    if (id == 0) {
        return false;
    }
    try {
        reads_.push_back({id, may_have_changed(req) ? 0 : ROUNDS_UNDER_TRAFFIC});
    } catch (const std::bad_alloc &) {
        return false;
    }
    req->abort = abort_simple; // nothing is in flight any more
    if (!(req->flags & REQ_LISTED)) {
        req->ep->add_outstanding(req);
    }
    req->worker->schedule();
    return true;
}

void settling::run_round(ucp_worker *worker, unsigned transport_count) noexcept
{
    if (running_) {
        return;
    }
    running_ = true;
    const size_t count = reads_.size(); // callbacks add some
    size_t kept = 0;
    for (size_t i = 0; i < count; ++i) {
        read r = reads_[i];
        auto *req = static_cast<rndv_recv_request *>(find_request(worker, r.id, PHASE_RNDV_GET));
        if (!req || req->ep->check_usable() != UCS_OK) {
            continue; // aborted, now or soon
        }
        if (transport_count == 0 || ++r.rounds >= ROUNDS_UNDER_TRAFFIC) {
            rndv_get_finish(req);
        } else {
            reads_[kept++] = r;
        }
    }
    reads_.erase(reads_.begin() + static_cast<ptrdiff_t>(kept),
                 reads_.begin() + static_cast<ptrdiff_t>(count));
    running_ = false;
}

} // namespace ucp
