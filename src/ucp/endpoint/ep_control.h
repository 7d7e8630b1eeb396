// SPDX-License-Identifier: BSD-3-Clause
//
// The slow half of an endpoint: what connecting, closing and failing need, kept away from the cache
// lines that sends touch.
#pragma once

#include "ucp/endpoint/ep.h"
#include "ucp/endpoint/process_watch.h"

#include <list>
#include <memory>
#include <string>
#include <vector>

namespace ucp {

// Handshake messages that still have to go out on the am lane, before anything in ep->pending.
enum control_todo : uint8_t {
    TODO_REQUEST = 1,   // ask the peer for its endpoint's id
    TODO_REPLY = 2,     // answer such a request
    TODO_SHARE = 4,     // ask the peer for another endpoint's connection (cm_connection.h)
    TODO_SHARED = 8,    // agree
    TODO_CLOSE = 16,    // we are going
    TODO_PING = 32,     // nothing: is the lane up?
    TODO_ACCEPTED = 64, // a client that asked over a lane (lane_connect.h)
};

// Work that must not happen inside a transport's callback; progress_slow() does it.
enum deferred_work : uint8_t {
    WORK_FAIL = 1,    // tear down, abort, tell the user
    WORK_DESTROY = 2, // nothing refers to the endpoint any more
    WORK_ABORT = 4,   // the peer closed its end: what waits for its answer never comes
    WORK_CALL = 8,    // the client calls at the address, as its lane will not do (lane_connect.h)
};

// What a close notice says.
enum class close_reason : uint8_t { graceful, forced, worker_gone };

enum class close_phase : uint8_t { none, flushing, disconnecting };

class cm_connection; // cm_connection.h
enum class lane_trust : uint8_t;

// Between which addresses an endpoint was connected that has given its connection up.
struct cm_addresses {
    sockaddr_storage local;
    sockaddr_storage remote;
};

// What a client asks: to share the connection of this name. The address is its worker's.
struct share_request {
    uint64_t name;
    std::vector<uint8_t> address;
};

// What a client says where it connects to.
struct client_call {
    sockaddr_storage remote;
    sockaddr_storage local; // AF_UNSPEC: any
    std::string asked_at;   // remote, as text
    std::vector<uint8_t> hello;
    uint64_t ep_id;
    uint64_t asked_over; // the connection, by its id here; 0: none
    bool refused;
};

// The flush of an endpoint.
struct flush_request : ucp_request {
    static constexpr req_kind is = req_kind::flush;
    using ucp_request::ucp_request;

    unsigned lanes;      // of the endpoint, still to be flushed: a bit for each
    bool begun;          // lanes and seq are set
    uint64_t seq;        // what the target has to confirm
    flush_request *next; // of flush_list
};

// Requests of flushes, in the order in which they were added; needs no memory of its own.
class flush_list {
  public:
    void push_back(flush_request *req) noexcept;
    void erase(flush_request *req) noexcept; // if it is there
    // Takes out the first that waits for no more than `acked`; nullptr: there is none.
    flush_request *take(uint64_t acked) noexcept;

  private:
    flush_request *unlink(flush_request **at) noexcept;

    flush_request *first_ = nullptr;
    flush_request *last_ = nullptr;
};

// What an endpoint has besides that was made by the connection manager.
struct cm_control {
    explicit cm_control(ucp_ep *owner) : ep(owner) {}

    ucp_ep *const ep;
    std::string peer_name; // of its worker, as that says
    cm_connection *cm = nullptr;
    cm_connection *joining = nullptr;           // the peer was asked to share it
    ucs::list_node cm_node;                     // among those that have `cm`
    ucs::list_node joining_node;                // among those that asked for `joining`
    std::unique_ptr<share_request> early_share; // came before the client's notice
    std::unique_ptr<cm_addresses> addresses;
    std::list<client_call> asking;                // one, while it is asked over a lane: so it moves
    std::unique_ptr<std::vector<uint8_t>> unsaid; // of a server: what its lane has yet to say
    void (*answered)(void *arg, const void *data, size_t length) = nullptr; // greeting.h
    void *answered_arg = nullptr;
    std::unique_ptr<std::vector<uint8_t>> answer; // to be told when the lane is up
    bool answer_needs_room = false;               // which shows when that has room
    lane_trust trust = {};                        // greeting.h
    bool established = false;
    bool disconnected = false;
};

// What few endpoints have.
struct ep_extras {
    ucp_err_handler_cb_t err_cb = nullptr;
    void *err_arg = nullptr;
    std::string name; // as the user gave it; empty: none
    std::unique_ptr<process_watch::user> watch;
    std::unique_ptr<ucs::stats::lane *[]> counted;
};

struct ep_control {
    ep_control();
    ~ep_control();

