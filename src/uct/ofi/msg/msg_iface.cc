// SPDX-License-Identifier: BSD-3-Clause
// Opening, addressing and progressing an interface over connected endpoints. The life of the
// connections is in connection.cc.
#include "uct/ofi/msg/msg_iface.h"

#include "ucs/sockaddr.h"
#include "ucs/sys.h"
#include "uct/base/ops.h"
#include "uct/base/transport.h"
#include "uct/ofi/core/eq.h"
#include "uct/ofi/fabric/error.h"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr double max_timeout = 1e9; // seconds; from there on there is none
constexpr unsigned eq_rounds = 128; // the event queue is read at least this often

uint64_t nanoseconds(double seconds)
{
    return seconds < max_timeout ? static_cast<uint64_t>(seconds * 1e9) : UINT64_MAX;
}

// A thread of the program is in here: that of the companion keeps out.
class in_use {
  public:
    explicit in_use(uct_iface_h handle) : owner_(static_cast<msg_iface &>(*handle).lock()) {}
    explicit in_use(uct_ep_h handle) : in_use(handle->iface) {}

  private:
    ucs::biased_lock::owner owner_;
};

const uct_iface_ops_t &table()
{
    static_assert(transport<msg_iface, ep>);
    static const uct_iface_ops_t ops = make_ops<msg_iface, ep, in_use>();
    return ops;
}

sockaddr_storage make_sockaddr(const device_address &device, uint16_t port)
{
    sockaddr_storage s{};
    s.ss_family = device.family;
    if (device.family == AF_INET) {
        memcpy(&reinterpret_cast<sockaddr_in &>(s).sin_addr, device.ip, 4);
    } else {
        memcpy(&reinterpret_cast<sockaddr_in6 &>(s).sin6_addr, device.ip, 16);
    }
    ucs::sockaddr_set_port(reinterpret_cast<sockaddr *>(&s), port);
    return s;
}

} // namespace

msg_iface::msg_iface(uct_worker &worker, ofi::md &md, const uct_iface_params_t &params,
                     const uct_iface_config &config)
    : iface(table(), worker, md, params, config), id_(ucs::random_u64()),
      timeout_ns_(nanoseconds(config.v.connect_timeout)),
      silence_ns_(md.provider.forgets_handshakes() ? nanoseconds(config.v.peer_timeout)
                                                   : UINT64_MAX)
{
    poll_ = poll<msg_iface>;
    slow_ = true;
    open_receives(receives_wanted(config), config.v.rx_queue_len > 0);
    listen(config.v.ports);
}

void msg_iface::open_receives(unsigned count, bool at_once)
{
    const fi_info &info = *domain.info;
    count = static_cast<unsigned>(std::min<size_t>(count, info.rx_attr->size));
    if (domain.provider.verbs()) {
        cq_ = open_cq(count);
        tx_cq_ = open_cq(8 * info.tx_attr->size);
    } else {
        cq_ = open_cq(info.tx_attr->size + count);
        waits_.mute(cq_.get());
    }
    fi_rx_attr attr = *info.rx_attr;
    attr.size = count;
    fid_ep *srx = nullptr;
    check(fi_srx_context(domain.domain.get(), &attr, &srx, nullptr), "fi_srx_context");
    srx_.reset(srx);
    post_receives(srx, count, at_once);
}

void msg_iface::listen(port_range ports)
{
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_eq *eq = nullptr;
    check(fi_eq_open(domain.fabric.get(), &attr, &eq, nullptr), "fi_eq_open");
    eq_.reset(eq);

    check(ports.first ? listen_within(ports) : listen_at(0), "fi_listen");
    size_t length = sizeof(own_);
    check(fi_getname(&pep_->fid, &own_, &length), "fi_getname");
    routes_ = routes(domain.dev.name);
}

// On a port of the domain's address; 0: any. A negative fabric errno when that cannot be.
int msg_iface::listen_at(uint16_t port)
{
    info_ptr info = dup_info(domain.info.get());
    if (port && info->src_addr) {
        ucs::sockaddr_set_port(static_cast<sockaddr *>(info->src_addr), port);
    }
    fid_pep *pep = nullptr;
    int ret = fi_passive_ep(domain.fabric.get(), info.get(), &pep, nullptr);
    if (ret != 0) {
        return ret;
    }
    pep_.reset(pep);
    ret = fi_pep_bind(pep, &eq_->fid, 0);
    return ret ? ret : fi_listen(pep);
}

// Processes that start together do not all begin with the first port.
int msg_iface::listen_within(port_range ports)
{
    unsigned count = ports.last - ports.first + 1u;
    auto begin = static_cast<unsigned>(ucs::random_u64() % count);
    int ret = 0;
    for (unsigned i = 0; i < count; ++i) {
        ret = listen_at(static_cast<uint16_t>(ports.first + (begin + i) % count));
        if (ret != -FI_EADDRINUSE && ret != -FI_EACCES) {
            return ret;
        }
    }
    ucs_error("UCX_TCP_PORT_RANGE: no port from %u to %u is free", ports.first, ports.last);
    return ret;
}

