// SPDX-License-Identifier: BSD-3-Clause
//
// Flush: an operation that takes its turn behind everything posted before, then waits for the lanes
// and for the acknowledgements of emulated RMA. Fence: one that lets nothing past it before the
// unordered operations of the lanes have ended.
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucp/endpoint/send.h"

namespace ucp {

namespace {

// A peer that has closed its end has taken what was sent and answers nothing more.
bool acked(const ucp_ep *ep, uint64_t seq)
{
    return ep->rma_acked >= seq || ep->control->close_seen;
}

} // namespace

void flush_list::push_back(flush_request *req) noexcept
{
    req->next = nullptr;
    (last_ ? last_->next : first_) = req;
    last_ = req;
}

flush_request *flush_list::unlink(flush_request **at) noexcept
{
    flush_request *req = *at;
    *at = req->next;
    if (req == last_) {
        last_ = first_;
        while (last_ && last_->next) {
            last_ = last_->next;
        }
    }
    return req;
}

void flush_list::erase(flush_request *req) noexcept
{
    for (flush_request **at = &first_; *at; at = &(*at)->next) {
        if (*at == req) {
            unlink(at);
            return;
        }
    }
}

flush_request *flush_list::take(uint64_t acked) noexcept
{
    for (flush_request **at = &first_; *at; at = &(*at)->next) {
        if ((*at)->seq <= acked) {
            return unlink(at);
        }
    }
    return nullptr;
}

namespace {

// Everything local is done: complete, or wait for the target.
void lanes_flushed(flush_request *req) noexcept
{
    request_unlist(req);
    ucs_status_t status = comp_status(req);
    if (req->flags & REQ_ABORTED) {
        complete(req, req->status);
    } else if (status != UCS_OK || acked(req->ep, req->seq)) {
        complete(req, status);
    } else {
        req->ep->control->flush_waiters.push_back(req);
        req->ep->add_outstanding(req);
    }
}

void flush_comp(uct_completion_t *comp)
{
    lanes_flushed(static_cast<flush_request *>(ucp_request::from_comp(comp)));
}

void flush_abort(flush_request *req, ucs_status_t status) noexcept
{
    req->ep->control->flush_waiters.erase(req);
    if (req->comp.count > 0) {
        req->flags |= REQ_ABORTED; // the lanes' completions still come
        req->status = status;
    } else {
        complete(req, status);
    }
}

ucs_status_t flush_progress(flush_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    if (!req->begun) {
        req->begun = true;
        req->lanes = (1u << ep->lane_count) - 1;
        req->seq = ep->rma_posted;
        req->comp.func = flush_comp;
        req->comp.status = UCS_OK;
        req->comp.count = 0;
        if (!acked(ep, ep->rma_posted)) {
            rma_request_ack(ep);
        }
    }
    ++req->comp.count; // ours, while we post
    for (unsigned i = 0; i < ep->lane_count; ++i) {
        if (!(req->lanes & (1u << i))) {
            continue;
        }
        ++req->comp.count;
        ucs_status_t status = uct_ep_flush(ep->lanes[i].ep, 0, &req->comp);
        if (status != UCS_INPROGRESS) {
            --req->comp.count;
        }
        if (status == UCS_ERR_NO_RESOURCE) {
            --req->comp.count;
            req->pend_lane = static_cast<uint8_t>(i);
            return UCS_ERR_NO_RESOURCE;
        }
        if (status != UCS_OK && status != UCS_INPROGRESS) {
            req->comp.status = status;
        }
        req->lanes &= ~(1u << i);
    }
    if (--req->comp.count == 0) {
        lanes_flushed(req);
    } else {
        ep->add_outstanding(req);
    }
    return UCS_OK;
}

} // namespace

void ep_flush_start(ucp_ep *ep, flush_request *req) noexcept
{
    req->ep = ep;
    req->progress = typed<flush_progress>;
    req->abort = typed<flush_abort>;
    req->comp = {};
    req->begun = false;
    req->pend_lane = ep->am_lane_index;
    if (!ep->can_send()) {
        ep->queue(req);
        return;
    }
    ucs_status_t status = flush_progress(req);
    if (status == UCS_ERR_NO_RESOURCE) {
        ep->queue(req);
    } else if (status != UCS_OK) {
        complete(req, status);
    }
}

namespace {

// The lane's puts and gets behind the fence wait for the target's acknowledgement of the messages
// before it, and this endpoint uses them.
bool wants_ack(const ucp_ep *ep)
{
    return ep->lane_rma_wanted && ep->rma_acked < ep->rma_posted;
}

// What was posted before the fence has been sent, nothing else has.
void close_fence(ucp_ep *ep)
{
    ep->lane_rma_wanted = false;
    ep->rma_fence = ep->rma_posted;
    ep->control->fenced = ep->unordered != 0;
}

// The interfaces were fenced when the program asked, and what waited here was posted after that.
ucs_status_t fence_lanes(ucp_request *req)
{
    ucp_ep *ep = req->ep;
    for (unsigned i = 0; i < ep->lane_count; ++i) {
        ucs_status_t status = uct_ep_fence(ep->lanes[i].ep, 0);
        if (status != UCS_OK && status != UCS_ERR_UNSUPPORTED &&
            status != UCS_ERR_NOT_IMPLEMENTED) {
            req->pend_lane = static_cast<uint8_t>(i);
            return status;
        }
    }
    return UCS_OK;
}

ucs_status_t fence_progress(ucp_request *req)
{
    ucp_ep *ep = req->ep;
    ucs_status_t status = fence_lanes(req);
    if (status == UCS_OK && wants_ack(ep)) {
        req->pend_lane = ep->am_lane_index;
        status = rma_post_ack_request(ep, ep->rma_posted);
    }
    if (status == UCS_OK) {
        close_fence(ep);
        complete(req, UCS_OK);
    }
    return status;
}

} // namespace

ucs_status_t ep_fence(ucp_ep *ep) noexcept
{
    if (ep->status != UCS_OK) {
        return UCS_OK;
    }
    ep->direct_fenced |= ep->lane_rma_wanted || ep->rma_acked < ep->rma_posted ||
                         ep->unordered != 0 || !ep->pending.empty();
    if (ep->pending.empty() && ep->unordered == 0 && !wants_ack(ep)) {
        close_fence(ep);
        return UCS_OK;
    }
    if (!ep->pending.empty() && ep->pending.back()->progress == fence_progress) {
        return UCS_OK; // one is enough
    }
    auto *req = request_get_internal<ucp_request>(ep->worker);
    if (!req) {
        return UCS_ERR_NO_MEMORY;
    }
    req->ep = ep;
    req->progress = fence_progress;
    req->abort = abort_simple;
    ep->queue(req);
    return UCS_OK;
}

// A callback may fence, close endpoints or post to some meanwhile. What was looked at goes to the
// end of the list, where it ends the round.
ucs_status_t worker_fence(ucp_worker *worker) noexcept
{
    ucs_status_t status = UCS_OK;
    worker->fences = std::max(worker->fences + 1, 1u); // 0: none has looked
    uint32_t round = worker->fences;
    while (ep_link<listed::unfenced> *link = worker->unfenced.front()) {
        ucp_ep *ep = ucp_ep::of(link);
        if (ep->fence_round == round) {
            break;
        }
        ep->fence_round = round;
        worker->unfenced.erase(link);
        worker->unfenced.push_back(link);
        ucs_status_t fenced = ep_fence(ep);
        status = fenced == UCS_OK ? status : fenced;
        bool done = ep->status != UCS_OK || (ep->pending.empty() && ep->unordered == 0);
        if (fenced == UCS_OK && done && link->node.linked()) {
            worker->unfenced.erase(link);
        }
    }
    return status;
}

} // namespace ucp

