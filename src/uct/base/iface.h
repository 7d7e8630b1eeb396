// SPDX-License-Identifier: BSD-3-Clause
// What every interface and endpoint of ours shares: the active-message handlers, the parameters of
// the open call, the queues of pending requests and the error report. The methods that a transport
// adds carry the names of the uct.h calls and keep their contracts; uct/base/ops.h makes the
// published table of them.
#pragma once

#include "ucs/compiler.h"
#include "ucs/list.h"
#include "uct/base/am_trace.h"
#include "uct/base/credits.h"
#include "uct/base/iov.h"
#include "uct/base/md.h"
#include "uct/base/traffic.h"
#include "uct/base/worker.h"

#include <uct/api/uct.h>

#include <atomic>
#include <cstring>
#include <memory>

namespace uct {

class iface;

// A request that waits on an endpoint, kept in the part of uct_pending_req_t that is ours.
struct pending_node {
    ucs::list_node link;

    static pending_node *of(uct_pending_req_t *request)
    {
        return reinterpret_cast<pending_node *>(request->priv);
    }
    uct_pending_req_t *request()
    {
        return reinterpret_cast<uct_pending_req_t *>(reinterpret_cast<char *>(this) -
                                                     offsetof(uct_pending_req_t, priv));
    }
};
static_assert(sizeof(pending_node) <= sizeof(uct_pending_req_t::priv));

class ep : public uct_ep, private waiter {
  public:
    explicit ep(uct::iface &owner);
    ep(const ep &) = delete;
    ep &operator=(const ep &) = delete;

    ucs_status_t pending_add(uct_pending_req_t *request, unsigned flags);
    void pending_purge(uct_pending_purge_callback_t callback, void *arg);

    // Sends test this one flag: connected, not failed, and no other request waits in front.
    bool ready() const { return UCS_LIKELY(ready_); }
    // What a send returns that found the endpoint not ready, or its queue full.
    UCS_NOINLINE ucs_status_t not_ready();
    ucs_status_t no_resource();
    ucs_status_t no_resource(credits &of); // none was free
    ucs_status_t no_resource_of_own();     // it is full, see is_full()

    ucs_status_t status() const { return status_; }
    bool connected() const { return connected_; }
    void set_connected();
    void suspend();                       // no sends until set_connected() or set_failed()
    void set_failed(ucs_status_t status); // the first one sticks

  protected:
    friend class iface;
    friend class traffic;
    ~ep();

    // A message that was taken from the user and that the core refused stands in front of
    // everything: nothing is ready until post_held() has sent it.
    void hold();
    virtual bool post_held() { return true; }
    // The endpoint's own operations on their way leave no room for another: when one of them has
    // ended, operation_ended() follows.
    virtual bool is_full() const { return false; }
    void operation_ended()
    {
        if (UCS_UNLIKELY(waits())) {
            wake();
        }
    }

    bool has_pending() const { return !pending_.empty(); }
    uint64_t round() const; // of the interface's progress

    uct::iface &interface() const;

  private:
    void update_ready();
    UCS_NOINLINE void wake();

    bool ready_ = false;
    bool connected_ = false;
    bool dispatching_ = false;
    bool held_ = false;
    ucs_status_t status_ = UCS_OK;
    uint64_t stalled_round_ = 0; // the round of progress in which a send found no room
    ucs::list<pending_node, &pending_node::link> pending_;
    ucs::stats::lane *counted_ = nullptr; // of an interface that counts
};

class iface : public uct_iface {
  public:
    iface(const uct_iface_ops_t &table, uct_worker &worker, uct_md &domain,
          const uct_iface_params_t &params);
    iface(const iface &) = delete;
    iface &operator=(const iface &) = delete;

    // Runs the handler of an arrived message: UCS_OK, or UCS_INPROGRESS when the handler keeps a
    // descriptor that was offered with UCT_CB_PARAM_FLAG_DESC.
    UCS_ALWAYS_INLINE ucs_status_t deliver(uint8_t id, void *data, size_t length, unsigned flags)
    {
        const am_handler &handler = am_[id & (UCT_AM_ID_MAX - 1)];
        return handler.callback(handler.arg, data, length, flags);
    }

