// SPDX-License-Identifier: BSD-3-Clause
//
// Choice of lanes: every pair of an interface of ours and a resource of the peer that reach each
// other is a candidate. The best carries the active messages; the best of those that can put and
// get carries RMA; over networks, pairs of further devices share the bytes of large messages.
#include "ucp/connect/announce.h"
#include "ucp/connect/wireup.h"

#include "ucs/error.h"
#include "ucs/log.h"

#include <algorithm>
#include <cstring>

namespace ucp {

namespace {

struct candidate {
    iface *local;
    const address_resource *remote;
    uint8_t place; // of that in the address
    tl_class cls;
    double bandwidth;
    size_t order; // of our resource: locality was decided when the context sorted them
};

std::vector<candidate> candidates_of(const ucp_worker &worker, const unpacked_address &peer)
{
    std::vector<candidate> found;
    for (const auto &local : worker.ifaces) {
        const tl_resource &rsc = worker.context->resources[local->resource];
        if (!peer.from_here && on_node(rsc.cls)) {
            continue;
        }
        for (size_t i = 0; i < peer.resources.size(); ++i) {
            const address_resource &remote = peer.resources[i];
            if (remote.tl_name != rsc.desc.tl_name ||
                remote.device_addr.size() != local->device_addr.size() ||
                remote.iface_addr.size() != local->iface_addr.size()) {
                continue;
            }
            if (uct_iface_is_reachable(
                    local->uct,
                    reinterpret_cast<const uct_device_addr_t *>(remote.device_addr.data()),
                    reinterpret_cast<const uct_iface_addr_t *>(remote.iface_addr.data()))) {
                found.push_back({local.get(), &remote, static_cast<uint8_t>(i), rsc.cls,
                                 bandwidth_of(local->attr), local->resource});
            }
        }
    }
    std::stable_sort(found.begin(), found.end(), [](const candidate &a, const candidate &b) {
        return a.cls != b.cls ? a.cls > b.cls : a.order < b.order;
    });
    return found;
}

ucs_status_t open_lane(const candidate &c, uct_ep_h *handle)
{
    uct_ep_params_t params = {};
    params.field_mask =
        UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface = c.local->uct;
    params.dev_addr = reinterpret_cast<const uct_device_addr_t *>(c.remote->device_addr.data());
    params.iface_addr = reinterpret_cast<const uct_iface_addr_t *>(c.remote->iface_addr.data());
    return uct_ep_create(&params, handle);
}

ucs_status_t add_lane(ucp_ep *ep, const candidate &c)
{
    uct_ep_h handle = nullptr;
    ucs_status_t status = open_lane(c, &handle);
    if (status != UCS_OK) {
        const auto &desc = ep->worker->context->resources[c.local->resource].desc;
        ucs_debug("ep %p: no lane over %s/%s: %s", static_cast<void *>(ep), desc.tl_name,
                  desc.dev_name, ucs_status_string(status));
        return status;
    }
    // One or two, as a rule.
    std::unique_ptr<lane[]> lanes;
    status = ucs::guard([&] {
        lanes = std::make_unique<lane[]>(ep->lane_count + 1u);
        ep->worker->lane_owners.emplace(handle, ep);
    });
    if (status != UCS_OK) {
        uct_ep_destroy(handle);
        return status;
    }
    std::copy_n(ep->lanes.get(), ep->lane_count, lanes.get());
    ep->lanes = std::move(lanes);
    lane &l = ep->lanes[ep->lane_count++];
    l.ep = handle;
    l.iface = c.local;
    l.md_index = ep->worker->context->resources[c.local->resource].md_index;
    l.dst_md_index = c.remote->md_index;
    l.resource = c.place;
    return UCS_OK;
}

bool can_rma(const uct_iface_attr_t &attr)
{
    return (attr.cap.flags & (UCT_IFACE_FLAG_PUT_SHORT | UCT_IFACE_FLAG_PUT_ZCOPY)) &&
           (attr.cap.flags & (UCT_IFACE_FLAG_GET_BCOPY | UCT_IFACE_FLAG_GET_ZCOPY));
}

// What a device may be slower than the first one and still be worth a rail.
constexpr double RAIL_MAX_RATIO = 4;

bool is_network(tl_class cls)
{
    return cls == tl_class::net || cls == tl_class::rdma;
}

// Pairs of devices that no lane uses yet, on both sides, of the same transport as the first rail.
void add_rails(ucp_ep *ep, const std::vector<candidate> &found, const candidate &first)
{
    const ucp_context &context = *ep->worker->context;
    unsigned most = std::max(context.config.max_rndv_rails, context.config.max_rma_rails);
    most = std::min(most, MAX_RAILS);
    if (ep->rma_lane == NO_LANE || most < 2 || !is_network(first.cls)) {
        return;
    }
    unsigned count = 0;
    ep->rails[count++] = ep->rma_lane;
    std::vector<const candidate *> used = {&first};
    for (const candidate &c : found) {
        if (count >= most || ep->lane_count >= MAX_LANES) {
            break;
        }
        bool fresh = std::none_of(used.begin(), used.end(), [&](const candidate *u) {
            return u->local == c.local || u->remote == c.remote;
        });
        if (fresh && c.cls == first.cls && c.remote->tl_name == first.remote->tl_name &&
            c.bandwidth * RAIL_MAX_RATIO >= first.bandwidth && can_rma(c.local->attr) &&
            add_lane(ep, c) == UCS_OK) {
            ep->rails[count++] = static_cast<uint8_t>(ep->lane_count - 1);
            used.push_back(&c);
        }
    }
    ep->rail_count = static_cast<uint8_t>(std::min(count, context.config.max_rndv_rails));
    ep->rma_rail_count = static_cast<uint8_t>(std::min(count, context.config.max_rma_rails));
}

} // namespace

ucs_status_t connect_lane(ucp_worker *worker, const unpacked_address &peer, uct_ep_h *lane,
                          size_t *room)
{
    for (const candidate &c : candidates_of(*worker, peer)) {
        if (open_lane(c, lane) == UCS_OK) {
            *room = std::min<size_t>(c.local->attr.cap.am.max_bcopy, c.remote->max_message);
            return UCS_OK;
        }
    }
    *lane = nullptr;
    return UCS_ERR_UNREACHABLE;
}

ucs_status_t choose_lanes(ucp_ep *ep, const unpacked_address &peer)
{
    std::vector<candidate> found = candidates_of(*ep->worker, peer);
    size_t am = 0;
    ucs_status_t status = UCS_ERR_UNREACHABLE;
    while (am < found.size() && (status = add_lane(ep, found[am])) != UCS_OK &&
           status != UCS_ERR_NO_MEMORY) {
        ++am;
    }
    if (status != UCS_OK) {
        return status == UCS_ERR_NO_MEMORY ? status : UCS_ERR_UNREACHABLE;
    }
    ep->control->peer_uuid = peer.uuid;
    if (ep->control->by_cm) {
        ep->control->by_cm->peer_name = peer.name;
    }
    ep->am_lane_index = 0;
    ep->am_ep = ep->lanes[0].ep;
    ep->rma_lane = can_rma(ep->lanes[0].attr()) ? 0 : NO_LANE;
    size_t rma = am;
    for (size_t i = am + 1; i < found.size() && ep->rma_lane == NO_LANE; ++i) {
        if (can_rma(found[i].local->attr) && add_lane(ep, found[i]) == UCS_OK) {
            ep->rma_lane = static_cast<uint8_t>(ep->lane_count - 1);
            rma = i;
        }
    }
    add_rails(ep, found, found[rma]);
    set_ep_config(ep, found[am].remote->max_message);
    announce_ep(*ep);
    return UCS_OK;
}

} // namespace ucp
