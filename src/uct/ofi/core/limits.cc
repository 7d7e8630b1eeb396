// SPDX-License-Identifier: BSD-3-Clause
// What an interface can do, by its core and its settings.
#include "uct/ofi/core/ep.h"
#include "uct/ofi/core/iface.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <sys/uio.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr size_t verbs_segment = 8192;
// Over sockets every segment costs both sides system calls: 32 KiB with the headers of the layers
// above.
constexpr size_t socket_segment = (32 << 10) + 256;
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

// What a fence has to wait for: the cores say which order they keep, and up to how many bytes. Of
// shm that is true where operations are done when they are posted; else its target copies when it
// finds the time. Atomic operations always wait for the target to progress. Nothing is ordered
// between the peer's endpoint and the one that carries its regions.
uint64_t find_overtaken(const uct::ofi::md &domain, const limits &l)
{
    uint64_t gets = bit(op::kind::get) | bit(op::kind::get_bcopy);
    uint64_t puts = bit(op::kind::put);
    uint64_t atomics = bit(op::kind::atomic) | bit(op::kind::fetch);
    if (domain.on_node()) {
        return atomics | (l.immediate_rma ? 0 : gets | puts);
    }
    uint64_t order = domain.carrier ? 0 : domain.info->tx_attr->msg_order;
    const fi_ep_attr &attr = *domain.info->ep_attr;
    auto keeps = [&](uint64_t wanted, size_t bytes) {
        return (order & wanted) == wanted && bytes >= attr.max_msg_size;
    };
    size_t after_put = std::min(attr.max_order_waw_size, attr.max_order_raw_size);
    bool gets_stay = domain.provider.answers_in_order() &&
                     keeps(FI_ORDER_WAR | FI_ORDER_SAR, attr.max_order_war_size);
    bool puts_stay = keeps(FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_SAW, after_put);
    return atomics | (gets_stay ? 0 : gets) | (puts_stay ? 0 : puts);
}

size_t default_segment(const uct::ofi::md &domain)
{
    return domain.provider.verbs() ? verbs_segment : socket_segment;
}

// What shm does not inject it has the receiver fetch, and until that is done it holds back the
// completions of everything that was posted later, to whatever peer: one that is stopped would stop
// us.
size_t largest_segment(const fi_info &info, bool on_node)
{
    return on_node ? std::min(info.tx_attr->inject_size, info.ep_attr->max_msg_size)
                   : info.ep_attr->max_msg_size;
}

bool wants_prefix(const uct::ofi::md &domain, ucs::config::ternary asked)
{
    using ucs::config::ternary;
    if (domain.on_node() || domain.provider.msg() || asked == ternary::no) {
        return false;
    }
    return asked == ternary::yes || !keeps_order(domain.info.get());
}

} // namespace

limits find_limits(const uct::ofi::md &domain, const uct_iface_config &config)
{
    const fi_info &info = *domain.info;
    limits l{};
    l.segment = config.v.seg_size == ucs::config::memunits_auto || config.v.seg_size == 0
                    ? default_segment(domain)
                    : std::max<size_t>(config.v.seg_size, 512);
    l.prefix = wants_prefix(domain, config.v.sequence) ? sizeof(order_prefix) : 0;
    l.segment = std::min(l.segment, largest_segment(info, domain.on_node()) - l.prefix);
    // What is injected has no completion to bound the window by.
    l.inject = l.prefix ? 0 : std::min(info.tx_attr->inject_size, l.segment);
    l.max_short = std::clamp(l.inject, least_short, short_limit);
    l.max_header = std::min<size_t>(l.segment, 512);
    l.on_stack = std::min(l.inject, l.max_short);
    // shm's queue has a bound of its own.
    l.inject_run = domain.on_node() ? SIZE_MAX : std::max(config.v.backlog / ep::most_marks, 1u);
    l.inject_run = l.prefix ? 0 : l.inject_run;
    l.rma = (info.caps & FI_RMA) != 0;
    l.max_iov = std::min<size_t>(info.tx_attr->iov_limit, max_iov);
    // Before libfabric 1.19 a receive with ignored bits of shm does not find what came before it.
    bool broken = domain.on_node() && fi_version() < FI_VERSION(1, 19);
    l.tagged = !domain.provider.msg() && (info.caps & FI_TAGGED) != 0 && !broken &&
               l.max_iov > tag_own_pieces && l.on_stack > sizeof(tag_prefix);
    l.shared = config.v.multi_recv && !domain.provider.msg() && !domain.on_node() &&
               (info.caps & FI_MULTI_RECV) != 0;
    if (domain.on_node()) {
        static const bool allowed = cross_memory_allowed();
        l.put_flags = allowed ? 0 : FI_DELIVERY_COMPLETE;
        l.immediate_rma = allowed;
        // From libfabric 2.5 on it has the target copy what is injected.
        l.put_inject = allowed && fi_version() < FI_VERSION(2, 5) ? l.on_stack : 0;
    } else {
        l.put_flags = domain.provider.verbs() ? 0 : FI_DELIVERY_COMPLETE;
    }
    l.atomic_flags = domain.provider.verbs() ? 0 : FI_DELIVERY_COMPLETE;
    // shm 1.17 gives the buffer of an atomic with FI_DELIVERY_COMPLETE back twice, and two later
    // operations share it.
    l.post_by_fetch = domain.on_node();
    l.atomic32 = find_atomics(domain, FI_UINT32);
    l.atomic64 = find_atomics(domain, FI_UINT64);
    l.overtaken = find_overtaken(domain, l);
    return l;
}

} // namespace uct::ofi
