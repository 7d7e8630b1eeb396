// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/connect/lane_connect.h"

#include "ucp/connect/listener.h"
#include "ucp/connect/locality.h"
#include "ucp/endpoint/ep_control.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ucp {

namespace {

const sockaddr *as_sockaddr(const sockaddr_storage &address)
{
    return reinterpret_cast<const sockaddr *>(&address);
}

// Whether a call would come from the client's end of the connection, but for the port.
bool comes_from_there(const sockaddr_storage &wanted, const cm_connection &shared,
                      const cm_addresses &ends)
{
    const sockaddr *w = as_sockaddr(wanted);
    if (wanted.ss_family == AF_UNSPEC || ucs::sockaddr_is_any(w)) {
        return ucs::sockaddr_port(w) == 0 && !shared.local_was_named;
    }
    return ucs::sockaddr_port(w) == 0 && ucs::sockaddr_same_host(w, as_sockaddr(ends.local));
}

struct connect_tail {
    std::string_view asked_at;
    std::span<const uint8_t> hello;
};

std::vector<uint8_t> pack_connect(const client_call &call)
{
    std::vector<uint8_t> tail;
    tail.reserve(1 + call.asked_at.size() + call.hello.size());
    tail.push_back(static_cast<uint8_t>(call.asked_at.size()));
    tail.insert(tail.end(), call.asked_at.begin(), call.asked_at.end());
    tail.insert(tail.end(), call.hello.begin(), call.hello.end());
    return tail;
}

bool parse_connect(std::span<const uint8_t> tail, connect_tail *out)
{
    if (tail.empty() || tail.size() - 1 < tail[0]) {
        return false;
    }
    out->asked_at = {reinterpret_cast<const char *>(tail.data()) + 1, tail[0]};
    out->hello = tail.subspan(1u + tail[0]);
    return true;
}

// To a worker with which no connection is shared. What it loses with the lane is lost.
void say_once(ucp_worker *worker, const unpacked_address &peer, const wireup_hdr &notice) noexcept
{
    (void)ucs::guard([&] {
        cm_connections &all = worker_cm(worker).connections;
        cm_connection *once = all.open(worker, ucs::random_u64());
        ++all.for_once;
        once->for_once = once->uct_given_up = true;
        if (once->open_lane(peer) == UCS_OK) {
            once->send_notice(notice);
        }
        once->users = 0;
        if (!once->flush_notices()) {
            all.retire(once);
        }
    });
}

wireup_hdr refusal_of(const ucp_worker *worker, uint64_t connection, uint64_t client, refusal why)
{
    return {
        wireup_kind::refused, static_cast<uint8_t>(why), 0, 0, worker->uuid, connection, client};
}

wireup_hdr close_of(const ucp_worker *worker, uint64_t from, uint64_t to)
{
    auto reason = static_cast<uint8_t>(close_reason::forced);
    return {wireup_kind::close, reason, 0, 0, worker->uuid, from, to};
}

// The request that an endpoint of this client has made is answered. Where another worker did, that
// will go on, and the connection is of no use to it.
void part(cm_connection &asked, uint64_t client, const wireup_hdr &answer) noexcept
{
    if (answer.src_uuid != asked.peer_uuid) {
        asked.takes_clients = false;
        asked.send_notice(
            {wireup_kind::parted, 0, 0, 0, asked.worker->uuid, client, asked.peer_id});
    }
}

} // namespace

// ---- the client

bool ask_over_lane(ucp_ep *ep, std::list<client_call> *calls)
{
    cm_control &m = *ep->control->by_cm;
    cm_connection &shared = *m.joining;
    const client_call &call = calls->front();
    const cm_addresses *ends = shared.addresses();
    if (!shared.shared() || !shared.takes_clients || !ends ||
        !comes_from_there(call.local, shared, *ends) || call.asked_at.size() > UINT8_MAX) {
        return false;
    }
    wireup_message message = {
        {wireup_kind::connect, 0, 0, 0, ep->worker->uuid, ep->local_id, shared.peer_id},
        pack_connect(call)};
    if (sizeof(message.hdr) + message.tail.size() > shared.room()) {
        return false;
    }
    auto addresses = std::make_unique<cm_addresses>(*ends);
    m.asking = std::move(*calls); // where the lane is lost, those that ask are looked for
    m.asking.front().asked_over = shared.id;
    if (shared.send(std::move(message)) != UCS_OK) {
        *calls = std::move(m.asking);
        return false;
    }
    m.addresses = std::move(addresses);
    return true;
}

