// SPDX-License-Identifier: BSD-3-Clause
//
// What the log and the counters are told of an endpoint that got its lanes.
#include "ucp/connect/announce.h"

#include "ucp/connect/address.h"
#include "ucp/connect/cm_connection.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucs/error.h"
#include "ucs/log.h"
#include "ucs/sockaddr.h"
#include "ucs/stats/stats.h"

#include <algorithm>
#include <cstdio>

namespace ucp {

std::string roles_of(const ucp_ep &ep, unsigned lane)
{
    std::string roles = lane == ep.am_lane_index ? " am" : "";
    auto is_rail = [&](unsigned count) {
        return std::find(ep.rails, ep.rails + count, lane) != ep.rails + count;
    };
    roles += lane == ep.rma_lane || is_rail(ep.rma_rail_count) ? " rma" : "";
    roles += is_rail(ep.rail_count) || roles.empty() ? " rndv" : "";
    return roles;
}

std::string name_of(const ucp_ep &ep)
{
    if (const auto &extras = ep.control->extras; extras && !extras->name.empty()) {
        return extras->name;
    }
    char text[32];
    snprintf(text, sizeof(text), "%p", static_cast<const void *>(&ep));
    return text;
}

std::string peer_name_of(const ucp_ep *ep) noexcept
{
    const ep_control &c = *ep->control;
    std::string name;
    (void)ucs::guard([&] { // else it has none
        unpacked_address peer;
        if (c.by_cm) {
            name = c.by_cm->peer_name;
        } else if (c.peer_address &&
                   unpack_address(c.peer_address.get(), SIZE_MAX, &peer) == UCS_OK) {
            name = peer.name;
        }
    });
    return name;
}

namespace {

// What stays the same when the peer comes back: the address that the user gave, or its worker.
std::string target_of(const ucp_ep &ep)
{
    cm_addresses ends = {};
    if (ep.origin == ep_origin::client && query_addresses(&ep, &ends) == UCS_OK) {
        return ucs::sockaddr_string(reinterpret_cast<const sockaddr *>(&ends.remote));
    }
    return std::to_string(ep.control->peer_uuid);
}

void name_lanes(const ucp_ep &ep)
{
    auto &counted = ep.control->have_extras().counted;
    counted = std::make_unique<ucs::stats::lane *[]>(ep.lane_count);
    for (unsigned i = 0; i < ep.lane_count; ++i) {
        counted[i] =
            ucs::stats::name_lane(ep.lanes[i].ep, {name_of(ep), peer_name_of(&ep),
                                                   roles_of(ep, i).substr(1), target_of(ep)});
    }
}

} // namespace

void announce_ep(const ucp_ep &ep)
{
    if (ucs::stats::wanted()) {
        name_lanes(ep);
    }
    if (ucs::log::enabled(ucs::log::level::info)) {
        std::string lanes;
        for (unsigned i = 0; i < ep.lane_count; ++i) {
            const auto &desc = ep.worker->context->resources[ep.lanes[i].iface->resource].desc;
            lanes += std::string(" ") + desc.tl_name + "/" + desc.dev_name + roles_of(ep, i) +
                     (i + 1 < ep.lane_count ? "," : "");
        }
        std::string peer = peer_name_of(&ep);
        ucs_info("ep %p: lanes:%s; peer %s", static_cast<const void *>(&ep), lanes.c_str(),
                 peer.empty() ? "<no debug data>" : peer.c_str());
    }
}

} // namespace ucp
