// SPDX-License-Identifier: BSD-3-Clause
// Interface and endpoint bases: handlers, pending requests, progress, errors.
#include "uct/base/iface.h"

#include "ucs/error.h"
#include "uct/base/atomic.h"

#include <bit>

namespace uct {

namespace {

ucs_status_t drop_message(void *arg, void *, size_t length, unsigned)
{
    auto *handler = static_cast<const am_handler *>(arg);
    ucs_warn("active message of %zu bytes dropped: no handler (slot %p)", length,
             static_cast<const void *>(handler));
    return UCS_OK;
}

bool has(const uct_iface_params_t &params, uint64_t field)
{
    return (params.field_mask & field) != 0;
}

} // namespace

ucs_status_t above_limit(const char *argument, size_t value, size_t limit)
{
    ucs_error("%s %zu is above the limit %zu", argument, value, limit);
    return UCS_ERR_INVALID_PARAM;
}

ucs_status_t misaligned_atomic(uint64_t address, size_t size)
{
    ucs_error("remote_addr 0x%lx of an atomic operation is not aligned to %zu bytes", address,
              size);
    return UCS_ERR_INVALID_PARAM;
}

ep::ep(uct::iface &owner) : uct_ep{&owner} {}

ep::~ep()
{
    interface().waiting_.remove(*this);
    interface().dispatched_has_gone(this);
    if (counted_) {
        ucs::stats::close_lane(static_cast<uct_ep *>(this));
    }
}

void ep::update_ready()
{
    bool alive = connected_ && status_ == UCS_OK;
    ready_ = alive && !held_ && (pending_.empty() || dispatching_);
    if (alive && !ready_ && !dispatching_ && !waits()) {
        interface().waiting_.add(*this, !held_ && lacks_own && is_full());
    }
}

void ep::hold()
{
    held_ = true;
    lacks = nullptr;
    lacks_own = false;
    interface().waiting_.remove(*this);
    update_ready();
}

void ep::wake()
{
    interface().waiting_.wake(*this);
}

ucs_status_t ep::not_ready()
{
    return status_ != UCS_OK ? status_ : no_resource();
}

void ep::set_connected()
{
    if (counted_ && !connected_) {
        counted_->connects.add(1);
    }
    connected_ = true;
    update_ready();
    interface().waiting_.news();
}

void ep::suspend()
{
    connected_ = false;
    interface().waiting_.remove(*this);
    update_ready();
}

void ep::set_failed(ucs_status_t status)
{
    if (status_ == UCS_OK) {
        status_ = status;
    }
    interface().waiting_.remove(*this);
    update_ready();
}

ucs_status_t ep::pending_add(uct_pending_req_t *request, unsigned)
{
    // BUSY sends the caller back to its send, which either goes or tells the error.
    if (status_ != UCS_OK || (ready_ && stalled_round_ != interface().round_)) {
        return UCS_ERR_BUSY;
    }
    auto *node = new (pending_node::of(request)) pending_node;
    pending_.push_back(node);
    update_ready();
    return UCS_OK;
}

void ep::pending_purge(uct_pending_purge_callback_t callback, void *arg)
{
    while (pending_node *node = pending_.pop_front()) {
        if (callback) {
            callback(node->request(), arg);
        }
    }
    interface().waiting_.remove(*this);
    update_ready();
}

iface::iface(const uct_iface_ops_t &table, uct_worker &worker, uct_md &domain,
             const uct_iface_params_t &params)
    : uct_iface{table}, owner(*worker_of(&worker)), md(domain),
      async_event_cb_(has(params, UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_CB) ? params.async_event_cb
                                                                        : nullptr),
      async_event_arg_(has(params, UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_ARG) ? params.async_event_arg
                                                                          : nullptr),
      rx_headroom_(has(params, UCT_IFACE_PARAM_FIELD_RX_HEADROOM) ? params.rx_headroom : 0),
      am_alignment_(has(params, UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT) ? params.am_alignment : 0),
      am_align_offset_(has(params, UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET) ? params.am_align_offset
                                                                          : 0),
      features_(has(params, UCT_IFACE_PARAM_FIELD_FEATURES) ? params.features : UINT64_MAX),
      err_handler_(has(params, UCT_IFACE_PARAM_FIELD_ERR_HANDLER) ? params.err_handler : nullptr),
      err_handler_arg_(has(params, UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG) ? params.err_handler_arg
                                                                          : nullptr)
{
    if (am_alignment_ != 0 && !std::has_single_bit(am_alignment_)) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_iface_open: params->am_alignment %zu is not a power of two",
                         am_alignment_);
    }
    if (am_align_offset_ != 0 && am_align_offset_ >= am_alignment_) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_iface_open: params->am_align_offset %zu must be below the alignment, "
                         "which is %zu",
                         am_align_offset_, am_alignment_);
    }
    for (am_handler &handler : am_) {
        handler = {drop_message, &handler};
    }
    owner.expect_source();
}

