// SPDX-License-Identifier: BSD-3-Clause
//
// Client-server endpoints between two workers that share a connection (cm_connection.h), asked for
// over its lane: they cost no socket and no system call.
//
//   client                                       server
//     CONNECT (name of the connection,      -->    a request at the listener through which the
//       address, hello)                            connection came
//                                           <--  ACCEPTED (hello), over the new endpoint's lane, or
//                                                REFUSED (refusal), over the connection's
//
// What waits for its answer keeps the connection on both sides. Where another worker of the
// server's process answers, which does not know it, the client tells with PARTED.
//
//   tail of CONNECT    | length u8 | address as text ... | hello of the client (cm.h) ... |
//   tail of ACCEPTED   | hello of the server (cm.h) ... |
//   src_ep, dst_ep     CONNECT: the client's endpoint, the connection. ACCEPTED: both endpoints.
//                      REFUSED: the connection, the client's endpoint. PARTED: as CONNECT.
//
// Only what a call at the address would reach is reached so: the address that the client asks for
// is the server's end of the connection, and the listener is still there. Else, and when the
// connection or its lane ends before the answer, the client calls at the address.
//
// A client endpoint that is closed before the answer leaves its call behind. An ACCEPTED that comes
// for it then is answered with a close notice.
#pragma once

#include "ucp/connect/cm.h"

namespace ucp {

// ---- the client
// calls: one, which the endpoint keeps if it returns true. False: it has to call at the address.
// The endpoint has joined the connection.
bool ask_over_lane(ucp_ep *ep, std::list<client_call> *calls);
// The endpoint goes, perhaps before it was answered.
void withdraw(cm_control *m, cm_connections *all) noexcept;
void on_accepted(ucp_worker *worker, const wireup_hdr &hdr, std::span<const uint8_t> tail);
void on_refused(ucp_ep *ep, const wireup_hdr &hdr) noexcept;

// ---- the server
// Throws UCS_ERR_NO_MEMORY before anything has come of it: it can be tried again.
void on_connect(ucp_worker *worker, const wireup_hdr &hdr, std::span<const uint8_t> tail);
// Throws while the request is unanswered. An endpoint of another worker than the listener's has no
// connection: it learns of the end of its peer as one that was made from a worker address.
void accept_over_lane(ucp_ep *ep, ucp_conn_request *request, const unpacked_address &client,
                      const greeting &mine);
void refuse_over_lane(ucp_worker *worker, ucp_conn_request *request) noexcept;
void on_parted(ucp_worker *worker, const wireup_hdr &hdr) noexcept;

} // namespace ucp
