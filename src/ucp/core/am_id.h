// SPDX-License-Identifier: BSD-3-Clause
//
// The active-message ids of UCP on the wire (UCT offers 0..31), and the row type of the table that
// gives each id its receive handler. The table is in am_table.cc; worker/worker.cc sets it on every
// iface.
#pragma once

#include <uct/api/uct.h>

#include <cstddef>
#include <cstdint>

namespace ucp {

enum am_id : uint8_t {
    AM_ID_WIREUP = 1, // handshake of endpoints made from worker addresses, and the close notice
    AM_ID_TAG_EAGER = 2,
    AM_ID_TAG_FIRST = 3,
    AM_ID_TAG_MIDDLE = 4,
    AM_ID_TAG_SYNC = 5,
    AM_ID_RNDV_RTS = 6,
    AM_ID_RNDV_RTR = 7,
    AM_ID_RNDV_DATA = 8,
    AM_ID_RNDV_ATS = 9,
    AM_ID_ACK = 10,
    AM_ID_AM_SINGLE = 11,
    AM_ID_AM_REPLY = 12,
    AM_ID_AM_FIRST = 13,
    AM_ID_AM_MIDDLE = 14,
    AM_ID_STREAM = 15,
    AM_ID_RMA_PUT = 16,
    AM_ID_RMA_GET = 17,
    AM_ID_RMA_GET_REPLY = 18,
    AM_ID_AMO = 19,
    AM_ID_AMO_REPLY = 20,
    AM_ID_RMA_ACK = 21,
    AM_ID_RMA_FLUSH = 22, // asks for RMA_ACK when everything before it was done
    AM_ID_LAST = 32
};

// fn is called with arg = the ucp_worker that received the message. A worker with none of the
// features (UCP_FEATURE_*; 0: it needs none) has no use for the message, and drops and counts it.
struct am_handler_entry {
    uint8_t id;
    uct_am_callback_t fn;
    const char *name;
    uint64_t features = 0;
};
extern const am_handler_entry am_handlers[];
extern const size_t am_handler_count;

} // namespace ucp
