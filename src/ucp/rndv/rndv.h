// SPDX-License-Identifier: BSD-3-Clause
//
// Rendezvous, shared by tag and active messages. The sender announces its buffer (RTS: size,
// address, packed key); the receiver, once it knows where the data goes, reads it with uct get
// operations and confirms (ATS), or, where the lane or the datatype cannot, asks for fragments
// (RTR) that the sender pushes as active messages (RNDV_DATA).
//
//   sender                       receiver
//     | ------------ RTS ----------> |  match
//     | <~~~~~~~~~~~ get ~~~~~~~~~~~ |              | <----------- RTR ------------ |
//     | <----------- ATS ----------- |   or         | ======= RNDV_DATA ... ======> |
//
// Either side completes its request exactly once: on ATS / the last fragment, or through abort()
// when the ep fails.
#pragma once

#include "ucp/core/protocol.h"
#include "ucp/core/request.h"
#include "ucp/proto/wire.h"

namespace ucp {

// Of a send request (ep, dt, send.* set): a rendezvous that offers the buffer to be read, and one
// that makes the receiver ask for messages.
extern const protocol rndv_read_tag, rndv_send_tag;
extern const protocol rndv_read_am, rndv_send_am;

// Receive what `rts` announces into req->dt (req->info set by the caller); may complete req inside.
// `rts` is the whole message, checked by the RTS handler, and is not needed after the call.
void rndv_recv(ucp_request *req, const wire::rts_hdr *rts) noexcept;

// progress() of a request that reads rndv.size bytes at rndv.remote_addr over rndv.lane; it
// ends with req->comp.
ucs_status_t rndv_get_progress(ucp_request *req) noexcept;

// The end of such a request once its bytes are those of the sender.
void rndv_get_finish(ucp_request *req) noexcept;

// Tell the sender that nobody reads its buffer; its request completes with `status`.
void rndv_refuse(ucp_worker *worker, const wire::rts_hdr *rts, ucs_status_t status) noexcept;

} // namespace ucp
