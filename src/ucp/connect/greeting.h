// SPDX-License-Identifier: BSD-3-Clause
//
// For a protocol on top of UCP: bytes of its own that go with the request and with the answer of a
// client-server connection, so that its handshake costs no message.
//
//   client                          server
//     create_ep(greeting) -->         greeting_of(request)
//     answered(data)      <--         create_ep(greeting)
//     confirms            -->         answered(nothing)
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace ucp {

// A client's connection is given up for its lanes, where those tell of the peer's end themselves.
enum class lane_trust : uint8_t {
    none,     // it is kept
    networks, // for lanes over a network
    all       // also on a node, where the peer's process is watched
};

struct greeting {
    const void *data = nullptr; // sent; copied
    size_t length = 0;
    // Called by progress, at most once, not after the endpoint has failed or was closed: at the
    // client when the server has answered, with its bytes; at the server when the client has
    // confirmed the answer, without. The lane is up then: what is sent next leaves at once. If the
    // peer has gone before that, it is called right before the error callback.
    void (*answered)(void *arg, const void *data, size_t length) = nullptr;
    void *arg = nullptr;
    lane_trust trust = lane_trust::none; // of a client

    std::span<const uint8_t> bytes() const { return {static_cast<const uint8_t *>(data), length}; }
};

// ucp_ep_create() of a client endpoint or from a connection request. UCS_ERR_EXCEEDS_LIMIT: the
// connection manager does not carry so many bytes.
ucs_status_t create_ep(ucp_worker_h worker, const ucp_ep_params_t *params, const greeting &mine,
                       ucp_ep_h *ep_p);

// Calls `answered` now if all that it waits for is the lane: something has come from the peer.
void hear_answer(ucp_ep_h ep) noexcept;

// Whether the peer learns of ucp_ep_close_nbx() without flags while that runs: nothing is in flight
// that the close notice waits for. Else a later progress tells it.
bool closes_at_once(ucp_ep_h ep) noexcept;

// Closes an endpoint that has sent nothing over its lanes, and ends its connection, without a
// notice to the peer. There the end of the connection is the end of the endpoint once nothing has
// come from this process for a while. False, and nothing is done: the peer would not learn of it,
// or what was sent might be lost.
bool leave(ucp_ep_h ep) noexcept;

// What the client sent. As long as the request lives.
std::span<const uint8_t> greeting_of(ucp_conn_request_h request) noexcept;

// The listener forgets the request: it may be destroyed before the request is accepted. From then
// on ucp_listener_reject() does not take the request; accepting it without success refuses it.
void keep_request(ucp_conn_request_h request) noexcept;

// Refuses a request that may be kept.
void refuse_request(ucp_worker_h worker, ucp_conn_request_h request) noexcept;

} // namespace ucp
