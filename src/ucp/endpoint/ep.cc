// SPDX-License-Identifier: BSD-3-Clause
//
// An endpoint's queue, its states, failure and end.
#include "ucp/endpoint/ep.h"

#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucs/error.h"

#include <algorithm>
#include <utility>

ucp_ep::ucp_ep(ucp_worker *w, ucp::ep_origin o)
    : worker(w), origin(o), control(std::make_unique<ucp::ep_control>())
{
    user_data = this;
    control->pend.ep = this;
    if (o == ucp::ep_origin::client || o == ucp::ep_origin::server) {
        control->by_cm = std::make_unique<ucp::cm_control>(this);
    }
}

ucp_ep::~ucp_ep()
{
    leave_lists();
}

ucp::ep_control::ep_control() = default;
ucp::ep_control::~ep_control() = default;

void ucp_ep::add_outstanding(ucp_request *req) noexcept
{
    req->flags |= ucp::REQ_LISTED;
    outstanding.push_back(req);
    note_active();
}

void ucp_ep::queue(ucp_request *req) noexcept
{
    req->flags |= ucp::REQ_LISTED;
    pending.push_back(req);
    note_active();
    note_busy();
    sendable = false;
    if (remote_id == 0 && origin == ucp::ep_origin::address && state == ucp::ep_state::connecting &&
        control->close_seen) {
        // The peer had closed its end: connect again.
        control->close_seen = false;
        control->todo |= ucp::TODO_REQUEST;
    }
    ucp::ep_drain(this);
}

template <ucp::listed In>
static void unlist(ucp::ep_link<In> *link) noexcept
{
    if (link->node.linked()) {
        link->node.unlink();
    }
}

void ucp_ep::leave_lists() noexcept
{
    unlist<ucp::listed::unfenced>(this);
    unlist<ucp::listed::unflushed>(this);
    unlist<ucp::listed::active>(this);
    unlist<ucp::listed::deferred>(this);
}

void ucp_ep::rma_done() noexcept
{
    ++rma_acked;
    while (ucp_request *req = control->flush_waiters.take(rma_acked)) {
        ucp::complete(req, UCS_OK);
    }
}

void ucp_ep::set_failed(ucs_status_t why) noexcept
{
    if (status != UCS_OK || state == ucp::ep_state::closed) {
        return;
    }
    ucs_debug("ep %p failed: %s", static_cast<void *>(this), ucs_status_string(why));
    status = why;
    sendable = false;
    if (state != ucp::ep_state::closing) {
        state = ucp::ep_state::failed;
        if (control->counted()) {
            std::for_each_n(lanes.get(), lane_count,
                            [](const ucp::lane &l) { ucs::stats::lose_lane(l.ep); });
        }
    }
    ucp::ep_defer(this, ucp::WORK_FAIL);
}

