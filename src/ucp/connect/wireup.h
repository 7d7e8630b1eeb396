// SPDX-License-Identifier: BSD-3-Clause
//
// Choice of lanes, and the handshake of endpoints made from worker addresses: a REQUEST carries our
// address and endpoint id, the REPLY the peer's id. The n-th endpoint of one worker to another
// pairs with the other's n-th; a peer that has none (yet) makes one of its own for answering, and
// hands it to its user when that asks for an endpoint to us. (Which ones pair: matcher.h.)
//
//    0      1        2               4        8          16        24        32
//   +------+--------+---------------+--------+----------+---------+---------+------------+
//   | kind | reason | tail length   | number | our uuid | our ep  | your ep | address... |
//   +------+--------+---------------+--------+----------+---------+---------+------------+
#pragma once

#include "ucp/connect/address.h"
#include "ucp/connect/matcher.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"

namespace ucp {

// ping: nothing but bytes that the peer's host acknowledges.
enum class wireup_kind : uint8_t {
    request = 1,
    reply = 2,
    close = 3,
    ping = 4,
    share = 5,
    shared = 6,
    // Of client-server endpoints, see lane_connect.h.
    connect = 7,
    accepted = 8,
    refused = 9,
    parted = 10
};

// Why a connection that was asked for over a lane is refused.
enum class refusal : uint8_t {
    rejected,  // as the program wants it
    elsewhere, // the address may lead to another listener: to be called, now and ever after
    busy       // too many wait: the address is to be called
};

struct wireup_hdr {
    wireup_kind kind;
    uint8_t reason; // close_reason, refusal
    uint16_t tail_length;
    uint32_t sn;
    uint64_t src_uuid;
    uint64_t src_ep;
    uint64_t dst_ep; // 0: not known
};
static_assert(sizeof(wireup_hdr) == 32);

struct wireup_message {
    wireup_hdr hdr;
    std::vector<uint8_t> tail; // at most 64 KiB
};

// Now, or UCS_ERR_NO_RESOURCE.
ucs_status_t send_wireup(uct_ep_h lane, wireup_message &message) noexcept;

// The head of a message to the endpoint's peer.
wireup_hdr notice_of(const ucp_ep *ep, wireup_kind kind) noexcept;

// The lane that would carry active messages to the peer, for no endpoint. room: the longest that it
// carries, bytes.
ucs_status_t connect_lane(ucp_worker *worker, const unpacked_address &peer, uct_ep_h *lane,
                          size_t *room);

// Creates the lanes to the peer. UCS_ERR_UNREACHABLE: no transport of ours reaches it.
ucs_status_t choose_lanes(ucp_ep *ep, const unpacked_address &peer);

// The endpoint for a peer's address: a new one, or the one that answers the peer already.
ucp_ep *ep_from_address(ucp_worker *worker, const void *address, bool no_loopback);

// An endpoint that pairs with the peer's `sn`-th to this worker. Throws when no transport reaches
// it.
ucp_ep *new_matched_ep(ucp_worker *worker, ep_origin origin, const unpacked_address &peer,
                       const void *address, uint32_t sn);

// Before its handshake: the user does not get it after all.
void take_back(ucp_ep *ep) noexcept;

// Watch the peer's process: the end of it is the end of the endpoint.
void watch_peer(ucp_ep *ep, const unpacked_address &peer);

// Handshakes that found no memory or no descriptors before.
void serve_again(ucp_worker *worker) noexcept;

ucs_status_t wireup_handler(void *worker, void *data, size_t length, unsigned flags);

} // namespace ucp