void withdraw(cm_control *m, cm_connections *all) noexcept
{
    constexpr size_t most = 4096; // a server has answered all but so many, or will never
    if (m->asking.empty() || m->asking.front().refused) {
        m->asking.clear();
        return;
    }
    m->asking.front().hello = std::vector<uint8_t>();
    all->withdrawn.splice(all->withdrawn.end(), m->asking);
    if (all->withdrawn.size() > most) {
        all->withdrawn.pop_front();
    }
}

void call_instead(ucp_ep *ep) noexcept
{
    cm_control *m = ep->control->by_cm.get();
    if (!m || m->asking.empty() || ep->status != UCS_OK || ep->state == ep_state::closed) {
        return;
    }
    cm_connections &all = worker_cm(ep->worker).connections;
    client_call &call = m->asking.front();
    if (m->joining && !m->joining->usable()) {
        all.release(set_joining(ep, nullptr));
    }
    if (!m->joining) {
        forget_to_share(call.hello);
    }
    m->addresses.reset();
    ucs_status_t status = ucs::guard([&] { call_at(ep, call); });
    withdraw(m, &all); // it may have been accepted all the same
    if (status != UCS_OK) {
        ep->set_failed(status);
    }
}

// What was accepted is not wanted any more.
static void decline(ucp_worker *worker, const wireup_hdr &hdr, std::span<const uint8_t> tail)
{
    if (!worker->cm) {
        return;
    }
    cm_connections &all = worker->cm->connections;
    std::list<client_call> &withdrawn = all.withdrawn;
    auto found = std::find_if(withdrawn.begin(), withdrawn.end(),
                              [&](const client_call &call) { return call.ep_id == hdr.dst_ep; });
    server_hello server;
    unpacked_address peer;
    if (found == withdrawn.end() || parse_server_hello(tail, &server) != UCS_OK ||
        unpack_address(server.address, server.address_length, &peer) != UCS_OK) {
        ++worker->stale_messages;
        return;
    }
    if (auto asked = all.by_id.find(found->asked_over); asked != all.by_id.end()) {
        part(*asked->second, hdr.dst_ep, hdr);
    }
    withdrawn.erase(found);
    say_once(worker, peer, close_of(worker, hdr.dst_ep, hdr.src_ep));
}

void on_accepted(ucp_worker *worker, const wireup_hdr &hdr, std::span<const uint8_t> tail)
{
    ucp_ep *ep = worker->find_ep(hdr.dst_ep);
    if (!ep || ep->status != UCS_OK || !ep->control->by_cm || ep->control->by_cm->asking.empty()) {
        decline(worker, hdr, tail);
        return;
    }
    cm_control &m = *ep->control->by_cm;
    server_hello server;
    unpacked_address peer;
    ucs_status_t status = take_answer(ep, tail, &server, &peer);
    m.asking.clear();
    if (m.joining) {
        part(*m.joining, ep->local_id, hdr);
    }
    if (status == UCS_OK && (server.ep_id != hdr.src_ep || peer.uuid != hdr.src_uuid)) {
        status = UCS_ERR_INVALID_PARAM;
    }
    if (status != UCS_OK) {
        ucs_diag("ep %p: the server's answer cannot be used: %s", static_cast<void *>(ep),
                 ucs_status_string(status));
        if (peer.uuid != 0) {
            say_once(worker, peer, close_of(worker, ep->local_id, hdr.src_ep));
        }
        ep->set_failed(status);
        return;
    }
    ep->remote_id = server.ep_id;
    m.established = true;
    cm_connection *shared = set_joining(ep, nullptr);
    if (shared && server.shares) {
        set_connection(ep, shared);
    } else if (shared) {
        worker_cm(worker).connections.release(shared);
    }
    if (!server.shares) {
        watch_peer(ep, peer);
    }
    ep_connected(ep);
    if (ep->control->close_seen) {
        on_peer_closed(ep);
    } else {
        ep_tell_answer_when_up(ep);
    }
}