namespace ucp {

ucp_ep *ep_new(ucp_worker *worker, ep_origin origin)
{
    auto ep = std::make_unique<ucp_ep>(worker, origin);
    ep->local_id = worker->ep_ids.add(ep.get());
    auto &graveyard = worker->graveyard;
    size_t all = graveyard.size() + worker->ep_ids.size();
    if (all > graveyard.capacity()) {
        try {
            graveyard.reserve(2 * all);
        } catch (...) {
            worker->ep_ids.erase(ep->local_id);
            throw;
        }
    }
    return ep.release();
}

namespace {

ucs_status_t on_lane_room(uct_pending_req_t *req);

// A server knows the client's id from the start, but the client is not ready, and the connection
// not to be closed, before it has confirmed.
bool may_send(const ucp_ep *ep)
{
    const cm_control *by_cm = ep->control->by_cm.get();
    return (ep->state == ep_state::connected && !ep->control->unsure) ||
           (ep->state == ep_state::closing && (by_cm ? by_cm->established : ep->remote_id != 0));
}

// What waits, as far as the lanes take it. UCS_ERR_NO_RESOURCE: lane *full has no room.
ucs_status_t send_waiting(ucp_ep *ep, uint8_t *full)
{
    ep_control &c = *ep->control;
    while (ep->status == UCS_OK && !c.fenced) {
        if (c.todo) {
            ucs_status_t status = send_todo(ep);
            if (status == UCS_ERR_NO_RESOURCE) {
                *full = ep->am_lane_index;
            } else if (status != UCS_OK) {
                ep->set_failed(status);
            }
            if (status != UCS_OK) {
                return status;
            }
        }
        if (!may_send(ep) || ep->pending.empty()) {
            break;
        }
        ucp_request *req = ep->pending.pop_front();
        req->flags &= ~REQ_LISTED;
        ucs_status_t status = req->progress(req);
        if (status == UCS_OK) {
            continue;
        }
        if (status == UCS_ERR_NO_RESOURCE || status == UCS_INPROGRESS) {
            req->flags |= REQ_LISTED;
            ep->pending.push_front(req);
            ep->note_active(); // a callback may have armed, fenced or flushed meanwhile
            ep->note_busy();
            if (status == UCS_ERR_NO_RESOURCE) {
                *full = req->pend_lane;
                return status;
            }
            continue;
        }
        req->abort(req, status);
    }
    return UCS_OK;
}

// One pass. UCS_ERR_NO_RESOURCE: stopped at lane *full.
ucs_status_t drain_pass(ucp_ep *ep, uint8_t *full)
{
    ep->control->draining = true;
    ucs_status_t status = send_waiting(ep, full);
    ep->control->draining = false;
    ep->sendable = ep->status == UCS_OK && ep->state == ep_state::connected &&
                   !ep->control->unsure && ep->pending.empty() && ep->control->todo == 0 &&
                   !ep->control->fenced;
    return status;
}

ucs_status_t on_lane_room(uct_pending_req_t *req)
{
    ucp_ep *ep = reinterpret_cast<ep_control::pending_hook *>(req)->ep;
    ep_control &c = *ep->control;
    if (c.torn_down || ep->status != UCS_OK) {
        c.armed = false;
        return UCS_OK;
    }
    uint8_t full = 0;
    if (drain_pass(ep, &full) == UCS_ERR_NO_RESOURCE) {
        if (full == c.armed_lane) {
            return UCS_ERR_NO_RESOURCE; // stays where it is
        }
        c.armed = false;
        ep_drain(ep);
    } else {
        c.armed = false;
    }
    if (c.by_cm && UCS_UNLIKELY(c.by_cm->answer_needs_room) && !c.armed) {
        ep_tell_answer(ep);
    }
    return UCS_OK;
}

// BUSY: there is room already.
ucs_status_t arm(ucp_ep *ep, uint8_t full)
{
    ep_control &c = *ep->control;
    c.pend.req = {};
    c.pend.req.func = on_lane_room;
    c.armed_lane = full < ep->lane_count ? full : ep->am_lane_index;
    ucs_status_t status = uct_ep_pending_add(ep->lanes[c.armed_lane].ep, &c.pend.req, 0);
    c.armed = status == UCS_OK;
    return status;
}

} // namespace

void ep_drain(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    while (!c.draining && !c.armed && !c.torn_down && ep->am_ep) {
        uint8_t full = ep->am_lane_index;
        if (drain_pass(ep, &full) != UCS_ERR_NO_RESOURCE || c.torn_down) {
            return;
        }
        ucs_status_t status = arm(ep, full);
        if (status != UCS_OK && status != UCS_ERR_BUSY) {
            ep->set_failed(status);
            return;
        }
    }
}

namespace {

// Once: the callback may close the endpoint.
void tell_answer(cm_control &m) noexcept
{
    if (!m.answer) {
        return;
    }
    m.answer_needs_room = false;
    std::unique_ptr<std::vector<uint8_t>> answer = std::move(m.answer);
    auto *answered = std::exchange(m.answered, nullptr);
    if (answered) {
        answered(m.answered_arg, answer->data(), answer->size());
    }
}

} // namespace

void ep_tell_answer(ucp_ep *ep) noexcept
{
    if (ep->status == UCS_OK && ep->state == ep_state::connected) {
        tell_answer(*ep->control->by_cm);
    }
}

namespace {

// A lane of shared memory has room before it has met its peer, and only a message makes them meet.
// They have when one is gone, and nothing is left behind for a later round of progress.
void tell_answer_behind_ping(ucp_ep *ep) noexcept
{
    auto *req = request_get_internal<flush_request>(ep->worker);
    if (!req) {
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return;
    }
    req->flags |= REQ_CALLBACK;
    req->user_data = ep;
    req->cb.send = [](void *, ucs_status_t status, void *arg) {
        if (status == UCS_OK) {
            ep_tell_answer(static_cast<ucp_ep *>(arg));
        }
    };
    ep->control->todo |= TODO_PING;
    ep_drain(ep);
    ep_flush_start(ep, req);
}

} // namespace

void ep_tell_answer_when_up(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    if (!c.by_cm->answer || !ep->am_ep) {
        return;
    }
    const lane &l = ep->lanes[ep->am_lane_index];
    if (ep->worker->context->resources[l.iface->resource].cls == tl_class::shm) {
        tell_answer_behind_ping(ep);
        return;
    }
    c.by_cm->answer_needs_room = true;
    ucs_status_t status = c.armed ? UCS_OK : arm(ep, ep->am_lane_index);
    if (status == UCS_ERR_BUSY) {
        ep_tell_answer(ep);
    } else if (status != UCS_OK) {
        ep->set_failed(status);
    }
}

bool ep_lane_is_full(ucp_ep *ep) noexcept
{
    return ep->control->armed || arm(ep, ep->am_lane_index) == UCS_OK;
}

void ep_connected(ucp_ep *ep) noexcept
{
    if (ep->state == ep_state::connecting) {
        ep->state = ep_state::connected;
    }
    ep_drain(ep);
}

void ep_defer(ucp_ep *ep, unsigned work) noexcept
{
    ep->enlist(ep->worker->deferred);
    ep->control->deferred |= work;
    ep->worker->schedule();
}

void ep_abort_requests(ucp_ep *ep, ucs_status_t status) noexcept
{
    // An abort may call back the user, which may do anything but free the endpoint's memory.
    for (ucp_request *req; (req = ep->pending.pop_front()) != nullptr;) {
        req->flags &= ~REQ_LISTED;
        req->abort(req, status);
    }
    ucs::list<ucp_request, &ucp_request::node> waiting;
    waiting.splice_back(ep->outstanding);
    for (ucp_request *req; (req = waiting.pop_front()) != nullptr;) {
        req->flags &= ~REQ_LISTED;
        req->abort(req, status);
    }
    partials_abandon(ep, status);
    ep_proto_failed(ep, status);
}

void ep_teardown_lanes(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    if (c.torn_down) {
        return;
    }
    c.torn_down = true;
    ep->sendable = false;
    if (c.extras) {
        c.extras->watch.reset();
        c.extras->counted.reset();
    }
    for (unsigned i = 0; i < ep->lane_count; ++i) {
        uct_ep_pending_purge(
            ep->lanes[i].ep, [](uct_pending_req_t *, void *) {}, nullptr);
    }
    c.armed = false;
    for (unsigned i = 0; i < ep->lane_count; ++i) {
        (void)uct_ep_flush(ep->lanes[i].ep, UCT_FLUSH_FLAG_CANCEL, nullptr);
        ep->worker->lane_owners.erase(ep->lanes[i].ep);
        uct_ep_destroy(ep->lanes[i].ep);
    }
    ep->lane_count = 0;
    ep->am_ep = nullptr;
    leave_connection(ep);
}

namespace {

ucs_status_t lane_failure(const ucp_ep *ep, ucs_status_t status) noexcept
{
    if (status == UCS_OK) {
        return UCS_ERR_ENDPOINT_TIMEOUT;
    }
    // The peer answered over another lane: if this one does not find it, it has gone since.
    bool gone = status == UCS_ERR_UNREACHABLE && ep->control->shown;
    return gone ? UCS_ERR_CONNECTION_RESET : status;
}

} // namespace

void on_lane_failed(ucp_worker *worker, uct_ep_h lane, ucs_status_t status) noexcept
{
    auto owner = worker->lane_owners.find(lane);
    if (owner == worker->lane_owners.end()) {
        on_connection_lane_failed(worker, lane);
        return;
    }
    ucp_ep *ep = owner->second;
    status = lane_failure(ep, status);
    if (status != UCS_ERR_CONNECTION_RESET || !await_confirmation(ep)) {
        ep->set_failed(status);
    }
}

void ep_destroy(ucp_ep *ep) noexcept
{
    ep_teardown_lanes(ep);
    ep_proto_cleanup(ep);
    ucp_worker *worker = ep->worker;
    leave_matcher(ep);
    worker->ep_ids.erase(ep->local_id);
    ep->leave_lists();
    ep_proto_gone(ep);
    ep->control->deferred = 0;
    ep->state = ep_state::closed;
    if (ep->status == UCS_OK) {
        ep->status = UCS_ERR_NOT_CONNECTED;
    }
    worker->graveyard.emplace_back(ep);
    worker->schedule();
}

namespace {

void report_failure(ucp_ep *ep)
{
    ep_control &c = *ep->control;
    if (!c.user_owned || c.user_closed || c.error_reported) {
        return;
    }
    c.error_reported = true;
    if (c.by_cm && ep->status == UCS_ERR_CONNECTION_RESET) {
        tell_answer(*c.by_cm); // the peer was connected, and has gone since
        if (c.user_closed) {
            return;
        }
    }
    if (c.extras && c.extras->err_cb) {
        c.extras->err_cb(c.has_user_data ? ep->user_data : c.extras->err_arg, ep, ep->status);
        return;
    }
    if (ep->err_mode != UCP_ERR_HANDLING_MODE_NONE || c.by_cm) {
        ucs_error("ep %p: error '%s' will not be handled since no error callback is installed",
                  static_cast<void *>(ep), ucs_status_string(ep->status));
    } else {
        ucs_diag("ep %p: connection to %s is lost: %s", static_cast<void *>(ep),
                 peer_name_of(ep).c_str(), ucs_status_string(ep->status));
    }
}

} // namespace

void ep_run_deferred(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    unsigned work = c.deferred;
    c.deferred = 0;
    if (work & (WORK_FAIL | WORK_ABORT)) {
        ucs_status_t status = ep->status == UCS_OK ? UCS_ERR_CONNECTION_RESET : ep->status;
        if (work & WORK_FAIL) {
            if (status == UCS_ERR_NO_MEMORY) {
                ep_tell_of_failure(ep);
            }
            ep_teardown_lanes(ep);
        }
        if (work & WORK_FAIL || ep->state != ep_state::connecting) {
            ep_abort_requests(ep, status);
        } else {
            // The peer only closed its end: what was not sent yet goes to its next endpoint.
            ucs::list<ucp_request, &ucp_request::node> unsent;
            unsent.splice_back(ep->pending);
            ep_abort_requests(ep, status);
            unsent.splice_back(ep->pending);
            ep->pending.splice_back(unsent);
            if (!ep->pending.empty()) {
                ep->note_active();
                ep->note_busy();
                c.close_seen = false;
                start_wireup(ep);
            }
        }
    }
    if (work & WORK_CALL) {
        call_instead(ep);
    }
    if (work & WORK_FAIL) {
        if (ep->state == ep_state::closing) {
            ep_close_finish(ep, c.flushed ? UCS_OK : ep->status);
            return;
        }
        if (!c.user_owned) {
            work |= WORK_DESTROY;
        } else {
            report_failure(ep);
        }
    }
    if (work & WORK_DESTROY) {
        ep_destroy(ep);
    }
}

} // namespace ucp
