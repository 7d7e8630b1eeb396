// SPDX-License-Identifier: BSD-3-Clause
//
// A request: one operation that did not finish inside its posting call. The user sees the address
// right behind the struct (request_size bytes of user area follow it, constructed once by
// request_init); external requests (UCP_OP_ATTR_FIELD_REQUEST) have the struct in front of the
// caller's pointer and are never freed by us.
//
// Life of a send: posted -> [ep->pending, until progress() has sent every piece] ->
// [ep->outstanding, until the acknowledgement or the local completion] -> complete(). A request is
// in at most one ep list, through `node`. progress() is called by the ep after it took the request
// OUT of pending; it returns
//   UCS_OK               everything is sent; the protocol completed the request or moved it to
//                        ep->outstanding, and the caller must not touch it any more
//   UCS_ERR_NO_RESOURCE  the lane is full: put it back at the head of pending, try again when the
//                        lane has room
//   UCS_INPROGRESS       one piece went out, more remain: put it back at the head, call again
//   other                the lane failed: the caller calls abort(req, status)
//
// abort(req, status) is called once, after the request was taken out of its list, when the ep fails
// or is closed by force. It completes the request, at once or (uct operations in flight) when their
// completion has arrived.
#pragma once

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include "ucp/core/dt.h"
#include "ucp/core/registration.h"
#include "ucs/compiler.h"
#include "ucs/list.h"
#include "ucs/match.h"

struct ucp_request;
struct ucp_rkey;
struct ucp_mem;

namespace ucp {

struct rail_memory; // rail_memory.h

// How tags match: a receive names tag and mask, a message carries its tag. Full-mask receives are
// hashed.
struct tag_policy {
    struct pattern {
        ucp_tag_t tag;
        ucp_tag_t mask;
    };
    using key = ucp_tag_t;

    static bool is_exact(const pattern &p) noexcept { return p.mask == ~ucp_tag_t(0); }
    static bool matches(const pattern &p, key k) noexcept { return ((p.tag ^ k) & p.mask) == 0; }
    static uint64_t hash(const pattern &p) noexcept { return p.tag; }
    static uint64_t hash(key k) noexcept { return k; }
};
using tag_matcher = ucs::matcher<tag_policy>;

enum class req_kind : uint8_t { send, tag_recv, stream_recv, am_recv, flush, none };

enum req_flags : uint32_t {
    REQ_COMPLETED = 1u << 0,
    REQ_CALLBACK = 1u << 1, // the user gave a callback
    REQ_RELEASED = 1u << 2, // the user gave the request back before it completed
    REQ_EXTERNAL = 1u << 3, // memory of the caller
    REQ_POSTING = 1u << 4,  // still inside the posting call: completion must not call back
    REQ_EXPECTED = 1u << 5, // a tag receive that waits in the matcher
    REQ_LISTED = 1u << 6,   // node is in a list of the ep
    REQ_ABORTED = 1u << 7,  // abort() came while uct operations were in flight
    REQ_INTERNAL = 1u << 8, // not visible to the user: freed at completion
    REQ_OWN_COPY = 1u << 9, // send.header is our copy
    REQ_SYNC = 1u << 10,    // completes after the receiver matched
    REQ_SENT = 1u << 11,    // every byte was given to the lane
    REQ_WAITALL = 1u << 12, // stream receive: only the full length completes
    REQ_COPY = 1u << 13,    // the user wants the buffer back soon
    REQ_LATER = 1u << 14,   // a read for it that ends inside the posting call counts later
};

// What an outstanding request waits for. An answer of the peer that finds another phase is stale.
enum phase : uint8_t {
    PHASE_NONE,
    PHASE_SYNC,         // sync send: ACK
    PHASE_SYNC_SENDING, // sync send: its last piece to leave
    PHASE_SYNC_MATCHED, // the same, and the ACK has come
    PHASE_RTS,          // rendezvous sender: ATS or RTR
    PHASE_RNDV_SEND,    // rendezvous sender: pieces on their way
    PHASE_RNDV_GET,     // rendezvous receiver: gets in flight
    PHASE_RNDV_RECV,    // rendezvous receiver: RNDV_DATA
    PHASE_RMA_GET,      // RMA_GET_REPLY
    PHASE_AMO,          // AMO_REPLY
    PHASE_RMA_FLUSH,    // RMA_ACK
    PHASE_STREAM,       // stream receive
};

} // namespace ucp