// What has come behind the fence and is on its way, too, counts as what was before it.
bool ucp_ep::fence_passed() noexcept
{
    if (lane_rma_fenced()) {
        lane_rma_wanted = true; // the next fence asks for the acknowledgement
        note_unfenced();
        return false;
    }
    if (!pending.empty() || unordered != 0) {
        return false;
    }
    for (unsigned i = 0; i < lane_count; ++i) {
        if (lanes[i].ep && uct_ep_flush(lanes[i].ep, 0, nullptr) != UCS_OK) {
            return false;
        }
    }
    direct_fenced = false;
    return true;
}

void ucp_ep::unordered_done() noexcept
{
    if (--unordered == 0 && control->fenced) {
        control->fenced = false;
        ucp::ep_drain(this);
    }
}

namespace ucp {

namespace {

// A worker's flush: one internal flush for each endpoint that has something to wait for, then the
// interfaces.
struct worker_flush_request : ucp_request {
    static constexpr req_kind is = req_kind::flush;
    using ucp_request::ucp_request;

    unsigned children = 1; // those of endpoints that have not ended, and one while they are made
};

void child_done(void *, ucs_status_t status, void *user_data)
{
    auto *parent = static_cast<worker_flush_request *>(user_data);
    --parent->children;
    if (status != UCS_OK && parent->comp.status == UCS_OK) {
        parent->comp.status = status;
    }
    parent->worker->schedule();
}

using request_list = ucs::list<ucp_request, &ucp_request::node>;

// One for each endpoint that has something to wait for; the others leave the worker's list. false:
// there is no memory for all.
bool make_children(worker_flush_request *parent, request_list *children)
{
    ucp_worker *worker = parent->worker;
    for (ep_link<listed::unflushed> *link : worker->unflushed) {
        ucp_ep *ep = ucp_ep::of(link);
        if (ep->status != UCS_OK || (ep->pending.empty() && ep->rma_acked >= ep->rma_posted)) {
            worker->unflushed.erase(link);
            continue;
        }
        auto *child = request_get_internal<flush_request>(worker);
        if (!child) {
            return false;
        }
        child->ep = ep;
        child->flags |= REQ_CALLBACK;
        child->cb.send = child_done;
        child->user_data = parent;
        children->push_back(child);
        ++parent->children;
    }
    return true;
}

bool ifaces_flushed(ucp_worker *worker)
{
    bool done = true;
    for (const auto &iface : worker->ifaces) {
        ucs_status_t status = uct_iface_flush(iface->uct, 0, nullptr);
        done = done && status != UCS_INPROGRESS && status != UCS_ERR_NO_RESOURCE;
    }
    return done;
}

bool try_finish(worker_flush_request *parent)
{
    if (parent->children != 0 || !ifaces_flushed(parent->worker)) {
        return false;
    }
    request_unlist(parent);
    complete(parent, UCS_OK); // lost peers have been reported where they belong
    return true;
}

} // namespace

ucs_status_ptr_t worker_flush(ucp_worker *worker, const ucp_request_param_t *param) noexcept
{
    auto *parent = request_get<worker_flush_request>(worker, param);
    if (!parent) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    parent->flags |= REQ_POSTING;
    request_list children;
    if (!make_children(parent, &children)) {
        while (ucp_request *child = children.pop_front()) {
            request_put(child);
        }
        request_put(parent);
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    while (ucp_request *child = children.pop_front()) {
        ep_flush_start(child->ep, static_cast<flush_request *>(child));
    }
    --parent->children;
    if (!try_finish(parent)) {
        parent->flags |= REQ_LISTED;
        worker->flushes.push_back(parent);
        worker->schedule();
    }
    return post_return(parent, param);
}

bool worker_flush_progress(ucp_worker *worker) noexcept
{
    request_list waiting;
    waiting.splice_back(worker->flushes);
    while (ucp_request *req = waiting.front()) {
        if (!try_finish(static_cast<worker_flush_request *>(req))) {
            waiting.pop_front();
            worker->flushes.push_back(req);
        }
    }
    return worker->flushes.empty();
}

} // namespace ucp
