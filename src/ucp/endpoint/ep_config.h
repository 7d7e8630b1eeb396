// SPDX-License-Identifier: BSD-3-Clause
//
// What all endpoints of a worker with the same lanes share: what a message of theirs may be, and
// the tables that choose the protocol of each operation by its size. The thresholds of the user's
// configuration act here and nowhere else.
#pragma once

#include "ucp/core/protocol.h"

#include <cstddef>
#include <cstdint>

struct ucp_ep;
struct ucp_worker;

namespace ucp {

struct iface;
constexpr unsigned MAX_LANES = 6;
constexpr uint8_t NO_LANE = 0xff;
constexpr unsigned MAX_RAILS = 4;

// Of the am lane.
struct ep_limits {
    size_t max_short = 0; // payload, behind the eight bytes of header
    size_t max_bcopy = 0;
    size_t max_zcopy = 0;
    size_t max_hdr = 0; // header of a zcopy
    size_t max_iov = 0;
};

// What the bytes of an operation are to the choice.
enum memory_kind : uint8_t {
    MEMORY_PLAIN,
    MEMORY_MAPPED,      // that peers on the node can map
    MEMORY_FAST,        // the user wants the buffer back soon
    MEMORY_FAST_MAPPED, // both
    MEMORY_SCATTERED,   // not contiguous
    MEMORY_EAGER,       // contiguous, and no rendezvous
    MEMORY_EAGER_FAST,  //
    MEMORY_KINDS
};

struct ep_config_key {
    const iface *lanes[MAX_LANES] = {};
    uint8_t dst_md[MAX_LANES] = {};
    uint8_t rails[MAX_RAILS] = {};
    uint8_t lane_count = 0, rma_lane = 0, rail_count = 0, rma_rail_count = 0;
    size_t max_message = 0; // that the peer takes
    bool operator==(const ep_config_key &) const = default;
};

struct ep_config {
    ep_config() = default; // of an endpoint without lanes: everything waits
    ep_config(const ucp_ep &ep, size_t max_message);

    ep_config_key key;
    unsigned index = 0;
    ep_limits limits;
    using tables = proto_table[MEMORY_KINDS];
    tables tag, tag_sync, am, stream;
    tables rndv_data;                                     // the bytes of a rendezvous that are sent
    proto_range am_rndv;                                  // as the user asked
    tables put, get;                                      // to memory that no lane reaches
    proto_table lane_put[MAX_LANES], lane_get[MAX_LANES]; // that this lane reaches
    proto_table map_put, map_get, map_atomic;             // that this process maps
    proto_table atomic;
};

extern const ep_config no_lanes;

// Gives the endpoint the configuration that belongs to its lanes.
void set_ep_config(ucp_ep *ep, size_t max_message);

} // namespace ucp
