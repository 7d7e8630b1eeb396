// SPDX-License-Identifier: BSD-3-Clause
//
// What the ways to send a message are expected to take: seconds from the posting call to the last
// byte at the receiver, as a linear function of the length. They follow from what the lanes say of
// themselves (uct_iface_attr_t, which has the speed of the link) and from what copies and the steps
// of a rendezvous were measured to take. Where two of them cross is the threshold between two
// protocols.
#pragma once

#include "ucp/core/context.h"

#include <ucs/datastruct/linear_func.h>
#include <uct/api/uct.h>

#include <algorithm>
#include <cstddef>

namespace ucp {

using cost = ucs_linear_func_t;

// The first length, not below `from`, of which `later` takes no longer than `earlier`, and so for
// all above it. SIZE_INF: there is none.
size_t crossing(const cost &later, const cost &earlier, size_t from) noexcept;

// Bytes per second, positive.
inline double bandwidth_of(const uct_iface_attr_t &attr) noexcept
{
    return std::max(attr.bandwidth.dedicated + attr.bandwidth.shared, 1.0);
}

// A lane, as far as costs go.
struct lane_figures {
    tl_class cls = tl_class::other;
    double overhead = 0;    // seconds of a processor for each message
    double latency = 0;     // seconds on the way
    double bandwidth = 1;   // bytes per second
    bool registers = false; // it sends and reads registered memory alone
};
lane_figures figures_of(tl_class cls, const uct_iface_attr_t &iface,
                        const uct_md_attr_t &md) noexcept;

struct message_costs {
    cost copy;      // one message that is packed
    cost fragments; // as many of them as it takes
    cost zcopy;
    cost read, read_mapped; // rendezvous: of any memory, and of memory that the receiver maps
    cost put;               // by the lane that writes the target's memory
};

// am, rma: of the lanes for messages, and for reads and writes. fragment: bytes of one packed
// message. copy_bandwidth: bytes per second (UCX_BCOPY_BW).
message_costs costs_of(const lane_figures &am, const lane_figures &rma, size_t fragment,
                       double copy_bandwidth) noexcept;

// The shortest message that is better sent from where it is, and the shortest one for which a
// rendezvous pays: with `read` of `costs`, against what it takes up to zcopy and from there on.
// perf_diff: percent by which the rendezvous may be slower (UCX_RNDV_PERF_DIFF).
size_t zcopy_threshold(const message_costs &costs) noexcept;
size_t rndv_threshold(const message_costs &costs, const cost &read, size_t fragment, size_t zcopy,
                      double perf_diff) noexcept;
// The shortest put that the lane does sooner than a message that the target copies out.
size_t put_threshold(const message_costs &costs) noexcept;

} // namespace ucp
