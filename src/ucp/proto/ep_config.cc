// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/endpoint/ep_config.h"

#include "ucp/core/cost.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto_info.h"
#include "ucp/proto/protocols.h"

#include <algorithm>

namespace ucp {

constinit const ep_config no_lanes;

namespace {

constexpr size_t SHORT_HEADER = sizeof(uint64_t); // that uct_ep_am_short() carries

ep_limits limits_of(const uct_iface_attr_t &attr, size_t theirs)
{
    ep_limits l;
    size_t most_short = std::min(attr.cap.am.max_short, theirs);
    if (attr.cap.flags & UCT_IFACE_FLAG_AM_SHORT && most_short > SHORT_HEADER) {
        l.max_short = most_short - SHORT_HEADER;
    }
    l.max_bcopy = std::min(attr.cap.am.max_bcopy, theirs);
    if (attr.cap.flags & UCT_IFACE_FLAG_AM_ZCOPY) {
        l.max_zcopy = std::min(attr.cap.am.max_zcopy, theirs);
        l.max_hdr = std::min(attr.cap.am.max_hdr, theirs);
        l.max_iov = attr.cap.am.max_iov;
    }
    return l;
}

// Fills a table from the smallest size on.
struct filling {
    proto_table &table;
    uint8_t lane;
    unsigned next = 0;
    size_t begin = 0;

