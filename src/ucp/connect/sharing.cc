// SPDX-License-Identifier: BSD-3-Clause
//
// Which endpoints share a connection: what a client asks for, and what a server agrees to.
#include "ucp/connect/cm_connection.h"

#include "ucp/connect/cm.h"
#include "ucp/connect/greeting.h"
#include "ucp/connect/locality.h"
#include "ucp/endpoint/ep_control.h"
#include "ucs/error.h"

#include <uct/api/uct.h>

#include <utility>

namespace ucp {

cm_connection *to_share_at(cm_connections &all, const std::string &address) noexcept
{
    auto found = all.to_address.find(address);
    return found != all.to_address.end() && found->second->usable() ? found->second : nullptr;
}

void join(ucp_ep *ep, cm_connection *connection) noexcept
{
    set_joining(ep, connection);
    ++connection->users;
}

// Whether the endpoint learns of the end of its peer without a connection: by its lane, or by a
// watch over the peer's process.
static bool lanes_tell(ucp_ep *ep, const unpacked_address &peer, lane_trust trust = lane_trust::all)
{
    const iface &lane = *ep->am_lane().iface;
    if (!on_node(ep->worker->context->resources[lane.resource].cls)) {
        return trust != lane_trust::none && (lane.attr.cap.flags & UCT_IFACE_FLAG_EP_KEEPALIVE);
    }
    if (trust != lane_trust::all) {
        return false;
    }
    watch_peer(ep, peer);
    return ep->control->extras && ep->control->extras->watch;
}

cm_connection *agreed(ucp_ep *ep, uint64_t name, const unpacked_address &client)
{
    cm_connections &all = worker_cm(ep->worker).connections;
    auto found = all.by_id.find(name);
    if (found == all.by_id.end()) {
        return nullptr;
    }
    cm_connection &asked = *found->second;
    bool possible = asked.peer_uuid == client.uuid && asked.usable() &&
                    (!asked.lanes_suffice || lanes_tell(ep, client));
    return possible && asked.open_lane(client) == UCS_OK ? &asked : nullptr;
}

cm_connection *begin_to_share(ucp_ep *ep) noexcept
{
    cm_connection *own = set_connection(ep, set_joining(ep, nullptr));
    own->given_up = true;
    own->users = 0;
    return own;
}

ucs_status_t prepare_to_share(ucp_ep *ep, const unpacked_address &peer)
{
    const cm_control &m = *ep->control->by_cm;
    if (!m.joining) {
        return UCS_OK; // it has ended, which the server will tell by the end of the endpoint's own
    }
    if (m.joining->peer_uuid != peer.uuid || !m.joining->usable()) {
        return UCS_ERR_CONNECTION_RESET; // the server cannot know it, or it broke
    }
    if (m.joining->lanes_suffice && !lanes_tell(ep, peer)) {
        return UCS_ERR_UNREACHABLE; // by a lane as those that the others have
    }
    ucs_status_t status = m.joining->open_lane(peer);
    return status == UCS_OK ? keep_addresses(ep) : status;
}

void settle_sharing(ucp_ep *ep, bool may) noexcept
{
    if (!ep->control->by_cm->joining) {
        return;
    }
    cm_connections &all = worker_cm(ep->worker).connections;
    if (may) {
        all.retire(begin_to_share(ep));
    } else {
        all.release(set_joining(ep, nullptr));
    }
}

void share_connection(ucp_ep *ep, const unpacked_address &peer)
{
    cm_control &m = *ep->control->by_cm;
    if (!m.cm || ep->status != UCS_OK) {
        return; // closed in a callback of what was sent first
    }
    cm_connections &all = worker_cm(ep->worker).connections;
    auto [first, none_yet] = all.to_peer.try_emplace(peer.uuid, m.cm);
    cm_connection *to_share = first->second;
    bool possible = false;
    if (none_yet) {
        possible = m.cm->lanes_suffice = lanes_tell(ep, peer, m.trust);
        all.to_address.insert_or_assign(m.cm->asked_at, m.cm);
    } else {
        possible = !to_share->lanes_suffice || lanes_tell(ep, peer);
    }
    if (!possible || !to_share->usable() || to_share->open_lane(peer) != UCS_OK) {
        return;
    }
    join(ep, to_share);
    ep->control->todo |= TODO_SHARE;
    ep_drain(ep);
}

// Those that have the connection of the endpoint, or will have it.
static bool all_are_told(const cm_connection &connection, const unpacked_address &peer)
{
    bool told = true;
    for (const cm_control *member : connection.members) {
        told = told && lanes_tell(member->ep, peer);
    }
    for (const cm_control *later : connection.joining) {
        told = told && lanes_tell(later->ep, peer);
    }
    return told;
}

void on_share(ucp_ep *ep, share_request asked)
{
    if (!ep->control->by_cm) {
        return; // no peer of ours asks for that
    }
    cm_control &m = *ep->control->by_cm;
    if (!m.established) { // it has to stand before it can be given up
        m.early_share = std::make_unique<share_request>(std::move(asked));
        return;
    }
    if (ep->origin != ep_origin::server || !m.cm || m.cm->id != ep->local_id) {
        return; // it has none of its own; else, below, the client keeps the one it has
    }
    cm_connections &all = worker_cm(ep->worker).connections;
    auto found = all.by_id.find(asked.name);
    unpacked_address peer;
    if (found == all.by_id.end() ||
        unpack_address(asked.address.data(), asked.address.size(), &peer) != UCS_OK) {
        return;
    }
    cm_addresses ends;
    if (query_addresses(ep, &ends) != UCS_OK) {
        return;
    }
    note_origin(reinterpret_cast<const sockaddr *>(&ends.remote), &peer);
    cm_connection &to_share = *found->second;
    const bool its_own = &to_share == m.cm;
    const bool told =
        its_own ? all_are_told(to_share, peer) : !to_share.lanes_suffice || lanes_tell(ep, peer);
    if (to_share.peer_uuid != peer.uuid || peer.uuid != ep->control->peer_uuid ||
        !to_share.usable() || (m.cm->users != 1 && !its_own) || !told ||
        to_share.open_lane(peer) != UCS_OK || keep_addresses(ep) != UCS_OK) {
        return;
    }
    if (its_own) {
        to_share.lanes_suffice = to_share.uct_given_up = true;
    } else {
        join(ep, &to_share);
        begin_to_share(ep);
    }
    ep->control->todo |= TODO_SHARED;
    ep_drain(ep);
}

void on_shared(ucp_ep *ep)
{
    const cm_control *m = ep->control->by_cm.get();
    if (!m || !m->joining) {
        return;
    }
    if (keep_addresses(ep) != UCS_OK) {
        return;
    }
    cm_connections &all = worker_cm(ep->worker).connections;
    if (m->joining == m->cm) {
        all.release(set_joining(ep, nullptr));
        m->cm->uct_given_up = true;
        ep->worker->post_event({event::kind::connection_ended, UCS_OK, m->cm->id});
        return;
    }
    all.retire(begin_to_share(ep));
}

} // namespace ucp
