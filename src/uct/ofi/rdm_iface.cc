// SPDX-License-Identifier: BSD-3-Clause
// Opening, addressing and progressing an interface over a connectionless endpoint.
#include "uct/ofi/rdm_iface.h"

#include "uct/ofi/error.h"
#include "uct/ofi/shm_file.h"
#include "uct/ops.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr unsigned default_receives = 256;

const uct_iface_ops_t &table()
{
    static const uct_iface_ops_t ops = make_ops<rdm_iface, ep>();
    return ops;
}

} // namespace

namespace {

// The open interfaces of this process, with the peers that stand for them on others of its
// interfaces, possibly of other threads.
struct local_interfaces {
    std::mutex mutex;
    std::map<uint64_t, std::vector<peer *>> watchers; // by the id of the interface

    static local_interfaces &get()
    {
        static auto *all = new local_interfaces; // outlives every interface
        return *all;
    }
};

} // namespace

peer::~peer()
{
    {
        local_interfaces &all = local_interfaces::get();
        std::lock_guard guard(all.mutex);
        auto found = all.watchers.find(id);
        if (found != all.watchers.end()) {
            std::erase(found->second, this);
        }
    }
    watch.reset();
    if (pid_fd >= 0) {
        ::close(pid_fd);
    }
}

rdm_iface::rdm_iface(uct_worker &worker, ofi::md &md, const uct_iface_params_t &params,
                     const uct_iface_config &config)
    : iface(table(), worker, md, params, config), id_(ucs::random_u64()),
      on_node_(md.provider.transport == "shm")
{
    poll_ = poll<rdm_iface>;
    slow_ = !on_node_;
    if (on_node_) {
        shm_file::reap_stale();
        bell_ = std::make_unique<doorbell>();
    }
    open_endpoint(config.v.rx_queue_len ? config.v.rx_queue_len : default_receives);
    local_interfaces &all = local_interfaces::get();
    std::lock_guard guard(all.mutex);
    all.watchers[id_];
}

