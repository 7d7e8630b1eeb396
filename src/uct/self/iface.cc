// SPDX-License-Identifier: BSD-3-Clause
// The interface: its descriptors, its queue and its attributes.
#include "uct/self/iface.h"

#include "uct/base/atomic.h"
#include "uct/self/ep.h"

#include <algorithm>
#include <cstring>
#include <sys/eventfd.h>
#include <unistd.h>

namespace uct::self {

namespace {

constexpr size_t default_segment = 8192;
constexpr size_t least_segment = 512; // room for a header
constexpr unsigned queue_length = 256;

constexpr size_t payload_offset(size_t headroom, size_t align, size_t align_offset)
{
    size_t least = sizeof(message) + sizeof(void *) + headroom;
    return (least + align_offset + align - 1) / align * align - align_offset;
}

size_t segment_of(const uct_iface_config &config)
{
    size_t asked = config.v.seg_size;
    return asked == ucs::config::memunits_auto || asked == 0 ? default_segment
                                                             : std::max(asked, least_segment);
}

} // namespace

iface::iface(uct_worker &worker, uct_md &domain, const uct_iface_params_t &params,
             const uct_iface_config &config)
    : uct::iface(operations(), worker, domain, params), segment_(segment_of(config)),
      max_num_eps_(config.v.max_num_eps),
      most_queued_(config.v.tx_queue_len ? config.v.tx_queue_len : queue_length),
      messages_(
          {.object_size =
               payload_offset(rx_headroom_, std::max<size_t>(16, am_alignment_), am_align_offset_) +
               segment_,
           .align = std::max<size_t>(64, am_alignment_),
           .chunk = 32,
           .arg = this,
           .object_init = [](void *arg, void *object) {
               auto *home = static_cast<self::iface *>(arg);
               auto *m = static_cast<message *>(object);
               m->release.cb = [](uct_recv_desc_t *self, void *) {
                   auto *kept = reinterpret_cast<message *>(self);
                   kept->home->put(kept);
               };
               m->home = home;
               m->payload =
                   static_cast<char *>(object) +
                   payload_offset(home->rx_headroom_, std::max<size_t>(16, home->am_alignment_),
                                  home->am_align_offset_);
               uct_recv_desc_t *release = &m->release;
               memcpy(m->payload - home->rx_headroom_ - sizeof(void *), &release, sizeof(void *));
           }})
{
    poll_ = poll<self::iface>;
}

iface::~iface()
{
    if (event_fd_ >= 0) {
        ::close(event_fd_);
    }
}

ucs_status_t iface::event_fd_get(int *fd)
{
    if (event_fd_ < 0) {
        event_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (event_fd_ < 0) {
            return UCS_ERR_IO_ERROR;
        }
    }
    *fd = event_fd_;
    return UCS_OK;
}

ucs_status_t iface::event_arm(unsigned)
{
    armed_ = false;
    if (!queue_.empty()) {
        return UCS_ERR_BUSY;
    }
    uint64_t value;
    if (event_fd_ >= 0 && read(event_fd_, &value, sizeof(value)) == sizeof(value)) {
        return UCS_ERR_BUSY;
    }
    armed_ = event_fd_ >= 0;
    return UCS_OK;
}

// Another thread of this process sends, while the one that would receive sleeps.
void iface::wake()
{
    armed_ = false;
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(event_fd_, &one, sizeof(one));
}

unsigned iface::progress()
{
    return UCS_LIKELY(queued_ == 0) ? progress_pending() : deliver_queued() + progress_pending();
}

unsigned iface::deliver_queued()
{
    unsigned count = 0;
    // What the handlers send waits for the next round.
    for (unsigned n = queued_; n > 0 && !queue_.empty(); --n) {
        message *m = queue_.pop();
        --queued_;
        if (deliver(m->id, m->payload, m->length, UCT_CB_PARAM_FLAG_DESC) != UCS_INPROGRESS) {
            put(m);
        }
        ++count;
    }
    return count;
}

ucs_status_t iface::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        bool given = (params.field_mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) != 0;
        if (given && !is_reachable(params.dev_addr, params.iface_addr)) {
            throw ucs::error(UCS_ERR_UNREACHABLE,
                             "uct_ep_create: params->iface_addr is of another interface, and self "
                             "reaches only its own");
        }
        auto *created = new ep(*this);
        if (given) {
            created->set_connected();
        }
        *ep_p = created;
    });
}

ucs_status_t iface::query(uct_iface_attr_t *attr)
{
    memset(attr, 0, offsetof(uct_iface_attr_t, dev_num_paths) + sizeof(attr->dev_num_paths));
    attr->cap.flags =
        UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
        UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
        UCT_IFACE_FLAG_GET_SHORT | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
        UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
        UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_EP_CHECK;
    attr->cap.am = {.max_short = segment_,
                    .max_bcopy = segment_,
                    .min_zcopy = 0,
                    .max_zcopy = segment_,
                    .opt_zcopy_align = 1,
                    .align_mtu = 1,
                    .max_hdr = max_header,
                    .max_iov = max_pieces};
    attr->cap.put = {.max_short = UINT_MAX,
                     .max_bcopy = SIZE_MAX,
                     .min_zcopy = 0,
                     .max_zcopy = SIZE_MAX,
                     .opt_zcopy_align = 1,
                     .align_mtu = 1,
                     .max_iov = max_pieces};
    attr->cap.get = {.max_short = UINT_MAX,
                     .max_bcopy = SIZE_MAX,
                     .min_zcopy = 0,
                     .max_zcopy = SIZE_MAX,
                     .opt_zcopy_align = 1,
                     .align_mtu = 1,
                     .max_iov = max_pieces};
    attr->cap.atomic32 = {.op_flags = cpu_atomic_post, .fop_flags = cpu_atomic_fetch};
    attr->cap.atomic64 = attr->cap.atomic32;
    attr->cap.event_flags =
        UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    attr->device_addr_len = 0;
    attr->iface_addr_len = sizeof(address);
    attr->ep_addr_len = sizeof(address);
    // UCX's of its self: there is no device that could tell.
    attr->overhead = 10e-9;
    attr->bandwidth = {.dedicated = 19360.0 * 1024 * 1024, .shared = 0};
    attr->latency = {.c = 0, .m = 0};
    attr->max_num_eps = max_num_eps_ ? max_num_eps_ : SIZE_MAX;
    attr->dev_num_paths = 1;
    return UCS_OK;
}

ucs_status_t iface::get_device_address(uct_device_addr_t *)
{
    return UCS_OK; // of length 0
}

ucs_status_t iface::get_address(uct_iface_addr_t *to)
{
    address own{id_};
    memcpy(to, &own, sizeof(own));
    return UCS_OK;
}

int iface::is_reachable(const uct_device_addr_t *, const uct_iface_addr_t *other)
{
    address theirs{0};
    if (other) {
        memcpy(&theirs, other, sizeof(theirs));
    }
    return theirs.id == id_;
}

ucs_status_t iface::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        return UCS_ERR_UNSUPPORTED; // each endpoint by itself
    }
    if (has_waiting()) {
        return completion ? UCS_ERR_NO_RESOURCE : UCS_INPROGRESS;
    }
    return UCS_OK; // every operation is done when its call returns
}

} // namespace uct::self
