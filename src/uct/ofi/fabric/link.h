// SPDX-License-Identifier: BSD-3-Clause
// What a device's link is good for, in the figures that uct_iface_query() gives.
#pragma once

#include "uct/ofi/fabric/info.h"

#include <string>

namespace uct::ofi {

struct link_figures {
    double bandwidth; // bytes per second
    double latency;   // seconds on the way
    double overhead;  // seconds of the CPU, per operation
};

// From the core's link attributes, else from what the kernel says of the network interface, else of
// an ordinary device. loopback: over tcp, within the host.
link_figures figures_of(const core &c, const device &d, bool loopback);

} // namespace uct::ofi