    bool user_owned = false;  // the user has, or had, the handle
    bool user_closed = false; // and gave it back
    bool has_user_data = false;
    bool error_reported = false;
    bool draining = false;
    bool armed = false; // pend is with the lane armed_lane
    bool torn_down = false;
    bool fenced = false;     // nothing is sent while `unordered` ones are in flight
    bool close_seen = false; // the peer's close notice has arrived
    bool close_sent = false; // ours has gone out
    bool flushed = false;    // everything and the close notice are out
    uint8_t armed_lane = 0;
    uint8_t todo = 0;     // control_todo
    uint8_t deferred = 0; // deferred_work
    close_reason our_reason = close_reason::graceful;
    close_phase closing = close_phase::none;

    // Endpoints made from worker addresses. Both sides count their endpoints to each other, and the
    // n-th of one pairs with the n-th of the other.
    bool asking = false;  // our request has gone out, and no answer has come
    bool shown = false;   // the peer has answered our request, so remote_id is right
    bool unsure = false;  // remote_id may be a stranger's word: nothing is sent
    bool matched = false; // in the worker's matcher
    bool wired = false;   // a request or reply has gone out: the peer may know us
    bool scarce = false;  // it was made with the last descriptors, so with whatever lane was left
    uint32_t sn = 0;
    uint64_t peer_uuid = 0;
    uint64_t asker = 0; // the last that asked and is not known to be the peer; 0: none
    std::unique_ptr<uint8_t[]> peer_address; // of address_length() bytes

    std::unique_ptr<cm_control> by_cm; // nullptr: not of the connection manager
    std::unique_ptr<ep_extras> extras; // nullptr: it has nothing of that

    ep_extras &have_extras() // throws bad_alloc
    {
        return extras ? *extras : *(extras = std::make_unique<ep_extras>());
    }
    // Of each lane, with UCX_STATS_DEST; nullptr: without.
    ucs::stats::lane **counted() const noexcept { return extras ? extras->counted.get() : nullptr; }

    ucp_request *close_request = nullptr; // of the user
    flush_list flush_waiters;             // wait for rma_acked

    struct pending_hook {
        uct_pending_req_t req; // first: the transport gives this address back
        ucp_ep *ep;
    } pend = {};
};

// ---- sending (ep.cc)
void ep_drain(ucp_ep *ep) noexcept; // send what waits, as far as the lanes take it
void ep_defer(ucp_ep *ep, unsigned work) noexcept;
void ep_run_deferred(ucp_ep *ep) noexcept;
void ep_connected(ucp_ep *ep) noexcept; // the peer's id is known and both sides are ready
// Whether the lane of messages takes nothing now. What waits for its room is told when there is.
bool ep_lane_is_full(ucp_ep *ep) noexcept;
// The answered callback (greeting.h): now, or once what is sent next leaves at once.
void ep_tell_answer(ucp_ep *ep) noexcept;
void ep_tell_answer_when_up(ucp_ep *ep) noexcept;
void ep_teardown_lanes(ucp_ep *ep) noexcept;
// The transport lost a lane, of an endpoint or of a connection.
void on_lane_failed(ucp_worker *worker, uct_ep_h lane, ucs_status_t status) noexcept;
void ep_abort_requests(ucp_ep *ep, ucs_status_t status) noexcept;
void ep_destroy(ucp_ep *ep) noexcept; // at once; not inside a transport's callback
ucp_ep *ep_new(ucp_worker *worker, ep_origin origin);

// ---- flush and close (flush.cc, close.cc)
void ep_flush_start(ucp_ep *ep, flush_request *req) noexcept;
ucs_status_t ep_fence(ucp_ep *ep) noexcept;
ucs_status_t worker_fence(ucp_worker *worker) noexcept; // of its endpoints
void ep_close_finish(ucp_ep *ep, ucs_status_t status) noexcept;
ucs_status_ptr_t ep_close(ucp_ep *ep, const ucp_request_param_t *param) noexcept;
void ep_force_close(ucp_ep *ep) noexcept;
// The endpoint has failed on this side alone: its peer lives, and is told with a close notice if
// the lane takes one now.
void ep_tell_of_failure(ucp_ep *ep) noexcept;
ucs_status_ptr_t worker_flush(ucp_worker *worker, const ucp_request_param_t *param) noexcept;
bool worker_flush_progress(ucp_worker *worker) noexcept; // false: some are still in flight
// The blocking calls: progress until the request is done, and free it.
ucs_status_t wait_request(ucp_worker *worker, ucs_status_ptr_t ptr) noexcept;

} // namespace ucp
