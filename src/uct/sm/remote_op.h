// SPDX-License-Identifier: BSD-3-Clause
// Operations that the peer carries out: on memory that is not mapped here, atomic operations, and
// put and get where the system forbids cross-memory attach. Requests and answers travel in the
// inboxes, in order with the messages, under ids that users cannot have. A large put or get goes in
// parts. The peer checks each request against its own table of registered memory.
#pragma once

#include "ucs/list.h"
#include "ucs/mpool.h"
#include "uct/base/iface.h"
#include "uct/sm/address.h"
#include "uct/sm/inbox.h"

#include <deque>
#include <sys/uio.h>
#include <vector>

namespace uct::sm {

class ep;
class iface;
struct peer;

constexpr uint8_t am_request = UCT_AM_ID_MAX;
constexpr uint8_t am_answer = UCT_AM_ID_MAX + 1;
constexpr size_t part_size = 8192; // of a put or get, in one message
constexpr size_t max_pieces = 16;
constexpr size_t max_header = 512; // of a message from where it is

enum class work : uint8_t { put = 1, get = 2, atomic = 3, flush = 4 };

struct atomic_args {
    uint64_t value;
    uint64_t compare; // of a compare-and-swap
    uint8_t op;       // uct_atomic_op_t
    uint8_t width;    // 4 or 8
};

// Little endian; of a put, the data follows.
//   0     56     64   72       80      88      96      104     108   109  110    111
//   from  op_id  key  address  offset  value   compare length  what  op   width  reserved
struct request {
    iface_address from; // where the answer goes
    uint64_t op_id;
    uint64_t key;
    uint64_t address; // of this part
    uint64_t offset;  // of this part in the whole
    uint64_t value;
    uint64_t compare;
    uint32_t length;
    uint8_t what;
    uint8_t op;
    uint8_t width;
    uint8_t reserved;
};
static_assert(sizeof(request) == 112 && sizeof(request) <= inline_size);
static_assert(sizeof(request) + part_size <= segment_size);

// Of a get, the data follows.
//   0      8       16      24      28
//   op_id  offset  result  length  status
struct answer {
    uint64_t op_id;
    uint64_t offset;
    uint64_t result; // of an atomic operation: what was there before
    uint32_t length; // of the part that is done
    int32_t status;  // ucs_status_t
};
static_assert(sizeof(answer) == 32);

struct remote_op {
    ucs::list_node link;        // in the endpoint's list
    ucs::list_node unsent_link; // while parts have to go
    uint64_t id;                // number of its place, and how often that was used
    uint64_t sequence;          // of all of the interface
    work what;
    ep *owner; // nullptr: it was destroyed
    peer *to;  // of a flush: nullptr
    uct_completion_t *completion;
    uint64_t key;
    uint64_t remote;
    size_t length;
    size_t sent;
    size_t answered;
    ucs_status_t status;
    atomic_args args;
    void *result;                 // of args.width bytes, or nullptr
    uct_unpack_callback_t unpack; // of a get into the user's format
    void *unpack_arg;
    size_t piece_count;
    iovec pieces[max_pieces]; // local memory
};

// Those of one interface, and what it does for others.
class remote_ops {
  public:
    remote_ops(iface &home, size_t most);
    remote_ops(const remote_ops &) = delete;
    remote_ops &operator=(const remote_ops &) = delete;

    // Unset beyond its arguments. nullptr: no room.
    remote_op *get(work what, ep *owner, peer *to, uct_completion_t *completion);
    // In one message or not at all; false: no room, and it is given back.
    bool send_whole(remote_op *op);
    // A put of what the user packs: the length, or UCS_ERR_NO_RESOURCE before it was called.
    ssize_t send_packed(remote_op *op, uct_pack_callback_t pack, void *arg);
    // In parts, as there is room.
    void send(remote_op *op);
    bool add_flush(ep &owner, uct_completion_t *completion); // false: no room

    unsigned progress(); // sends what waits for room
    bool waiting() const { return !unsent_.empty() || !answers_.empty(); }
    size_t outstanding() const { return outstanding_; }
    ucs_status_t flush(uct_completion_t *completion); // of the interface

    void on_message(uint8_t id, const char *data, size_t length);
    // Its operations end, and it gets no answers any more.
    void peer_gone(peer &p, ucs_status_t status);
    void cancel(ep &owner, ucs_status_t status);

  private:
    struct waiting_answer {
        peer *to;
        answer head;
        uint64_t key;
        uint64_t address; // of a get's data
    };
    struct flush_mark {
        uct_completion_t *completion;
        uint64_t sequence;
        size_t left;
    };

    request request_for(const remote_op &op, size_t part) const;
    bool send_part(remote_op *op);
    void posted(remote_op *op);
    void on_request(const char *data, size_t length);
    void on_answer(const char *data, size_t length);
    void take_data(remote_op *op, size_t offset, const char *data, size_t length);
    ucs_status_t perform(const request &r, const char *data, size_t length, uint64_t *result);
    bool send_answer(waiting_answer &a);
    remote_op *find(uint64_t id);
    void put(remote_op *op);
    void finish(remote_op *op);
    void complete_flushes();

    iface &home_;
    const size_t most_;
    ucs::mpool<remote_op> pool_;
    std::vector<remote_op *> places_;
    std::vector<uint32_t> free_places_;
    ucs::list<remote_op, &remote_op::unsent_link> unsent_;
    std::deque<waiting_answer> answers_;
    std::deque<flush_mark> flushes_;
    size_t outstanding_ = 0;
    uint64_t posted_ = 0;
};

} // namespace uct::sm
