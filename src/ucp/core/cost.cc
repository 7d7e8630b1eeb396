// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/core/cost.h"

#include <algorithm>
#include <cmath>

namespace ucp {

namespace {

// Seconds, measured with `ucx_perftest` and MPI between two processes of one host.
constexpr double usual_copy = 10000.0 * 1024 * 1024; // bytes per second, between two processors
constexpr double fragment_work = 200e-9;             // both ends, for each further message
constexpr double zcopy_work = 0.8e-6;                // the completion and what it keeps alive
constexpr double registration_work = 0.8e-6;         // to find memory in the cache of registrations
constexpr double rndv_work = 0.4e-6;                 // to announce memory, match and answer
constexpr double served_work = 1.8e-6;               // the peer's, for a message instead of a read
// To have the kernel read another process's memory: for each read, and for each byte the walk
// through its pages. While it lasts, the other process waits for the lock of its page table.
constexpr double kernel_read = 3.5e-6;
constexpr double kernel_walk = 0.013e-9;

// What no receiver has to hold that did not ask for it, however slow a rendezvous is.
constexpr size_t longest_eager = 1 << 20;

double message(const lane_figures &lane)
{
    return lane.overhead + lane.latency;
}

// From when the receiver has matched until the bytes are in its buffer, beside the transfer itself.
cost read_of(const lane_figures &lane, bool mapped)
{
    double wire = 1 / lane.bandwidth;
    switch (lane.cls) {
    case tl_class::self: // one processor does the work of both ends
        return {rndv_work, wire};
    case tl_class::shm:
        return mapped ? cost{0, wire} : cost{kernel_read, wire + kernel_walk};
    case tl_class::net:
        // A message that asks and one that answers take processors of both ends. Their latency is
        // hidden by other messages.
        return {2 * (lane.overhead + served_work), wire};
    default: // the request and the bytes
        return {lane.overhead + 2 * lane.latency, wire};
    }
}

// In shared memory the receiver copies a fragment out while the sender copies the next one in.
cost fragments_of(tl_class cls, const cost &one, double in, double out, size_t fragment)
{
    if (cls != tl_class::shm) {
        return one;
    }
    return {one.c + std::min(in, out) * static_cast<double>(fragment), std::max(in, out)};
}

// Over sockets the target answers each with a message of its own. Messages are answered once for
// all, on request.
cost put_of(const lane_figures &lane)
{
    double answer = lane.cls == tl_class::net ? 2 * fragment_work : 0;
    return {message(lane) + answer, 1 / lane.bandwidth};
}

} // namespace

size_t crossing(const cost &later, const cost &earlier, size_t from) noexcept
{
    auto start = static_cast<double>(from);
    double gain = earlier.m - later.m;
    if (gain <= 0) {
        bool always = gain == 0 && later.c <= earlier.c;
        return always ? from : SIZE_INF;
    }
    double at = std::max(std::ceil((later.c - earlier.c) / gain), start);
    return at < 1e18 ? static_cast<size_t>(at) : SIZE_INF;
}

lane_figures figures_of(tl_class cls, const uct_iface_attr_t &iface,
                        const uct_md_attr_t &md) noexcept
{
    return {.cls = cls,
            .overhead = iface.overhead,
            .latency = iface.latency.c,
            .bandwidth = bandwidth_of(iface),
            .registers = (md.cap.flags & UCT_MD_FLAG_NEED_MEMH) != 0};
}

message_costs costs_of(const lane_figures &am, const lane_figures &rma, size_t fragment,
                       double copy_bandwidth) noexcept
{
    double copy = 1 / (copy_bandwidth != 0 ? copy_bandwidth : usual_copy);
    double wire = 1 / am.bandwidth;
    double further =
        (am.overhead + fragment_work) / static_cast<double>(std::max<size_t>(fragment, 1));
    double lookup = am.registers ? registration_work : 0;
    message_costs c;
    // On a node the copy into the receiver's queue is the transfer.
    c.copy = {message(am), (on_node(am.cls) ? wire : copy + wire) + copy};
    c.fragments = fragments_of(am.cls, c.copy, wire, copy, fragment);
    c.fragments.m += further;
    c.zcopy = on_node(am.cls) ? c.copy : cost{message(am), wire + copy};
    c.zcopy.c += zcopy_work + lookup;
    // The announcement, and the answer that the sender waits for.
    cost around = {
        message(am) + rndv_work + am.overhead + (rma.registers ? 2 * registration_work : 0), 0};
    c.read = ucs_linear_func_add(around, read_of(rma, false));
    c.read_mapped = ucs_linear_func_add(around, read_of(rma, true));
    c.put = put_of(rma);
    return c;
}

size_t zcopy_threshold(const message_costs &costs) noexcept
{
    return crossing(costs.zcopy, costs.copy, 1);
}

size_t put_threshold(const message_costs &costs) noexcept
{
    return crossing(costs.put, costs.copy, 0);
}

size_t rndv_threshold(const message_costs &costs, const cost &read, size_t fragment, size_t zcopy,
                      double perf_diff) noexcept
{
    double part = 1 - perf_diff / 100;
    cost slower = {read.c * part, read.m * part};
    size_t end_copy = fragment < zcopy ? fragment + 1 : zcopy;
    const struct {
        size_t begin, end;
        const cost &taken;
    } eager[] = {{0, end_copy, costs.copy},
                 {end_copy, zcopy, costs.fragments},
                 {zcopy, SIZE_INF, costs.zcopy}};
    for (const auto &e : eager) {
        size_t at = crossing(slower, e.taken, e.begin);
        if (at < e.end) {
            return std::min(at, longest_eager);
        }
    }
    return longest_eager;
}

} // namespace ucp