void on_refused(ucp_ep *ep, const wireup_hdr &hdr) noexcept
{
    cm_control *m = ep->control->by_cm.get();
    if (!m || m->asking.empty() || !m->joining || m->joining->peer_id != hdr.src_ep) {
        ++ep->worker->stale_messages;
        return;
    }
    m->asking.front().refused = true;
    part(*m->joining, ep->local_id, hdr);
    if (static_cast<refusal>(hdr.reason) == refusal::rejected) {
        ep->set_failed(UCS_ERR_REJECTED);
        return;
    }
    if (static_cast<refusal>(hdr.reason) == refusal::elsewhere) {
        m->joining->takes_clients = false;
    }
    ep_defer(ep, WORK_CALL);
}

// ---- the server

namespace {

// The connection that a client has named, if it is its own. What a client says over a lane may be
// faster than its confirmation.
cm_connection *connection_of(ucp_worker *worker, const wireup_hdr &hdr)
{
    if (!worker->cm || hdr.src_ep == 0) {
        return nullptr;
    }
    auto &all = worker->cm->connections.by_id;
    auto found = all.find(hdr.dst_ep);
    if (found == all.end() || found->second->peer_uuid != hdr.src_uuid) {
        return nullptr;
    }
    cm_connection *named = found->second.get();
    ucp_ep *ep = named->established ? nullptr : worker->find_ep(named->id);
    if (ep && ep->origin == ep_origin::server && ep->status == UCS_OK) {
        client_confirmed(ep);
    }
    return named->usable() ? named : nullptr;
}

// Where a call at that address would arrive; nullptr: it is not known.
ucp_listener *listener_at(ucp_worker *worker, cm_connection &through, std::string_view asked_at)
{
    auto found = std::find_if(worker->listeners.begin(), worker->listeners.end(),
                              [&](const ucp_listener *l) { return l->id == through.listener; });
    const cm_addresses *ends = through.addresses();
    return found != worker->listeners.end() && ends &&
                   ucs::sockaddr_string(as_sockaddr(ends->local)) == asked_at
               ? *found
               : nullptr;
}

std::unique_ptr<ucp_conn_request> new_request(ucp_listener *listener, cm_connection &through,
                                              std::span<const uint8_t> hello)
{
    auto request = std::make_unique<ucp_conn_request>();
    request->context = listener->worker->context;
    request->listener = listener;
    request->listener_id = listener->id;
    request->listens = listener->worker;
    request->client = through.addresses()->remote;
    request->server = through.addresses()->local;
    request->data.assign(hello.begin(), hello.end());
    request->asked_over = through.id;
    ++request->context->asked_over_lanes;
    return request;
}

// It does not keep its connection any more. Where another worker has answered, the client parts.
void answered(ucp_worker *worker, ucp_conn_request *request) noexcept
{
    request->asks = false;
    if (request->listens == worker) {
        worker_cm(worker).connections.release_request(request->asked_over);
    }
}

// All endpoints of the connection have been closed here, which the client does not know yet. Or it
// is no client: then this is all that it gets, and not much of it at a time.
void refuse_unknown(ucp_worker *worker, const unpacked_address &client, const wireup_hdr &hdr)
{
    constexpr size_t most_at_once = 256;
    ++worker->stale_messages;
    if (worker->cm && worker->cm->connections.for_once < most_at_once) {
        say_once(worker, client, refusal_of(worker, hdr.dst_ep, hdr.src_ep, refusal::elsewhere));
    }
}

} // namespace

