// SPDX-License-Identifier: BSD-3-Clause
// Opening what both kinds of interface have, and their attributes.
#include "uct/ofi/core/iface.h"

#include "uct/ofi/core/ep.h"
#include "uct/ofi/core/error.h"
#include "uct/ofi/core/link.h"
#include "uct/ofi/rdm/tag.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace uct::ofi {

namespace {

constexpr size_t verbs_segment = 8192;
// Over sockets every segment costs both sides system calls: 32 KiB with the headers of the layers
// above.
constexpr size_t socket_segment = (32 << 10) + 256;
// What shm injects. Queues of our own take more.
constexpr size_t shm_segment = 4096;
constexpr size_t least_short = 128;

// The core's own variable, in the words that it takes.
bool cross_memory_disabled()
{
    const char *value = getenv("FI_SHM_DISABLE_CMA");
    constexpr const char *yes[] = {"1", "true", "yes", "on"};
    return value && std::any_of(std::begin(yes), std::end(yes),
                                [=](const char *word) { return strcasecmp(value, word) == 0; });
}

// Whether one process may copy to another's memory here. shm's writes are done when they return
// only then.
bool cross_memory_allowed()
{
    if (cross_memory_disabled()) {
        return false;
    }
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        char scope = '0';
        ssize_t n = read(fd, &scope, 1);
        close(fd);
        if (n == 1 && scope != '0') {
            return false;
        }
    }
    char from = 1;
    char to = 0;
    iovec local{&to, 1};
    iovec remote{&from, 1};
    return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

constexpr uint64_t bit(op::kind kind)
{
    return 1ul << static_cast<unsigned>(kind);
}

// What a fence has to wait for: the cores say which order they keep. Of shm that is true where
// operations are done when they are posted; else its target copies when it finds the time. Atomic
// operations always wait for the target to progress. Nothing is ordered between the peer's endpoint
// and the one that carries its regions.
uint64_t find_overtaken(const uct::ofi::md &domain, const limits &l)
{
    uint64_t gets = bit(op::kind::get) | bit(op::kind::get_bcopy);
    uint64_t puts = bit(op::kind::put);
    uint64_t atomics = bit(op::kind::atomic) | bit(op::kind::fetch);
    if (domain.on_node()) {
        return atomics | (l.immediate_rma ? 0 : gets | puts);
    }
    uint64_t order = domain.carrier ? 0 : domain.info->tx_attr->msg_order;
    auto keeps = [&](uint64_t wanted) { return (order & wanted) == wanted; };
    return atomics | (keeps(FI_ORDER_WAR | FI_ORDER_SAR) ? 0 : gets) |
           (keeps(FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_SAW) ? 0 : puts);
}

size_t default_segment(const uct::ofi::md &domain, bool fifo)
{
    return domain.on_node()                       ? (fifo ? fifo_frame_size : shm_segment)
           : domain.provider.transport == "verbs" ? verbs_segment
                                                  : socket_segment;
}

bool wants_prefix(const uct::ofi::md &domain, ucs::config::ternary asked)
{
    using ucs::config::ternary;
    if (domain.on_node() || domain.provider.msg() || asked == ternary::no) {
        return false;
    }
    return asked == ternary::yes || !keeps_order(domain.info.get());
}

limits find_limits(const uct::ofi::md &domain, const uct_iface_config &config)
{
    const fi_info &info = *domain.info;
    limits l{};
    l.segment = config.v.seg_size == ucs::config::memunits_auto || config.v.seg_size == 0
                    ? default_segment(domain, config.v.fifo)
                    : std::max<size_t>(config.v.seg_size, 512);
    l.prefix = wants_prefix(domain, config.v.sequence) ? sizeof(order_prefix) : 0;
    l.segment = std::min(l.segment, info.ep_attr->max_msg_size - l.prefix);
    // What is injected has no completion to bound the window by.
    l.inject = l.prefix ? 0 : std::min(info.tx_attr->inject_size, l.segment);
    l.whole = domain.on_node() ? l.inject : l.segment; // see parts.h
    l.plain = !domain.on_node() && !l.prefix;
    l.max_short = std::clamp(l.inject, least_short, short_limit);
    l.max_header = std::min<size_t>(l.segment, 512);
    l.on_stack = std::min(l.inject, l.max_short);
    l.batched = domain.provider.transport == "tcp" ? std::min(config.v.batch, l.segment / 4) : 0;
    // shm's queue has a bound of its own.
    l.inject_run = domain.on_node() ? SIZE_MAX : std::max(config.v.backlog / ep::most_marks, 1u);
    l.inject_run = l.prefix ? 0 : l.inject_run;
    l.rma = (info.caps & FI_RMA) != 0;
    l.max_iov = std::min<size_t>(info.tx_attr->iov_limit, max_iov);
    // Before libfabric 1.19 a receive with ignored bits of shm does not find what came before it.
    bool broken = domain.on_node() && fi_version() < FI_VERSION(1, 19);
    l.tagged = !domain.provider.msg() && (info.caps & FI_TAGGED) != 0 && !broken &&
               l.max_iov > tag_own_pieces && l.on_stack > sizeof(tag_prefix);
    if (domain.provider.transport == "shm") {
        static const bool allowed = cross_memory_allowed();
        l.put_flags = allowed ? 0 : FI_DELIVERY_COMPLETE;
        l.immediate_rma = allowed;
        // From libfabric 2.5 on it has the target copy what is injected.
        l.put_inject = allowed && fi_version() < FI_VERSION(2, 5) ? l.on_stack : 0;
    } else {
        l.put_flags = domain.provider.transport == "verbs" ? 0 : FI_DELIVERY_COMPLETE;
    }
    l.atomic_flags = domain.provider.transport == "verbs" ? 0 : FI_DELIVERY_COMPLETE;
    // shm 1.17 gives the buffer of an atomic with FI_DELIVERY_COMPLETE back twice, and two later
    // operations share it.
    l.post_by_fetch = domain.on_node();
    l.atomic32 = find_atomics(domain, FI_UINT32);
    l.atomic64 = find_atomics(domain, FI_UINT64);
    l.overtaken = find_overtaken(domain, l);
    return l;
}

// How many peers an interface can have: connected endpoints take one of the core's each, and so do
// peers of shm, whose number is that of regions which a process may map. Over sockets each takes a
// descriptor.
size_t peer_limit(const uct::ofi::md &domain)
{
    const std::string &transport = domain.provider.transport;
    size_t limit = SIZE_MAX;
    if (domain.provider.msg() || domain.on_node()) {
        limit = domain.info->domain_attr->ep_cnt;
    }
    rlimit files{};
    if ((transport == "tcp" || transport == "tcprdm") && getrlimit(RLIMIT_NOFILE, &files) == 0) {
        limit = std::min<size_t>(limit, files.rlim_cur);
    }
    return limit;
}

struct layout {
    size_t size;
    size_t payload; // offset of the payload
};

// Offset of a receive buffer's payload: room for the headroom and the pointer before it, or for
// what comes before a tagged message, and the alignment that was asked for.
layout receive_layout(size_t headroom, size_t segment, size_t align, size_t align_offset)
{
    align = std::max<size_t>(align, 16);
    size_t least = sizeof(receive_op) + std::max(sizeof(void *) + headroom, sizeof(tag_prefix));
    size_t payload = (least + align_offset + align - 1) / align * align - align_offset;
    if (payload < least) {
        payload += align;
    }
    // The pointer and the user's headroom want the alignment of a pointer.
    return {payload + segment, payload};
}

} // namespace