void rdm_iface::open_endpoint(unsigned rx_queue_len)
{
    info_ptr info = dup_info(domain.info.get());
    if (tx_queue_len) {
        info->tx_attr->size = std::min<size_t>(info->tx_attr->size, tx_queue_len);
    }
    if (on_node_) {
        // The file behind the endpoint gets a name that tells whose it is.
        std::string name = shm_file::make_name();
        free(info->src_addr);
        info->src_addr = strdup(name.c_str());
        info->src_addrlen = name.size() + 1;
    }
    cq_ = open_cq(info->rx_attr->size + info->tx_attr->size);

    fi_av_attr av_attr{};
    av_attr.type =
        info->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info->domain_attr->av_type;
    fid_av *av = nullptr;
    check(fi_av_open(domain.domain.get(), &av_attr, &av, nullptr), "fi_av_open");
    av_.reset(av);

    fid_ep *endpoint = nullptr;
    check(fi_endpoint(domain.domain.get(), info.get(), &endpoint, nullptr), "fi_endpoint");
    ep_.reset(endpoint);
    check(fi_ep_bind(endpoint, &av_->fid, 0), "fi_ep_bind to the address vector");
    check(fi_ep_bind(endpoint, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the queue");
    check(fi_enable(endpoint), "fi_enable");

    char address[256];
    size_t length = sizeof(address);
    check(fi_getname(&endpoint->fid, address, &length), "fi_getname");
    name_.assign(address, length);
    if (on_node_) {
        lock_ = std::make_unique<shm_lock>(name_);
    }
    post_receives(endpoint, std::min<size_t>(rx_queue_len, info->rx_attr->size));
}

rdm_iface::~rdm_iface()
{
    closing_ = true;
    for (auto &[id, p] : peers_) { // of endpoints that the user forgot
        fi_av_remove(av_.get(), &p->address, 1, 0);
    }
    peers_.clear();
    tell_local_peers();
    if (on_node_) {
        ucs::guard([] { shm_file::reap_stale(); });
    }
}

void rdm_iface::tell_local_peers()
{
    auto core = std::make_shared<core_endpoint>();
    core->fabric = domain.fabric;
    core->domain = domain.domain;
    core->cq = std::move(cq_);
    core->av = std::move(av_);
    core->ep = std::move(ep_);
    local_interfaces &all = local_interfaces::get();
    std::lock_guard guard(all.mutex);
    for (peer *p : all.watchers[id_]) {
        p->kept = core;
        p->dead.store(true, std::memory_order_release);
        p->home->someone_died_.store(true, std::memory_order_release);
        if (p->home->bell_) {
            p->home->bell_->ring_self();
        }
    }
    all.watchers.erase(id_);
}

void rdm_iface::close()
{
    delete this;
}

ucs_status_t rdm_iface::query(uct_iface_attr_t *attr)
{
    fill_attr(attr);
    attr->device_addr_len = sizeof(device_address);
    attr->iface_addr_len = sizeof(rdm_address) + name_.size();
    if (on_node_) {
        attr->cap.flags |= UCT_IFACE_FLAG_EP_KEEPALIVE;
        attr->overhead = 80e-9;
        attr->bandwidth = {.dedicated = 10e9, .shared = 0};
        attr->latency = {.c = 200e-9, .m = 0};
        attr->max_num_eps = std::min<size_t>(attr->max_num_eps, 256);
        attr->cap.event_flags =
            UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    } else {
        attr->cap.flags |= UCT_IFACE_FLAG_INTER_NODE;
        attr->overhead = 200e-9;
        attr->bandwidth = {.dedicated = 0, .shared = 12e9};
        attr->latency = {.c = 1e-6, .m = 0};
    }
    return UCS_OK;
}

ucs_status_t rdm_iface::get_device_address(uct_device_addr_t *address)
{
    device_address a{};
    a.header =
        make_header(address_kind::device, transport_hash(domain.provider.transport), sizeof(a));
    a.host = on_node_ ? shared_memory_identity() : 0;
    memcpy(address, &a, sizeof(a));
    return UCS_OK;
}

ucs_status_t rdm_iface::get_address(uct_iface_addr_t *address)
{
    rdm_address a{};
    a.header = make_header(address_kind::rdm, transport_hash(domain.provider.transport),
                           sizeof(a) + name_.size());
    a.id = id_;
    a.bell.pid = static_cast<uint32_t>(getpid());
    if (bell_) {
        a.bell = bell_->address();
    }
    a.birth = shm_file::process_birth(getpid());
    a.name_length = static_cast<uint32_t>(name_.size());
    memcpy(address, &a, sizeof(a));
    memcpy(reinterpret_cast<char *>(address) + sizeof(a), name_.data(), name_.size());
    return UCS_OK;
}

int rdm_iface::is_reachable(const uct_device_addr_t *device, const uct_iface_addr_t *address)
{
    uint16_t transport = transport_hash(domain.provider.transport);
    device_address d;
    if (!device || !read_address(device, SIZE_MAX, address_kind::device, transport, &d)) {
        return 0;
    }
    if (on_node_ && d.host != shared_memory_identity()) {
        return 0;
    }
    rdm_address a;
    if (!address) {
        return 1;
    }
    if (!read_address(address, SIZE_MAX, address_kind::rdm, transport, &a)) {
        return 0;
    }
    // Namespaces can differ where the identity does not show it: try.
    const char *name = reinterpret_cast<const char *>(address) + sizeof(a);
    return !on_node_ || shm_file::present(std::string(name, strnlen(name, a.name_length)));
}

ucs_status_t rdm_iface::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        size_t available = params.field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR_LENGTH
                               ? params.iface_addr_length
                               : SIZE_MAX;
        rdm_address about;
        if (!read_address(params.iface_addr, available, address_kind::rdm,
                          transport_hash(domain.provider.transport), &about) ||
            about.name_length != about.header.length - sizeof(about)) {
            throw ucs::error(UCS_ERR_INVALID_ADDR,
                             "uct_ep_create: params->iface_addr is not an address of %s",
                             domain.provider.transport.c_str());
        }
        auto *name = reinterpret_cast<const char *>(params.iface_addr) + sizeof(about);
        peer &remote = find_peer(about, name);
        if (remote.failed) {
            throw ucs::error(UCS_ERR_UNREACHABLE, "uct_ep_create: the peer's process is gone");
        }
        auto *created = new ep(*this);
        created->target = ep_.get();
        created->address = remote.address;
        created->remote = &remote;
        created->set_bell(remote.bell.get());
        remote.eps.push_back(created);
        ++remote.refs;
        created->set_connected();
        *ep_p = created;
    });
}

