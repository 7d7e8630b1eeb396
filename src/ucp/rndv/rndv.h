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

// ---- sender

struct rndv_send_request;

// Sets what the message's own protocol says in the header: kind, and what goes with it. Writes what
// follows the keys, of which the header tells, to `behind`; returns its bytes.
using rndv_announcer = size_t (*)(const rndv_send_request *req, wire::rts_hdr *hdr, char *behind);

// A send that may go by rendezvous.
struct rndv_send_request : data_request {
    using data_request::data_request;

    rndv_announcer announce;
    uint64_t receiver; // its request, once it asks for messages
    size_t wanted;     // bytes that it asks for
};

// Offers the buffer to be read. Where it cannot be registered, the receiver asks for messages.
void rndv_offer(rndv_send_request *req) noexcept;
// start() of a rendezvous that offers the buffer, or makes the receiver ask for messages. The
// functions behind it serve both.
template <rndv_announcer announce, bool offers>
bool rndv_start(rndv_send_request *req) noexcept
{
    req->announce = announce;
    if (offers) {
        rndv_offer(req);
    }
    return true;
}
ucs_status_t rndv_rts_progress(rndv_send_request *req) noexcept;
void rndv_rts_abort(rndv_send_request *req, ucs_status_t status) noexcept;
constexpr const char *rndv_read_name = "rendezvous zero-copy read from remote";
constexpr const char *rndv_send_name = "rendezvous fragments copy-in copy-out";

// ---- receiver

// Reading of a peer's memory by a lane.
struct remote_read {
    uct_component_h cmpt = nullptr; // of bundle; nullptr: there is none
    uct_rkey_bundle_t bundle;
    uint64_t remote_addr;
    size_t posted; // bytes that were asked for
    size_t size;   // bytes in all
    uint8_t lane;

    void release_key() noexcept;
};

// A receive that a rendezvous may serve.
struct rndv_recv_request : recv_request {
    using recv_request::recv_request;

    remote_read read;
    uint64_t sender;  // its request
    size_t remaining; // bytes to come in messages
};

// Receive what `rts` announces into req->dt (req->info set by the caller); may complete req inside.
// `rts` is the whole message, checked by the RTS handler, and is not needed after the call.
void rndv_recv(rndv_recv_request *req, const wire::rts_hdr *rts) noexcept;

// Posts the next piece of what `read` says into the request's registered buffer; returns what
// progress() returns. The request ends with req->comp.
ucs_status_t rndv_post_read(data_request *req, remote_read *read) noexcept;

// The end of such a request once its bytes are those of the sender.
void rndv_get_finish(rndv_recv_request *req) noexcept;

// Tell the sender that its buffer is not read; its request completes with `status`.
void rndv_refuse(ucp_worker *worker, const wire::rts_hdr *rts, ucs_status_t status) noexcept;

} // namespace ucp