iface::iface(const uct_iface_ops_t &table, uct_worker &worker, uct::ofi::md &owner_md,
             const uct_iface_params_t &params, const uct_iface_config &config)
    : uct::iface(table, worker, owner_md, params), domain(owner_md),
      limit(find_limits(owner_md, config)), tx_queue_len(config.v.tx_queue_len),
      max_num_eps(config.v.max_num_eps),
      signal_cpu(params.field_mask & UCT_IFACE_PARAM_FIELD_CPU_MASK
                     ? ucs_cpu_set_find_lcs(&params.cpu_mask)
                     : -1),
      ops_({.object_size = std::max(sizeof(flush_op), sizeof(zcopy_op)),
            .chunk = 256,
            .object_init =
                [](void *, void *object) {
                    auto *o = static_cast<op *>(object);
                    o->has_buffer = false;
                    o->link = {};
                }}),
      buffers_({.object_size = sizeof(buffer_op) + limit.prefix + limit.segment,
                .chunk = 64,
                .max = 1024,
                .arg = this,
                .object_init =
                    [](void *arg, void *object) {
                        auto *b = static_cast<buffer_op *>(object);
                        b->has_buffer = true;
                        b->link = {};
                        b->order = nullptr;
                        b->data = reinterpret_cast<char *>(b + 1) +
                                  static_cast<iface *>(arg)->limit.prefix;
                    },
                .chunk_alloc =
                    [](void *arg, size_t size, size_t align, void **cookie) {
                        return static_cast<iface *>(arg)->alloc_chunk(size, align, cookie);
                    },
                .chunk_free = free_chunk,
                .object_cookie =
                    [](void *, void *object, void *cookie) {
                        static_cast<buffer_op *>(object)->desc =
                            cookie ? static_cast<memory *>(cookie)->desc : nullptr;
                    }}),
      receives_(
          {.object_size =
               receive_layout(rx_headroom_, limit.segment, am_alignment_, am_align_offset_).size,
           .align = std::max<size_t>(64, am_alignment_),
           .chunk = 64,
           .arg = this,
           .object_init =
               [](void *arg, void *object) {
                   static_cast<iface *>(arg)->init_receive(static_cast<receive_op *>(object));
               },
           .chunk_alloc =
               [](void *arg, size_t size, size_t align, void **cookie) {
                   return static_cast<iface *>(arg)->alloc_chunk(size, align, cookie);
               },
           .chunk_free = free_chunk,
           .object_cookie =
               [](void *, void *object, void *cookie) {
                   static_cast<receive_op *>(object)->desc =
                       cookie ? static_cast<memory *>(cookie)->desc : nullptr;
               }})
{
    if (owner_md.on_node()) {
        parts_ = std::make_unique<part_assembly>(receives_, limit.segment);
    }
    if (limit.prefix) {
        order_ = std::make_unique<receive_order>(receives_);
        plain_ = am_special; // none has all of these
    }
    // On-node peers are watched in any case.
    if ((params.field_mask & UCT_IFACE_PARAM_FIELD_KEEPALIVE_INTERVAL) &&
        params.keepalive_interval > 0 && !domain.on_node()) {
        keepalive_ = std::make_unique<keepalive>(params.keepalive_interval);
    }
}

