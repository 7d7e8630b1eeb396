// SPDX-License-Identifier: BSD-3-Clause
//
// A worker: the interfaces it opened, its endpoints and listeners, and progress. Connection
// managers call back on a thread of their own; such calls only append an event to `events` and wake
// the worker, and everything the user can see happens inside ucp_worker_progress().
#pragma once

#include "ucp/core/am_id.h"
#include "ucp/core/context.h"
#include "ucp/core/event_queue.h"
#include "ucp/core/linger.h"
#include "ucp/core/mem_table.h"
#include "ucp/core/request.h"
#include "ucp/core/spin.h"
#include "ucs/compiler.h"
#include "ucs/list.h"
#include "ucs/lock.h"
#include "ucs/ptr_map.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

struct ucp_ep;
struct ucp_listener;
struct ucp_conn_request;

namespace ucp {

struct worker_proto; // proto.h: tag matcher, AM table, pools; owned by the protocols

// An open transport interface.
struct iface {
    iface(ucp_worker *worker, uint8_t resource);
    ~iface();
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

    ucp_worker *const worker;
    const uint8_t resource; // index into context->resources
    uct_iface_h uct = nullptr;
    uct_iface_attr_t attr = {};
    int event_fd = -1; // once something may sleep
    std::vector<uint8_t> device_addr;
    std::vector<uint8_t> iface_addr;
};

// The worker's lists of endpoints. An endpoint is derived from its links, one for each list.
enum class listed : uint8_t { unfenced, unflushed, active, deferred };
template <listed In>
struct ep_link {
    ucs::list_node node;
};
template <listed In>
using ep_list = ucs::list<ep_link<In>, &ep_link<In>::node>;

// What a connection manager's callback leaves for progress. The endpoint is named by id, so an
// event for one that is gone finds nothing.
struct event {
    enum class kind : uint8_t {
        conn_request,     // a client asks the listener
        connected,        // client: the server answered (status, data)
        notified,         // server: the client has seen the answer (status)
        connection_ended, // either: the peer disconnected or died (ep_id: the connection's)
        disconnected,     // the peer's process has ended
        keepalive,        // time to check the peers
        failed,           // a lane or the peer's process failed (status)
        door,             // a peer calls for an address with networks
        door_answer,      // a peer that we called has said something
    };
    kind what = kind::failed;
    ucs_status_t status = UCS_OK;
    uint64_t ep_id = 0;
    ucp_conn_request *request = nullptr;
    std::vector<uint8_t> data;
};

class keepalive;  // keepalive.h
struct wakeup;    // wakeup.h
struct cm;        // cm.h: the worker's connection managers
struct matcher;   // wireup.h: pairs endpoints with those of the peers
struct ep_config; // ep_config.h
class settling;   // settle.h
class door;       // door.h
class door_calls; // door.h

} // namespace ucp

struct ucp_worker {
    ucp_worker(ucp_context *context, const ucp_worker_params_t *params);
    ~ucp_worker();
    ucp_worker(const ucp_worker &) = delete;
    ucp_worker &operator=(const ucp_worker &) = delete;

    // One round: the transports, then what the connection managers left. The caller has the lock.
    unsigned progress() noexcept
    {
        unsigned count = uct_worker_progress(uct);
        if (UCS_UNLIKELY(has_events.load(std::memory_order_relaxed))) {
            count += progress_slow(count);
        }
        return count;
    }

    // Any thread: append an event, wake the worker. Room for it was promised.
    void post_event(ucp::event &&ev) noexcept;
    void promise_events(size_t count); // throws bad_alloc
    void release_events(size_t count) noexcept;
    void wake() noexcept;
    // Of a worker that sleeps without UCP_FEATURE_WAKEUP, made when it first does.
    ucp::wakeup &own_wakeup();
    // From now on the peers of endpoints with error handling are checked.
    void start_keepalive();
    // Opens what the context left closed so far, and its own interfaces of that (networks that
    // UCX_LATE_NETWORKS keeps closed). False: there was nothing. Throws bad_alloc, or what uct
    // says.
    bool open_networks();
    // Asks for a call of progress_slow() in the next round, and wakes the thread that sleeps before
    // it. The caller has the lock.
    void schedule() noexcept
    {
        has_events.store(true, std::memory_order_release);
        if (UCS_UNLIKELY(lock.enabled())) {
            wake();
        }
    }