    void up_to(size_t end, const protocol *proto)
    {
        end = std::max(end, begin);
        if (!proto) {
            end = begin;
        }
        if (next >= proto_table::at_once && end == begin) {
            return;
        }
        table.ranges[next++] = {end, proto, lane};
        table.count = static_cast<uint8_t>(std::max(next, proto_table::at_once));
        begin = end;
    }
};

// Sizes of one kind of memory from which the next protocol is to be used, as asked for (SIZE_AUTO:
// not at all) or by default.
struct wishes {
    size_t copy, zcopy, rndv;
    size_t default_zcopy, default_rndv;
    const protocol *rendezvous; // nullptr: never
};

size_t first_of(size_t asked, size_t by_default, size_t behind)
{
    return asked == SIZE_AUTO ? std::max(by_default, behind) : asked;
}

void fill_messages(proto_table &table, const message_protocols &p, const ep_limits &limits,
                   const wishes &w, uint8_t lane, memory_kind kind)
{
    bool contiguous = kind != MEMORY_SCATTERED;
    bool may_zcopy = (kind == MEMORY_PLAIN || kind == MEMORY_MAPPED || kind == MEMORY_EAGER) &&
                     p.zcopy && w.zcopy != SIZE_INF && limits.max_iov >= 1 &&
                     limits.max_hdr >= p.zcopy_header && limits.max_zcopy > p.zcopy_header;
    size_t most_short = p.short_ && contiguous && limits.max_short ? limits.max_short + 1 : 0;
    size_t most_copy = limits.max_bcopy + 1 - std::min(limits.max_bcopy + 1, p.copy_header);
    size_t behind = p.short_first ? most_short : 0;
    size_t rndv = w.rendezvous ? first_of(w.rndv, w.default_rndv, behind) : SIZE_INF;
    size_t zcopy = SIZE_INF; // nothing is not sent from where it is
    if (may_zcopy) {
        zcopy = std::max(first_of(w.zcopy, w.default_zcopy, most_short), size_t(1));
    }
    size_t copy = std::min(first_of(w.copy, 0, most_short), zcopy);
    size_t end_short = std::min({most_short, copy, zcopy, rndv});
    // What is too long to be short, and not to be copied yet.
    bool early = may_zcopy && copy > most_short;
    filling f{table, lane};
    f.up_to(end_short, p.short_);
    size_t end_copy = std::min({most_copy, zcopy, rndv});
    f.up_to(early ? end_short : end_copy, p.copy);
    if (early) {
        f.up_to(std::min(copy, rndv), p.zcopy);
        f.up_to(end_copy, p.copy);
    }
    f.up_to(std::min(zcopy, rndv), p.fragments);
    f.up_to(may_zcopy ? rndv : f.begin, p.zcopy);
    f.up_to(SIZE_INF, w.rendezvous);
}

// The rendezvous that the lanes and the user's scheme allow. Only memory in one piece is read.
const protocol *rendezvous_of(const message_protocols &p, const ucp_ep &ep, memory_kind kind)
{
    rndv_scheme scheme = ep.worker->context->config.scheme;
    bool pushed = scheme == rndv_scheme::put_zcopy || scheme == rndv_scheme::put_ppln ||
                  scheme == rndv_scheme::am;
    bool reads = !pushed && kind != MEMORY_SCATTERED && ep.rma_lane != NO_LANE &&
                 ep.lanes[ep.rma_lane].attr().cap.flags & UCT_IFACE_FLAG_GET_ZCOPY;
    return reads ? p.read : p.send;
}

void set_lanes(proto_table &table, const protocol *proto, uint8_t lane)
{
    for (proto_range &r : table.ranges) {
        r.lane = r.proto == proto ? lane : r.lane;
    }
}

// What is taken where the user asked for nothing.
struct auto_thresholds {
    size_t zcopy, rndv, rndv_mapped;
};

struct context {
    const ucp_ep &ep;
    const ep_limits &limits;
    tl_class cls;
    auto_thresholds by_default;
};

lane_figures figures_of(const ucp_ep &ep, uint8_t lane)
{
    const ucp_context &context = *ep.worker->context;
    const tl_resource &rsc = context.resources[ep.lanes[lane].iface->resource];
    return figures_of(rsc.cls, ep.lanes[lane].attr(), context.mds[rsc.md_index].attr);
}

message_costs costs_of(const ucp_ep &ep, uint8_t rma, size_t fragment)
{
    lane_figures am = figures_of(ep, ep.am_lane_index);
    return costs_of(am, rma == NO_LANE ? am : figures_of(ep, rma), fragment,
                    ep.worker->context->config.bcopy_bw);
}

auto_thresholds thresholds_of(const ucp_ep &ep, size_t fragment)
{
    const config &config = ep.worker->context->config;
    message_costs costs = costs_of(ep, ep.rma_lane, fragment);
    size_t zcopy = zcopy_threshold(costs);
    return {zcopy, rndv_threshold(costs, costs.read, fragment, zcopy, config.rndv_perf_diff),
            rndv_threshold(costs, costs.read_mapped, fragment, zcopy, config.rndv_perf_diff)};
}

void fill_operation(ep_config::tables &tables, const message_protocols &p, const context &c)
{
    const config &config = c.ep.worker->context->config;
    for (unsigned i = 0; i < MEMORY_KINDS; ++i) {
        auto kind = static_cast<memory_kind>(i);
        bool mapped = kind == MEMORY_MAPPED || kind == MEMORY_FAST_MAPPED;
        bool eager = kind == MEMORY_EAGER || kind == MEMORY_EAGER_FAST;
        const protocol *rendezvous = eager ? nullptr : rendezvous_of(p, c.ep, kind);
        wishes w = {config.bcopy_thresh,
                    config.zcopy_thresh,
                    on_node(c.cls) ? config.rndv_thresh.intra : config.rndv_thresh.inter,
                    c.by_default.zcopy,
                    mapped ? c.by_default.rndv_mapped : c.by_default.rndv,
                    rendezvous};
        fill_messages(tables[i], p, c.limits, w, c.ep.am_lane_index, kind);
        if (rendezvous && rendezvous == p.read) {
            set_lanes(tables[i], rendezvous, c.ep.rma_lane);
        }
    }
}

// Of memory that the lane reaches. What it does not do itself goes as a message.
void fill_lane(ep_config &config, const context &c, uint8_t index)
{
    const uct_iface_attr_t &attr = c.ep.lanes[index].attr();
    const ucp::config &user = c.ep.worker->context->config;
    size_t message = 0;
    if (c.cls == tl_class::net) {
        size_t fragment = c.limits.max_bcopy;
        message = std::min(put_threshold(costs_of(c.ep, index, fragment)), fragment / 2 + 1);
    }
    size_t most_short = attr.cap.flags & UCT_IFACE_FLAG_PUT_SHORT ? attr.cap.put.max_short + 1 : 0;
    most_short = std::min({most_short, first_of(user.bcopy_thresh, 0, most_short),
                           first_of(user.zcopy_thresh, 0, most_short)});
    filling put{config.lane_put[index], index};
    put.up_to(message ? 0 : most_short, &put_short);
    put.lane = c.ep.am_lane_index;
    put.up_to(message, put_messages.copy);
    put.lane = index;
    put.up_to(most_short, &put_short);
    if (attr.cap.put.max_zcopy != 0 && attr.cap.flags & UCT_IFACE_FLAG_PUT_ZCOPY) {
        put.lane = c.ep.am_lane_index;
        put.up_to(attr.cap.put.min_zcopy, put_messages.copy);
        put.lane = index;
        put.up_to(SIZE_INF, &put_zcopy);
    }
    put.lane = c.ep.am_lane_index;
    put.up_to(SIZE_INF, put_messages.fragments);

    filling get{config.lane_get[index], c.ep.am_lane_index};
    get.up_to(0, nullptr);
    get.up_to(0, nullptr);
    if (attr.cap.get.max_zcopy != 0 && attr.cap.flags & UCT_IFACE_FLAG_GET_ZCOPY) {
        get.up_to(attr.cap.get.min_zcopy, get_messages.fragments);
        get.lane = index;
        get.up_to(SIZE_INF, &get_zcopy);
    }
    get.up_to(SIZE_INF, get_messages.fragments);
}

void fill_one(proto_table &table, const protocol *proto, uint8_t lane)
{
    filling f{table, lane};
    f.up_to(0, nullptr);
    f.up_to(0, nullptr);
    f.up_to(SIZE_INF, proto);
}

ep_config_key key_of(const ucp_ep &ep, size_t max_message)
{
    const uct_iface_attr_t &attr = ep.am_lane().attr();
    ep_config_key key;
    for (unsigned i = 0; i < ep.lane_count; ++i) {
        key.lanes[i] = ep.lanes[i].iface;
        key.dst_md[i] = ep.lanes[i].dst_md_index;
    }
    std::copy(std::begin(ep.rails), std::end(ep.rails), key.rails);
    key.lane_count = ep.lane_count;
    key.rma_lane = ep.rma_lane;
    key.rail_count = ep.rail_count;
    key.rma_rail_count = ep.rma_rail_count;
    size_t most = std::max(attr.cap.am.max_bcopy, attr.cap.am.max_zcopy);
    key.max_message = std::min(max_message, most);
    return key;
}

} // namespace

ep_config::ep_config(const ucp_ep &ep, size_t max_message)
    : key(key_of(ep, max_message)), limits(limits_of(ep.am_lane().attr(), max_message))
{
    tl_class cls = ep.worker->context->resources[ep.am_lane().iface->resource].cls;
    context c = {ep, limits, cls, thresholds_of(ep, limits.max_bcopy)};
    fill_operation(tag, tag_messages, c);
    fill_operation(tag_sync, tag_sync_messages, c);
    fill_operation(am, am_messages, c);
    fill_operation(stream, stream_messages, c);
    fill_operation(rndv_data, rndv_messages, c);
    fill_operation(put, put_messages, c);
    fill_operation(get, get_messages, c);
    const protocol *rendezvous = rendezvous_of(am_messages, ep, MEMORY_PLAIN);
    am_rndv = {SIZE_INF, rendezvous,
               rendezvous == am_messages.read ? ep.rma_lane : ep.am_lane_index};
    for (uint8_t i = 0; i < ep.lane_count; ++i) {
        fill_lane(*this, c, i);
    }
    fill_one(map_put, &put_store, 0);
    fill_one(map_get, &get_load, 0);
    fill_one(map_atomic, &atomic_mapped, 0);
    fill_one(atomic, &atomic_message, ep.am_lane_index);
}

void set_ep_config(ucp_ep *ep, size_t max_message)
{
    auto &all = ep->worker->ep_configs;
    ep_config_key key = key_of(*ep, max_message);
    auto found = std::find_if(all.begin(), all.end(), [&](const auto &c) { return c->key == key; });
    bool is_new = found == all.end();
    if (is_new) {
        found = all.insert(all.end(), std::make_unique<ep_config>(*ep, max_message));
        (*found)->index = static_cast<unsigned>(all.size() - 1);
    }
    ep->config = found->get();
    if (is_new) {
        announce_protocols(*ep);
    }
}

} // namespace ucp
