// SPDX-License-Identifier: BSD-3-Clause
// Operations in flight. Each begins with the context that the core provider may write to, comes
// from a pool of its interface, and stands in the list of its endpoint in the order of posting, so
// that a flush is a marker in that list.
#pragma once

#include "ucs/list.h"

#include <uct/api/uct.h>

#include <cstddef>
#include <rdma/fabric.h>
#include <sys/uio.h>

namespace uct::ofi {

// What comes before a tagged message (rdm/tag.h).
struct tag_prefix {
    uint8_t kind;
    uint8_t reserved[3];
    uint32_t length;
    uint64_t imm;
    uint64_t tag;
};
static_assert(sizeof(tag_prefix) == 24);

constexpr size_t tag_own_pieces = 2; // of a posted receive: the prefix and the spill

class ep;
class iface;
class receive_pool;
class send_order;

struct op : fi_context2 {
    // From get_bcopy on there is something left to do when it ends; from tag_receive on it is of
    // no endpoint.
    enum class kind : uint8_t {
        send,
        ping,
        tag_send, // while the core has no room for it
        put,      // also while the core has no room for it
        get,
        atomic,
        flush_mark, // without completion: of a fence
        receive,
        get_bcopy,
        fetch,
        numbered_send, // see sequence.h
        tag_receive,
        tag_catch_all,
        abandoned,     // ended for the user, and not yet for the core
        shared_receive // see shared_receives.h
    };

    kind what;
    bool has_buffer;   // it is a buffer_op and goes back to that pool
    bool mark;         // its end means that what was injected before has gone, too
    bool copied;       // it is counted in ep::copies_
    ep *owner;         // nullptr once the endpoint was destroyed
    uint64_t sequence; // of all operations of the interface; of a flush of it, the last one before
    uct_completion_t *completion;
    ucs::list_node link; // in the owner's list; not for receives
};

constexpr size_t max_iov = 4; // pieces of one operation

// The pieces of an operation. They live in it, because some cores read them until it is over.
struct op_pieces {
    iovec iov[max_iov];
    void *descs[max_iov];
};

// A put or get of the user's pieces.
struct zcopy_op : op {
    op_pieces pieces;
};

// A flush or fence of the interface: how many operations it still waits for.
struct flush_op : op {
    size_t left;
};

// An operation with a buffer of the interface's segment size in registered memory.
struct buffer_op : op {
    void *desc; // of the buffer's registration; nullptr where none is needed
    op_pieces pieces;
    char *data;        // behind room for an order_prefix, where messages have one
    send_order *order; // it is numbered by; nullptr: it has no number now
    uint32_t number;
    size_t length; // of what waits to be sent, of a get, or of an atomic's value
    uint64_t cq_data;
    struct {
        fi_addr_t to;
        uint64_t address;
        uint64_t key;
    } target;                     // of a put
    uct_unpack_callback_t unpack; // get_bcopy
    void *arg;                    // of unpack; where the result of a fetch goes
};

// A posted receive buffer. What the user may keep begins at user(): headroom, then the payload; the
// pointer to `release` stands right before it, where uct_iface_release_desc() looks.
struct receive_op : op {
    struct back_pointer : uct_recv_desc_t {
        receive_op *owner;
    } release;
    receive_pool *home;
    iface *user; // the interface that has given it to its core; nullptr: none has
    void *desc;
    char *payload;
};

} // namespace uct::ofi
