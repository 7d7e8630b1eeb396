// SPDX-License-Identifier: BSD-3-Clause
// Opening, addressing and progressing an interface over connected endpoints. The life of the
// connections is in connection.cc.
#include "uct/ofi/msg_iface.h"

#include "ucs/sockaddr.h"
#include "uct/ofi/error.h"
#include "uct/ops.h"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr unsigned default_receives = 256;
constexpr unsigned eq_rounds = 128; // the event queue is read at least this often

const uct_iface_ops_t &table()
{
    static const uct_iface_ops_t ops = make_ops<msg_iface, ep>();
    return ops;
}

void set_ip(const sockaddr_storage &from, uint8_t (&ip)[16])
{
    if (from.ss_family == AF_INET) {
        memcpy(ip, &reinterpret_cast<const sockaddr_in &>(from).sin_addr, 4);
    } else {
        memcpy(ip, &reinterpret_cast<const sockaddr_in6 &>(from).sin6_addr, 16);
    }
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
      timeout_ns_(static_cast<uint64_t>(std::min(config.v.connect_timeout, 3600.0) * 1e9))
{
    poll_ = poll<msg_iface>;
    slow_ = true;
    open_receives(config.v.rx_queue_len ? config.v.rx_queue_len : default_receives);
    listen();
}

void msg_iface::open_receives(unsigned count)
{
    const fi_info &info = *domain.info;
    count = static_cast<unsigned>(std::min<size_t>(count, info.rx_attr->size));
    if (domain.provider.transport == "verbs") {
        cq_ = open_cq(count);
        tx_cq_ = open_cq(8 * info.tx_attr->size);
    } else {
        cq_ = open_cq(info.tx_attr->size + count);
    }
    fi_rx_attr attr = *info.rx_attr;
    attr.size = count;
    fid_ep *srx = nullptr;
    check(fi_srx_context(domain.domain.get(), &attr, &srx, nullptr), "fi_srx_context");
    srx_.reset(srx);
    post_receives(srx, count);
}

void msg_iface::listen()
{
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_FD;
    fid_eq *eq = nullptr;
    check(fi_eq_open(domain.fabric.get(), &attr, &eq, nullptr), "fi_eq_open");
    eq_.reset(eq);

    fid_pep *pep = nullptr;
    check(fi_passive_ep(domain.fabric.get(), domain.info.get(), &pep, nullptr), "fi_passive_ep");
    pep_.reset(pep);
    check(fi_pep_bind(pep, &eq->fid, 0), "fi_pep_bind");
    check(fi_listen(pep), "fi_listen");
    size_t length = sizeof(own_);
    check(fi_getname(&pep->fid, &own_, &length), "fi_getname");
}

msg_iface::~msg_iface()
{
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
    if (epoll_fd_ >= 0) {
        ::close(epoll_fd_);
    }
}

void msg_iface::close()
{
    delete this;
}

ucs_status_t msg_iface::query(uct_iface_attr_t *attr)
{
    fill_attr(attr);
    attr->device_addr_len = sizeof(device_address);
    attr->iface_addr_len = sizeof(msg_address);
    attr->cap.flags |= UCT_IFACE_FLAG_INTER_NODE | UCT_IFACE_FLAG_EP_KEEPALIVE;
    attr->cap.event_flags =
        UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    if (domain.provider.transport == "verbs") {
        attr->overhead = 75e-9;
        attr->bandwidth = {.dedicated = 0, .shared = 6e9};
        attr->latency = {.c = 1e-6, .m = 0};
        attr->priority = 1;
    } else {
        bool loopback = ucs::sockaddr_is_loopback(reinterpret_cast<const sockaddr *>(&own_));
        attr->overhead = 2e-6;
        attr->bandwidth = {.dedicated = 0, .shared = loopback ? 4e9 : 1.2e9};
        attr->latency = {.c = loopback ? 5e-6 : 15e-6, .m = 0};
    }
    return UCS_OK;
}

ucs_status_t msg_iface::get_device_address(uct_device_addr_t *address)
{
    device_address a{};
    a.header =
        make_header(address_kind::device, transport_hash(domain.provider.transport), sizeof(a));
    a.host = network_identity();
    a.family = own_.ss_family;
    a.loopback = ucs::sockaddr_is_loopback(reinterpret_cast<const sockaddr *>(&own_));
    set_ip(own_, a.ip);
    memcpy(address, &a, sizeof(a));
    return UCS_OK;
}

ucs_status_t msg_iface::get_address(uct_iface_addr_t *address)
{
    msg_address a{};
    a.header = make_header(address_kind::msg, transport_hash(domain.provider.transport), sizeof(a));
    a.id = id_;
    a.port = ucs::sockaddr_port(reinterpret_cast<const sockaddr *>(&own_));
    memcpy(address, &a, sizeof(a));
    return UCS_OK;
}

int msg_iface::is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address)
{
    uint16_t transport = transport_hash(domain.provider.transport);
    device_address d;
    if (!device || !read_address(device, SIZE_MAX, address_kind::device, transport, &d) ||
        d.family != own_.ss_family) {
        return 0;
    }
    bool loopback = ucs::sockaddr_is_loopback(reinterpret_cast<const sockaddr *>(&own_));
    if (d.loopback != loopback || (loopback && d.host != network_identity())) {
        return 0;
    }
    msg_address a;
    return !address || read_address(address, SIZE_MAX, address_kind::msg, transport, &a);
}