void on_connect(ucp_worker *worker, const wireup_hdr &hdr, std::span<const uint8_t> tail)
{
    connect_tail asked;
    client_hello client;
    unpacked_address peer;
    if (hdr.src_ep == 0 || !parse_connect(tail, &asked) ||
        parse_client_hello(asked.hello, &client) != UCS_OK || client.ep_id != hdr.src_ep ||
        client.to_share != hdr.dst_ep ||
        unpack_address(client.address, client.address_length, &peer) != UCS_OK ||
        peer.uuid != hdr.src_uuid) {
        ++worker->stale_messages;
        return;
    }
    cm_connection *through = connection_of(worker, hdr);
    if (!through) {
        refuse_unknown(worker, peer, hdr);
        return;
    }
    if (const cm_addresses *ends = through->addresses()) {
        note_origin(as_sockaddr(ends->remote), &peer);
    }
    if (through->open_lane(peer) != UCS_OK) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "no lane to a client that asks over one");
    }
    constexpr size_t most_unsent = 65536; // to a client that asks and does not listen
    if (through->unsent() >= most_unsent) {
        ++worker->peer_faults;
        return;
    }
    auto refuse = [&](refusal why) {
        through->send_notice(refusal_of(worker, through->id, client.ep_id, why));
    };
    ucp_listener *listener = listener_at(worker, *through, asked.asked_at);
    if (!listener) {
        refuse(refusal::elsewhere);
    } else if (worker->context->asked_over_lanes >= listener_backlog(*worker->context)) {
        refuse(refusal::busy);
    } else {
        auto request = new_request(listener, *through, asked.hello);
        request->asks = true;
        ++through->users;
        ++through->requests;
        ucs_status_t status = ucs::guard([&] { return listener->post(std::move(request)); });
        if (status != UCS_OK) {
            worker->cm->connections.release_request(through->id);
            refuse(status == UCS_ERR_REJECTED ? refusal::rejected : refusal::busy);
        }
    }
}

void on_parted(ucp_worker *worker, const wireup_hdr &hdr) noexcept
{
    cm_connection *asked = connection_of(worker, hdr);
    if (!asked) {
        ++worker->stale_messages;
        return;
    }
    worker->cm->connections.release_request(asked->id);
}

void accept_over_lane(ucp_ep *ep, ucp_conn_request *request, const unpacked_address &client,
                      const greeting &mine)
{
    ucp_worker *worker = ep->worker;
    cm &m = worker_cm(worker);
    cm_connection *to_share = nullptr;
    if (request->listens == worker) {
        auto found = m.connections.by_id.find(request->asked_over);
        if (found == m.connections.by_id.end() || !found->second->usable()) {
            throw ucs::error(UCS_ERR_CONNECTION_RESET, "ucp_ep_create: the client is gone");
        }
        to_share = agreed(ep, request->asked_over, client);
    }
    if (!to_share) {
        watch_peer(ep, client);
    }
    server_hello says;
    says.ep_id = ep->local_id;
    says.shares = to_share;
    says.greeting = mine.bytes();
    auto answer = std::make_unique<std::vector<uint8_t>>(pack_server_hello(m, says));
    if (sizeof(wireup_hdr) + answer->size() > ep->limits().max_bcopy) {
        throw ucs::error(UCS_ERR_EXCEEDS_LIMIT, "the answer of %zu bytes does not fit a message",
                         answer->size());
    }
    cm_control &c = *ep->control->by_cm;
    c.addresses = std::make_unique<cm_addresses>(cm_addresses{request->server, request->client});
    event_promise room(worker, 1);
    worker->post_event({event::kind::notified, UCS_OK, ep->local_id});
    keep_callback(ep, mine);
    if (to_share) {
        ++to_share->users;
        set_connection(ep, to_share);
    }
    answered(worker, request);
    c.unsaid = std::move(answer);
    ep->control->todo |= TODO_ACCEPTED;
    ep_drain(ep);
}

void refuse_over_lane(ucp_worker *worker, ucp_conn_request *request) noexcept
{
    client_hello client;
    unpacked_address peer;
    (void)parse_client_hello(request->data, &client); // it was whole when it came
    wireup_hdr refused = refusal_of(worker, request->asked_over, client.ep_id, refusal::rejected);
    if (request->listens == worker) {
        auto &all = worker_cm(worker).connections.by_id;
        if (auto found = all.find(request->asked_over); found != all.end()) {
            found->second->send_notice(refused);
        } // else the client knows that it has ended
    } else if (ucs::guard([&] {
                   return unpack_address(client.address, client.address_length, &peer);
               }) == UCS_OK) {
        note_origin(as_sockaddr(request->client), &peer);
        say_once(worker, peer, refused);
    }
    answered(worker, request);
}

} // namespace ucp
