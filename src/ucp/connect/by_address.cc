// SPDX-License-Identifier: BSD-3-Clause
//
// Endpoints made from worker addresses, by the user or to answer a peer.
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

void connect_lanes(ucp_ep *ep, const unpacked_address &peer)
{
    ucs_status_t status = choose_lanes(ep, peer);
    if (status == UCS_ERR_NO_MEMORY) {
        throw std::bad_alloc();
    }
    if (status != UCS_OK) {
        throw ucs::error(status, "worker %s has no transport that reaches %s",
                         ep->worker->name.c_str(),
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