iface::~iface()
{
    order_.reset(); // it gives buffers back
    while (op *o = flushes_.pop_front()) {
        put(o);
    }
}

void *iface::alloc_chunk(size_t size, size_t align, void **cookie)
{
    void *chunk = std::aligned_alloc(align, (size + align - 1) / align * align);
    *cookie = nullptr;
    if (chunk && domain.needs_local) {
        ucs_status_t status =
            ucs::guard([&] { *cookie = new memory(domain.reg_local(chunk, size)); });
        if (status != UCS_OK) {
            std::free(chunk);
            return nullptr;
        }
    }
    return chunk;
}

void iface::free_chunk(void *, void *chunk, size_t, void *cookie)
{
    delete static_cast<memory *>(cookie);
    std::free(chunk);
}

void iface::init_receive(receive_op *r)
{
    r->what = op::kind::receive;
    r->has_buffer = false;
    r->owner = nullptr;
    r->completion = nullptr;
    r->release.cb = release_desc;
    r->release.owner = r;
    r->home = this;
    peer_srx::prepare(r);
    size_t offset =
        receive_layout(rx_headroom_, limit.segment, am_alignment_, am_align_offset_).payload;
    r->payload = reinterpret_cast<char *>(r) + offset;
    restore_release(r);
}

// What stands before the payload may have been overwritten by a prefix.
void iface::restore_release(receive_op *r)
{
    uct_recv_desc_t *release = &r->release;
    memcpy(r->payload - rx_headroom_ - sizeof(void *), &release, sizeof(void *));
}

