// SPDX-License-Identifier: BSD-3-Clause
//
// Rails: lanes over several network devices that share the bytes of one large message, put or get
// (those: rma/native.h). The announcement of a rendezvous carries a key for each of the sender's
// rails; the receiver reads a piece over each of its own, in proportion to their bandwidth, and
// confirms when all are there.
#pragma once

#include "ucp/core/request.h"
#include "ucp/endpoint/ep.h"
#include "ucp/proto/wire.h"

namespace ucp {

// Pieces below this cost more than a second device brings.
constexpr size_t RAIL_PIECE_MIN = 64 * 1024;

// What a request registered for its rails beyond the first one; undone by complete().
struct rail_memory {
    ucp_context *context;
    unsigned count;
    uint8_t md[MAX_RAILS];
    registration reg[MAX_RAILS];
    bool owned[MAX_RAILS]; // not the user's handle
};
void rail_memory_release(rail_memory *memory) noexcept;
// What is released later stays in no cache.
void rail_memory_forget(rail_memory *memory) noexcept;
// The request's buffer for one more md: the user's registration, else one for this request
// (UCT_MD_MEM_ACCESS_*), else, where the md needs none to give it to its own operations, nothing.
// false: it cannot be registered.
bool rail_memory_add(ucp_request *req, rail_memory *memory, uint8_t md_index,
                     unsigned access) noexcept;

constexpr size_t RAIL_GRANULE = 4096; // a piece begins where copies are fast; no page of any size

// What a rail with this part of the bandwidth takes of `left` bytes.
inline size_t rail_share(size_t left, double part) noexcept
{
    return static_cast<size_t>(static_cast<double>(left) * part) / RAIL_GRANULE * RAIL_GRANULE;
}

// Registers the sender's buffer for its further rails, if the message is worth it.
void rails_register(ucp_request *req) noexcept;
// Keys of the first registration and of the further ones, as rkey_lane() reads them; returns their
// bytes.
size_t rails_pack_keys(ucp_request *req, uint8_t md_index, uct_mem_h memh, void *dest) noexcept;

// Starts reading the announced message over two rails or more; `done` runs when every piece has
// ended. false: nothing was started, one lane shall do it.
bool rails_get(ucp_request *req, const wire::rts_hdr *rts, uct_completion_callback_t done) noexcept;

} // namespace ucp
