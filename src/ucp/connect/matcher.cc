// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/connect/matcher.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucs/error.h"

#include <algorithm>
#include <cstring>

namespace ucp {

void matcher::add(uint64_t uuid, uint32_t sn, ucp_ep *ep)
{
    peers[uuid].by_sn.emplace(sn, ep);
    ep->control->peer_uuid = uuid;
    ep->control->sn = sn;
    ep->control->matched = true;
    peers_own += ep->origin == ep_origin::reply;
}

void matcher::remove(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    auto at = peers.find(c.peer_uuid);
    auto &by_sn = at->second.by_sn;
    auto [begin, end] = by_sn.equal_range(c.sn);
    by_sn.erase(std::find_if(begin, end, [&](const auto &entry) { return entry.second == ep; }));
    if (by_sn.empty() && at->second.next_sn == 0) {
        peers.erase(at);
    }
    c.matched = false;
    if (ep->origin == ep_origin::reply) {
        one_less(ep->worker);
    }
}

void matcher::hand_out(ucp_ep *ep) noexcept
{
    ep->origin = ep_origin::address;
    one_less(ep->worker);
}

void matcher::take_back(ucp_ep *ep) noexcept
{
    ep->origin = ep_origin::reply;
    ++peers_own;
}

void matcher::one_less(ucp_worker *worker) noexcept
{
    --peers_own;
    if (!postponed.empty()) {
        worker->schedule();
    }
}

bool has_room_for_a_peer(const ucp_worker *worker) noexcept
{
    return worker->matcher->peers_own < worker->context->config.max_peer_eps;
}

namespace {

bool has_end(const unpacked_address &peer, const address_resource &end)
{
    return std::any_of(peer.resources.begin(), peer.resources.end(), [&](const auto &r) {
        return r.tl_name == end.tl_name && r.device_addr == end.device_addr &&
               r.iface_addr == end.iface_addr;
    });
}

bool has_transport(const unpacked_address &peer, const std::string &name)
{
    return std::any_of(peer.resources.begin(), peer.resources.end(),
                       [&](const auto &r) { return r.tl_name == name; });
}

} // namespace

bool leads_to(const ucp_ep &ep, const void *address, const unpacked_address &peer)
{
    const uint8_t *own = ep.control->peer_address.get();
    if (!own) {
        return false;
    }
    size_t length = address_length(own);
    if (length == address_length(address) && memcmp(own, address, length) == 0) {
        return true;
    }
    unpacked_address made_from;
    if (unpack_address(own, length, &made_from) != UCS_OK) {
        return false;
    }
    if (ep.lane_count == 0) { // it waits for an answer at the peer's door
        return made_from.door.number != 0 && made_from.door.number == peer.door.number;
    }
    return std::all_of(ep.lanes.get(), ep.lanes.get() + ep.lane_count, [&](const lane &l) {
        const address_resource &end = made_from.resources[l.resource];
        tl_class cls = ep.worker->context->resources[l.iface->resource].cls;
        return has_end(peer, end) || (cls >= tl_class::shm && !has_transport(peer, end.tl_name));
    });
}

// Endpoints of a worker to itself pair within one count: 0 with 1, 2 with 3.
uint32_t partner_sn(const ucp_worker *worker, uint64_t uuid, uint32_t sn) noexcept
{
    return uuid == worker->uuid ? sn ^ 1 : sn;
}

void leave_matcher(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    if (!c.matched) {
        return;
    }
    if (ep->status != UCS_OK && c.scarce && (c.todo & TODO_REPLY)) {
        (void)ucs::guard([&] { answer_later(ep); });
    }
    ep->worker->matcher->remove(ep);
}

} // namespace ucp
