// SPDX-License-Identifier: BSD-3-Clause
// Opening, addressing and progressing an interface over a connectionless endpoint.
#include "uct/ofi/rdm/rdm_iface.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/base/ops.h"
#include "uct/base/transport.h"
#include "uct/ofi/fabric/error.h"
#include "uct/ofi/rdm/local_interfaces.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unistd.h>

namespace uct::ofi {

namespace {

// A core that connects by itself never says that it found no peer: without a limit of the user's,
// this one.
constexpr double default_timeout = 10; // seconds
constexpr double max_timeout = 3600;

// A thread of the program is in here: the helper thread keeps out.
class in_use {
  public:
    explicit in_use(uct_iface_h handle) : owner_(static_cast<rdm_iface &>(*handle).lock()) {}
    explicit in_use(uct_ep_h handle) : in_use(handle->iface) {}

  private:
    ucs::biased_lock::owner owner_;
};

// Interfaces that the helper thread never looks at take no lock.
const uct_iface_ops_t &table(bool locked)
{
    static_assert(transport<rdm_iface, ep>);
    static const uct_iface_ops_t plain = make_ops<rdm_iface, ep>();
    static const uct_iface_ops_t with_lock = make_ops<rdm_iface, ep, in_use>();
    return locked ? with_lock : plain;
}

// shm crashes when an endpoint is closed that it could not enable for want of descriptors.
void check_limits(const ofi::md &md)
{
    constexpr unsigned most_descriptors = 16; // that opening takes
    if (!ucs::descriptors_left(most_descriptors)) {
        throw ucs::error(UCS_ERR_NO_RESOURCE,
                         "%s needs %u descriptors, and fewer are left (limit: RLIMIT_NOFILE)",
                         md.provider.transport.c_str(), most_descriptors);
    }
}

} // namespace

rdm_iface::rdm_iface(uct_worker &worker, ofi::md &md, const uct_iface_params_t &params,
                     const uct_iface_config &config, make_node *on_node)
    : iface(table(md.provider.needs_polling_target()), worker, md, params, config),
      id_(ucs::random_u64()),
      timeout_ns_(static_cast<uint64_t>(
          (config.v.connect_timeout < max_timeout ? config.v.connect_timeout : default_timeout) *
          1e9))
{
    check_limits(md);
    poll_ = poll<rdm_iface>;
    slow_ = domain.provider.polled_by_calls();
    if (domain.provider.needs_polling_target()) {
        idle_polls_ = std::make_unique<idle_polls>(*this);
        poll_ = poll_locked;
    }
    if (on_node) {
        node_ = on_node(md);
    }
    open_endpoint(config);
    if (limit.tagged && (params.field_mask & UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB)) {
        tags_ = std::make_unique<tag_receives>(*this, ep_.get(), params);
    }
    local_interfaces &all = local_interfaces::get();
    std::lock_guard guard(all.mutex);
    all.by_id[id_] = {getpid(), {}};
}

void rdm_iface::open_endpoint(const uct_iface_config &config)
{
    info_ptr info = dup_info(domain.info.get());
    if (tx_queue_len) {
        info->tx_attr->size = std::min<size_t>(info->tx_attr->size, tx_queue_len);
    }
    if (node_) {
        node_->name_endpoint(info.get());
    }
    cq_ = open_cq(info->rx_attr->size + info->tx_attr->size);
    if (domain.has_wait_fd()) {
        waits_.mute(cq_.get());
    }

    fi_av_attr av_attr{};
    av_attr.type =
        info->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : info->domain_attr->av_type;
    fid_av *av = nullptr;
    check(fi_av_open(domain.domain.get(), &av_attr, &av, nullptr), "fi_av_open");
    av_.reset(av);

    fid_ep *endpoint = nullptr;
    domain.admitted.check(fi_endpoint(domain.domain.get(), info.get(), &endpoint, nullptr),
                          "fi_endpoint", domain.dev.name);
    ep_.reset(endpoint);
    check(fi_ep_bind(endpoint, &av_->fid, 0), "fi_ep_bind to the address vector");
    check(fi_ep_bind(endpoint, &cq_->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind to the queue");
    auto rx_queue_len =
        static_cast<unsigned>(std::min<size_t>(receives_wanted(config), info->rx_attr->size));
    limit.shared = limit.shared && shared_receives::prepare(endpoint, limit.segment + limit.prefix);
    check(fi_enable(endpoint), "fi_enable");

    char address[256];
    size_t length = sizeof(address);
    check(fi_getname(&endpoint->fid, address, &length), "fi_getname");
    name_.assign(address, length);
    if (node_) {
        node_->opened(name_, av);
        news_ = &node_->news();
    }
    if (limit.shared) {
        post_shared_receives(endpoint, config);
    } else {
        post_receives(endpoint, rx_queue_len, node_ || config.v.rx_queue_len);
    }
}

rdm_iface::~rdm_iface()
{
    idle_polls_.reset();
    event_watch_.reset();
    closing_ = true;
    for (auto *peers : {&peers_, &resting_}) { // also of endpoints that the user forgot
        for (auto &[id, p] : *peers) {
            remove_addresses(*p);
        }
        peers->clear();
    }
    tell_local_peers();
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
    attr->ep_addr_len = attr->iface_addr_len;
    sockaddr_storage own = own_sockaddr();
    set_figures(attr, ucs::sockaddr_is_loopback(reinterpret_cast<const sockaddr *>(&own)));
    if (node_) {
        attr->cap.flags |= UCT_IFACE_FLAG_EP_KEEPALIVE;
    } else {
        attr->cap.flags |= UCT_IFACE_FLAG_INTER_NODE;
    }
    if (limit.tagged) {
        attr->cap.flags |= UCT_IFACE_FLAG_TAG_EAGER_SHORT | UCT_IFACE_FLAG_TAG_EAGER_BCOPY |
                           UCT_IFACE_FLAG_TAG_EAGER_ZCOPY;
        size_t longest = limit.segment - sizeof(tag_prefix);
        attr->cap.tag.recv = {.min_recv = 0,
                              .max_zcopy = SIZE_MAX,
                              .max_iov = limit.max_iov - tag_own_pieces,
                              .max_outstanding = tag_receives::max_outstanding};
        attr->cap.tag.eager = {.max_short = limit.on_stack - sizeof(tag_prefix),
                               .max_bcopy = longest,
                               .max_zcopy = longest,
                               .max_iov = limit.max_iov - 1};
    }
    if (node_ || domain.has_wait_fd()) {
        attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV |
                                UCT_IFACE_FLAG_EVENT_FD | UCT_IFACE_FLAG_EVENT_ASYNC_CB;
    }
    return UCS_OK;
}

// Of family 0 where the core has addresses of its own kind.
sockaddr_storage rdm_iface::own_sockaddr() const
{
    sockaddr_storage own{};
    uint32_t format = domain.info->addr_format;
    if (format == FI_SOCKADDR || format == FI_SOCKADDR_IN || format == FI_SOCKADDR_IN6) {
        memcpy(&own, name_.data(), std::min(name_.size(), sizeof(own)));
    }
    return own;
}

ucs_status_t rdm_iface::get_device_address(uct_device_addr_t *address)
{
    device_address a{};
    a.header =
        make_header(address_kind::device, transport_hash(domain.provider.transport), sizeof(a));
    if (node_) {
        a.host = shared_memory_identity();
    } else {
        set_inet(own_sockaddr(), &a);
    }
    memcpy(address, &a, sizeof(a));
    return UCS_OK;
}

ucs_status_t rdm_iface::write_address(uct_iface_addr_t *address)
{
    rdm_address a{};
    a.header = make_header(own_kind(), transport_hash(domain.provider.transport),
                           sizeof(a) + name_.size());
    a.id = id_;
    a.bell.pid = static_cast<uint32_t>(getpid());
    if (node_) {
        a.bell = node_->address();
    }
    a.birth = ucs::process_birth(getpid());
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
    if (node_ ? d.host != shared_memory_identity() : !inet_reachable(d, own_sockaddr())) {
        return 0;
    }
    rdm_address a;
    if (!address) {
        return 1;
    }
    if (!read_peer(address, SIZE_MAX, &a)) {
        return 0;
    }
    // Namespaces can differ where the identity does not show it: try.
    std::string name(reinterpret_cast<const char *>(address) + sizeof(a), a.name_length());
    return !node_ || (node_->has(a, name) && node_->has_room(a, name));
}

// Interfaces that number their messages understand each other, and the others do.
address_kind rdm_iface::own_kind() const
{
    return node_          ? address_kind::rdm_entry
           : limit.prefix ? address_kind::rdm_numbered
                          : address_kind::rdm;
}

// Addresses of one transport have one length: what a caller that knows no length gave is as long as
// ours.
bool rdm_iface::read_peer(const uct_iface_addr_t *from, size_t available, rdm_address *about) const
{
    return read_address(from, available, own_kind(), transport_hash(domain.provider.transport),
                        about) &&
           about->name_length() == name_.size();
}

void rdm_iface::connect(ep &from, const peer_address &to)
{
    rdm_address about;
    if (!read_peer(to.iface, to.iface_length, &about)) {
        throw ucs::error(UCS_ERR_INVALID_ADDR, "uct_ep_create: %s",
                         address_problem("params->iface_addr", to.iface, to.iface_length,
                                         domain.provider.transport)
                             .c_str());
    }
    peer &remote = find_peer(about, reinterpret_cast<const char *>(to.iface) + sizeof(about));
    if (remote.failed) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "uct_ep_create: the peer's process is gone");
    }
    from.target = ep_.get();
    from.address = remote.address;
    from.remote = &remote;
    from.set_sleeper(remote.near ? remote.near->bell() : nullptr);
    remote.eps.push_back(&from);
    ++remote.refs;
    from.set_connected();
    if (idle_polls_) {
        idle_polls_->begin();
    }
}

ucs_status_t rdm_iface::tag_recv_zcopy(uct_tag_t tag, uct_tag_t mask, const uct_iov_t *iov,
                                       size_t count, uct_tag_context_t *context)
{
    if (UCS_UNLIKELY(!tags_)) {
        if (!limit.tagged) {
            return UCS_ERR_UNSUPPORTED;
        }
        tags_ = std::make_unique<tag_receives>(*this, ep_.get(), uct_iface_params_t{});
    }
    return tags_->post(tag, mask, iov, count, context);
}

ucs_status_t rdm_iface::tag_recv_cancel(uct_tag_context_t *context, int force)
{
    if (!limit.tagged) {
        return UCS_ERR_UNSUPPORTED;
    }
    return tags_ ? tags_->cancel(context, force != 0) : UCS_ERR_INVALID_PARAM;
}

void rdm_iface::on_unowned(op *o, ucs_status_t status)
{
    if (o->what == op::kind::abandoned) {
        if (o->has_buffer) {
            left_order(static_cast<buffer_op *>(o));
        }
        put(o);
    } else if (o->what == op::kind::tag_receive) {
        tags_->ended(static_cast<tag_receive_op *>(o), status);
    } else {
        tags_->ended(static_cast<receive_op *>(o), status);
    }
}

unsigned rdm_iface::poll_locked(void *arg)
{
    auto *self = static_cast<rdm_iface *>(static_cast<uct::iface *>(arg));
    ucs::biased_lock::owner guard(self->lock());
    self->idle_polls_->polled(self->domain.exposed.load(std::memory_order_relaxed));
    return self->progress();
}

bool rdm_iface::greet_newcomers()
{
    bool news = news_ && news_->load(std::memory_order_relaxed) != 0;
    if (UCS_UNLIKELY(news)) {
        node_->greet();
    }
    return news;
}

unsigned rdm_iface::progress()
{
    bool news = greet_newcomers();
    unsigned count = poll_cq();
    waits_.polled(count);
    if (UCS_UNLIKELY(tags_ != nullptr)) {
        tags_->progress();
    }
    if (UCS_UNLIKELY(domain.carrier != nullptr)) {
        domain.carrier->progress();
    }
    count += progress_keepalive();
    count += progress_flushes();
    count += progress_pending();
    if (UCS_UNLIKELY(someone_died_.load(std::memory_order_relaxed))) {
        count += bury_dead();
    }
    if (UCS_UNLIKELY(news)) {
        count += hear_news();
    }
    return count;
}

// An operation on remote memory that is refused by itself, as with a key that is not valid any
// more, and whose end the user sees.
bool rdm_iface::fails_alone(const op &o, ucs_status_t status)
{
    switch (o.what) {
    case op::kind::put:
    case op::kind::get:
    case op::kind::get_bcopy:
    case op::kind::atomic:
    case op::kind::fetch:
        break;
    default:
        return false;
    }
    return o.completion && (status == UCS_ERR_REJECTED || status == UCS_ERR_INVALID_PARAM ||
                            status == UCS_ERR_MESSAGE_TRUNCATED || status == UCS_ERR_UNSUPPORTED);
}

void rdm_iface::on_error(op *o, ucs_status_t status)
{
    if (o && o->what >= op::kind::tag_receive) {
        on_unowned(o, status);
        return;
    }
    if (o && !node_ && o->owner && o->owner->remote && status != UCS_ERR_CANCELED &&
        !fails_alone(*o, status)) {
        declare_dead(*o->owner->remote, status);
    }
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
        // Nothing of an endpoint is cancelled here: a core that connects by itself (net) flushes so
        // what a lost connection had, and reports the loss with another operation.
        bool flushed = status == UCS_ERR_CANCELED && o->owner && !closing_;
        finish(o, flushed ? UCS_ERR_CONNECTION_RESET : status);
    }
}

