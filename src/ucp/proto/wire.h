// SPDX-License-Identifier: BSD-3-Clause
//
// What the protocols put on the wire inside the active messages of am_id.h. Little-endian, fixed;
// every reader checks the length it got against the struct and the lengths inside. Half of an id is
// random (ucs::ptr_map): *_ep ids name the RECEIVER's endpoint of the pair, *_req ids a request of
// the side that the field's comment names.
//
//   TAG_EAGER              | tag 8 | data ... |
//   TAG_FIRST              | tag_first_hdr | data ... |
//   TAG_SYNC               | tag_sync_hdr | data ... |
//   TAG_MIDDLE, AM_MIDDLE  | frag_hdr | data ... |
//   AM_SINGLE              | am_hdr | data ... | user header |
//   AM_REPLY               | am_hdr | ep 8 | data ... | user header |
//   AM_FIRST               | am_first_hdr | user header | data ... |
//   RNDV_RTS               | rts_hdr | packed rkey | user header |
//   RNDV_RTR               | rtr_hdr |
//   RNDV_DATA              | data_hdr | data ... |
//   RNDV_ATS, ACK          | answer_hdr |
//   STREAM                 | ep 8 | data ... |
//   RMA_PUT                | put_hdr | data ... |
//   RMA_GET                | get_hdr |
//   RMA_GET_REPLY          | data_hdr | data ... |
//   RMA_FLUSH              | flush_hdr |
//   RMA_ACK                | flush_hdr (with the flusher's ep) |
//   AMO                    | amo_hdr |
//   AMO_REPLY              | amo_reply_hdr |
#pragma once

#include <cstdint>

namespace ucp::wire {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire structs are little-endian");

// The longest message, in bytes: as much as the address space of a process. What announces more is
// damaged: fragments of it are dropped, a rendezvous is refused with UCS_ERR_EXCEEDS_LIMIT.
constexpr uint64_t max_message = uint64_t(1) << 47;

// A fragmented message is named by its source and a counter, so fragments of many senders can
// interleave. The source is the sender's uuid, which is in every worker address, ^ the id of the
// sender's endpoint, of which half is random and which the endpoint's peer alone was told: no
// other process can add to the message. The receiver compares it and reads nothing from it.
struct tag_first_hdr {
    uint64_t tag;
    uint64_t total; // bytes of the whole message
    uint64_t source;
    uint64_t msg_id; // sender's counter
    uint64_t ep;     // receiver's ep, 0 unknown
    uint64_t req;    // sender's, 0 unless it wants an ACK
};

struct frag_hdr {
    uint64_t source;
    uint64_t msg_id;
    uint64_t offset;
};

struct tag_sync_hdr {
    uint64_t tag;
    uint64_t ep;
    uint64_t req; // sender's, goes back in the ACK
};

struct am_hdr {
    uint16_t am_id;
    uint16_t flags; // AM_WIRE_*
    uint32_t header_len;
};
static_assert(sizeof(am_hdr) == 8, "fits the header of uct_ep_am_short");

struct am_first_hdr {
    am_hdr am;
    uint64_t total; // data without header
    uint64_t source;
    uint64_t msg_id;
    uint64_t ep; // to reply on, 0 none
};

enum : uint8_t { RTS_TAG = 1, RTS_AM = 2 };
enum : uint8_t { RTS_FLAG_REPLY = 1 };

struct rts_hdr {
    uint8_t kind;  // RTS_*
    uint8_t flags; // RTS_FLAG_*
    uint16_t am_id;
    uint32_t header_len; // am
    uint32_t rkey_len;
    uint32_t unused;
    uint64_t tag;
    uint64_t ep;      // receiver's: where the answer goes
    uint64_t req;     // sender's
    uint64_t address; // sender's buffer, 0 if it cannot be read
    uint64_t size;
};

// An answer also names the endpoint of the request. If that is another one, the answer is stale.

struct rtr_hdr {
    uint64_t ep;   // sender's
    uint64_t sreq; // sender's
    uint64_t rreq; // receiver's
    uint64_t size; // bytes wanted, from 0
};

struct data_hdr {
    uint64_t ep;  // of the side that receives data
    uint64_t req; // of the side that receives data
    uint64_t offset;
};

struct answer_hdr {
    uint64_t ep;    // sender's
    uint64_t req;   // sender's
    int64_t status; // ucs_status_t
};

struct put_hdr {
    uint64_t memh; // target's id of the mapping, out of the rkey
    uint64_t address;
    uint64_t ep; // target's, for errors
};

struct get_hdr {
    uint64_t memh;
    uint64_t address;
    uint64_t length;
    uint64_t ep;  // target's: where the reply goes
    uint64_t req; // initiator's
};

struct amo_hdr {
    uint64_t memh;
    uint64_t address;
    uint64_t ep;
    uint64_t req; // initiator's, 0: no reply wanted
    uint64_t value;
    uint64_t compare;
    uint8_t op; // ucp_atomic_op_t
    uint8_t size;
    uint8_t pad[6];
};

struct amo_reply_hdr {
    uint64_t ep; // initiator's
    uint64_t req;
    uint64_t value; // before the operation
    int64_t status;
};

struct flush_hdr {
    uint64_t ep;  // of the side that gets this message
    uint64_t seq; // initiator's count
};

} // namespace ucp::wire
