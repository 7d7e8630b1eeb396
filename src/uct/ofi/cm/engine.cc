// SPDX-License-Identifier: BSD-3-Clause
// The turn of a connection manager: completions before events, so that what the peer said is heard
// before that it left; then the callbacks; then to sleep, if the provider agrees.
#include "uct/ofi/cm/engine.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/ofi/cm/conn.h"
#include "uct/ofi/cm/listener.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace uct::ofi {

namespace {

constexpr size_t event_data_max = 1024; // connection data of any core
constexpr size_t cq_entries = 4096;
constexpr uint64_t tick_ns = 250'000'000;

bool same_name(const fi_info *info, const std::string &name)
{
    return info->domain_attr->name && name == info->domain_attr->name;
}

// The fid is the first member of every object.
fid_pep *fid_to_pep(fid_t fid)
{
    return reinterpret_cast<fid_pep *>(fid);
}

} // namespace

// ---- Device

cm_device::cm_device(const core &c, fid_fabric *fabric, const fi_info *info)
    : name(info->domain_attr->name ? info->domain_attr->name : ""),
      local_mr_(info->domain_attr->mr_mode & FI_MR_LOCAL),
      short_ops_(pool_params(cm_wire::header_size)), long_ops_(pool_params(cm_wire::message_max))
{
    info_ptr copy = dup_info(info);
    fid_domain *domain = nullptr;
    check(fi_domain(fabric, copy.get(), &domain, nullptr), "fi_domain");
    domain_.reset(domain);

    fi_cq_attr attr{};
    attr.size = cq_entries;
    attr.format = FI_CQ_FORMAT_MSG;
    attr.wait_obj = FI_WAIT_FD;
    fid_cq *cq = nullptr;
    check(fi_cq_open(domain, &attr, &cq, nullptr), "fi_cq_open");
    cq_.reset(cq);
    if (c.provider == "tcp") {
        // Completions come in turns only, which leave none when they end.
        signal_.mute(cq);
    }
}

cm_device::~cm_device() = default;

ucs::mpool_base::params cm_device::pool_params(size_t room)
{
    return {.object_size = sizeof(cm_op) + room,
            .align = alignof(std::max_align_t),
            .chunk = 32,
            .arg = this,
            .chunk_alloc =
                [](void *arg, size_t size, size_t align, void **cookie) {
                    return static_cast<cm_device *>(arg)->alloc_chunk(size, align, cookie);
                },
            .chunk_free =
                [](void *, void *chunk, size_t, void *cookie) {
                    if (cookie) {
                        fi_close(&static_cast<fid_mr *>(cookie)->fid);
                    }
                    free(chunk);
                },
            .object_cookie =
                [](void *, void *object, void *cookie) {
                    auto *op = static_cast<cm_op *>(object);
                    op->desc = cookie ? fi_mr_desc(static_cast<fid_mr *>(cookie)) : nullptr;
                }};
}

void *cm_device::alloc_chunk(size_t size, size_t align, void **cookie)
{
    void *memory = aligned_alloc(align, (size + align - 1) & ~(align - 1));
    if (memory && local_mr_) {
        fid_mr *mr = nullptr;
        int ret = fi_mr_reg(domain_.get(), memory, size, FI_SEND | FI_RECV, 0, 0, 0, &mr, nullptr);
        if (ret != 0) {
            ucs_error("fi_mr_reg of %zu bytes: %s", size, fi_strerror(-ret));
            free(memory);
            return nullptr;
        }
        *cookie = mr;
    }
    return memory;
}

cm_op *cm_device::get_op(cm_conn *owner, bool receive, size_t room)
{
    room = room > cm_wire::header_size ? cm_wire::message_max : cm_wire::header_size;
    auto *op = static_cast<cm_op *>(pool_of(room).get());
    if (!op) {
        throw std::bad_alloc();
    }
    op->owner = owner;
    op->device = this;
    op->next = nullptr;
    op->room = static_cast<uint32_t>(room);
    op->receive = receive;
    return op;
}

// ---- Engine

struct cm_engine::lists {
    ucs::list<cm_conn, &cm_conn::conn_link> all;
    ucs::list<cm_conn, &cm_conn::due_link> due;
};

cm_engine::cm_engine(const core &c, size_t max_priv)
    : core_(c), max_priv_(max_priv), event_buffer_(sizeof(fi_eq_cm_entry) + event_data_max),
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

std::shared_ptr<cm_engine> cm_engine::open(const core &c, worker *poller, size_t max_priv)
{
    std::shared_ptr<cm_engine> engine(new cm_engine(c, max_priv));
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
    ucs::async_watch tick;
    {
        lock held(mutex_); // its callback resets it, too
        tick = std::move(tick_);
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
        // tcp's domains are all the same, whatever interface names them.
        if (same_name(info, device->name) || core_.transport == "tcp") {
            return *device;
        }
    }
    auto device = std::make_unique<cm_device>(core_, fabric_.get(), info);
    int fd = -1;
    check(fi_control(&device->cq_->fid, FI_GETWAIT, &fd),
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

void cm_engine::arm_deadlines()
{
    if (!tick_) {
        tick_ = ucs::async_watch::timer(tick_ns, on_tick, this);
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
    bool waiting = false;
    uint64_t now = ucs::monotonic_ns();
    for (cm_conn *conn : engine->lists_->all) {
        if (conn->deadline() == 0) {
            continue;
        }
        if (conn->deadline() > now) {
            waiting = true;
        } else {
            conn->on_deadline();
        }
    }
    engine->clean();
    if (!waiting) {
        engine->tick_.reset();
    }
}

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
    bool did_something = poll_cqs();
    while (poll_eq()) {
        did_something = true;
    }
    clean();
    while (cm_conn *conn = lists_->due.pop_front()) {
        conn->deliver(held);
        clean();
        did_something = true;
    }
    turn_thread_ = {};
    return did_something;
}

bool cm_engine::may_sleep()
{
    std::vector<fid *> fids{&eq_->fid};
    for (auto &device : devices_) {
        fids.push_back(&device->cq_->fid);
    }
    return fi_trywait(fabric_.get(), fids.data(), static_cast<int>(fids.size())) != -FI_EAGAIN;
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
    // Out of memory: this event is lost, the thread goes on.
    ucs::guard([&] { handle_event(event, entry, static_cast<size_t>(ret) - sizeof(*entry)); });
    return true;
}

void cm_engine::handle_event(uint32_t event, fi_eq_cm_entry *entry, size_t data_length)
{
    if (event == FI_CONNREQ) {
        info_ptr info(entry->info);
        auto it = listeners_.find(entry->fid);
        cm_listener *listener = it == listeners_.end() ? nullptr : it->second;
        auto *conn = new cm_conn(*this, listener, fid_to_pep(entry->fid), std::move(info));
        conn->on_request(entry->data, data_length);
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
        while (poll_cq(*devices_[i])) {
        }
    }
    return completed_ != before;
}

// Whether to look again.
bool cm_engine::poll_cq(cm_device &device)
{
    constexpr ssize_t batch = 16;
    fi_cq_msg_entry entries[batch];
    ssize_t count = fi_cq_read(device.cq_.get(), entries, batch);
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
        if (fi_cq_readerr(device.cq_.get(), &entry, 0) <= 0) {
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
    ++completed_;
    if (!op->owner) {
        op->device->put_op(op);
    } else if (op->receive) {
        ucs::guard([&] { op->owner->on_received(op, length, error); });
    } else {
        op->owner->on_sent(op, error);
    }
}

} // namespace uct::ofi
