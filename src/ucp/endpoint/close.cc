// SPDX-License-Identifier: BSD-3-Clause
//
// Closing an endpoint. FLUSH: what was posted goes out, then a close notice on the same lane (so
// the peer has everything when it sees the notice); it ends with the peer's own notice or the end
// of its side of the connection. FORCE: now.
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucs/log.h"

namespace ucp {

namespace {

bool has_cm(const ucp_ep *ep)
{
    const cm_control *by_cm = ep->control->by_cm.get();
    return by_cm && by_cm->cm;
}

// The peer has our notice, or will: it closes as well and says so by its own, or its endpoint fails
// and its side of the connection ends. Both finish the close.
void await_peer(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    c.closing = close_phase::disconnecting;
    if (!has_cm(ep) || c.by_cm->disconnected || c.close_seen) {
        ep_close_finish(ep, UCS_OK);
    }
}

void notice_flushed(void *, ucs_status_t status, void *user_data)
{
    auto *ep = static_cast<ucp_ep *>(user_data);
    if (ep->status == UCS_OK && status == UCS_OK) {
        ep->control->flushed = true;
        await_peer(ep);
    }
}

// Everything is out: the notice, and a flush behind it.
void data_flushed(void *, ucs_status_t status, void *user_data)
{
    auto *ep = static_cast<ucp_ep *>(user_data);
    if (ep->status != UCS_OK || status != UCS_OK) {
        return; // the endpoint failed; that path finishes the close
    }
    bool loopback =
        ep->remote_id == ep->local_id && ep->origin == ep_origin::address && !ep->control->matched;
    if (loopback) {
        ep->control->flushed = true;
        ep_close_finish(ep, UCS_OK);
        return;
    }
    ep->control->todo |= TODO_CLOSE;
    auto *req = request_get_internal<flush_request>(ep->worker);
    if (!req) {
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return;
    }
    req->flags |= REQ_CALLBACK;
    req->cb.send = notice_flushed;
    req->user_data = ep;
    ep_flush_start(ep, req);
}

// Unconnected and nothing to send: there is no peer to wait for. A server waits for the client's
// confirmation, which is under way or fails.
bool nothing_to_flush(const ucp_ep *ep)
{
    return ep->state == ep_state::connecting && ep->pending.empty() &&
           ep->origin != ep_origin::server;
}

void flush_close(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    if (nothing_to_flush(ep)) {
        if (c.wired && !c.close_seen) {
            c.todo = TODO_CLOSE;
            (void)send_todo(ep);
        }
        c.flushed = true;
        ep_close_finish(ep, UCS_OK);
        return;
    }
    ep->state = ep_state::closing;
    ep->sendable = false;
    c.closing = close_phase::flushing;
    auto *req = request_get_internal<flush_request>(ep->worker);
    if (!req) {
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return;
    }
    req->flags |= REQ_CALLBACK;
    req->cb.send = data_flushed;
    req->user_data = ep;
    ep_flush_start(ep, req);
}

void send_forced_notice(ucp_ep *ep) noexcept
{
    if (!ep->am_ep) {
        return;
    }
    ep_control &c = *ep->control;
    c.our_reason = close_reason::forced;
    c.todo |= TODO_CLOSE;
    // A lane that the core gives no room holds what it took, and loses it with itself.
    c.close_sent = send_todo(ep) == UCS_OK && !ep_lane_is_full(ep);
}

} // namespace

void ep_close_finish(ucp_ep *ep, ucs_status_t status) noexcept
{
    ep_control &c = *ep->control;
    ucp_request *req = c.close_request;
    c.close_request = nullptr;
    if (c.torn_down || !ep->worker->inside_progress) {
        if (ep->status == UCS_OK) {
            ep->status = UCS_ERR_CANCELED;
        }
        ep->state = ep_state::closed;
        ep_teardown_lanes(ep);
        ep_abort_requests(ep, ep->status);
        ep_destroy(ep);
    } else {
        if (ep->status == UCS_OK) {
            ep->status = UCS_ERR_CANCELED;
        }
        ep->state = ep_state::closed;
        ep->sendable = false;
        ep_defer(ep, WORK_FAIL | WORK_DESTROY);
    }
    if (req) {
        complete(req, status);
    }
}

void ep_force_close(ucp_ep *ep) noexcept
{
    if (ep->status == UCS_OK) {
        if (ep->state == ep_state::connected) {
            send_forced_notice(ep);
        }
        ep->status = UCS_ERR_CANCELED;
    }
    ep_close_finish(ep, UCS_OK);
}

void ep_tell_of_failure(ucp_ep *ep) noexcept
{
    const ep_control &c = *ep->control;
    if (c.wired && !c.close_sent && !c.close_seen && !c.torn_down) {
        send_forced_notice(ep);
    }
}

ucs_status_ptr_t ep_close(ucp_ep *ep, const ucp_request_param_t *param) noexcept
{
    ep_control &c = *ep->control;
    bool force =
        (param->op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) && (param->flags & UCP_EP_CLOSE_FLAG_FORCE);
    if (force && ep->err_mode == UCP_ERR_HANDLING_MODE_NONE) {
        ucs_error("ucp_ep_close_nbx: UCP_EP_CLOSE_FLAG_FORCE needs an endpoint with error handling "
                  "mode UCP_ERR_HANDLING_MODE_PEER (ep %p)",
                  static_cast<void *>(ep));
        return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);
    }
    if (c.user_closed || ep->state == ep_state::closed) {
        ucs_error("ucp_ep_close_nbx: endpoint %p is closed already", static_cast<void *>(ep));
        return UCS_STATUS_PTR(UCS_ERR_NOT_CONNECTED);
    }
    c.user_closed = true;
    auto *req = request_get<ucp_request>(ep->worker, param, req_kind::flush);
    if (!req) {
        c.user_closed = false;
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    req->flags |= REQ_POSTING;
    req->ep = ep;
    c.close_request = req;
    if (force) {
        ep_force_close(ep);
    } else if (ep->status != UCS_OK) {
        ep_close_finish(ep, UCS_OK); // failed already: nothing is left to flush
    } else {
        flush_close(ep);
    }
    return post_return(req, param);
}

} // namespace ucp
