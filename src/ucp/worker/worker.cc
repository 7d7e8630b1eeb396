// SPDX-License-Identifier: BSD-3-Clause
//
// Creating, progressing and closing a worker.
#include "ucp/core/worker.h"

#include "ucp/am/am.h"
#include "ucp/connect/cm.h"
#include "ucp/connect/door.h"
#include "ucp/connect/listener.h"
#include "ucp/connect/wireup.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/keepalive.h"
#include "ucp/proto/proto.h"
#include "ucp/proto/proto_info.h"
#include "ucp/proto/stats_names.h"
#include "ucp/rndv/settle.h"
#include "ucp/worker/wakeup.h"
#include "ucs/error.h"
#include "ucs/stats/stats.h"
#include "ucs/sys.h"
#include "ucs/topo.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <optional>
#include <unistd.h>
#include <utility>

namespace ucp {

namespace {

ucs_status_t lane_failed(void *arg, uct_ep_h uct_ep, ucs_status_t status)
{
    on_lane_failed(static_cast<iface *>(arg)->worker, uct_ep, status);
    return UCS_OK;
}

uct_iface_h open_iface(ucp_worker *worker, const tl_resource &rsc, iface *owner)
{
    const md &m = worker->context->mds[rsc.md_index];
    const config_source &source = worker->context->source;
    uct_iface_config_t *config = nullptr;
    ucs_status_t status =
        uct_md_iface_config_read(m.md, rsc.desc.tl_name, source.prefix(), source.file(), &config);
    if (status != UCS_OK) {
        throw ucs::error(status, "%s/%s: configuration: %s", rsc.desc.tl_name, rsc.desc.dev_name,
                         ucs_status_string(status));
    }
    std::unique_ptr<void, decltype(&uct_config_release)> held(config, uct_config_release);
    for (const auto &[name, value] : worker->context->overrides) {
        if (uct_config_modify(config, name.c_str(), value.c_str()) == UCS_ERR_NO_MEMORY) {
            throw std::bad_alloc();
        }
    }
    uct_iface_params_t params = {};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE |
                        UCT_IFACE_PARAM_FIELD_RX_HEADROOM | UCT_IFACE_PARAM_FIELD_ERR_HANDLER |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG |
                        UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = rsc.desc.tl_name;
    params.mode.device.dev_name = rsc.desc.dev_name;
    params.rx_headroom = RX_HEADROOM;
    params.err_handler = lane_failed;
    params.err_handler_arg = owner;
    params.err_handler_flags = 0;
    uct_iface_h handle = nullptr;
    status = uct_iface_open(m.md, worker->uct, &params, config, &handle);
    if (status != UCS_OK) {
        throw ucs::error(status, "%s/%s does not open: %s", rsc.desc.tl_name, rsc.desc.dev_name,
                         ucs_status_string(status));
    }
    return handle;
}

ucs_status_t unused_handler(void *arg, void *, size_t, unsigned)
{
    drop_stale(static_cast<ucp_worker *>(arg), "a message of a feature that is not enabled");
    return UCS_OK;
}

} // namespace

iface::iface(ucp_worker *w, uint8_t resource_index) : worker(w), resource(resource_index)
{
    uct = open_iface(w, w->context->resources[resource], this);
    try {
        ucs_status_t status = uct_iface_query(uct, &attr);
        if (status == UCS_OK) {
            device_addr.resize(attr.device_addr_len);
            iface_addr.resize(attr.iface_addr_len);
            device_addr.reserve(1); // an empty address has a place, too
            iface_addr.reserve(1);
            status = uct_iface_get_device_address(
                uct, reinterpret_cast<uct_device_addr_t *>(device_addr.data()));
        }
        if (status == UCS_OK) {
            status =
                uct_iface_get_address(uct, reinterpret_cast<uct_iface_addr_t *>(iface_addr.data()));
        }
        if (status != UCS_OK || !(attr.cap.flags & UCT_IFACE_FLAG_AM_BCOPY) ||
            !(attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE)) {
            throw ucs::error(status == UCS_OK ? UCS_ERR_UNSUPPORTED : status,
                             "%s: the interface is not usable",
                             w->context->resources[resource].desc.tl_name);
        }
        for (size_t i = 0; i < am_handler_count; ++i) {
            const am_handler_entry &row = am_handlers[i];
            bool used = row.features == 0 || w->context->has_feature(row.features);
            uct_iface_set_am_handler(uct, row.id, used ? row.fn : unused_handler, w, 0);
        }
        if (ucs::stats::wanted()) {
            ucs::stats::name_flows(uct, stats_names());
        }
        uct_iface_progress_enable(uct, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    } catch (...) {
        uct_iface_close(uct);
        throw;
    }
}

iface::~iface()
{
    // The protocols are gone already; what still arrives while the interface closes is dropped.
    for (size_t i = 0; i < am_handler_count; ++i) {
        uct_iface_set_am_handler(
            uct, am_handlers[i].id,
            [](void *, void *, size_t, unsigned) -> ucs_status_t { return UCS_OK; }, nullptr, 0);
    }
    uct_iface_close(uct);
}

} // namespace ucp

namespace {

constexpr size_t room_for_unserved = 8192; // twenty handshakes

std::string default_worker_name()
{
    return ucs::host_name().substr(0, 20) + ":" + std::to_string(getpid());
}

ucs_thread_mode_t thread_mode_of(const ucp_worker_params_t *params)
{
    return params->field_mask & UCP_WORKER_PARAM_FIELD_THREAD_MODE ? params->thread_mode
                                                                   : UCS_THREAD_MODE_SINGLE;
}

} // namespace

ucp_worker::ucp_worker(ucp_context *c, const ucp_worker_params_t *params)
    : context(c), lock(thread_mode_of(params) == UCS_THREAD_MODE_MULTI),
      thread_mode(thread_mode_of(params)), spin(c->config.progress_yield),
      linger(c->config.arm_poll_time), uuid(ucs::random_u64()),
      incarnation(static_cast<uint32_t>(ucs::random_u64())), memory(c->memory),
      matcher(std::make_unique<ucp::matcher>()), settling(std::make_unique<ucp::settling>())
{
    auto given = [&](uint64_t bit) { return (params->field_mask & bit) != 0; };
    client_id = given(UCP_WORKER_PARAM_FIELD_CLIENT_ID) ? params->client_id : 0;
    user_data = given(UCP_WORKER_PARAM_FIELD_USER_DATA) ? params->user_data : nullptr;
    flags = given(UCP_WORKER_PARAM_FIELD_FLAGS) ? params->flags : 0;
    name = given(UCP_WORKER_PARAM_FIELD_NAME) && params->name
               ? std::string(params->name, strnlen(params->name, UCP_ENTITY_NAME_MAX - 1))
               : default_worker_name();

    unserved.reserve(room_for_unserved);
    ucs_async_context_t *async = nullptr;
    ucs_status_t status = uct_worker_create(async, thread_mode, &uct);
    if (status != UCS_OK) {
        throw ucs::error(status, "ucp_worker_create: transports' worker: %s",
                         ucs_status_string(status));
    }
    try {
        std::optional<ucs::topo::memory_near> near;
        if (given(UCP_WORKER_PARAM_FIELD_CPU_MASK)) {
            near.emplace(params->cpu_mask);
        }
        open_ifaces();
        open_door();
        if (context->has_feature(UCP_FEATURE_WAKEUP)) {
            int fd = given(UCP_WORKER_PARAM_FIELD_EVENT_FD) ? params->event_fd : -1;
            unsigned events = given(UCP_WORKER_PARAM_FIELD_EVENTS) ? params->events : ~0u;
            wakeup = std::make_unique<ucp::wakeup>(this, fd, user_data, ucp::uct_events_of(events),
                                                   given(UCP_WORKER_PARAM_FIELD_EVENTS) &&
                                                       (events & UCP_WAKEUP_EDGE));
            waker = wakeup.get();
        }
        proto = std::make_unique<ucp::worker_proto>(
            this, given(UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT) ? params->am_alignment : 1);
    } catch (...) {
        wakeup.reset();
        door.reset();
        ifaces.clear();
        uct_worker_destroy(uct);
        throw;
    }
    ++context->worker_count;
}

void ucp_worker::open_ifaces()
{
    ucs::failed_allocations = 0;
    for (; seen_resources < context->resources.size(); ++seen_resources) {
        const ucp::tl_resource &rsc = context->resources[seen_resources];
        if (!context->default_open(rsc)) {
            continue;
        }
        try {
            ifaces.push_back(
                std::make_unique<ucp::iface>(this, static_cast<uint8_t>(seen_resources)));
            max_am_header =
                std::min(max_am_header, ucp::max_am_header(ifaces.back()->attr.cap.am.max_bcopy));
        } catch (const ucs::error &e) {
            // When an allocation of ours failed there is no worker: it would miss a transport for
            // good.
            if (e.status() == UCS_ERR_NO_MEMORY && ucs::failed_allocations) {
                throw;
            }
            if (context->config.strict) {
                throw ucs::error(e.status(), "ucp_worker_create: %s (UCX_STRICT)", e.what());
            }
            ucs_warn("ucp_worker_create: %s", e.what());
        }
    }
    if (ifaces.empty()) {
        throw ucs::error(UCS_ERR_NO_DEVICE, "ucp_worker_create: no transport could be opened");
    }
}

// Without one, peers have to find the networks in the address. Other threads may read what the
// context has while they use a worker of mode MULTI.
void ucp_worker::open_door()
{
    if (!context->networks_are_late) {
        return;
    }
    if (thread_mode == UCS_THREAD_MODE_MULTI) {
        (void)open_networks();
        return;
    }
    try {
        door = std::make_unique<ucp::door>(this);
    } catch (const ucs::error &e) {
        ucs_info("worker %s opens its networks at once: %s", name.c_str(), e.what());
        (void)open_networks();
    }
}

bool ucp_worker::open_networks()
{
    const size_t before = ifaces.size();
    context->open_networks();
    open_ifaces();
    if (wakeup) {
        wakeup->watch_ifaces();
    }
    return ifaces.size() > before;
}

ucp_worker::~ucp_worker()
{
    close();
    delete proto.get(); // not reset(): what it frees still finds it through the worker
    (void)proto.release();
    wakeup.reset();
    cm.reset();
    ucp::announce_used_protocols(*this);
    ifaces.clear();
    uct_worker_destroy(uct);
    --context->worker_count;
}

void ucp_worker::start_keepalive()
{
    const ucp::config &config = context->config;
    bool wanted = config.keepalive_interval > 0 && std::isfinite(config.keepalive_interval);
    if (wanted && !keepalive) {
        keepalive = std::make_unique<ucp::keepalive>(this, config.keepalive_interval,
                                                     config.keepalive_num_eps);
    }
}

void ucp_worker::close() noexcept
{
    door.reset();
    door_calls.reset();
    keepalive.reset();
    if (!listeners.empty()) {
        ucs_warn("ucp_worker_destroy: %zu listeners of worker %s still exist", listeners.size(),
                 name.c_str());
        while (!listeners.empty()) {
            delete listeners.back();
        }
    }
    ep_ids.for_each([&](ucp_ep *ep) {
        if (ep->state == ucp::ep_state::connected) {
            ep->control->our_reason = ucp::close_reason::worker_gone;
            ep->control->todo |= ucp::TODO_CLOSE;
            (void)ucp::send_todo(ep);
        }
    });
    // The notices go out; a peer that does not read is not waited for. What a callback closes
    // meanwhile stays until the transports are done with it.
    inside_progress = true;
    bool busy = ep_ids.size() > 0;
    for (uint64_t end = ucs::monotonic_ns() + 50'000'000; busy && ucs::monotonic_ns() < end;) {
        uct_worker_progress(uct);
        busy = false;
        ep_ids.for_each([&](ucp_ep *ep) {
            busy = busy || (ep->am_ep && ep->state == ucp::ep_state::connected &&
                            uct_ep_flush(ep->am_ep, 0, nullptr) != UCS_OK);
        });
    }
    inside_progress = false;
    // Peers may have made more. A callback may end others.
    ep_ids.for_each([&](ucp_ep *ep) {
        ep->control->user_closed = true;
        ep->status = ep->status == UCS_OK ? UCS_ERR_CANCELED : ep->status;
        ucp_request *closing = std::exchange(ep->control->close_request, nullptr);
        ucp::ep_teardown_lanes(ep);
        ucp::ep_abort_requests(ep, UCS_ERR_CANCELED);
        ucp::ep_destroy(ep);
        if (closing) { // it waited for the peer
            ucp::complete(closing, UCS_ERR_CANCELED);
        }
    });
    while (ucp_request *flush = flushes.pop_front()) {
        flush->flags &= ~ucp::REQ_LISTED;
        ucp::complete(flush, UCS_ERR_CANCELED);
    }
    cm.reset(); // no callbacks from here on
    events.for_each([](const ucp::event &ev) { delete ev.request; });
    graveyard.clear();
}

void ucp_worker::post_event(ucp::event &&ev) noexcept
{
    {
        std::lock_guard<std::mutex> guard(event_mutex);
        events.push(std::move(ev));
        has_events.store(true, std::memory_order_release);
    }
    wake();
}

void ucp_worker::promise_events(size_t count)
{
    std::lock_guard<std::mutex> guard(event_mutex);
    events.promise(count);
}

void ucp_worker::release_events(size_t count) noexcept
{
    std::lock_guard<std::mutex> guard(event_mutex);
    events.release(count);
}

void ucp_worker::wake() noexcept
{
    if (ucp::wakeup *sleeper = waker.load(std::memory_order_acquire)) {
        sleeper->signal();
    }
}

ucp::wakeup &ucp_worker::own_wakeup()
{
    if (!wakeup) {
        wakeup = std::make_unique<ucp::wakeup>(this, -1, nullptr, ucp::uct_events_of(~0u), false);
        waker.store(wakeup.get(), std::memory_order_release);
    }
    return *wakeup;
}

bool ucp_worker::has_requests() noexcept
{
    while (auto *link = active.front()) {
        if (ucp_ep::of(link)->has_requests()) {
            return true;
        }
        active.erase(link);
    }
    return false;
}

// Events one by one: a handler may destroy the listener of the next.
unsigned ucp_worker::run_events() noexcept
{
    unsigned count = 0;
    has_events.store(false, std::memory_order_relaxed);
    for (;;) {
        ucp::event ev;
        {
            std::lock_guard<std::mutex> guard(event_mutex);
            if (!events.pop(&ev)) {
                return count;
            }
        }
        count += run_event(ev);
    }
}

unsigned ucp_worker::run_event(ucp::event &ev) noexcept
{
    if (ev.what == ucp::event::kind::conn_request) {
        ucp::on_conn_request(this, ev);
        return 1;
    }
    if (ev.what == ucp::event::kind::keepalive) {
        keepalive->run_round();
        return 0;
    }
    if (ev.what == ucp::event::kind::door && door) {
        door->serve();
        return 1;
    }
    if (ev.what == ucp::event::kind::door_answer && door_calls) {
        door_calls->run();
        return 1;
    }
    if (ev.what == ucp::event::kind::connection_ended) {
        ucp::on_connection_ended(this, ev.ep_id);
        return 1;
    }
    ucp_ep *ep = ep_ids.find(ev.ep_id);
    if (!ep) {
        return 0;
    }
    switch (ev.what) {
    case ucp::event::kind::connected:
        ucp::on_connected(ep, ev);
        break;
    case ucp::event::kind::notified:
        ucp::on_notified(ep, ev);
        break;
    case ucp::event::kind::disconnected:
        ucp::on_disconnected(ep);
        break;
    case ucp::event::kind::failed:
        ep->set_failed(ev.status);
        break;
    case ucp::event::kind::conn_request:
    case ucp::event::kind::keepalive:
    case ucp::event::kind::connection_ended:
    case ucp::event::kind::door:
    case ucp::event::kind::door_answer:
        break;
    }
    return 1;
}

unsigned ucp_worker::progress_slow(unsigned transport_count) noexcept
{
    unsigned count = run_events();
    ucp::serve_again(this);
    if (cm) {
        cm->connections.ended.clear();
    }
    if (!grace.empty()) {
        count += progress_grace(transport_count);
    }
    if (!settling->empty()) {
        settling->run_round(this, transport_count);
    }
    while (auto *link = deferred.pop_front()) {
        ucp::ep_run_deferred(ucp_ep::of(link));
        ++count;
    }
    if (!ucp::worker_flush_progress(this) || !grace.empty() || !settling->empty()) {
        schedule();
    }
    // A few dead endpoints stay allocated, so that a handle used once too often is noticed.
    constexpr size_t quarantine = 16;
    if (graveyard.size() > 2 * quarantine) {
        graveyard.erase(graveyard.begin(),
                        graveyard.end() - static_cast<std::ptrdiff_t>(quarantine));
    }
    return count;
}
