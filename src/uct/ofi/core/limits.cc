// SPDX-License-Identifier: BSD-3-Clause
// The limits of any core.
#include "uct/ofi/core/ep.h"
#include "uct/ofi/core/iface.h"

#include <algorithm>
#include <climits>
#include <sys/resource.h>

namespace uct::ofi {

namespace {

constexpr size_t verbs_segment = 8192;
// Over sockets every segment costs both sides system calls: 32 KiB with the headers of the layers
// above.
constexpr size_t socket_segment = (32 << 10) + 256;
constexpr size_t least_short = 128;

// What a fence has to wait for: the cores say which order they keep, and up to how many bytes.
// Atomic operations always wait for the target to progress. Nothing is ordered between the peer's
// endpoint and the one that carries its regions.
uint64_t find_overtaken(const uct::ofi::md &domain)
{
    uint64_t order = domain.carrier ? 0 : domain.info->tx_attr->msg_order;
    const fi_ep_attr &attr = *domain.info->ep_attr;
    auto keeps = [&](uint64_t wanted, size_t bytes) {
        return (order & wanted) == wanted && bytes >= attr.max_msg_size;
    };
    size_t after_put = std::min(attr.max_order_waw_size, attr.max_order_raw_size);
    bool gets_stay = domain.provider.answers_in_order() &&
                     keeps(FI_ORDER_WAR | FI_ORDER_SAR, attr.max_order_war_size);
    bool puts_stay = keeps(FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_SAW, after_put);
    return atomic_kinds | (gets_stay ? 0 : get_kinds) | (puts_stay ? 0 : put_kinds);
}

size_t default_segment(const uct::ofi::md &domain)
{
    return domain.provider.verbs() ? verbs_segment : socket_segment;
}

bool wants_prefix(const uct::ofi::md &domain, ucs::config::ternary asked)
{
    using ucs::config::ternary;
    if (domain.provider.msg() || asked == ternary::no) {
        return false;
    }
    return asked == ternary::yes || !keeps_order(domain.info.get());
}

// Connected endpoints take one of the core's each. Over sockets each takes a descriptor.
size_t peer_limit(const uct::ofi::md &domain)
{
    size_t limit = domain.provider.msg() ? domain.info->domain_attr->ep_cnt : SIZE_MAX;
    rlimit files{};
    if (domain.provider.sockets() && getrlimit(RLIMIT_NOFILE, &files) == 0) {
        limit = std::min<size_t>(limit, files.rlim_cur);
    }
    return limit;
}

// asked: TX_QUEUE_LEN.
unsigned copy_limit(unsigned asked)
{
    constexpr unsigned usual = 32; // more of them are not faster, once they are cold
    return asked ? std::min<unsigned>(asked, ep::most_copies) : usual;
}

} // namespace

limits find_limits(const uct::ofi::md &domain, const uct_iface_config &config, size_t longest)
{
    const fi_info &info = *domain.info;
    limits l{};
    l.segment = config.v.seg_size == ucs::config::memunits_auto || config.v.seg_size == 0
                    ? default_segment(domain)
                    : std::max<size_t>(config.v.seg_size, 512);
    l.prefix = wants_prefix(domain, config.v.sequence) ? sizeof(order_prefix) : 0;
    l.segment = std::min(l.segment, std::min(longest, info.ep_attr->max_msg_size) - l.prefix);
    // What is injected has no completion to bound the window by.
    l.inject = l.prefix ? 0 : std::min(info.tx_attr->inject_size, l.segment);
    l.max_short = std::clamp(l.inject, least_short, short_limit);
    l.max_header = std::min<size_t>(l.segment, 512);
    l.on_stack = std::min(l.inject, l.max_short);
    l.inject_run = l.prefix ? 0 : std::max(config.v.backlog / ep::most_marks, 1u);
    l.copies = domain.provider.sockets() ? copy_limit(config.v.tx_queue_len) : UINT_MAX;
    l.rma = (info.caps & FI_RMA) != 0;
    l.max_iov = std::min<size_t>(info.tx_attr->iov_limit, max_iov);
    l.tagged = !domain.provider.msg() && (info.caps & FI_TAGGED) != 0 &&
               l.max_iov > tag_own_pieces && l.on_stack > sizeof(tag_prefix);
    l.shared = config.v.multi_recv && !domain.provider.msg() && (info.caps & FI_MULTI_RECV) != 0;
    l.put_flags = domain.provider.verbs() ? 0 : FI_DELIVERY_COMPLETE;
    l.atomic_flags = domain.provider.verbs() ? 0 : FI_DELIVERY_COMPLETE;
    l.atomic32 = find_atomics(domain, FI_UINT32);
    l.atomic64 = find_atomics(domain, FI_UINT64);
    l.overtaken = find_overtaken(domain);
    l.max_peers = peer_limit(domain);
    l.atomics = UCT_IFACE_FLAG_ATOMIC_DEVICE;
    return l;
}

limits find_limits(const uct::ofi::md &domain, const uct_iface_config &config)
{
    return find_limits(domain, config, SIZE_MAX);
}

} // namespace uct::ofi