    ucp_ep *find_ep(uint64_t id) const noexcept { return ep_ids.find(id); }

    ucp_context *const context;
    uct_worker_h uct = nullptr;
    std::atomic<bool> has_events{false};
    mutable ucs::opt_lock lock; // does nothing unless the thread mode is MULTI
    ucs_thread_mode_t thread_mode = UCS_THREAD_MODE_SINGLE;
    bool inside_progress = false;
    ucp::spin spin;
    ucp::linger linger;

    // What the protocols keep for each worker. Constructed after the interfaces' handlers can be
    // set, destroyed before the interfaces.
    std::unique_ptr<ucp::worker_proto> proto;

    uint64_t uuid = 0;
    uint32_t incarnation = 0;
    uint64_t client_id = 0;
    void *user_data = nullptr;
    unsigned flags = 0;
    std::string name;
    ucs::ptr_map<ucp_ep> ep_ids;
    std::unordered_map<uct_ep_h, ucp_ep *> lane_owners;
    // One for each set of lanes that endpoints have, or had.
    std::vector<std::unique_ptr<ucp::ep_config>> ep_configs;
    ucp::mem_views memory; // of the context's mappings
    std::vector<std::unique_ptr<ucp::iface>> ifaces;
    size_t seen_resources = 0;                 // of the context's, as far as they were to be opened
    size_t max_am_header = SIZE_MAX;           // over any of them
    std::unique_ptr<ucp::wakeup> wakeup;       // null until something may sleep
    std::atomic<ucp::wakeup *> waker{nullptr}; // the same, for other threads
    std::unique_ptr<ucp::keepalive> keepalive; // null until an endpoint wants its peer checked
    std::unique_ptr<ucp::cm> cm;               // null until a client or listener needs it
    std::unique_ptr<ucp::matcher> matcher;
    std::unique_ptr<ucp::door> door;             // null where the networks were opened at once
    std::unique_ptr<ucp::door_calls> door_calls; // null until an endpoint calls at one

    std::mutex event_mutex; // guards `events` alone
    ucp::event_queue<ucp::event> events;
    ucp::ep_list<ucp::listed::deferred> deferred; // endpoints with work for progress_slow()
    // Endpoints that were disconnected without a close notice so far.
    struct disconnected {
        uint64_t id;
        uint64_t until_ns;
        unsigned rounds; // in which nothing arrived
    };
    std::vector<disconnected> grace;
    std::vector<std::unique_ptr<ucp_ep>> graveyard; // has room for all
    std::vector<ucp_listener *> listeners;
    uint64_t listeners_made = 0;
    ucs::list<ucp_request, &ucp_request::node> flushes; // worker flushes in flight
    // Endpoints that may have something for a fence, or a flush, of the worker. These look at no
    // others, and take out those that have nothing.
    ucp::ep_list<ucp::listed::unfenced> unfenced;
    ucp::ep_list<ucp::listed::unflushed> unflushed;
    // Endpoints that may have requests in flight. has_requests() takes out those that have none, so
    // it looks at each once for each time that it got some.
    ucp::ep_list<ucp::listed::active> active;
    bool has_requests() noexcept;
    // Handshakes that found no memory, to be tried again in order: a length and the message, each.
    // It has room for some.
    std::vector<uint8_t> unserved;
    uint32_t fences = 0;
    std::unique_ptr<ucp::settling> settling;
    uint64_t stale_messages = 0; // that named an endpoint or request which is gone
    uint64_t peer_faults = 0;    // messages that were damaged, or asked for what is not allowed

  private:
    UCS_NOINLINE unsigned progress_slow(unsigned transport_count) noexcept;
    unsigned progress_grace(unsigned transport_count) noexcept;
    unsigned run_events() noexcept;
    unsigned run_event(ucp::event &ev) noexcept;
    void open_ifaces();
    void open_door();
    void close() noexcept;
};

namespace ucp {

// Room for some events of a worker, for as long as the object is there.
class event_promise {
  public:
    event_promise(ucp_worker *worker, size_t count) : worker_(worker), count_(count)
    {
        worker->promise_events(count);
    }
    ~event_promise() { worker_->release_events(count_); }
    event_promise(const event_promise &) = delete;
    event_promise &operator=(const event_promise &) = delete;

  private:
    ucp_worker *const worker_;
    const size_t count_;
};

} // namespace ucp