    // callback nullptr: arriving messages are dropped with a warning.
    void set_am_handler(uint8_t id, uct_am_callback_t callback, void *arg);
    // tracer nullptr: none.
    void set_am_tracer(uct_am_tracer_t tracer, void *arg);
    // For UCX_STATS_DEST, before anything uses the interface.
    void count_traffic(const char *transport, const char *device);

    // Tells the user that an endpoint is dead; only where the error handler may run.
    void report_error(uct_ep_h failed, ucs_status_t status);

    void progress_enable(unsigned flags);
    void progress_disable(unsigned flags);

    worker &owner;
    uct_md &md;

  protected:
    friend class ep;
    friend class am_trace;
    friend class traffic;
    ~iface();

    // What the program will use the interface for: any of these features?
    bool wants(uint64_t features) const { return (features_ & features) != 0; }
    // Called when an armed event has happened; nullptr: the program gave none.
    uct_async_event_cb_t async_event_cb_;
    void *async_event_arg_;

    // Runs the requests that wait on endpoints, in order, as long as they find room. Every poll
    // function calls it once.
    UCS_ALWAYS_INLINE unsigned progress_pending()
    {
        ++round_;
        return UCS_LIKELY(waiting_.idle()) ? 0 : dispatch_pending();
    }

    // What the worker polls, set by the transport before it may be enabled, and whether a poll
    // costs a system call.
    template <class Class>
    static unsigned poll(void *arg)
    {
        // The worker knows the base, which need not be at the start of the object.
        return static_cast<Class *>(static_cast<iface *>(arg))->progress();
    }
    unsigned (*poll_)(void *) = nullptr;
    bool slow_ = false;

    bool has_waiting() const { return !waiting_.empty(); }
    // Progress may do something for an endpoint that waits, though nothing happens meanwhile.
    bool has_untried() const { return waiting_.untried(); }
    // Something has happened in the core that may have made room.
    void tell_waiting() { waiting_.news(); }
    uint64_t round() const { return round_; } // of progress

    size_t rx_headroom_;
    size_t am_alignment_; // 0: none asked
    size_t am_align_offset_;

  private:
    UCS_NOINLINE unsigned dispatch_pending();
    unsigned dispatch(ep *e);
    void dispatched_has_gone(const ep *e);
    static void enable_asked(void *arg);

    am_handler am_[UCT_AM_ID_MAX];
    std::unique_ptr<traffic> traffic_;
    std::unique_ptr<am_trace> trace_;
    uint64_t features_; // UCT_IFACE_FEATURE_*
    uct_error_handler_t err_handler_;
    void *err_handler_arg_;
    unsigned enabled_ = 0;                  // UCT_PROGRESS_*
    std::atomic<unsigned> enable_later_{0}; // asked for by other threads
    uint64_t round_ = 1;
    struct dispatched;
    dispatched *current_ = nullptr; // the innermost call of dispatch() that runs
    waiters waiting_;
};

inline uct::iface &ep::interface() const
{
    return static_cast<uct::iface &>(*uct_ep::iface);
}

inline uint64_t ep::round() const
{
    return interface().round_;
}

inline ucs_status_t ep::no_resource()
{
    lacks = nullptr;
    lacks_own = false;
    stalled_round_ = interface().round_;
    return UCS_ERR_NO_RESOURCE;
}

inline ucs_status_t ep::no_resource_of_own()
{
    ucs_status_t status = no_resource();
    lacks_own = true;
    return status;
}

inline ucs_status_t ep::no_resource(credits &of)
{
    ucs_status_t status = no_resource();
    lacks = &of;
    return status;
}

// Logs that an argument of a data call is above its limit; returns UCS_ERR_INVALID_PARAM.
UCS_NOINLINE ucs_status_t above_limit(const char *argument, size_t value, size_t limit);

// Counts one finished operation of a completion; the last one calls back.
inline void complete(uct_completion_t *completion, ucs_status_t status)
{
    if (completion) {
        uct_completion_update_status(completion, status);
        if (--completion->count == 0) {
            completion->func(completion);
        }
    }
}

} // namespace uct
