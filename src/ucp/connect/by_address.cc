// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoints made from worker addresses, by the user or to answer a peer.
#include "ucp/connect/door.h"
#include "ucp/connect/wireup.h"

#include "ucs/error.h"

#include <cstring>

namespace ucp {

namespace {

void adopt_address(ucp_ep *ep, const void *address)
{
    size_t length = address_length(address);
    ep->control->peer_address = std::make_unique_for_overwrite<uint8_t[]>(length);
    memcpy(ep->control->peer_address.get(), address, length);
}

// The endpoint has lanes, or calls at the peer's door for an address that has more.
void connect_lanes(ucp_ep *ep, const unpacked_address &peer)
{
    ucp_worker *worker = ep->worker;
    ucs_status_t status = choose_lanes(ep, peer);
    if (status == UCS_ERR_UNREACHABLE && worker->open_networks()) {
        status = choose_lanes(ep, peer);
    }
    if (status == UCS_ERR_UNREACHABLE && peer.door.number != 0 &&
        ep->origin == ep_origin::address) {
        if (!worker->door_calls) {
            worker->door_calls = std::make_unique<door_calls>(worker);
        }
        worker->door_calls->add(ep->local_id, peer.door);
        return;
    }
    if (status == UCS_ERR_NO_MEMORY) {
        throw std::bad_alloc();
    }
    if (status != UCS_OK) {
        throw ucs::error(status, "worker %s has no transport that reaches %s", worker->name.c_str(),
                         peer.name.empty() ? "the peer" : peer.name.c_str());
    }
}

// The endpoint that answers the peer already. Nothing tells which of several is the peer's: none.
ucp_ep *answering(const ucp_worker *worker, const void *address, const unpacked_address &peer,
                  uint32_t sn)
{
    auto fits = [&](const ucp_ep &ep) {
        return ep.origin == ep_origin::reply && !ep.control->close_seen &&
               leads_to(ep, address, peer);
    };
    const matcher &all = *worker->matcher;
    ucp_ep *first = all.find(peer.uuid, sn, fits);
    auto another = [&](const ucp_ep &ep) { return &ep != first && fits(ep); };
    return first && all.find(peer.uuid, sn, another) ? nullptr : first;
}

} // namespace

ucp_ep *new_matched_ep(ucp_worker *worker, ep_origin origin, const unpacked_address &peer,
                       const void *address, uint32_t sn)
{
    ucp_ep *ep = ep_new(worker, origin);
    try {
        adopt_address(ep, address);
        connect_lanes(ep, peer);
        worker->matcher->add(peer.uuid, sn, ep);
    } catch (...) {
        ep_destroy(ep);
        throw;
    }
    return ep;
}

ucp_ep *ep_from_address(ucp_worker *worker, const void *address, bool no_loopback)
{
    unpacked_address peer;
    ucs_status_t status = unpack_address(address, SIZE_MAX, &peer);
    if (status != UCS_OK) {
        throw ucs::error(status, "ucp_ep_create: params->address is not an intact worker address");
    }
    bool self = peer.uuid == worker->uuid;
    if (self && !no_loopback) {
        ucp_ep *ep = ep_new(worker, ep_origin::address);
        try {
            adopt_address(ep, address);
            connect_lanes(ep, peer);
        } catch (...) {
            ep_destroy(ep);
            throw;
        }
        ep->remote_id = ep->local_id;
        ep_connected(ep);
        return ep;
    }
    const uint32_t sn = worker->matcher->peers[peer.uuid].next_sn;
    ucp_ep *ep = answering(worker, address, peer, sn);
    if (ep) {
        worker->matcher->hand_out(ep);
        ep->control->unsure = !ep->control->shown;
        ep->sendable = ep->sendable && ep->control->shown;
        ep_proto_owned(ep);
    } else {
        ep = new_matched_ep(worker, ep_origin::address, peer, address, sn);
    }
    ++worker->matcher->peers[peer.uuid].next_sn; // there, since the endpoint is
    return ep;
}

void on_door_answer(ucp_ep *ep, ucs_status_t status, const std::vector<uint8_t> &address,
                    bool from_here) noexcept
{
    if (ep->status != UCS_OK || ep->lane_count > 0) {
        return;
    }
    if (status == UCS_OK) {
        status = ucs::guard([&]() -> ucs_status_t {
            unpacked_address peer;
            ucs_status_t intact = unpack_address(address.data(), address.size(), &peer);
            if (intact != UCS_OK || peer.uuid != ep->control->peer_uuid) {
                return UCS_ERR_INVALID_ADDR;
            }
            peer.from_here = from_here;
            adopt_address(ep, address.data());
            return choose_lanes(ep, peer);
        });
    }
    if (status == UCS_OK) {
        ep_drain(ep);
    } else {
        ep->set_failed(status);
    }
}

void take_back(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    c.user_owned = false;
    if (c.matched) {
        --ep->worker->matcher->peers[c.peer_uuid].next_sn;
    }
    if (c.matched && ep->state != ep_state::connecting) {
        ep->worker->matcher->take_back(ep); // the peer goes on with it
        c.unsure = false;
        if (c.extras) {
            c.extras->err_cb = nullptr;
        }
        ep_drain(ep);
    } else {
        ep_destroy(ep);
    }
}

} // namespace ucp