namespace {

// The core net signals each completion and leaves it to fi_trywait() to take the signal back, but
// its fi_trywait() does nothing: from the first one on the descriptor is readable. fi_wait() does.
// That, and what it needs, are called by their tables: libfabric 2.x, without net, warns of them.
bool trywait_does_nothing(const fi_info &info)
{
    return strcmp(info.fabric_attr->prov_name, "net") == 0;
}

} // namespace

fid_ptr<fid_cq> iface::open_cq(size_t size)
{
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_DATA;
    attr.wait_obj = domain.has_wait_fd() ? FI_WAIT_FD : FI_WAIT_NONE;
    if (attr.wait_obj == FI_WAIT_FD && trywait_does_nothing(*domain.info)) {
        fi_wait_attr with{FI_WAIT_FD, 0};
        fid_wait *wait = nullptr;
        fid_fabric *fabric = domain.fabric.get();
        check(fabric->ops->wait_open(fabric, &with, &wait), "fi_wait_open");
        waited_with_.reset(wait);
        attr.wait_obj = FI_WAIT_SET;
        attr.wait_set = wait;
    }
    fid_cq *cq = nullptr;
    if (signal_cpu >= 0) {
        attr.flags |= FI_AFFINITY;
        attr.signaling_vector = signal_cpu;
    }
    int ret;
    do {
        attr.size = size;
        ret = fi_cq_open(domain.domain.get(), &attr, &cq, nullptr);
        if (ret != 0 && (attr.flags & FI_AFFINITY)) {
            attr.flags = 0; // the device has not that many vectors
            continue;
        }
        size /= 2;
    } while (ret != 0 && size >= 64);
    check(ret, "fi_cq_open");
    return fid_ptr<fid_cq>(cq);
}

unsigned iface::receives_wanted(const uct_iface_config &config) const
{
    constexpr unsigned usual = 256;
    // Who sends no messages gets none; a few for peers that do all the same.
    constexpr unsigned few = 16;
    if (config.v.rx_queue_len) {
        return config.v.rx_queue_len;
    }
    return wants(UCT_IFACE_FEATURE_AM | UCT_IFACE_FEATURE_TAG) ? usual : few;
}

int iface::wait_on(const std::vector<fid_t> &queues)
{
    if (waits_.fd() < 0 && !waits_.open(queues, keepalive_ ? keepalive_->fd() : -1)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED, "%s gives no descriptor to wait on",
                         domain.provider.transport.c_str());
    }
    return waits_.fd();
}

ucs_status_t iface::try_wait(std::vector<fid_t> queues)
{
    if (waited_with_) {
        int ret = waited_with_->ops->wait(waited_with_.get(), 0);
        return ret == 0 ? UCS_ERR_BUSY : ret == -FI_ETIMEDOUT ? UCS_OK : status_of(ret);
    }
    int ret = fi_trywait(domain.fabric.get(), queues.data(), static_cast<int>(queues.size()));
    return ret == 0 ? UCS_OK : ret == -FI_EAGAIN ? UCS_ERR_BUSY : status_of(ret);
}

void iface::announce_event(int fd)
{
    if (event_watch_) {
        event_watch_.set_events(EPOLLIN | EPOLLONESHOT); // a callback may be running
    } else if (async_event_cb_) {
        event_watch_ = ucs::async_watch::fd(
            fd, EPOLLIN | EPOLLONESHOT,
            [](void *arg, uint32_t) {
                auto *self = static_cast<iface *>(arg);
                self->async_event_cb_(self->async_event_arg_, UCT_EVENT_RECV | UCT_EVENT_SEND_COMP);
            },
            this);
    }
}

