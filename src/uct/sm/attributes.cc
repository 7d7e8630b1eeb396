// SPDX-License-Identifier: BSD-3-Clause
// What an interface of `sm` can do.
#include "uct/base/atomic.h"
#include "uct/sm/iface.h"

#include <cstddef>
#include <cstring>

namespace uct::sm {

namespace {

constexpr size_t largest_copy = 1ul << 30; // bytes of one put or get

} // namespace

ucs_status_t iface::query(uct_iface_attr_t *attr)
{
    memset(attr, 0, offsetof(uct_iface_attr_t, dev_num_paths) + sizeof(attr->dev_num_paths));
    attr->cap.flags =
        UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
        UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_BCOPY | UCT_IFACE_FLAG_PUT_ZCOPY |
        UCT_IFACE_FLAG_GET_SHORT | UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY |
        UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
        UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_EP_CHECK |
        UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE;
    attr->cap.am = {.max_short = segment_,
                    .max_bcopy = segment_,
                    .min_zcopy = 0,
                    .max_zcopy = segment_,
                    .opt_zcopy_align = 1,
                    .align_mtu = 1,
                    .max_hdr = max_header,
                    .max_iov = max_pieces};
    attr->cap.put = {.max_short = part_size,
                     .max_bcopy = part_size,
                     .min_zcopy = 0,
                     .max_zcopy = largest_copy,
                     .opt_zcopy_align = 1,
                     .align_mtu = 1,
                     .max_iov = max_pieces};
    attr->cap.get = {.max_short = part_size,
                     .max_bcopy = part_size,
                     .min_zcopy = 0,
                     .max_zcopy = largest_copy,
                     .opt_zcopy_align = 1,
                     .align_mtu = 1,
                     .max_iov = max_pieces};
    attr->cap.atomic32 = {.op_flags = cpu_atomic_post, .fop_flags = cpu_atomic_fetch};
    attr->cap.atomic64 = attr->cap.atomic32;
    attr->cap.event_flags = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV |
                            UCT_IFACE_FLAG_EVENT_FD | UCT_IFACE_FLAG_EVENT_ASYNC_CB;
    attr->device_addr_len = sizeof(device_address);
    attr->iface_addr_len = sizeof(iface_address);
    attr->ep_addr_len = sizeof(iface_address);
    attr->overhead = 10e-9; // UCX's of its shared memory
    attr->bandwidth = {.dedicated = 12179.0 * 1024 * 1024, .shared = 0};
    attr->latency = {.c = 80e-9, .m = 0};
    attr->max_num_eps = max_num_eps_ ? max_num_eps_ : SIZE_MAX;
    attr->dev_num_paths = 1;
    return UCS_OK;
}

} // namespace uct::sm