msg_iface::~msg_iface()
{
    event_watch_.reset();
    closing_ = true;
    for (auto &[id, c] : connections_) {
        if (c->endpoint) {
            fi_shutdown(c->endpoint.get(), 0);
        }
    }
    drain_cq();
    connections_.clear();
    loops_.clear();
    drain_cq();
    end_handshakes(domain.provider, eq_.get());
}

void msg_iface::close()
{
    if (companion_) {
        companion_->stop();
    }
    send_gathered();
    delete this;
}

ucs_status_t msg_iface::query(uct_iface_attr_t *attr)
{
    fill_attr(attr);
    attr->device_addr_len = sizeof(device_address);
    attr->iface_addr_len = sizeof(msg_address);
    attr->ep_addr_len = sizeof(msg_address);
    attr->cap.flags |= UCT_IFACE_FLAG_INTER_NODE | UCT_IFACE_FLAG_EP_KEEPALIVE;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV |
                            UCT_IFACE_FLAG_EVENT_FD | UCT_IFACE_FLAG_EVENT_ASYNC_CB;
    bool loopback = ucs::sockaddr_is_loopback(reinterpret_cast<const sockaddr *>(&own_));
    set_figures(attr, loopback);
    attr->priority = domain.provider.verbs();
    return UCS_OK;
}

ucs_status_t msg_iface::get_device_address(uct_device_addr_t *address)
{
    device_address a{};
    a.header =
        make_header(address_kind::device, transport_hash(domain.provider.transport), sizeof(a));
    set_inet(own_, &a);
    memcpy(address, &a, sizeof(a));
    return UCS_OK;
}

ucs_status_t msg_iface::write_address(uct_iface_addr_t *address)
{
    msg_address a{};
    a.header = make_header(address_kind::msg, transport_hash(domain.provider.transport), sizeof(a));
    a.id = id_;
    a.port = ucs::sockaddr_port(reinterpret_cast<const sockaddr *>(&own_));
    a.segment = static_cast<uint32_t>(limit.segment);
    memcpy(address, &a, sizeof(a));
    return UCS_OK;
}

int msg_iface::is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address)
{
    uint16_t transport = transport_hash(domain.provider.transport);
    device_address d;
    if (!device || !read_address(device, SIZE_MAX, address_kind::device, transport, &d) ||
        !inet_reachable(d, own_)) {
        return 0;
    }
    device_address own{};
    set_inet(own_, &own);
    if (!d.loopback && memcmp(d.ip, own.ip, sizeof(own.ip)) != 0 &&
        !routes_.reach(d.family, d.ip)) {
        return 0;
    }
    msg_address a;
    return !address || read_address(address, SIZE_MAX, address_kind::msg, transport, &a);
}

void msg_iface::connect(ep &from, const peer_address &to)
{
    uint16_t transport = transport_hash(domain.provider.transport);
    device_address device;
    msg_address address;
    if (!read_address(to.device, to.device_length, address_kind::device, transport, &device) ||
        (device.family != AF_INET && device.family != AF_INET6)) {
        throw ucs::error(UCS_ERR_INVALID_ADDR, "uct_ep_create: %s",
                         address_problem("params->dev_addr", to.device, to.device_length,
                                         domain.provider.transport)
                             .c_str());
    }
    if (!read_address(to.iface, to.iface_length, address_kind::msg, transport, &address)) {
        throw ucs::error(UCS_ERR_INVALID_ADDR, "uct_ep_create: %s",
                         address_problem("params->iface_addr", to.iface, to.iface_length,
                                         domain.provider.transport)
                             .c_str());
    }
    connection *c = find(address.id);
    if (!c) {
        c = &connect_to(device, address);
    }
    if (companion_) { // this may find no memory
        from.set_gathering(
            companion_->gather(from, std::min<size_t>(limit.segment, address.segment)));
    }
    from.conn = c;
    c->eps.push_back(&from);
    if (c->now == connection::state::connected) {
        from.target = c->endpoint.get();
        from.set_connected();
    }
}

void msg_iface::for_each_ep(const std::function<void(ep &)> &call)
{
    for (auto &[id, c] : connections_) {
        for (ep *e : c->eps) {
            call(*e);
        }
    }
}

// All endpoints of a connection share its fate.
void msg_iface::check_peers()
{
    (void)ucs::guard([&] { // else the next check does
        std::vector<connection *> connected;
        for (auto &[id, c] : connections_) {
            if (c->now == connection::state::connected && !c->eps.empty()) {
                connected.push_back(c.get());
            }
        }
        look_after(connected);
    });
}

