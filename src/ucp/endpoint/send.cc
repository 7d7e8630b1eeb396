// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/endpoint/send.h"

#include "ucp/endpoint/ep.h"
#include "ucs/log.h"

#include <cstring>

namespace ucp {

ucs_status_ptr_t send_request(ucp_request *req, const ucp_request_param_t *param) noexcept
{
    req->flags |= REQ_POSTING;
    send_internal(req);
    return post_return(req, param);
}

void send_internal(ucp_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    if (ep->can_send()) {
        ucs_status_t status;
        do {
            status = req->progress(req);
        } while (status == UCS_INPROGRESS);
        if (status == UCS_ERR_NO_RESOURCE) {
            ep->queue(req);
        } else if (UCS_UNLIKELY(status != UCS_OK)) {
            req->abort(req, status);
        }
    } else {
        ep->queue(req);
    }
}

void abort_simple(ucp_request *req, ucs_status_t status) noexcept
{
    complete(req, status);
}

void comp_begin(ucp_request *req, uct_completion_callback_t done) noexcept
{
    req->comp = {done, 1, UCS_OK};
    req->flags &= ~REQ_SENT;
}

void comp_end(ucp_request *req) noexcept
{
    req->flags |= REQ_SENT;
    if (--req->comp.count == 0) {
        req->comp.func(&req->comp);
    } else {
        req->ep->add_outstanding(req);
    }
}

void comp_abort(ucp_request *req, ucs_status_t status) noexcept
{
    if (req->comp.status == UCS_OK || req->comp.status == UCS_ERR_CANCELED) {
        req->comp.status = status;
    }
    req->flags |= REQ_ABORTED;
    if (!(req->flags & REQ_SENT)) {
        req->flags |= REQ_SENT;
        if (--req->comp.count == 0) {
            req->comp.func(&req->comp);
        }
    }
    // else the last uct completion does it
}

void comp_done(uct_completion_t *comp)
{
    ucp_request *req = ucp_request::from_comp(comp);
    complete(req, comp_status(req));
}

ucs_status_t comp_status(const ucp_request *req) noexcept
{
    if (UCS_LIKELY(req->comp.status != UCS_ERR_CANCELED) || req->flags & REQ_ABORTED) {
        return req->comp.status; // an aborted one's endpoint may be gone
    }
    ucs_status_t why = req->ep->check_usable();
    return why == UCS_OK ? UCS_ERR_CANCELED : why;
}

namespace {

struct blob {
    const void *data;
    size_t length;
};

size_t pack_blob(void *dest, void *arg)
{
    auto *b = static_cast<blob *>(arg);
    memcpy(dest, b->data, b->length);
    return b->length;
}

ucs_status_t post_control(ucp_ep *ep, uint8_t am_id, const void *data, size_t length) noexcept
{
    if (UCS_LIKELY(length - 8 <= ep->limits().max_short && ep->limits().max_short != 0)) {
        uint64_t header;
        memcpy(&header, data, 8);
        return uct_ep_am_short(ep->am_ep, am_id, header, static_cast<const char *>(data) + 8,
                               static_cast<unsigned>(length - 8));
    }
    blob b = {data, length};
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, am_id, pack_blob, &b, 0);
    return n >= 0 ? UCS_OK : static_cast<ucs_status_t>(n);
}

// A small message of the protocols.
struct control_request : ucp_request {
    using ucp_request::ucp_request;

    uint8_t am_id;
    uint8_t length; // bytes
    uint64_t data[CONTROL_MAX / sizeof(uint64_t)];
};

ucs_status_t control_progress(control_request *req) noexcept
{
    req->pend_lane = req->ep->am_lane_index;
    ucs_status_t status = post_control(req->ep, req->am_id, req->data, req->length);
    if (status == UCS_OK) {
        complete(req, UCS_OK);
    }
    return status;
}

} // namespace

void send_control(ucp_ep *ep, uint8_t am_id, const void *data, size_t length) noexcept
{
    if (ep->can_send()) {
        ucs_status_t status = post_control(ep, am_id, data, length);
        if (UCS_LIKELY(status != UCS_ERR_NO_RESOURCE)) {
            if (UCS_UNLIKELY(status != UCS_OK)) {
                ucs_debug("ep %p: control message %u: %s", (void *)ep, am_id,
                          ucs_status_string(status));
            }
            return;
        }
    }
    auto *req = request_get_internal<control_request>(ep->worker);
    if (!req) {
        ucs_error("ep %p: no memory for a control message", (void *)ep);
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return;
    }
    req->ep = ep;
    req->am_id = am_id;
    req->length = static_cast<uint8_t>(length);
    memcpy(req->data, data, length);
    req->progress = typed<control_progress>;
    req->abort = abort_simple;
    ep->queue(req);
}

} // namespace ucp
