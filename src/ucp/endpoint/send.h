// SPDX-License-Identifier: BSD-3-Clause
//
// The ways to send over an endpoint: a request, which its progress() posts now or in its turn;
// small messages without a request; requests that wait for uct.
#pragma once

#include "ucp/core/request.h"

namespace ucp {

// First try of a request whose progress/abort are set, inside the posting call.
ucs_status_ptr_t send_request(ucp_request *req, const ucp_request_param_t *param) noexcept;
// The same for requests the user does not see.
void send_internal(ucp_request *req) noexcept;

// A small message to the peer (at most CONTROL_MAX bytes, at least 8): now, or in its turn.
constexpr size_t CONTROL_MAX = 6 * sizeof(uint64_t);
void send_control(ucp_ep *ep, uint8_t am_id, const void *data, size_t length) noexcept;

template <class T>
void send_control(ucp_ep *ep, uint8_t am_id, const T &hdr) noexcept
{
    static_assert(sizeof(T) <= CONTROL_MAX && sizeof(T) >= 8);
    send_control(ep, am_id, &hdr, sizeof(T));
}

// An abort() for requests with nothing in flight.
void abort_simple(ucp_request *req, ucs_status_t status) noexcept;

// Requests with uct operations in flight: comp.count is their number, and one more (the guard) from
// comp_begin() until comp_end(), so that a request is not completed while pieces are still being
// posted. comp_end() either completes the request or moves it to outstanding. comp_abort() is their
// abort().
void comp_begin(ucp_request *req, uct_completion_callback_t done) noexcept;
void comp_end(ucp_request *req) noexcept;
void comp_abort(ucp_request *req, ucs_status_t status) noexcept;
void comp_done(uct_completion_t *comp); // the usual `done`: completes with comp_status()
// How they ended. What the end of the lanes cancels ends with the endpoint's error.
ucs_status_t comp_status(const ucp_request *req) noexcept;

} // namespace ucp