void iface::fill_attr(uct_iface_attr_t *attr) const
{
    memset(attr, 0, offsetof(uct_iface_attr_t, dev_num_paths) + sizeof(attr->dev_num_paths));
    attr->cap.flags = UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                      UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_CB_SYNC |
                      UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE | UCT_IFACE_FLAG_EP_CHECK;
    attr->cap.am.max_short = limit.max_short;
    attr->cap.am.max_bcopy = limit.segment;
    attr->cap.am.max_zcopy = limit.whole;
    attr->cap.am.max_hdr = limit.max_header;
    attr->cap.am.max_iov = max_iov - 1; // the header takes one; what the core cannot is copied
    attr->cap.am.opt_zcopy_align = 1;
    attr->cap.am.align_mtu = 1;
    if (limit.rma) {
        attr->cap.flags |= UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY |
                           UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_BCOPY |
                           UCT_IFACE_FLAG_GET_ZCOPY;
        attr->cap.put.max_short = limit.max_short;
        attr->cap.put.max_bcopy = limit.segment;
        attr->cap.put.max_zcopy = std::min<size_t>(domain.info->ep_attr->max_msg_size, 1ul << 30);
        attr->cap.put.max_iov = limit.max_iov;
        attr->cap.put.opt_zcopy_align = 1;
        attr->cap.put.align_mtu = 1;
        if (limit.immediate_rma) {
            attr->cap.flags |= UCT_IFACE_FLAG_GET_SHORT;
        }
        attr->cap.get = {.max_short = limit.immediate_rma ? limit.max_short : 0,
                         .max_bcopy = limit.segment,
                         .min_zcopy = 0,
                         .max_zcopy = attr->cap.put.max_zcopy,
                         .opt_zcopy_align = 1,
                         .align_mtu = 1,
                         .max_iov = limit.max_iov};
    }
    attr->cap.atomic32 = {.op_flags = limit.atomic32.post, .fop_flags = limit.atomic32.fetch};
    attr->cap.atomic64 = {.op_flags = limit.atomic64.post, .fop_flags = limit.atomic64.fetch};
    if (limit.atomic64.post | limit.atomic64.fetch) {
        attr->cap.flags |=
            domain.on_node() ? UCT_IFACE_FLAG_ATOMIC_CPU : UCT_IFACE_FLAG_ATOMIC_DEVICE;
    }
    if (limit.tagged) {
        attr->cap.flags |= UCT_IFACE_FLAG_TAG_EAGER_SHORT | UCT_IFACE_FLAG_TAG_EAGER_BCOPY |
                           UCT_IFACE_FLAG_TAG_EAGER_ZCOPY;
        size_t longest = limit.whole - sizeof(tag_prefix);
        attr->cap.tag.recv = {.min_recv = 0,
                              .max_zcopy = SIZE_MAX,
                              .max_iov = limit.max_iov - tag_own_pieces,
                              .max_outstanding = tag_receives::max_outstanding};
        attr->cap.tag.eager = {.max_short = limit.on_stack - sizeof(tag_prefix),
                               .max_bcopy = longest,
                               .max_zcopy = longest,
                               .max_iov = limit.max_iov - 1};
    }
    attr->max_num_eps = max_num_eps ? max_num_eps : peer_limit(domain);
    attr->dev_num_paths = 1;
}

void iface::set_figures(uct_iface_attr_t *attr, bool loopback) const
{
    link_figures link = figures_of(domain.provider, domain.dev, loopback);
    attr->overhead = link.overhead;
    attr->latency = {.c = link.latency, .m = 0};
    // Each process on the node copies for itself, devices are shared.
    attr->bandwidth = domain.on_node()
                          ? uct_ppn_bandwidth_t{.dedicated = link.bandwidth, .shared = 0}
                          : uct_ppn_bandwidth_t{.dedicated = 0, .shared = link.bandwidth};
}

