// SPDX-License-Identifier: BSD-3-Clause
//
// An endpoint: the lanes to one peer, and the operations that wait for them. Protocols call the
// lanes directly while can_send(); otherwise they queue(), and the endpoint sends in that order
// once the connection stands or the lane has room. The first error sticks: every waiting operation
// is aborted with it once, and the user's error handler runs once, in progress.
#pragma once

#include "ucp/core/cost.h"
#include "ucp/core/request.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep_config.h"
#include "ucs/compiler.h"
#include "ucs/list.h"
#include "ucs/stats/stats.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace ucp {

// One uct endpoint to the peer. Lane am_lane_index carries the active messages and with them the
// order of everything; the others carry RMA and the pieces of large messages.
struct lane {
    uct_ep_h ep = nullptr;
    ucp::iface *iface = nullptr;
    uint8_t md_index = 0;     // ours
    uint8_t dst_md_index = 0; // the peer's, from its worker address
    uint8_t resource = 0;     // to which of the address's it leads

    const uct_iface_attr_t &attr() const noexcept { return iface->attr; }
    double bandwidth() const noexcept { return bandwidth_of(attr()); }
};

enum class ep_state : uint8_t {
    connecting, // waits for the peer's answer
    connected,  // may send
    closing,    // the user called close; it has not finished
    failed,     // `status` is what every operation gets
    closed      // the user's handle is dead
};

// How the connection was made.
enum class ep_origin : uint8_t {
    address, // from a worker address, by the user
    reply,   // by us, because a peer connected; becomes `address` when the user makes its own
    client,  // through the connection manager, active side
    server   // through the connection manager, from a connection request
};

struct ep_control; // ep_control.h: what only wire-up, close and failure look at

} // namespace ucp

struct ucp_ep : ucp::ep_link<ucp::listed::unfenced>,
                ucp::ep_link<ucp::listed::unflushed>,
                ucp::ep_link<ucp::listed::active>,
                ucp::ep_link<ucp::listed::deferred> {
    explicit ucp_ep(ucp_worker *worker, ucp::ep_origin origin);
    ~ucp_ep();
    ucp_ep(const ucp_ep &) = delete;
    ucp_ep &operator=(const ucp_ep &) = delete;

    // Connected and nothing waits: a protocol may call the lanes.
    bool can_send() const noexcept { return sendable; }

    // Why no operation may be posted, or UCS_OK.
    ucs_status_t check_usable() const noexcept { return status; }

    // Wait for the lane: req->progress() will be called in the order of these calls.
    void queue(ucp_request *req) noexcept;
    // Sent, waits for the peer or for uct.
    void add_outstanding(ucp_request *req) noexcept;

    const ucp::lane &am_lane() const noexcept { return lanes[am_lane_index]; }
    uint8_t rma_lane_index() const noexcept { return rma_lane; }

    // The connection, or a lane, is lost. Callable at any time; acts once.
    void set_failed(ucs_status_t why) noexcept;

    // ---- hot
    ucp_worker *const worker;
    uct_ep_h am_ep = nullptr; // lanes[am_lane_index].ep
    bool sendable = false;
    uint8_t am_lane_index = 0;
    uint8_t rma_lane = 0;
    uint8_t lane_count = 0;
    uint8_t rail_count = 0;
    uint8_t rma_rail_count = 0;
    // Lanes that share the bytes of large messages and, some of them or more, of puts and gets.
    uint8_t rails[ucp::MAX_RAILS] = {};
    ucs_status_t status = UCS_OK;
    ucp::ep_state state = ucp::ep_state::connecting;
    ucp::ep_origin origin;
    // The lane's own puts and gets overtake messages that the target has yet to read, which a fence
    // forbids: until those are acknowledged, what follows goes as messages, too. A caller
    // that uses the lane's own asks for that acknowledgement at the fence.
    bool lane_rma_wanted = false;
    // Loads and stores of the peer's memory wait for nothing. Behind a fence they do when something
    // before it may still be on its way: then these go as the others.
    bool direct_fenced = false;
    ucp_err_handling_mode_t err_mode : 8 = UCP_ERR_HANDLING_MODE_NONE;
    uint32_t fence_round = 0; // the worker's last fence that looked at it
    // The lanes' gets read the peer's memory while later messages and puts arrive there, and a put
    // over several lanes may arrive after what one of them sends later. A fence forbids both, too:
    // behind it nothing goes out until these have ended.
    uint32_t unordered = 0;
    uint64_t local_id = 0;  // names this endpoint in messages to us
    uint64_t remote_id = 0; // names the peer's endpoint in messages to it; 0: not known yet
    const ucp::ep_config *config = &ucp::no_lanes;
    const ucp::ep_limits &limits() const noexcept { return config->limits; }
    // lane_count of them; after the teardown, which sets that to 0, the memory is still there.
    std::unique_ptr<ucp::lane[]> lanes;

    // Puts it at the end of one of the worker's lists. False: it stands there already.
    template <ucp::listed In>
    UCS_ALWAYS_INLINE bool enlist(ucp::ep_list<In> &list) noexcept
    {
        ucp::ep_link<In> *link = this;
        bool fresh = !link->node.linked();
        if (UCS_UNLIKELY(fresh)) {
            list.push_back(link);
        }
        return fresh;
    }
    template <ucp::listed In>
    static ucp_ep *of(ucp::ep_link<In> *link) noexcept
    {
        return static_cast<ucp_ep *>(link);
    }
    // A request waits for the lane, the peer or uct.
    UCS_ALWAYS_INLINE void note_active() noexcept { enlist(worker->active); }
    bool has_requests() const noexcept { return !outstanding.empty() || !pending.empty(); }
    // The next fence has to look at this endpoint.
    UCS_ALWAYS_INLINE void note_unfenced() noexcept
    {
        if (enlist(worker->unfenced)) {
            fence_round = 0;
        }
    }
    // So has the next flush.
    UCS_ALWAYS_INLINE void note_busy() noexcept
    {
        note_unfenced();
        enlist(worker->unflushed);
    }

    void leave_lists() noexcept;

    // Operations of the flush kind: emulated RMA counts what the target has not acknowledged yet.
    uint64_t rma_posted = 0; // in the order of sending
    uint64_t rma_acked = 0;
    uint64_t rma_fence = 0; // rma_posted at the last fence
    UCS_ALWAYS_INLINE void rma_sent() noexcept
    {
        ++rma_posted;
        note_busy();
    }
    void rma_done() noexcept; // the target acknowledged one
    bool lane_rma_fenced() const noexcept { return rma_acked < rma_fence; }
    void unordered_done() noexcept;
    UCS_ALWAYS_INLINE bool direct_allowed() noexcept
    {
        return UCS_LIKELY(!direct_fenced) || fence_passed();
    }
    bool fence_passed() noexcept;

    ucs::list<ucp_request, &ucp_request::node> pending;
    ucs::list<ucp_request, &ucp_request::node> outstanding;

    void *stream = nullptr; // the stream protocol's state of this endpoint
    void *user_data = nullptr;

    std::unique_ptr<ucp::ep_control> control;
};