iface::~iface()
{
    owner.unexpect_source();
    if (enable_later_.load() != 0) {
        owner.cancel_deferred(this);
    }
    if (enabled_ != 0) {
        owner.remove_source(poll_, this);
    }
}

void iface::set_am_handler(uint8_t id, uct_am_callback_t callback, void *arg)
{
    am_handler handler = callback ? am_handler{callback, arg} : am_handler{drop_message, &am_[id]};
    if (traffic_) {
        handler = traffic_->counting(id, handler);
    }
    if (trace_) {
        trace_->set_handler(id, handler);
    } else {
        am_[id] = handler;
    }
}

void iface::set_am_tracer(uct_am_tracer_t tracer, void *arg)
{
    trace_.reset();
    if (tracer && ucs::log::enabled(ucs::log::level::trace_data)) {
        trace_ = std::make_unique<am_trace>(*this, tracer, arg);
    }
}

void iface::count_traffic(const char *transport, const char *device)
{
    traffic_ = std::make_unique<traffic>(*this, transport, device);
}

void iface::report_error(uct_ep_h failed, ucs_status_t status)
{
    if (!err_handler_) {
        ucs_debug("endpoint %p failed: %s; no error handler", static_cast<void *>(failed),
                  ucs_status_string(status));
        return;
    }
    ucs_status_t handled = err_handler_(err_handler_arg_, failed, status);
    if (handled != UCS_OK && handled != UCS_INPROGRESS) {
        ucs_error("error %s of endpoint %p was not handled: %s", ucs_status_string(status),
                  static_cast<void *>(failed), ucs_status_string(handled));
    }
}

void iface::progress_enable(unsigned flags)
{
    unsigned wanted = flags & (UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    if (flags & UCT_PROGRESS_THREAD_SAFE) {
        if (enable_later_.fetch_or(wanted) == 0 && wanted != 0) {
            owner.defer(enable_asked, this);
        }
        return;
    }
    if (enabled_ == 0 && wanted != 0) {
        owner.add_source({poll_, this, slow_});
    }
    enabled_ |= wanted;
}

// The worker's thread does what another one asked for.
void iface::enable_asked(void *arg)
{
    auto *self = static_cast<iface *>(arg);
    self->progress_enable(self->enable_later_.exchange(0));
}

void iface::progress_disable(unsigned flags)
{
    enable_later_.fetch_and(~flags);
    unsigned was = enabled_;
    enabled_ &= ~flags;
    if (was != 0 && enabled_ == 0) {
        owner.remove_source(poll_, this);
    }
}

// On the stack: a request may call for progress, which runs those of other endpoints.
struct iface::dispatched {
    ep *e; // nullptr: one of its requests destroyed it
    dispatched *outer;
};

unsigned iface::dispatch_pending()
{
    return waiting_.round([this](waiter &w) { return dispatch(static_cast<ep *>(&w)); });
}

void iface::dispatched_has_gone(const ep *e)
{
    for (dispatched *d = current_; d; d = d->outer) {
        if (d->e == e) {
            d->e = nullptr;
        }
    }
}

unsigned iface::dispatch(ep *e)
{
    unsigned count = 0;
    e->lacks = nullptr;
    e->lacks_own = false;
    if (e->held_) {
        if (!e->post_held()) {
            e->update_ready();
            return 0;
        }
        e->held_ = false;
        ++count;
    }
    dispatched here{e, current_};
    current_ = &here;
    e->dispatching_ = true;
    e->update_ready();
    while (!e->held_ && !e->pending_.empty()) {
        pending_node *node = e->pending_.pop_front();
        uct_pending_req_t *request = node->request();
        ucs_status_t status = request->func(request);
        if (!here.e) { // the request destroyed the endpoint
            current_ = here.outer;
            return count + 1;
        }
        if (status != UCS_OK) {
            e->pending_.push_front(new (node) pending_node);
        }
        if (status != UCS_OK && status != UCS_INPROGRESS) {
            break;
        }
        ++count;
    }
    current_ = here.outer;
    e->dispatching_ = false;
    e->update_ready();
    return count;
}

} // namespace uct
