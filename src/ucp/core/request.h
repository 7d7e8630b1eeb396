// SPDX-License-Identifier: BSD-3-Clause
//
// A request: one operation that did not finish inside its posting call. The user sees the address
// behind its request_bytes (request_size bytes of user area follow them, constructed once by
// request_init); external requests (UCP_OP_ATTR_FIELD_REQUEST) stand in front of the caller's
// pointer and are never freed by us.
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

#include <concepts>
#include <cstddef>
#include <new>
#include <type_traits>

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

// What the program gets told of the end, and by which callback. A request with a buffer is a
// data_request.
enum class req_kind : uint8_t { send, tag_recv, stream_recv, am_recv, flush, other };
constexpr bool has_buffer(req_kind kind) noexcept
{
    return kind <= req_kind::am_recv;
}

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
    REQ_OWN_COPY = 1u << 9, // own_copy is to be freed
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

// What every request has. Each protocol derives a type for what it alone needs, in its own source,
// and gives functions of that type to progress and abort by typed<> (protocol.h).
struct ucp_request {
    // The kind of a request of this type.
    static constexpr ucp::req_kind is = ucp::req_kind::other;

    // param: nullptr, or what the caller gave.
    UCS_ALWAYS_INLINE ucp_request(ucp_worker *of, ucp::req_kind what,
                                  const ucp_request_param_t *param) noexcept
        : worker(of), kind(what)
    {
        comp.count = 0;
        comp.status = UCS_OK;
        if (!param) {
            return;
        }
        uint32_t given = param->op_attr_mask;
        if (given & UCP_OP_ATTR_FIELD_CALLBACK && param->cb.send) {
            flags = ucp::REQ_CALLBACK;
            cb.send = param->cb.send;
        }
        user_data = given & UCP_OP_ATTR_FIELD_USER_DATA ? param->user_data : nullptr;
    }

    ucs::list_node node; // ep->pending or ep->outstanding
    ucp_worker *worker;
    ucp_ep *ep = nullptr;
    uint32_t flags = 0;
    ucs_status_t status = UCS_INPROGRESS;
    ucp::req_kind kind;
    uint8_t phase = ucp::PHASE_NONE; // what the peer's answer must find
    uint8_t pend_lane = 0;           // the lane that progress() found full
    uint8_t done = 0;                // completed, for threads that poll without the worker's lock
    union callback {
        ucp_send_nbx_callback_t send;
        ucp_tag_recv_nbx_callback_t recv;
        ucp_stream_recv_nbx_callback_t recv_stream;
        ucp_am_recv_data_nbx_callback_t recv_am;
    } cb; // with REQ_CALLBACK
    void *user_data;
    ucs_status_t (*progress)(ucp_request *req) = nullptr;
    void (*abort)(ucp_request *req, ucs_status_t status) = nullptr;
    uct_completion_t comp; // count: uct operations in flight + 1 while progress() posts
    uint64_t id = 0;       // in worker->request_ids while the peer may name this request, else 0

    void *user() noexcept;
    static ucp_request *from_user(void *p) noexcept;
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

// A request with a buffer of the user's.
struct data_request : ucp_request {
    static constexpr req_kind is = req_kind::send;

    UCS_ALWAYS_INLINE data_request(ucp_worker *of, req_kind what,
                                   const ucp_request_param_t *param) noexcept
        : ucp_request(of, what, param),
          user_memh(param && param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMH ? param->memh : nullptr)
    {
    }

    dt_iter dt;
    // Where the lanes or the peer read or write the buffer themselves.
    struct {
        registration reg;             // of this operation, undone by complete()
        rail_memory *rails = nullptr; // registrations of further rails, undone by complete()
        uct_mem_h zmemh = nullptr;    // what zcopy passes: reg's, or the one of the user's handle
        uint8_t md;                   // of reg
    } memory;
    ucp_mem *user_memh; // FIELD_MEMH
    void *own_copy;     // with REQ_OWN_COPY
};

// A receive into the user's buffer.
struct recv_request : data_request {
    using data_request::data_request;

    ucp_tag_recv_info_t info = {}; // what came; of am and stream receives the length alone
};

// The bytes in front of the user's area, enough for every type of request.
constexpr size_t request_bytes = 368;
template <class T>
concept request_type = std::derived_from<T, ucp_request> && sizeof(T) <= request_bytes &&
                       alignof(T) <= 16 && std::is_trivially_destructible_v<T>;
static_assert(request_type<recv_request> && request_bytes % 16 == 0);

} // namespace ucp

inline void *ucp_request::user() noexcept
{
    return reinterpret_cast<char *>(this) + ucp::request_bytes;
}

inline ucp_request *ucp_request::from_user(void *p) noexcept
{
    return reinterpret_cast<ucp_request *>(static_cast<char *>(p) - ucp::request_bytes);
}

namespace ucp {

// Memory for a request out of the worker's pool. nullptr: there is none.
void *request_memory(ucp_worker *worker) noexcept;
// The same for what no caller can repeat: there are some in reserve.
void *request_memory_or_spare(ucp_worker *worker) noexcept;

// A request with callback and user data of `param` (which may be nullptr), out of the worker's pool
// or in the caller's own memory when `param` has FIELD_REQUEST. nullptr: no memory.
template <request_type T>
T *request_get(ucp_worker *worker, const ucp_request_param_t *param, req_kind kind = T::is) noexcept
{
    if (param && param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) {
        T *req = new (ucp_request::from_user(param->request)) T(worker, kind, param);
        req->flags |= REQ_EXTERNAL;
        return req;
    }
    void *memory = request_memory(worker);
    return memory ? new (memory) T(worker, kind, param) : nullptr;
}

// One that the user never sees; given back when complete() ran. Its callback is the one of its
// kind.
template <request_type T>
T *request_get_internal(ucp_worker *worker) noexcept
{
    void *memory = request_memory_or_spare(worker);
    T *req = memory ? new (memory) T(worker, T::is, nullptr) : nullptr;
    if (req) {
        req->flags = REQ_INTERNAL | REQ_RELEASED;
    }
    return req;
}

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
