// SPDX-License-Identifier: BSD-3-Clause
//
// The memory of a request for rails, lanes that share its bytes: what it registered beyond the
// first one, and how many bytes each rail takes.
#pragma once

#include "ucp/core/registration.h"
#include "ucp/core/request.h"
#include "ucp/endpoint/ep_config.h"

#include <cstddef>
#include <cstdint>

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
bool rail_memory_add(data_request *req, rail_memory *memory, uint8_t md_index,
                     unsigned access) noexcept;

constexpr size_t RAIL_GRANULE = 4096; // a piece begins where copies are fast; no page of any size

// What a rail with this part of the bandwidth takes of `left` bytes.
inline size_t rail_share(size_t left, double part) noexcept
{
    return static_cast<size_t>(static_cast<double>(left) * part) / RAIL_GRANULE * RAIL_GRANULE;
}

} // namespace ucp
