// SPDX-License-Identifier: BSD-3-Clause
// The core's link attributes, and /sys/class/net. No core tells a latency or an overhead. Those are
// UCX's, so that a program that weighs our interfaces against UCX's does not compare two scales, or
// measured with the bare core.
#include "uct/ofi/fabric/link.h"

#include <fstream>

namespace uct::ofi {

namespace {

// Within the host: half a round trip of 8 bytes with the bare cores (part prov_lat of `make
// bench`), and a large copy; how it divides into both ends' work and the rest is an estimate.
constexpr link_figures shared_memory{.bandwidth = 10e9, .latency = 390e-9, .overhead = 80e-9};
constexpr link_figures tcp_loopback{.bandwidth = 4e9, .latency = 1.6e-6, .overhead = 2e-6};

constexpr double tcp_overhead = 2e-6;   // of tcp_loopback
constexpr double rdma_overhead = 75e-9; // UCX's of rc_verbs
constexpr double usual_ethernet = 10e9; // bits per second, where it is not known
constexpr double usual_rdma = 50e9;

const fi_link_attr *link_of(const device &d)
{
    for (const fi_info *info : d.infos) {
        if (info->nic && info->nic->link_attr && info->nic->link_attr->speed > 0) {
            return info->nic->link_attr;
        }
    }
    return nullptr;
}

// A number that the kernel has of a network interface; 0: none.
double kernel_says(const device &d, const char *what)
{
    std::ifstream file("/sys/class/net/" + d.name + "/" + what);
    double value = 0;
    return file >> value && value > 0 ? value : 0;
}

// UCX's formulas: 576 bits at the speed of the wire besides what two hosts need, and the part of
// the wire that is left of a full frame when its headers, checksum and gap are taken off.
link_figures ethernet(const device &d)
{
    constexpr double tcp_headers = 40;
    constexpr double frame = 38;
    const fi_link_attr *link = link_of(d);
    double speed = link ? static_cast<double>(link->speed) : kernel_says(d, "speed") * 1e6;
    if (speed == 0) {
        speed = usual_ethernet;
    }
    double mtu = link && link->mtu > 0 ? static_cast<double>(link->mtu) : kernel_says(d, "mtu");
    if (mtu <= tcp_headers) {
        mtu = 1500;
    }
    return {.bandwidth = speed / 8 * (mtu - tcp_headers) / (mtu + frame),
            .latency = 576 / speed + 5.2e-6,
            .overhead = tcp_overhead};
}

// UCX's by the generation of the link, taken here from the speed of its usual four lanes.
double rdma_latency(const fi_link_attr &link)
{
    double speed = static_cast<double>(link.speed);
    double latency = speed <= 10e9   ? 5e-6
                     : speed <= 20e9 ? 2.5e-6
                     : speed <= 40e9 ? 1.3e-6
                     : speed <= 60e9 ? 0.7e-6
                                     : 0.6e-6;
    bool ethernet = link.network_type && std::string(link.network_type) == "Ethernet";
    return ethernet ? latency + 0.2e-6 : latency;
}

} // namespace

link_figures figures_of(const core &c, const device &d, bool loopback)
{
    if (c.on_node()) {
        return shared_memory;
    }
    if (c.sockets()) {
        return loopback ? tcp_loopback : ethernet(d);
    }
    const fi_link_attr *link = link_of(d);
    return {.bandwidth = (link ? static_cast<double>(link->speed) : usual_rdma) / 8,
            .latency = link ? rdma_latency(*link) : 1e-6,
            .overhead = rdma_overhead};
}

} // namespace uct::ofi
