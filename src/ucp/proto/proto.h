// SPDX-License-Identifier: BSD-3-Clause
//
// What the protocols (tag, am, stream, rma, rendezvous) share: the worker's and the endpoint's
// protocol state, and descriptors of received data that must outlive the transport's callback.
#pragma once

#include "ucp/core/am_id.h"
#include "ucp/core/request.h"
#include "ucp/endpoint/hooks.h"
#include "ucp/endpoint/send.h"
#include "ucp/mem/announced.h"
#include "ucp/proto/wire.h"
#include "ucs/mpool.h"
#include "ucs/ptr_map.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <array>
#include <cstddef>
#include <unordered_map>
#include <vector>

struct ucp_worker;
struct ucp_ep;

namespace ucp {

// Room that the transports leave in front of a received descriptor: a recv_desc is built there.
constexpr size_t RX_HEADROOM = 128;

struct partial;

// Received data that is kept: an unexpected tag message (the ucp_tag_message_h), or AM data that
// the user holds. The memory is the transport's own descriptor when it lets us have it, else a
// copy. The eight bytes in front of `data` hold the address of this struct, which is how
// ucp_am_data_release() finds it.
struct recv_desc {
    enum class origin : uint8_t { uct, pool, heap };
    enum class content : uint8_t {
        tag,      // whole tag message
        tag_sync, // whole, wants an ACK
        tag_part, // arriving fragments: `part`
        tag_lost, // fragments of which the rest never comes: `lost`
        rts,      // data is the rts_hdr and what follows it
        am,       // data of an active message
        am_rts,   // rts of an active message
    };
    // States of what ucp_am_recv_data_nbx and ucp_am_data_release get.
    enum class use : uint8_t { free, callback, held, taken };

    tag_matcher::msg_entry match;
    ucp_worker *worker;
    void *data;
    size_t length; // of data; of the whole message for tag_part, rts
    partial *part;
    uint64_t ep_id;  // sync, rts: the endpoint to answer
    uint64_t req_id; // the sender's request
    void *uct_head;  // what uct_iface_release_desc() takes
    origin from;
    content what;
    use state;
    ucs_status_t lost;
    uint16_t am_id; // am_rts

    // Nothing more comes of a tag message.
    bool is_whole() const noexcept
    {
        return what == content::tag || what == content::tag_sync || what == content::tag_lost;
    }
};
static_assert(sizeof(recv_desc) + sizeof(void *) <= RX_HEADROOM);

// A message of which not all fragments are here.
struct partial_key {
    uint64_t source; // wire.h
    uint64_t msg_id;
    bool operator==(const partial_key &) const = default;
};
struct partial_hash {
    size_t operator()(const partial_key &k) const noexcept
    {
        return k.source ^ (k.msg_id * 0x9e3779b97f4a7c15ull);
    }
};
struct partial {
    partial_key key;
    size_t total;
    size_t received;
    recv_desc *desc;  // collects the data, or
    ucp_request *req; // a matched receive gets it directly, or neither: dropped
    ucs_status_t status;
    uint64_t ep_id; // the endpoint to its sender, with which it ends; 0: none
    // active messages
    bool am_handler; // it is one
    uint16_t am_id;
    uint16_t am_flags;
    uint32_t header_len;
    void *header;
};

struct am_handler {
    ucp_am_recv_callback_t cb = nullptr; // of ucp_worker_set_am_recv_handler
    ucp_am_callback_t old_cb = nullptr;  // of ucp_worker_set_am_handler
    void *arg = nullptr;
    uint32_t flags = 0;
};

struct stream_state; // stream.cc

struct worker_proto {
    worker_proto(ucp_worker *worker, size_t alignment);
    ~worker_proto();
    worker_proto(const worker_proto &) = delete;
    worker_proto &operator=(const worker_proto &) = delete;

    // As many as there is memory for.
    void fill_spare_requests() noexcept;

    ucp_worker *const worker;
    tag_matcher tags{10};
    ucs::mpool_base requests;
    // Of `requests`, kept for what nobody can be told to repeat, such as the answer to a peer.
    std::array<ucp_request *, 16> spare_requests = {};
    size_t spare_count = 0;
    ucs::mpool_base small_descs;
    ucs::ptr_map<ucp_request> request_ids;
    std::unordered_map<partial_key, partial, partial_hash> partials;
    std::vector<am_handler> am_handlers;
    uint64_t next_msg_id = 0;
    const size_t align; // of AM data that the user may keep
    std::vector<ucp_ep *> stream_ready;
    size_t streams = 0; // endpoints that have a state of a stream: as many may be ready
    announced_memory announced;
};

// ---- received descriptors

// Keep `length` bytes at `data`, which stand `hdr_len` bytes (>= 8) behind `msg`, the message as
// the transport gave it with `uct_flags`. Takes the transport's descriptor if it may: then
// *keep_uct is set and the handler must return UCS_INPROGRESS. nullptr: no memory.
recv_desc *desc_keep(ucp_worker *worker, void *msg, size_t hdr_len, size_t length,
                     unsigned uct_flags, bool *keep_uct) noexcept;
// Memory for `length` bytes to be filled by the caller; `aligned` as the user asked for AM data.
recv_desc *desc_alloc(ucp_worker *worker, size_t length, bool aligned = true) noexcept;
void desc_free(recv_desc *desc) noexcept;

inline recv_desc *desc_of(void *data) noexcept
{
    return static_cast<recv_desc **>(data)[-1];
}

// Count a message that was dropped because what it names is gone, or because it is damaged.
void drop_stale(ucp_worker *worker, const char *what) noexcept;
ucs_status_t drop_damaged(ucp_worker *worker, const char *what, size_t length) noexcept;

// Counts a message that was damaged or asked for what is not allowed; whether it has a line.
bool peer_fault(ucp_worker *worker) noexcept;

// The ep that a message names, if it is usable.
ucp_ep *find_usable_ep(ucp_worker *worker, uint64_t id) noexcept;
// The request of this phase with an id.
ucp_request *find_request(ucp_worker *worker, uint64_t id, uint8_t phase) noexcept;
// The same if it is on the endpoint that the peer's answer names.
ucp_request *find_asked(ucp_worker *worker, uint64_t ep, uint64_t id, uint8_t phase) noexcept;

// ---- receive handlers: one row each in am_table.cc
ucs_status_t tag_eager_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t tag_first_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t tag_middle_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t tag_sync_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t ack_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_rts_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_rtr_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_data_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rndv_ats_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_single_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_reply_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_first_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t am_middle_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t stream_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_put_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_get_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_get_reply_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t amo_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t amo_reply_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_flush_handler(void *arg, void *data, size_t length, unsigned flags);
ucs_status_t rma_ack_handler(void *arg, void *data, size_t length, unsigned flags);

// Called by am reception when an RTS of kind AM arrived. Returns what the uct handler returns.
ucs_status_t am_rts(ucp_worker *worker, const wire::rts_hdr *rts, size_t length) noexcept;
ucs_status_t am_whole(ucp_worker *worker, const partial_key &key) noexcept;
// The same for tag.
ucs_status_t tag_rts(ucp_worker *worker, const wire::rts_hdr *rts, size_t length) noexcept;

} // namespace ucp