ucs_status_t msg_iface::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        // By pointer to member: an old caller's params end before the lengths.
        auto length = [&](uint64_t field, size_t uct_ep_params_t::*value) {
            return params.field_mask & field ? params.*value : SIZE_MAX;
        };
        uint16_t transport = transport_hash(domain.provider.transport);
        device_address device;
        msg_address address;
        if (!read_address(
                params.dev_addr,
                length(UCT_EP_PARAM_FIELD_DEV_ADDR_LENGTH, &uct_ep_params_t::dev_addr_length),
                address_kind::device, transport, &device) ||
            (device.family != AF_INET && device.family != AF_INET6)) {
            throw ucs::error(UCS_ERR_INVALID_ADDR,
                             "uct_ep_create: params->dev_addr is not an address of %s",
                             domain.provider.transport.c_str());
        }
        if (!read_address(
                params.iface_addr,
                length(UCT_EP_PARAM_FIELD_IFACE_ADDR_LENGTH, &uct_ep_params_t::iface_addr_length),
                address_kind::msg, transport, &address)) {
            throw ucs::error(UCS_ERR_INVALID_ADDR,
                             "uct_ep_create: params->iface_addr is not an address of %s",
                             domain.provider.transport.c_str());
        }
        connection *c = find(address.id);
        if (!c) {
            c = &connect_to(device, address);
        }
        auto *created = new ep(*this);
        created->conn = c;
        c->eps.push_back(created);
        if (c->now == connection::state::connected) {
            created->target = c->endpoint.get();
            created->set_connected();
        }
        *ep_p = created;
    });
}

connection &msg_iface::connect_to(const device_address &device, const msg_address &address)
{
    auto c = std::make_unique<connection>(address.id);
    connect(*c, make_sockaddr(device, address.port));
    ++pending_;
    return *(connections_[address.id] = std::move(c));
}

connection *msg_iface::find(uint64_t id)
{
    auto found = connections_.find(id);
    return found == connections_.end() ? nullptr : found->second.get();
}

unsigned msg_iface::progress()
{
    unsigned count = 0;
    if (!connections_.empty()) {
        count += poll_cq();
    }
    if (pending_ > 0 || connections_.empty() || ++rounds_ >= eq_rounds) {
        count += poll_eq();
    }
    if (UCS_UNLIKELY(!broken_.empty())) {
        count += fail_broken();
    }
    return count + progress_pending();
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
        broken_.emplace_back(c, status);
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
    if (epoll_fd_ < 0) {
        int fd = epoll_create1(EPOLL_CLOEXEC);
        if (fd < 0) {
            throw ucs::error(UCS_ERR_IO_ERROR, "epoll_create1: %s", strerror(errno));
        }
        for (fid_t fid : wait_fids()) {
            int core_fd = -1;
            int ret = fi_control(fid, FI_GETWAIT, &core_fd);
            epoll_event event{.events = EPOLLIN, .data = {}};
            if (ret != 0 || epoll_ctl(fd, EPOLL_CTL_ADD, core_fd, &event) != 0) {
                ::close(fd);
                throw ucs::error(UCS_ERR_UNSUPPORTED, "%s gives no descriptor to wait on",
                                 domain.provider.transport.c_str());
            }
        }
        epoll_fd_ = fd;
    }
    *fd_p = epoll_fd_;
    return UCS_OK;
}

ucs_status_t msg_iface::event_arm(unsigned)
{
    std::vector<fid_t> fids = wait_fids();
    int ret = fi_trywait(domain.fabric.get(), fids.data(), static_cast<int>(fids.size()));
    if (ret == -FI_EAGAIN) {
        return UCS_ERR_BUSY;
    }
    return ret == 0 ? UCS_OK : status_of(ret);
}

} // namespace uct::ofi
