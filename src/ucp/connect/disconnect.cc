// SPDX-License-Identifier: BSD-3-Clause
//
// The end of an endpoint's connection that comes without a notice of its peer, and of an endpoint
// that goes without one.
#include "ucp/connect/cm.h"
#include "ucp/connect/greeting.h"

#include "ucp/endpoint/ep.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucs/error.h"
#include "ucs/sys.h"

static constexpr uint64_t GRACE_NS = 50'000'000;

// Transports that are quiet are not polled in every round.
static constexpr unsigned GRACE_ROUNDS = 64;

unsigned ucp_worker::progress_grace(unsigned transport_count) noexcept
{
    // A peer that disconnected may have sent data and its close notice before; those come over
    // another connection. Once nothing arrives any more it did not close, it died.
    uint64_t now = ucs::monotonic_ns();
    unsigned count = 0;
    auto kept = grace.begin();
    for (disconnected &d : grace) {
        ucp_ep *ep = ep_ids.find(d.id);
        if (!ep || ep->status != UCS_OK || ucp::waits_for_us(ep)) {
            continue;
        }
        d.rounds = transport_count ? 0 : d.rounds + 1;
        if (d.rounds >= GRACE_ROUNDS && now >= d.until_ns) {
            ep->set_failed(UCS_ERR_CONNECTION_RESET);
            ++count;
        } else {
            *kept++ = d;
        }
    }
    grace.erase(kept, grace.end());
    return count;
}

namespace ucp {

bool waits_for_us(const ucp_ep *ep) noexcept
{
    return ep->state == ep_state::closing && ep->control->close_seen;
}

// Fails the endpoint after a while in which its peer says nothing.
static void start_grace(ucp_ep *ep) noexcept
{
    uint64_t until = ucs::monotonic_ns() + GRACE_NS;
    if (ucs::guard([&] { ep->worker->grace.push_back({ep->local_id, until, 0}); }) != UCS_OK) {
        ep->set_failed(UCS_ERR_CONNECTION_RESET);
    }
    ep->worker->schedule();
}

bool await_confirmation(ucp_ep *ep) noexcept
{
    const cm_control *m = ep->control->by_cm.get();
    bool may_come = m && m->answered && !m->established && !m->disconnected;
    if (may_come) {
        start_grace(ep);
    }
    return may_come;
}

void on_peer_closed(ucp_ep *ep) noexcept
{
    if (ep->origin == ep_origin::server) {
        client_confirmed(ep);
    }
    if (!ep->control->by_cm->asking.empty()) { // the answer may be behind, over another lane
        start_grace(ep);
        return;
    }
    ep_tell_answer(ep);
    if (ep->state == ep_state::connected) { // not closed in that callback
        ep->set_failed(UCS_ERR_CONNECTION_RESET);
    }
}

void on_disconnected(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    if (c.by_cm) {
        c.by_cm->disconnected = true;
    }
    if (ep->status != UCS_OK || ep->state == ep_state::closed) {
        return;
    }
    if (c.closing == close_phase::disconnecting) {
        ep_close_finish(ep, UCS_OK);
        return;
    }
    if (ep->lane_count == 0) {
        ep->set_failed(UCS_ERR_CONNECTION_RESET);
        return;
    }
    if (waits_for_us(ep)) {
        return;
    }
    start_grace(ep);
}

bool closes_at_once(ucp_ep_h ep) noexcept
{
    if (ep->check_usable() != UCS_OK) {
        return true; // it failed: what is left is to forget it
    }
    bool at_once = ep->can_send() && ep->rma_acked >= ep->rma_posted;
    for (unsigned i = 0; at_once && i < ep->lane_count; ++i) {
        at_once = uct_ep_flush(ep->lanes[i].ep, 0, nullptr) == UCS_OK;
    }
    return at_once;
}

// The endpoint has a connection for itself, and the kernel delivers what was sent there after the
// socket is closed. The end of another lane, or of a connection that is shared, does not tell the
// peer that this endpoint has ended.
static bool may_leave(const ucp_ep *ep) noexcept
{
    const ep_control &c = *ep->control;
    const cm_control *m = c.by_cm.get();
    if (ep->status != UCS_OK || ep->state != ep_state::connected || !ep->am_ep || !m || !m->cm ||
        m->joining || c.wired || c.todo || ep->has_requests() || ep->rma_posted) {
        return false;
    }
    tl_class lane = ep->worker->context->resources[ep->am_lane().iface->resource].cls;
    return lane == tl_class::net && m->cm->id == ep->local_id && m->cm->users == 1 &&
           !m->cm->shared();
}

bool leave(ucp_ep_h ep) noexcept
{
    if (!may_leave(ep)) {
        return false;
    }
    ep->control->user_closed = true;
    ep_close_finish(ep, UCS_OK);
    return true;
}

} // namespace ucp