struct ucp_request {
    ucs::list_node node; // ep->pending or ep->outstanding
    ucp_worker *worker = nullptr;
    ucp_ep *ep = nullptr;
    uint32_t flags = 0;
    ucs_status_t status = UCS_OK;
    ucp::req_kind kind = ucp::req_kind::none;
    uint8_t phase = 0;     // ucp::phase: what the peer's answer must find
    uint8_t pend_lane = 0; // the lane that progress() found full
    uint8_t done = 0;      // completed, for threads that poll without the worker's lock
    union callback {
        ucp_send_nbx_callback_t send;
        ucp_tag_recv_nbx_callback_t recv;
        ucp_stream_recv_nbx_callback_t recv_stream;
        ucp_am_recv_data_nbx_callback_t recv_am;
    } cb = {};
    void *user_data = nullptr;
    ucs_status_t (*progress)(ucp_request *req) = nullptr;
    void (*abort)(ucp_request *req, ucs_status_t status) = nullptr;
    uct_completion_t comp = {}; // count: uct operations in flight + 1 while progress() posts
    ucp::dt_iter dt;
    uint64_t id = 0; // in worker->request_ids while the peer may name this request, else 0

    // Receives: the matcher's entry, what was found, and how much is still to come.
    ucp::tag_matcher::recv_entry match;
    ucp_tag_recv_info_t info = {}; // am and stream receives use length only
    size_t remaining = 0;

    struct send_part {
        uint64_t tag;       // tag sends
        const void *header; // am: user header
        uint32_t header_len;
        uint16_t am_id;
        uint16_t am_flags;
        uint64_t msg_id; // multi-fragment sends
    };
    struct rma_part {
        uint64_t address;
        ucp_rkey *rkey;
        void *result; // amo: where the old value goes
        uint64_t value[2];
        uint8_t op, size;
        uint8_t rail; // put, get: of the key, that takes what comes before share_end
        size_t share_end;
    };
    struct stream_part {
        size_t *length_p; // stream receive: user's output
        size_t elem;
    };
    struct flush_part {
        unsigned lanes;    // of the endpoint, still to be flushed: a bit for each
        unsigned children; // a worker's flush: those of endpoints, not ended yet
        bool begun;        // lanes and seq are set
        uint64_t seq;      // what the target has to confirm
        ucp_request *next; // of flush_list
    };
    struct control_part { // a small message of the protocols
        uint8_t id;       // am_id
        uint8_t length;   // bytes
        uint64_t data[6];
    };
    struct fragments_part { // a tag receive that fragments are written to: their message
        uint64_t source;    // wire.h
        uint64_t msg_id;
    };
    struct get_reply_part { // the target's answer to a get
        uint64_t memh;
        uint64_t address;
        uint64_t length;
        uint64_t initiator; // its request
        uint64_t sent;      // bytes
    };
    // What belongs to a single protocol is named after it.
    union {
        send_part send;
        fragments_part fragments;
        get_reply_part get_reply;
        rma_part rma;
        stream_part stream;
        flush_part flush;
        control_part control;
    };

    // The memory of the buffer, where the lanes or the peer read or write it themselves.
    struct memory_part {
        // NULL in a request that has just been taken.
        ucp::registration reg;   // of this operation, undone by complete()
        ucp::rail_memory *rails; // registrations of further rails, undone by complete()
        uct_mem_h zmemh;         // what zcopy passes: reg's, or the one of the user's handle
        uint8_t md;              // of reg
    };
    memory_part memory = {};

    // The rendezvous state of both sides.
    struct rndv_part {
        uct_component_h cmpt; // of bundle, when that is unpacked; NULL in one just taken
        uct_rkey_bundle_t bundle;
        uint64_t remote_req;  // the other side's request id
        uint64_t remote_addr; // sender's buffer (get)
        uint8_t kind;         // sender: RTS_*
        uint8_t lane;         // that gets
        size_t posted;        // bytes asked for or sent
        size_t size;          // receiver: bytes that are read, or were announced
    };
    rndv_part rndv = {};

    ucp_mem *user_memh = nullptr; // FIELD_MEMH

