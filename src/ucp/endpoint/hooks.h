// SPDX-License-Identifier: BSD-3-Clause
//
// What an endpoint, and the making of its connection, ask of the layers above them. Each function
// is defined there.
#pragma once

#include <ucs/type/status.h>
#include <uct/api/uct.h>

#include <cstdint>
#include <string>

struct ucp_ep;
struct ucp_worker;

namespace ucp {

// ---- the connection (connect)

// Have the handshake sent (again).
void start_wireup(ucp_ep *ep) noexcept;
// What its peer's worker calls itself; empty: it does not say.
std::string peer_name_of(const ucp_ep *ep) noexcept;
// Sends what ep->control->todo says. UCS_ERR_NO_RESOURCE: the am lane is full.
ucs_status_t send_todo(ucp_ep *ep) noexcept;
// A message that the peer's library drops, if the am lane has room and nothing waits for it.
void send_ping(ucp_ep *ep) noexcept;
// No endpoint of the peer pairs with this one any more.
void leave_matcher(ucp_ep *ep) noexcept;
// The endpoint is gone: tell the peer if nothing else does.
void leave_connection(ucp_ep *ep) noexcept;
// A client that has asked over a lane (connect/lane_connect.h) calls at the address after all.
void call_instead(ucp_ep *ep) noexcept;
// Whether the peer's confirmation may have come before its end, which a lane saw first. Then it is
// waited for a while, and the endpoint fails after that.
bool await_confirmation(ucp_ep *ep) noexcept;
// The lane is no endpoint's, but it may be a connection's.
void on_connection_lane_failed(ucp_worker *worker, uct_ep_h lane) noexcept;

// ---- the protocols (proto, stream, rma)

void ep_proto_owned(ucp_ep *ep) noexcept; // the user got an ep that a peer had connected to
void ep_proto_failed(ucp_ep *ep, ucs_status_t status) noexcept; // the ep got its sticky error
void ep_proto_cleanup(ucp_ep *ep) noexcept;                     // the ep is about to be freed
void ep_proto_gone(ucp_ep *ep) noexcept; // the worker does not find it by its id any more
// Ask the target to confirm all emulated puts and atomics posted so far; ends in rma_done(). No-op
// when it has.
void rma_request_ack(ucp_ep *ep) noexcept;
// The message that asks it, up to `seq`: now, or UCS_ERR_NO_RESOURCE.
ucs_status_t rma_post_ack_request(ucp_ep *ep, uint64_t seq) noexcept;
// The ep goes: messages that have arrived in part end with `status`.
void partials_abandon(ucp_ep *ep, ucs_status_t status) noexcept;

} // namespace ucp
