// SPDX-License-Identifier: BSD-3-Clause
// The engine's objects and its turn, in which they hear what happened and the user's callbacks run.
#include "uct/ofi/cm/engine.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/cm/conn.h"
#include "uct/ofi/cm/listener.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/fabric/error.h"

#include <algorithm>
#include <cerrno>

namespace uct::ofi {

namespace {

constexpr size_t event_data_max = 1024; // connection data of any core
constexpr unsigned most_events = 1024;  // that a turn takes

// The fid is the first member of every object.
fid_pep *fid_to_pep(fid_t fid)
{
    return reinterpret_cast<fid_pep *>(fid);
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
    queues_.push_back(&eq->fid);
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
        delete conn; // requests without an answer, connections that linger
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

void cm_engine::add(cm_conn *conn)
{
    retired_.reserve(conn_count_ + 1);
    ++conn_count_;
    lists_->all.push_back(conn);
}

void cm_engine::remove(cm_conn *conn)
{
    --conn_count_;
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

void cm_engine::add(fid_pep *pep, cm_listener *listener)
{
    if (kept_.capacity() <= listeners_.size()) {
        kept_.reserve(2 * listeners_.size() + 4); // any of them may be kept
    }
    listeners_[&pep->fid] = listener;
}

void cm_engine::keep(fid_ptr<fid_pep> pep) noexcept
{
    listeners_.find(&pep->fid)->second = nullptr;
    kept_.push_back(std::move(pep));
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

// ---- The turn: the callbacks that the program has caused; completions before events, so that what
// the peer said is heard before that it left; then the callbacks; then to sleep, if the provider
// agrees.

void cm_engine::progress()
{
    lock held(mutex_);
    if (driver_.polling() || turn_thread_ != std::thread::id()) {
        return;
    }
    driver_.used_up();
    bool did_something = false;
    do {
        while (take_turn(held)) {
            did_something = true;
        }
    } while (!may_sleep());
    if (did_something) {
        driver_.stir();
    } else {
        driver_.found_nothing();
    }
}

unsigned cm_engine::poll()
{
    auto self = shared_from_this(); // a callback may close the connection manager
    lock held(mutex_, std::try_to_lock);
    if (!held || turn_thread_ != std::thread::id()) {
        return 0;
    }
    driver_.begin_poll();
    driver_.used_up();
    bool did_something = take_turn(held);
    driver_.end_poll(did_something);
    return did_something;
}

bool cm_engine::take_turn(lock &held)
{
    turn_thread_ = std::this_thread::get_id();
    bool did_something = deliver_due(held);
    bool heard = poll_cqs();
    events_wait_ = heard && !events_wait_;
    did_something |= heard | (!events_wait_ && poll_events());
    clean();
    did_something |= deliver_due(held);
    turn_thread_ = {};
    return did_something;
}

bool cm_engine::deliver_due(lock &held)
{
    bool did_something = false;
    while (cm_conn *conn = lists_->due.pop_front()) {
        ucs_status_t status = ucs::guard([&] { conn->deliver(held); });
        if (status != UCS_OK && knows(conn)) {
            conn->fail(status);
        }
        clean();
        did_something = true;
    }
    return did_something;
}

// The core looks at all its sockets each time that it is asked, also for an event that it has. One
// turn takes one event, and twice as many as the turn before while that left some.
bool cm_engine::poll_events()
{
    for (unsigned taken = 0; taken < events_a_turn_; ++taken) {
        if (!poll_eq()) {
            events_a_turn_ = 1;
            return taken > 0;
        }
    }
    events_a_turn_ = std::min(2 * events_a_turn_, most_events);
    return true;
}

bool cm_engine::may_sleep()
{
    for (const auto &device : devices_) {
        if (device->has_left_behind()) {
            drain(*device);
        }
    }
    return fi_trywait(fabric_.get(), queues_.data(), static_cast<int>(queues_.size())) !=
           -FI_EAGAIN;
}

bool cm_engine::poll_eq()
{
    uint32_t event = 0;
    // tcp decides by errno whether a short read of a handshake is worth another try; a value left
    // from something else would make it spin on a closed socket.
    errno = 0;
    ssize_t ret = fi_eq_read(eq_.get(), &event, event_buffer_.data(), event_buffer_.size(), 0);
    if (ret == -FI_EAVAIL) {
        handle_error();
        return true;
    }
    if (ret < static_cast<ssize_t>(sizeof(fi_eq_cm_entry))) {
        if (ret < 0 && ret != -FI_EAGAIN) {
            ucs_debug("fi_eq_read: %s", fi_strerror(static_cast<int>(-ret)));
        }
        return false;
    }
    auto *entry = reinterpret_cast<fi_eq_cm_entry *>(event_buffer_.data());
    ucs_status_t status =
        ucs::guard([&] { handle_event(event, entry, static_cast<size_t>(ret) - sizeof(*entry)); });
    cm_conn *conn = status != UCS_OK && event != FI_CONNREQ ? find(entry->fid) : nullptr;
    if (conn) {
        conn->fail(status);
    }
    return true;
}

void cm_engine::handle_request(fi_eq_cm_entry *entry, size_t data_length)
{
    info_ptr info(entry->info);
    auto it = listeners_.find(entry->fid);
    cm_listener *listener = it == listeners_.end() ? nullptr : it->second;
    fid_pep *pep = fid_to_pep(entry->fid);
    fid_t request = info->handle;
    cm_conn *conn = nullptr;
    try {
        conn = new cm_conn(*this, listener, pep, std::move(info));
        conn->on_request(entry->data, data_length);
    } catch (...) {
        if (conn) {
            retire(conn);
        } else if (usable(pep)) {
            fi_reject(pep, request, nullptr, 0); // the core keeps it until it is answered
        }
        throw;
    }
}

void cm_engine::handle_event(uint32_t event, fi_eq_cm_entry *entry, size_t data_length)
{
    if (event == FI_CONNREQ) {
        handle_request(entry, data_length);
        return;
    }
    if (event == FI_SHUTDOWN) {
        poll_cqs(); // what the peer said before it left
    }
    cm_conn *conn = find(entry->fid);
    if (!conn) {
        return; // closed meanwhile
    }
    if (event == FI_CONNECTED) {
        conn->on_connected(entry->data, data_length);
    } else if (event == FI_SHUTDOWN) {
        conn->on_down(0, nullptr, 0);
    }
}

void cm_engine::handle_error()
{
    fi_eq_err_entry entry{};
    if (fi_eq_readerr(eq_.get(), &entry, 0) < 0) {
        return;
    }
    poll_cqs();
    if (cm_conn *conn = find(entry.fid)) {
        conn->on_down(entry.err, entry.err_data, entry.err_data_size);
    }
}

bool cm_engine::poll_cqs()
{
    size_t before = completed_;
    for (size_t i = 0; i < devices_.size(); ++i) {
        if (!devices_[i]->may_complete()) {
            continue;
        }
        drain(*devices_[i]);
    }
    return completed_ != before;
}

void cm_engine::drain(cm_device &device)
{
    while (poll_cq(device)) {
    }
}

// Whether to look again.
bool cm_engine::poll_cq(cm_device &device)
{
    constexpr ssize_t batch = 16;
    fi_cq_msg_entry entries[batch];
    ssize_t count = fi_cq_read(device.cq(), entries, batch);
    if (count == -FI_EAVAIL) {
        return handle_cq_errors(device);
    }
    for (ssize_t i = 0; i < count; ++i) {
        complete(static_cast<cm_op *>(entries[i].op_context), entries[i].len, 0);
    }
    return count == batch;
}

// All that are there: unlike another read, this asks no socket.
bool cm_engine::handle_cq_errors(cm_device &device)
{
    bool did_something = false;
    for (;;) {
        fi_cq_err_entry entry{};
        if (fi_cq_readerr(device.cq(), &entry, 0) <= 0) {
            return did_something;
        }
        did_something = true;
        if (entry.op_context) {
            complete(static_cast<cm_op *>(entry.op_context), 0, entry.err);
        }
    }
}

void cm_engine::complete(cm_op *op, size_t length, int error)
{
    op->device->completed(op);
    if (!op->owner) {
        op->device->put_op(op);
        return;
    }
    ++completed_;
    cm_conn *conn = op->owner;
    ucs_status_t status = ucs::guard([&] {
        if (op->receive) {
            conn->on_received(op, length, error);
        } else {
            conn->on_sent(op, error);
        }
    });
    if (status != UCS_OK) {
        conn->fail(status);
    }
}

} // namespace uct::ofi
