// SPDX-License-Identifier: BSD-3-Clause
//
// Operations in flight, pooled per engine. A send that UCP finishes inside the call never leaves
// the function that posted it; all others wait here for UCP's callback, for a word of the peer, or
// for both.
#pragma once

#include "prov/ucxlike/data/match.h"
#include "prov/ucxlike/engine.h"

#include <sys/uio.h>

namespace ucxlike {

class rx_queue;
struct region;

struct tx_op {
    enum : uint8_t {
        wait_ucp = 1,  // UCP still uses the buffers
        wait_ack = 2,  // the peer's word is still to come
        wait_data = 4, // the answer to a read is moving in
    };
    enum : uint8_t {
        silent = 1,   // no completion unless it fails
        part = 2,     // one receiver's share of a message to a group
        injected = 4, // the application takes it for sent
    };

    ucs::list_node node; // of the endpoint's outstanding operations
    engine *eng;
    endpoint *owner; // nullptr: a message of our own, or the endpoint is gone
    conn *to;
    void *context;
    uint64_t cq_flags; // FI_SEND | FI_TAGGED, ...
    uint64_t ack_id;
    uint8_t pending;
    uint8_t options;
    int error;
    uint64_t length; // of a read
    size_t count;    // of iov, of a read
    uint64_t tag;
    region *source;   // of an answer to a read: what the data is sent from; nullptr: none
    ucp_ep_h carrier; // of a message of our own
    tx_op *whole;     // of a part: the message; its `count` parts are to come
    ucp_dt_iov_t iov[limit::iov]; // of the data; of a read: where it goes
    uint8_t header[wire::max_header];
    uint8_t inject[limit::inject];
};

// A posted receive. A multi-receive buffer stays posted while it has room, and each message that
// still moves into it has an operation of its own (parent).
struct rx_op : matcher::recv_entry {
    ucs::list_node node; // of the receives in progress
    rx_queue *queue;     // of a receive in progress; nullptr: it is gone
    endpoint *owner;
    void *context;
    uint64_t flags; // FI_COMPLETION, FI_MULTI_RECV, FI_TAGGED
    size_t total;
    size_t count;
    iovec iov[limit::iov];
    ucp_dt_iov_t dt[limit::iov];

    // of the message that moves in
    conn *from;
    wire::words m;
    size_t length;
    int error;
    uint8_t ack[wire::ack_size]; // the header of the word to its sender

    // multi-receive
    rx_op *parent;
    size_t used;
    unsigned children;
    bool retired;
};

// A message that no receive waits for.
struct msg_in : matcher::msg_entry {
    enum class data : uint8_t { copied, held, rendezvous, lost };
    conn *from;
    endpoint *owner;
    wire::words m;
    size_t length;
    data how;
    bool tagged;
    bool claimed;
    void *bytes; // malloc'd copy or UCP's descriptor
    uint8_t inline_bytes[64];
};

} // namespace ucxlike
