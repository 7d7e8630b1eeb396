// SPDX-License-Identifier: BSD-3-Clause
// Opening what both kinds of interface have, and their attributes.
#include "uct/ofi/iface.h"

#include "uct/ofi/ep.h"
#include "uct/ofi/error.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace uct::ofi {

namespace {

constexpr size_t default_segment = 8192;
constexpr size_t least_short = 128;

// Whether one process may copy to another's memory here. shm's writes are done when they return
// only then.
bool cross_memory_allowed()
{
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

limits find_limits(const uct::ofi::md &domain, const uct_iface_config &config)
{
    const fi_info &info = *domain.info;
    limits l{};
    l.segment = config.v.seg_size == ucs::config::memunits_auto || config.v.seg_size == 0
                    ? default_segment
                    : std::max<size_t>(config.v.seg_size, 512);
    l.segment = std::min(l.segment, info.ep_attr->max_msg_size);
    l.inject = std::min(info.tx_attr->inject_size, l.segment);
    l.max_short = std::clamp(l.inject, least_short, short_limit);
    l.max_header = std::min<size_t>(l.segment, 512);
    l.on_stack = std::min(l.inject, l.max_short);
    l.rma = (info.caps & FI_RMA) != 0;
    l.max_iov = std::min<size_t>(info.tx_attr->iov_limit, max_iov);
    if (domain.provider.transport == "shm") {
        static const bool allowed = cross_memory_allowed();
        l.put_flags = allowed ? 0 : FI_DELIVERY_COMPLETE;
        l.immediate_rma = allowed;
    } else {
        l.put_flags = domain.provider.transport == "verbs" ? 0 : FI_DELIVERY_COMPLETE;
    }
    return l;
}

struct layout {
    size_t size;
    size_t payload; // offset of the payload
};

// Offset of a receive buffer's payload: room for the headroom and the pointer before it, and the
// alignment that was asked for.
layout receive_layout(size_t headroom, size_t segment, size_t align, size_t align_offset)
{
    align = std::max<size_t>(align, 16);
    size_t least = sizeof(receive_op) + sizeof(void *) + headroom;
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
      max_num_eps(config.v.max_num_eps), ops_({.object_size = sizeof(op),
                                               .chunk = 256,
                                               .object_init =
                                                   [](void *, void *object) {
                                                       auto *o = static_cast<op *>(object);
                                                       o->has_buffer = false;
                                                       o->link = {};
                                                   }}),
      buffers_({.object_size = sizeof(buffer_op) + limit.segment,
                .chunk = 64,
                .max = 1024,
                .arg = this,
                .object_init =
                    [](void *, void *object) {
                        auto *b = static_cast<buffer_op *>(object);
                        b->has_buffer = true;
                        b->link = {};
                        b->data = reinterpret_cast<char *>(b + 1);
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
}

iface::~iface() = default;

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
    size_t offset =
        receive_layout(rx_headroom_, limit.segment, am_alignment_, am_align_offset_).payload;
    r->payload = reinterpret_cast<char *>(r) + offset;
    uct_recv_desc_t *release = &r->release;
    memcpy(r->payload - rx_headroom_ - sizeof(void *), &release, sizeof(void *));
}

fid_ptr<fid_cq> iface::open_cq(size_t size)
{
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_DATA;
    attr.wait_obj = domain.provider.msg() ? FI_WAIT_FD : FI_WAIT_NONE;
    fid_cq *cq = nullptr;
    int ret;
    do {
        attr.size = size;
        ret = fi_cq_open(domain.domain.get(), &attr, &cq, nullptr);
        size /= 2;
    } while (ret != 0 && size >= 64);
    check(ret, "fi_cq_open");
    return fid_ptr<fid_cq>(cq);
}

void iface::fill_attr(uct_iface_attr_t *attr) const
{
    memset(attr, 0, offsetof(uct_iface_attr_t, dev_num_paths) + sizeof(attr->dev_num_paths));
    attr->cap.flags = UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                      UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                      UCT_IFACE_FLAG_EP_CHECK;
    attr->cap.am.max_short = limit.max_short;
    attr->cap.am.max_bcopy = limit.segment;
    attr->cap.am.max_zcopy = limit.segment;
    attr->cap.am.max_hdr = limit.max_header;
    attr->cap.am.max_iov = limit.max_iov - 1; // the header takes one
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
        attr->cap.get = {.max_short = 0,
                         .max_bcopy = limit.segment,
                         .min_zcopy = 0,
                         .max_zcopy = attr->cap.put.max_zcopy,
                         .opt_zcopy_align = 1,
                         .align_mtu = 1,
                         .max_iov = limit.max_iov};
    }
    attr->max_num_eps = max_num_eps ? max_num_eps : SIZE_MAX;
    attr->dev_num_paths = 1;
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
        report_error(*victim, status);
    }
}

ucs_status_t iface::flush(unsigned, uct_completion_t *completion)
{
    if (completion) {
        return UCS_ERR_UNSUPPORTED;
    }
    // What waits has been taken from the user, or is the user's own request.
    return outstanding_ == 0 && !has_waiting() ? UCS_OK : UCS_INPROGRESS;
}

} // namespace uct::ofi