void iface::fail(ep *victim, ucs_status_t status)
{
    if (victim->status() != UCS_OK) {
        return; // it has failed or was cancelled, and the user knows
    }
    victim->set_failed(status);
    failing_ = victim;
    victim->fail_operations(status);
    if (std::exchange(failing_, nullptr) == victim) {
        report_error(victim, status);
    }
}

unsigned iface::keep_alive()
{
    keepalive_->begun();
    check_peers();
    return 1;
}

ucs_status_t iface::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        auto *created = new ep(*this);
        if (params.field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) {
            // By pointer to member: an old caller's params end before the lengths.
            auto length = [&](uint64_t field, size_t uct_ep_params_t::*value) {
                return params.field_mask & field ? params.*value : SIZE_MAX;
            };
            try {
                attach(*created, {params.dev_addr,
                                  length(UCT_EP_PARAM_FIELD_DEV_ADDR_LENGTH,
                                         &uct_ep_params_t::dev_addr_length),
                                  params.iface_addr,
                                  length(UCT_EP_PARAM_FIELD_IFACE_ADDR_LENGTH,
                                         &uct_ep_params_t::iface_addr_length)});
            } catch (...) {
                created->destroy();
                throw;
            }
        }
        *ep_p = created;
    });
}

ucs_status_t iface::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        return UCS_ERR_UNSUPPORTED; // each endpoint by itself
    }
    flush_batches();
    // What waits has been taken from the user, or is the user's own request.
    if (has_waiting()) {
        return completion ? UCS_ERR_NO_RESOURCE : UCS_INPROGRESS;
    }
    if (outstanding_ == 0) {
        return UCS_OK;
    }
    if (completion && !mark_flush(completion)) {
        return UCS_ERR_NO_RESOURCE;
    }
    return UCS_INPROGRESS;
}

// completion nullptr: a fence's.
bool iface::mark_flush(uct_completion_t *completion)
{
    auto *f = static_cast<flush_op *>(get_op());
    if (!f) {
        return false;
    }
    f->what = op::kind::flush_mark;
    f->owner = nullptr;
    f->completion = completion;
    f->sequence = posted_;
    f->left = outstanding_;
    flushes_.push_back(f);
    return true;
}

void iface::attach(ep &from, const peer_address &to)
{
    connect(from, to);
    if (fenced_) {
        from.close_fence(ep::interface_fence);
    }
}

ucs_status_t iface::fence(unsigned)
{
    flush_batches();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool overtaken = false;
    for_each_ep([&](ep &e) { overtaken |= e.last_overtaken() != nullptr; });
    if (!overtaken || fenced_) {
        return UCS_OK;
    }
    if (!mark_flush(nullptr)) {
        return UCS_ERR_NO_RESOURCE;
    }
    fenced_ = true;
    for_each_ep([](ep &e) { e.close_fence(ep::interface_fence); });
    return UCS_OK;
}

void iface::open_fence()
{
    fenced_ = false;
    for_each_ep([](ep &e) { e.open_fence(ep::interface_fence); });
}

void iface::count_flushed(uint64_t sequence)
{
    for (op *o : flushes_) {
        auto *f = static_cast<flush_op *>(o);
        if (sequence <= f->sequence && --f->left == 0) {
            flush_done_ = true;
        }
    }
}

// An earlier flush is over whenever a later one is.
unsigned iface::complete_flushes()
{
    flush_done_ = false;
    unsigned count = 0;
    while (!flushes_.empty() && static_cast<flush_op *>(flushes_.front())->left == 0) {
        op *done = flushes_.pop_front();
        uct_completion_t *completion = done->completion;
        put(done);
        if (completion) {
            complete(completion, UCS_OK);
        } else {
            open_fence();
        }
        ++count;
    }
    return count;
}

} // namespace uct::ofi