peer &rdm_iface::find_peer(const rdm_address &about, const char *name)
{
    auto found = peers_.find(about.id);
    if (found != peers_.end()) {
        return *found->second;
    }
    auto p = std::make_unique<peer>();
    p->home = this;
    p->id = about.id;
    p->about = about;
    p->name.assign(name, about.name_length);
    if (on_node_ && (p->name.empty() || p->name.back() != '\0')) {
        throw ucs::error(UCS_ERR_INVALID_ADDR, "uct_ep_create: the peer's name has no end");
    }
    int inserted = fi_av_insert(av_.get(), p->name.data(), 1, &p->address, 0, nullptr);
    if (inserted != 1) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "fi_av_insert on %s: %s",
                         domain.provider.transport.c_str(),
                         inserted < 0 ? fi_strerror(-inserted) : "no room for another peer");
    }
    if (on_node_) {
        p->lock = std::make_unique<shm_lock>(p->name);
        watch(*p);
        p->bell = std::make_unique<remote_bell>(about.bell);
    }
    {
        local_interfaces &all = local_interfaces::get();
        std::lock_guard guard(all.mutex);
        auto local = all.watchers.find(about.id);
        if (local != all.watchers.end()) {
            local->second.push_back(p.get());
        } else if (static_cast<pid_t>(about.bell.pid) == getpid()) {
            throw ucs::error(UCS_ERR_UNREACHABLE,
                             "uct_ep_create: the interface of this process is closed");
        }
    }
    return *(peers_[about.id] = std::move(p));
}

void rdm_iface::watch(peer &p)
{
    auto pid = static_cast<pid_t>(p.about.bell.pid);
    if (pid == getpid()) {
        return;
    }
    p.pid_fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (p.pid_fd < 0 || shm_file::process_birth(pid) != p.about.birth) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "process %d, to which an endpoint was asked, is gone",
                         pid);
    }
    p.watch = ucs::async_watch::fd(
        p.pid_fd, EPOLLIN | EPOLLONESHOT,
        [](void *arg, uint32_t) {
            auto *dead = static_cast<peer *>(arg);
            dead->home->lock_->repair();
            dead->lock->repair();
            dead->dead.store(true, std::memory_order_relaxed);
            dead->home->someone_died_.store(true, std::memory_order_release);
            dead->home->bell_->ring_self();
        },
        &p);
}

void rdm_iface::forget(peer &p)
{
    if (--p.refs > 0) {
        return;
    }
    fi_addr_t address = p.address;
    fi_av_remove(av_.get(), &address, 1, 0);
    peers_.erase(p.id);
}

unsigned rdm_iface::progress()
{
    unsigned count = poll_cq();
    count += progress_pending();
    if (UCS_UNLIKELY(someone_died_.load(std::memory_order_relaxed))) {
        count += bury_dead();
    }
    return count;
}

// What a dead peer sent before is delivered first; then each endpoint to it fails once.
UCS_NOINLINE unsigned rdm_iface::bury_dead()
{
    if (poll_cq() > 0) {
        return 1; // come back when the queue is empty
    }
    someone_died_.store(false, std::memory_order_relaxed);
    ucs::list<ep, &ep::sibling> victims;
    for (auto &[id, p] : peers_) {
        if (p->dead.load(std::memory_order_acquire) && !p->failed) {
            p->failed = true;
            shm_file::remove(p->name.c_str());
            victims.splice_back(p->eps);
        }
    }
    unsigned count = 0;
    while (ep *victim = victims.pop_front()) {
        fail(victim, UCS_ERR_CONNECTION_RESET);
        ++count;
    }
    return count;
}

void rdm_iface::on_error(op *o, ucs_status_t status)
{
    if (!o && limit.immediate_rma) {
        // shm reports a failed copy without saying which. Copies complete in the order in which
        // they were posted, so it is the oldest one.
        for (auto &[id, p] : peers_) {
            for (ep *e : p->eps) {
                op *candidate = e->oldest_rma();
                if (candidate && (!o || candidate->sequence < o->sequence)) {
                    o = candidate;
                }
            }
        }
    }
    if (o) {
        finish(o, status);
    }
}

ucs_status_t rdm_iface::event_fd_get(int *fd_p)
{
    if (!bell_) {
        return UCS_ERR_UNSUPPORTED;
    }
    *fd_p = bell_->fd();
    return UCS_OK;
}

ucs_status_t rdm_iface::event_arm(unsigned)
{
    if (!bell_) {
        return UCS_ERR_UNSUPPORTED;
    }
    // Room in a peer's queue and the end of a copy are not announced: who waits for those polls.
    if (has_waiting() || has_outstanding() || someone_died_.load(std::memory_order_acquire)) {
        return UCS_ERR_BUSY;
    }
    bell_->arm();
    // Nothing is read, but the core looks for messages.
    ssize_t ret = fi_cq_read(cq_.get(), nullptr, 0);
    if (ret != -FI_EAGAIN || someone_died_.load(std::memory_order_acquire)) {
        bell_->disarm();
        return UCS_ERR_BUSY;
    }
    return UCS_OK;
}

} // namespace uct::ofi