    // Everything but the user's area anew. param: nullptr, or what the caller gave.
    UCS_ALWAYS_INLINE void begin(ucp_worker *of, ucp::req_kind what,
                                 const ucp_request_param_t *param) noexcept
    {
        worker = of;
        ep = nullptr;
        flags = 0;
        done = 0;
        status = UCS_INPROGRESS;
        kind = what;
        phase = ucp::PHASE_NONE;
        pend_lane = 0;
        progress = nullptr;
        abort = nullptr;
        comp.count = 0;
        comp.status = UCS_OK;
        dt.reset();
        id = 0;
        user_memh = nullptr;
        memory.reg.memh = nullptr;
        memory.rails = nullptr;
        memory.zmemh = nullptr;
        rndv.cmpt = nullptr;
        if (!param) {
            return;
        }
        uint32_t given = param->op_attr_mask;
        if (given & UCP_OP_ATTR_FIELD_CALLBACK && param->cb.send) {
            flags = ucp::REQ_CALLBACK;
            cb.send = param->cb.send;
        }
        user_data = given & UCP_OP_ATTR_FIELD_USER_DATA ? param->user_data : nullptr;
        if (given & UCP_OP_ATTR_FIELD_MEMH) {
            user_memh = param->memh;
        }
    }

    void *user() noexcept { return this + 1; }
    static ucp_request *from_user(void *p) noexcept { return static_cast<ucp_request *>(p) - 1; }
    static ucp_request *from_match(ucp::tag_matcher::recv_entry *e) noexcept
    {
        return owner(e, &ucp_request::match);
    }
    static ucp_request *from_comp(uct_completion_t *c) noexcept
    {
        return owner(c, &ucp_request::comp);
    }

  private:
    // The request whose member `m` is: offsetof for a class it does not accept.
    template <class M>
    static ucp_request *owner(M *m, M ucp_request::*member) noexcept
    {
        alignas(16) static const char probe[1] = {};
        auto *base = reinterpret_cast<const ucp_request *>(probe);
        auto offset = reinterpret_cast<const char *>(&(base->*member)) - probe;
        return reinterpret_cast<ucp_request *>(reinterpret_cast<char *>(m) - offset);
    }
};

namespace ucp {

// A request out of the worker's pool, with kind, callback and user data of `param` (which may be
// nullptr), or the caller's own memory when `param` has FIELD_REQUEST. nullptr: no memory.
ucp_request *request_get(ucp_worker *worker, req_kind kind,
                         const ucp_request_param_t *param) noexcept;

// One that the user never sees; given back when complete() ran (its callback is cb.send, called as
// cb.send(user(), status, user_data)).
ucp_request *request_get_internal(ucp_worker *worker) noexcept;

// Back to the pool (no-op for external ones).
void request_put(ucp_request *req) noexcept;

// The operation ended: leaves its ep list, finishes the datatype, forgets its wire id, stores the
// status, calls back (unless it is still inside the posting call) and goes back to the pool if the
// user has released it already.
void complete(ucp_request *req, ucs_status_t status) noexcept;

// End of a posting call that used a request. Turns an already completed one into the immediate
// result the API asks for (NULL / status / callback inside the call with NO_IMM_CMPL), else returns
// the request pointer.
ucs_status_ptr_t post_return(ucp_request *req, const ucp_request_param_t *param) noexcept;

// End of a posting call that finished without a request. Slow only for NO_IMM_CMPL and external
// requests.
ucs_status_ptr_t post_return_imm_slow(ucp_worker *worker, req_kind kind, ucs_status_t status,
                                      const ucp_request_param_t *param,
                                      const ucp_tag_recv_info_t *info) noexcept;
UCS_ALWAYS_INLINE ucs_status_ptr_t post_return_imm(
    ucp_worker *worker, req_kind kind, ucs_status_t status, const ucp_request_param_t *param,
    const ucp_tag_recv_info_t *info = nullptr) noexcept
{
    constexpr uint32_t unusual =
        UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FLAG_NO_IMM_CMPL | UCP_OP_ATTR_FIELD_RECV_INFO;
    if (UCS_LIKELY(!(param->op_attr_mask & unusual))) {
        return UCS_STATUS_PTR(status);
    }
    return post_return_imm_slow(worker, kind, status, param, info);
}

// Out of whatever ep list it is in.
inline void request_unlist(ucp_request *req) noexcept
{
    if (req->flags & REQ_LISTED) {
        req->node.unlink();
        req->flags &= ~REQ_LISTED;
    }
}

// The id under which the peer names this request, given out on first use; 0: there is no memory for
// it.
uint64_t request_wire_id(ucp_request *req) noexcept;

} // namespace ucp