connection &msg_iface::connect_to(const device_address &device, const msg_address &address)
{
    auto fresh = std::make_unique<connection>(address.id);
    begin(*fresh, make_sockaddr(device, address.port));
    connection &c = *(connections_[address.id] = std::move(fresh));
    owner.hasten(static_cast<uct::iface *>(this));
    set_deadline(c, timeout_ns_ == UINT64_MAX ? UINT64_MAX : ucs::monotonic_ns() + timeout_ns_);
    return c;
}

connection *msg_iface::find(uint64_t id)
{
    auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : found->second.get();
}

void msg_iface::deliver_gathered(char *data, size_t length)
{
    if (companion_) {
        companion_->deliver_gathered(data, length);
    }
}

int msg_iface::reads_fd() const
{
    int fd = -1;
    return fi_control(&cq_->fid, FI_GETWAIT, &fd) == 0 ? fd : -1;
}

bool msg_iface::serve_reads()
{
    if (fi_cq_read(cq_.get(), nullptr, 0) == -FI_EAGAIN) {
        return false;
    }
    // Polling took the core's signal back, for which the program may sleep.
    fi_cq_signal(cq_.get());
    if (companion_) {
        companion_->was_moved();
    }
    return true;
}

UCS_ALWAYS_INLINE unsigned msg_iface::read_queue()
{
    if (UCS_LIKELY(connections_.size() < companion::crowd) || !companion_) {
        return poll_cq();
    }
    if (!has_outstanding() && companion_->is_quiet(connections_.size())) {
        return 0;
    }
    unsigned count = poll_costly_cq();
    companion_->was_read(count);
    return count;
}

unsigned msg_iface::progress()
{
    ucs::biased_lock::owner owner(lock_);
    unsigned count = 0;
    send_gathered();
    if (companion_) {
        companion_->polled();
        if (UCS_UNLIKELY(!exposed_ && domain.exposed.load(std::memory_order_relaxed))) {
            exposed_ = true;
            companion_->exposed();
        }
    }
    if (!connections_.empty()) {
        count += read_queue();
    }
    if (!pending_.empty() || connections_.empty() || ++rounds_ >= eq_rounds) {
        count += poll_eq();
    }
    waits_.polled(count);
    count += progress_keepalive();
    if (UCS_UNLIKELY(!broken_.empty())) {
        count += fail_broken();
    }
    count += progress_flushes() + progress_pending();
    send_gathered(); // of the handlers
    if (count == 0 && connections_.empty() && pending_.empty() && broken_.empty()) {
        this->owner.rest(static_cast<uct::iface *>(this));
    }
    return count;
}

void msg_iface::probe(ep &e)
{
    connection *c = e.conn;
    if (c && c->now == connection::state::connected) {
        (void)ucs::guard([&] { look_after({c}); }); // else the next check does
    }
}

void msg_iface::look_after(const std::vector<connection *> &connected)
{
    if (!companion_) {
        for (connection *c : connected) {
            c->eps.front()->ping();
        }
        return;
    }
    for (connection *c : companion_->check(connected)) {
        note_broken(*c, UCS_ERR_ENDPOINT_TIMEOUT);
    }
}

// Its turn comes in progress.
void msg_iface::note_broken(connection &c, ucs_status_t status)
{
    c.broken = status;
    if (!c.broken_link.linked()) {
        broken_.push_back(&c);
    }
}

void msg_iface::on_error(op *o, ucs_status_t status)
{
    if (!o) {
        return;
    }
    connection *c = o->owner ? o->owner->conn : nullptr;
    if (status == UCS_ERR_CANCELED) {
        // Flushed by the core because the connection went; the event that says so follows.
        finish(o, o->owner ? UCS_ERR_CONNECTION_RESET : status);
        return;
    }
    finish(o, status);
    if (c && !closing_) {
        note_broken(*c, status);
    }
}

std::vector<fid_t> msg_iface::wait_fids() const
{
    std::vector<fid_t> fids = {&cq_->fid, &eq_->fid};
    if (tx_cq_) {
        fids.push_back(&tx_cq_->fid);
    }
    return fids;
}

ucs_status_t msg_iface::event_fd_get(int *fd_p)
{
    *fd_p = wait_on(wait_fids());
    return UCS_OK;
}

ucs_status_t msg_iface::event_arm(unsigned)
{
    // What wakes the program is seen in the next round.
    owner.hasten(static_cast<uct::iface *>(this));
    send_gathered();
    if (companion_) {
        companion_->was_moved(); // what the core has, a program that sleeps is not told twice
    }
    end_silent();
    if (has_untried()) { // what made room for it has been read already
        return UCS_ERR_BUSY;
    }
    ucs_status_t status = waits_.arm();
    if (status == UCS_OK) {
        status = try_wait(wait_fids());
    }
    if (status != UCS_OK) {
        return status;
    }
    if (async_event_cb_) {
        int fd = -1;
        event_fd_get(&fd);
        announce_event(fd);
    }
    return UCS_OK;
}

uct_iface *open_msg_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config)
{
    return new msg_iface(worker, domain, params, config);
}

} // namespace uct::ofi
