// SPDX-License-Identifier: BSD-3-Clause
// The engine's objects: devices, connections, listeners, deadlines, and the callback that runs.
#include "uct/ofi/cm/engine.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/cm/conn.h"
#include "uct/ofi/cm/listener.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/core/error.h"

#include <algorithm>

namespace uct::ofi {

namespace {

constexpr size_t event_data_max = 1024; // connection data of any core
constexpr uint64_t tick_ns = 250'000'000;
constexpr uint64_t least_silence_tick_ns = 10'000'000;
constexpr uint64_t linger_ns = 3'000'000'000; // for the peer to take the last message

bool same_name(const fi_info *info, const std::string &name)
{
    return info->domain_attr->name && name == info->domain_attr->name;
}

} // namespace

cm_engine::cm_engine(const core &c, const cm_limits &limits)
    : core_(c), limits_(limits), event_buffer_(sizeof(fi_eq_cm_entry) + event_data_max),
      lists_(std::make_unique<lists>()), driver_(*this)
{
    const fi_info *info = devices(c).front().infos.front();
    fid_fabric *fabric = nullptr;
    check(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);

    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_eq *eq = nullptr;
    check(fi_eq_open(fabric, &attr, &eq, nullptr), "fi_eq_open");
    eq_.reset(eq);
}

std::shared_ptr<cm_engine> cm_engine::open(const core &c, worker *poller, const cm_limits &limits)
{
    std::shared_ptr<cm_engine> engine(new cm_engine(c, limits));
    engine->start(poller);
    return engine;
}

void cm_engine::start(worker *poller)
{
    int fd = -1;
    check(fi_control(&eq_->fid, FI_GETWAIT, &fd), "fi_control(FI_GETWAIT) of the event queue");
    driver_.add(fd);
    driver_.start(poller);
}

cm_engine::~cm_engine()
{
    // No callback runs behind these lines.
    driver_.stop();
    tick_.reset();
    silence_tick_.reset();
    while (cm_conn *conn = lists_->all.front()) {
        delete conn; // requests that nobody answered, connections that linger
    }
    end_handshakes(core_, eq_.get());
    devices_.clear();
}

void cm_engine::stop()
{
    {
        lock held(mutex_);
        driver_.forget_worker();
        for (cm_conn *conn : lists_->all) {
            if (conn->owned()) {
                return;
            }
        }
    }
    driver_.stop();
    ucs::async_watch tick, silence;
    {
        lock held(mutex_); // their callbacks reset them, too
        tick = std::move(tick_);
        silence = std::move(silence_tick_);
    }
}

uint32_t cm_engine::incarnation() const
{
    static const uint32_t mine = static_cast<uint32_t>(ucs::random_u64());
    return mine;
}

info_ptr cm_engine::make_info(const std::string &device, int family) const
{
    const fi_info *best = nullptr;
    uint32_t format = family == AF_INET6 ? FI_SOCKADDR_IN6 : FI_SOCKADDR_IN;
    for (const ofi::device &d : devices(core_)) {
        if (!device.empty() && d.name != device) {
            continue;
        }
        for (const fi_info *info : d.infos) {
            if (info->addr_format == format || info->addr_format == FI_SOCKADDR) {
                best = info;
                break;
            }
        }
        if (best) {
            break;
        }
    }
    if (!best) {
        throw ucs::error(UCS_ERR_NO_DEVICE, "%s: no device %s with an address of family %d",
                         core_.transport.c_str(), device.c_str(), family);
    }
    info_ptr info = dup_info(best);
    // A handful of small messages: do not let the provider set up deep queues.
    info->tx_attr->size = 8;
    info->rx_attr->size = 8;
    info->tx_attr->iov_limit = 1;
    info->rx_attr->iov_limit = 1;
    info->tx_attr->inject_size = std::min(info->tx_attr->inject_size, cm_wire::header_size);
    info->caps = FI_MSG | FI_SEND | FI_RECV;
    info->tx_attr->caps = FI_MSG | FI_SEND;
    info->rx_attr->caps = FI_MSG | FI_RECV;
    for (void **address : {&info->src_addr, &info->dest_addr}) {
        free(*address);
        *address = nullptr;
    }
    info->src_addrlen = 0;
    info->dest_addrlen = 0;
    return info;
}

cm_device &cm_engine::device_of(const fi_info *info)
{
    for (auto &device : devices_) {
        // Domains over sockets are all the same, whatever interface names them.
        if (same_name(info, device->name) || core_.sockets()) {
            return *device;
        }
    }
    auto device = std::make_unique<cm_device>(core_, fabric_.get(), info);
    int fd = -1;
    check(fi_control(&device->cq()->fid, FI_GETWAIT, &fd),
          "fi_control(FI_GETWAIT) of the completion queue");
    driver_.add(fd);
    devices_.push_back(std::move(device));
    return *devices_.back();
}

void cm_engine::add(cm_conn *conn)
{
    lists_->all.push_back(conn);
}

void cm_engine::remove(cm_conn *conn)
{
    lists_->all.erase(conn);
    if (conn->due_link.linked()) {
        lists_->due.erase(conn);
    }
}

bool cm_engine::knows(const cm_conn *conn) const
{
    for (const cm_conn *known : lists_->all) {
        if (known == conn) {
            return true;
        }
    }
    return false;
}

void cm_engine::bind(const fid *endpoint, cm_conn *conn)
{
    endpoints_[endpoint] = conn;
}

cm_conn *cm_engine::find(const fid *endpoint)
{
    auto it = endpoints_.find(endpoint);
    return it == endpoints_.end() ? nullptr : it->second;
}

void cm_engine::schedule(cm_conn *conn)
{
    if (!conn->due_link.linked()) {
        lists_->due.push_back(conn);
    }
    if (turn_thread_ != std::this_thread::get_id()) {
        driver_.wake();
    }
}

void cm_engine::retire(cm_conn *conn)
{
    if (conn->bury()) {
        current_retired_ |= conn == current_conn_;
        retired_.push_back(conn);
    }
}

void cm_engine::clean()
{
    cm_conn *running = nullptr;
    while (!retired_.empty()) {
        cm_conn *conn = retired_.back();
        retired_.pop_back();
        if (conn == current_conn_) {
            running = conn;
        } else {
            delete conn;
        }
    }
    if (running) {
        retired_.push_back(running);
    }
}

void cm_engine::drain_events()
{
    while (poll_eq()) {
    }
}

void cm_engine::keep(fid_ptr<fid_pep> pep)
{
    listeners_[&pep->fid] = nullptr;
    kept_.push_back(std::move(pep));
}

void cm_engine::expect_message(cm_conn *conn)
{
    end_deadline(conn);
    conn->deadline = ucs::monotonic_ns() + peer_ns();
    lists_->expecting.add(conn);
    arm_deadlines();
}

void cm_engine::let_linger(cm_conn *conn)
{
    end_deadline(conn);
    conn->deadline = ucs::monotonic_ns() + linger_ns;
    lists_->lingering.add(conn);
    arm_deadlines();
}

void cm_engine::end_deadline(cm_conn *conn)
{
    lists::deadlines::remove(conn);
}

void cm_engine::arm_deadlines()
{
    if (!tick_) {
        tick_ = ucs::async_watch::timer(tick_ns, on_tick, this);
    }
}

void cm_engine::watch_for_silence()
{
    if (!silence_tick_ && core_.forgets_handshakes() && peer_ns() != UINT64_MAX) {
        silence_tick_ = ucs::async_watch::timer(std::max(peer_ns() / 2, least_silence_tick_ns),
                                                on_silence_tick, this);
    }
}

void cm_engine::begin_callback(cm_conn *conn, const void *owner)
{
    current_conn_ = conn;
    current_owner_ = owner;
    current_retired_ = false;
}

bool cm_engine::end_callback()
{
    bool retired = current_retired_;
    current_conn_ = nullptr;
    current_owner_ = nullptr;
    current_retired_ = false;
    callback_done_.notify_all();
    return !retired;
}

void cm_engine::wait_for_callback(lock &held, const void *owner)
{
    if (turn_thread_ != std::this_thread::get_id()) {
        callback_done_.wait(held, [&] { return current_owner_ != owner; });
    }
}

void cm_engine::on_tick(void *arg, uint32_t)
{
    auto engine = static_cast<cm_engine *>(arg)->weak_from_this().lock();
    if (!engine) {
        return;
    }
    lock held(engine->mutex_);
    lists &all = *engine->lists_;
    uint64_t now = ucs::monotonic_ns();
    for (auto *line : {&all.expecting, &all.lingering}) {
        while (cm_conn *conn = line->due(now)) {
            conn->on_deadline(); // ends the deadline
        }
    }
    engine->clean();
    if (all.expecting.empty() && all.lingering.empty()) {
        engine->tick_.reset();
    }
}

void cm_engine::on_silence_tick(void *arg, uint32_t)
{
    auto engine = static_cast<cm_engine *>(arg)->weak_from_this().lock();
    if (!engine) {
        return;
    }
    lock held(engine->mutex_);
    if (engine->listeners_.size() == engine->kept_.size()) {
        engine->silence_tick_.reset();
        return;
    }
    end_silent_handshakes(engine->eq(), engine->peer_ns());
}

} // namespace uct::ofi
