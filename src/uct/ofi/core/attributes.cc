// SPDX-License-Identifier: BSD-3-Clause
// What uct_iface_query() tells of an interface over any core.
#include "uct/ofi/core/iface.h"
#include "uct/ofi/fabric/link.h"

#include <algorithm>
#include <cstring>

namespace uct::ofi {

void iface::fill_attr(uct_iface_attr_t *attr) const
{
    memset(attr, 0, offsetof(uct_iface_attr_t, dev_num_paths) + sizeof(attr->dev_num_paths));
    attr->cap.flags = UCT_IFACE_FLAG_AM_SHORT | UCT_IFACE_FLAG_AM_BCOPY | UCT_IFACE_FLAG_AM_ZCOPY |
                      UCT_IFACE_FLAG_PENDING | UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                      UCT_IFACE_FLAG_CONNECT_TO_EP | UCT_IFACE_FLAG_CB_SYNC |
                      UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE | UCT_IFACE_FLAG_EP_CHECK;
    attr->cap.am.max_short = limit.max_short;
    attr->cap.am.max_bcopy = limit.segment;
    attr->cap.am.max_zcopy = limit.segment;
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
        attr->cap.flags |= limit.atomics;
    }
    attr->max_num_eps = max_num_eps ? max_num_eps : limit.max_peers;
    attr->dev_num_paths = 1;
}

void iface::set_figures(uct_iface_attr_t *attr, bool loopback) const
{
    link_figures link = figures_of(domain.provider, domain.dev, loopback);
    attr->overhead = link.overhead;
    attr->latency = {.c = link.latency, .m = 0};
    attr->bandwidth = limit.own_bandwidth
                          ? uct_ppn_bandwidth_t{.dedicated = link.bandwidth, .shared = 0}
                          : uct_ppn_bandwidth_t{.dedicated = 0, .shared = link.bandwidth};
}

} // namespace uct::ofi