ucs_status_t rdm_iface::event_fd_get(int *fd_p)
{
    if (!node_ && !domain.has_wait_fd()) {
        return UCS_ERR_UNSUPPORTED;
    }
    *fd_p = node_ ? node_->fd() : wait_on({&cq_->fid});
    return UCS_OK;
}

ucs_status_t rdm_iface::event_arm(unsigned)
{
    return node_ ? arm_node() : domain.has_wait_fd() ? arm_queue() : UCS_ERR_UNSUPPORTED;
}

// Off-node.
ucs_status_t rdm_iface::arm_queue()
{
    // That a connection has come up, for which a send waits, is not announced.
    if (has_waiting() || someone_died_.load(std::memory_order_acquire) ||
        (tags_ && !tags_->watching())) {
        return UCS_ERR_BUSY;
    }
    ucs_status_t status = waits_.arm();
    if (status == UCS_OK) {
        status = try_wait({&cq_->fid});
    }
    if (status == UCS_OK) {
        announce_event(wait_on({&cq_->fid}));
    }
    return status;
}

bool rdm_iface::move_core()
{
    if (node_) { // room in shared memory is made by the peer alone
        return false;
    }
    fi_cq_read(cq_.get(), nullptr, 0);
    if (UCS_UNLIKELY(domain.carrier != nullptr)) {
        domain.carrier->progress();
    }
    return true;
}

ucs_status_t rdm_iface::arm_node()
{
    // Room in a peer's queue and the end of a copy are not announced: a thread that waits for those
    // polls. Nor would an unexpected tagged message be, before the receive for such is posted.
    if (has_waiting() || has_outstanding() || someone_died_.load(std::memory_order_acquire) ||
        (tags_ && !tags_->watching())) {
        return UCS_ERR_BUSY;
    }
    node_->arm();
    greet_newcomers();
    // Nothing is read, but the core looks for messages.
    ssize_t ret = fi_cq_read(cq_.get(), nullptr, 0);
    if (ret != -FI_EAGAIN || someone_died_.load(std::memory_order_acquire)) {
        node_->disarm();
        return UCS_ERR_BUSY;
    }
    announce_event(node_->fd());
    return UCS_OK;
}

uct_iface *open_rdm_iface(uct_worker &worker, ofi::md &domain, const uct_iface_params_t &params,
                          const uct_iface_config &config)
{
    return new rdm_iface(worker, domain, params, config, nullptr);
}

} // namespace uct::ofi
