// SPDX-License-Identifier: BSD-3-Clause
//
// Pairing of endpoints, the handshake messages, and which processes are watched. lanes.cc chooses
// the lanes.
#include "ucp/connect/wireup.h"

#include "ucp/connect/cm.h"
#include "ucp/connect/cm_connection.h"
#include "ucp/connect/lane_connect.h"
#include "ucs/error.h"
#include "ucs/sys.h"

#include <cstring>
#include <unistd.h>

namespace ucp {

wireup_hdr notice_of(const ucp_ep *ep, wireup_kind kind) noexcept
{
    const ep_control &c = *ep->control;
    uint64_t to = kind == wireup_kind::reply && c.asker != 0 ? c.asker : ep->remote_id;
    return {kind, static_cast<uint8_t>(c.our_reason), 0, c.sn, ep->worker->uuid, ep->local_id, to};
}

namespace {

size_t pack_wireup(void *dest, void *arg)
{
    auto *msg = static_cast<wireup_message *>(arg);
    memcpy(dest, &msg->hdr, sizeof(msg->hdr));
    if (!msg->tail.empty()) {
        memcpy(static_cast<char *>(dest) + sizeof(msg->hdr), msg->tail.data(), msg->tail.size());
    }
    return sizeof(msg->hdr) + msg->tail.size();
}

// SHARE: the peer's name of the connection, and as in a REQUEST our address.
std::vector<uint8_t> tail_of(const ucp_ep *ep, wireup_kind kind)
{
    std::vector<uint8_t> tail;
    if (kind == wireup_kind::share && ep->control->by_cm->joining) {
        const auto *name = reinterpret_cast<const uint8_t *>(&ep->control->by_cm->joining->peer_id);
        tail.assign(name, name + sizeof(uint64_t));
    }
    if (kind == wireup_kind::accepted) {
        tail = *ep->control->by_cm->unsaid;
    }
    if (kind == wireup_kind::request || kind == wireup_kind::share) {
        std::vector<uint8_t> address = pack_address(*ep->worker, false);
        if (sizeof(wireup_hdr) + tail.size() + address.size() > ep->limits().max_bcopy) {
            address = pack_address(*ep->worker, true);
        }
        tail.insert(tail.end(), address.begin(), address.end());
    }
    return tail;
}

ucs_status_t send_one(ucp_ep *ep, wireup_kind kind)
{
    if (!ep->am_ep) {
        return UCS_ERR_NOT_CONNECTED;
    }
    wireup_message msg = {notice_of(ep, kind), tail_of(ep, kind)};
    return send_wireup(ep->am_ep, msg);
}

} // namespace

ucs_status_t send_wireup(uct_ep_h lane, wireup_message &message) noexcept
{
    message.hdr.tail_length = static_cast<uint16_t>(message.tail.size());
    ssize_t sent = uct_ep_am_bcopy(lane, AM_ID_WIREUP, pack_wireup, &message, 0);
    return sent < 0 ? static_cast<ucs_status_t>(sent) : UCS_OK;
}

void start_wireup(ucp_ep *ep) noexcept
{
    ep->control->todo |= TODO_REQUEST;
    ep_drain(ep);
}

ucs_status_t send_todo(ucp_ep *ep) noexcept
{
    static constexpr struct {
        unsigned bit;
        wireup_kind kind;
    } order[] = {{TODO_REQUEST, wireup_kind::request},   {TODO_REPLY, wireup_kind::reply},
                 {TODO_SHARE, wireup_kind::share},       {TODO_SHARED, wireup_kind::shared},
                 {TODO_ACCEPTED, wireup_kind::accepted}, {TODO_PING, wireup_kind::ping},
                 {TODO_CLOSE, wireup_kind::close}};
    ep_control &c = *ep->control;
    ucs_status_t status = UCS_OK;
    for (const auto &o : order) {
        if (!(c.todo & o.bit)) {
            continue;
        }
        status = ucs::guard([&] { return send_one(ep, o.kind); });
        if (status == UCS_ERR_NO_MEMORY && o.kind == wireup_kind::share) {
            settle_sharing(ep, false); // it keeps its own
        } else if (status != UCS_OK) {
            return status;
        }
        c.todo &= ~o.bit;
        c.wired = true;
        c.asking = c.asking || o.bit == TODO_REQUEST;
        c.close_sent = c.close_sent || o.bit == TODO_CLOSE;
        if (o.bit == TODO_ACCEPTED) {
            c.by_cm->unsaid.reset();
        }
    }
    return UCS_OK;
}

void send_ping(ucp_ep *ep) noexcept
{
    if (ep->can_send()) {
        // No room: what fills the lane tells as much.
        (void)ucs::guard([&] { return send_one(ep, wireup_kind::ping); });
    }
}

void watch_peer(ucp_ep *ep, const unpacked_address &peer)
{
    const ucs::host_identity &here = ucs::this_host();
    if (!peer.from_here || !peer.has_host || peer.boot != here.boot || peer.pid_ns != here.pid_ns ||
        peer.pid == static_cast<uint32_t>(getpid())) {
        return;
    }
    bool ended = false;
    std::shared_ptr<process_watch> watch = process_watch::of(static_cast<pid_t>(peer.pid), &ended);
    if (watch) {
        ep->control->have_extras().watch =
            std::make_unique<process_watch::user>(std::move(watch), ep->worker, ep->local_id);
    } else if (ended) {
        event_promise room(ep->worker, 1);
        ep->worker->post_event({event::kind::disconnected, UCS_OK, ep->local_id});
    }
}

namespace {

// A process of this host that is reached over a network may have had a better lane.
bool was_second_choice(const ucp_ep &ep, const unpacked_address &peer)
{
    const lane &chosen = ep.lanes[ep.am_lane_index];
    return peer.from_here &&
           ep.worker->context->resources[chosen.iface->resource].cls < tl_class::shm;
}

// The endpoint that has met the sender of a request. If there is none, an endpoint of the user's
// that no peer has answered yet. One that has failed is taken if no other fits.
ucp_ep *asked(const ucp_worker *worker, const wireup_hdr &hdr, const uint8_t *address,
              const unpacked_address &peer, uint32_t sn)
{
    for (bool usable : {true, false}) {
        auto knows = [&](const ucp_ep &ep) {
            return (ep.status == UCS_OK) == usable && ep.remote_id == hdr.src_ep;
        };
        auto may_be = [&](const ucp_ep &ep) {
            return (ep.status == UCS_OK) == usable && ep.origin == ep_origin::address &&
                   !ep.control->shown && leads_to(ep, address, peer);
        };
        ucp_ep *ep = worker->matcher->find(hdr.src_uuid, sn, knows);
        if (ep || (ep = worker->matcher->find(hdr.src_uuid, sn, may_be))) {
            return ep;
        }
    }
    return nullptr;
}

// Any process can claim to be the peer. So the sender is answered, and our own request, which goes
// to the peer alone, brings the peer's id.
void answer_and_ask(ucp_ep *ep, uint64_t asker) noexcept
{
    ep_control &c = *ep->control;
    c.asker = asker;
    c.close_seen = false;
    c.todo |= TODO_REPLY | (c.asking ? 0 : unsigned(TODO_REQUEST));
    ep_drain(ep);
}

void on_reply(ucp_ep *ep, uint64_t src_ep) noexcept
{
    ep_control &c = *ep->control;
    ep->remote_id = src_ep;
    c.asking = c.unsure = false;
    c.shown = true;
    if (c.asker != 0 && c.asker != src_ep) {
        c.todo |= TODO_REPLY; // the answer to the peer's request may have gone to another sender
    }
    c.asker = 0;
    ep_connected(ep);
}

void on_request(ucp_worker *worker, const wireup_hdr &hdr, const uint8_t *address)
{
    unpacked_address peer;
    if (unpack_address(address, hdr.tail_length, &peer) != UCS_OK || peer.uuid != hdr.src_uuid ||
        hdr.src_ep == 0) {
        ++worker->stale_messages;
        ucs_debug("worker %s drops a damaged connection request", worker->name.c_str());
        return;
    }
    uint32_t sn = partner_sn(worker, hdr.src_uuid, hdr.sn);
    ucp_ep *ep = asked(worker, hdr, address, peer, sn);
    if (ep && ep->status != UCS_OK) {
        return; // the peer learns it from its lanes
    }
    if (!ep && !has_room_for_a_peer(worker)) {
        postpone(worker, address - sizeof(hdr), sizeof(hdr) + hdr.tail_length, shortage::endpoints);
        return;
    }
    if (!ep) {
        ep = new_matched_ep(worker, ep_origin::reply, peer, address, sn);
        ep->control->scarce = was_second_choice(*ep, peer) && postponed_requests::is_needed();
        ep->remote_id = hdr.src_ep;
    } else if (ep->remote_id != hdr.src_ep) {
        answer_and_ask(ep, hdr.src_ep);
        return;
    }
    ep->control->asker = 0;
    ep->control->close_seen = false;
    ep->control->todo |= TODO_REPLY;
    ep_connected(ep);
}

void on_close(ucp_ep *ep, close_reason reason)
{
    ep_control &c = *ep->control;
    c.close_seen = true;
    if (ep->state == ep_state::closing) {
        if (ep->rma_acked < ep->rma_posted) {
            ep->rma_acked = ep->rma_posted - 1;
            ep->rma_done(); // the rest of our flush need not wait for it
        }
        if (c.closing == close_phase::disconnecting) {
            ep_close_finish(ep, UCS_OK);
        }
        return;
    }
    if (ep->origin == ep_origin::client || ep->origin == ep_origin::server) {
        on_peer_closed(ep);
        return;
    }
    bool lost = reason == close_reason::worker_gone ||
                (reason == close_reason::forced && ep->err_mode != UCP_ERR_HANDLING_MODE_NONE);
    if (lost && c.user_owned) {
        ep->set_failed(UCS_ERR_CONNECTION_RESET);
        return;
    }
    if (!c.user_owned) {
        ep->status = UCS_ERR_CONNECTION_RESET;
        ep->state = ep_state::closed;
        ep->sendable = false;
        ep_defer(ep, WORK_ABORT | WORK_DESTROY);
        return;
    }
    // The peer's worker lives on; what we send next finds a new endpoint there.
    ep->remote_id = 0;
    c.asking = c.shown = c.unsure = false;
    ep->sendable = false;
    ep->state = ep_state::connecting;
    ep_defer(ep, WORK_ABORT);
}

// Only the peer was told the id of an endpoint. The sender of a request that was not answered yet
// does not know it, but can close what it asked for: it names itself as it did then.
ucp_ep *addressee(ucp_worker *worker, const wireup_hdr &hdr)
{
    ucp_ep *ep = hdr.dst_ep ? worker->find_ep(hdr.dst_ep) : nullptr;
    if (hdr.dst_ep == 0 && hdr.src_ep != 0 && hdr.kind == wireup_kind::close) {
        ep = worker->matcher->find(hdr.src_uuid, partner_sn(worker, hdr.src_uuid, hdr.sn),
                                   [&](const ucp_ep &own) { return own.remote_id == hdr.src_ep; });
    }
    if (!ep || hdr.src_ep == 0 || ep->status != UCS_OK) {
        ++worker->stale_messages;
        return nullptr;
    }
    return ep;
}

void dispatch(ucp_worker *worker, const wireup_hdr &hdr, const uint8_t *tail)
{
    if (hdr.kind == wireup_kind::request) {
        on_request(worker, hdr, tail);
        return;
    }
    if (hdr.kind == wireup_kind::ping) {
        return;
    }
    if (hdr.kind == wireup_kind::connect) {
        on_connect(worker, hdr, {tail, hdr.tail_length});
        return;
    }
    if (hdr.kind == wireup_kind::parted) {
        on_parted(worker, hdr);
        return;
    }
    if (hdr.kind == wireup_kind::accepted) {
        on_accepted(worker, hdr, {tail, hdr.tail_length});
        return;
    }
    ucp_ep *ep = addressee(worker, hdr);
    if (!ep) {
        if (hdr.kind == wireup_kind::close) {
            worker->matcher->postponed.drop(hdr.src_uuid, hdr.src_ep);
        }
        return;
    }
    bool from_peer = ep->remote_id == hdr.src_ep;
    if (hdr.kind == wireup_kind::reply) {
        on_reply(ep, hdr.src_ep);
    } else if (hdr.kind == wireup_kind::close && (from_peer || ep->remote_id == 0)) {
        on_close(ep, static_cast<close_reason>(hdr.reason));
    } else if (hdr.kind == wireup_kind::share && from_peer && hdr.tail_length > sizeof(uint64_t)) {
        share_request asked = {0, {tail + sizeof(asked.name), tail + hdr.tail_length}};
        memcpy(&asked.name, tail, sizeof(asked.name));
        on_share(ep, std::move(asked));
    } else if (hdr.kind == wireup_kind::shared && from_peer) {
        on_shared(ep);
    } else if (hdr.kind == wireup_kind::refused) {
        on_refused(ep, hdr);
    }
}

// False: there is no memory for it.
template <ucs::log::level level>
bool serve(ucp_worker *worker, const void *message) noexcept
{
    wireup_hdr hdr;
    memcpy(&hdr, message, sizeof(hdr));
    const auto *tail = static_cast<const uint8_t *>(message) + sizeof(hdr);
    ucs_status_t status = ucs::guard<level>([&] { dispatch(worker, hdr, tail); });
    if (status != UCS_OK && hdr.kind == wireup_kind::request) {
        status = ucs::guard<level>([&] {
            if (postponed_requests::is_needed()) {
                postpone(worker, message, sizeof(hdr) + hdr.tail_length, shortage::descriptors);
                return UCS_OK;
            }
            return status;
        });
    }
    return status != UCS_ERR_NO_MEMORY;
}

void keep_unserved(ucp_worker *worker, const void *message, size_t size)
{
    std::vector<uint8_t> &kept = worker->unserved;
    auto length = static_cast<uint32_t>(size);
    if (sizeof(length) + size > kept.capacity() - kept.size()) {
        ucs_error("worker %s has no memory for a peer's handshake", worker->name.c_str());
        return;
    }
    const auto *head = reinterpret_cast<const uint8_t *>(&length);
    const auto *bytes = static_cast<const uint8_t *>(message);
    kept.insert(kept.end(), head, head + sizeof(length));
    kept.insert(kept.end(), bytes, bytes + size);
    worker->schedule();
}

} // namespace

ucs_status_t wireup_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wireup_hdr hdr;
    if (length < sizeof(hdr)) {
        ++worker->stale_messages;
        return UCS_OK;
    }
    memcpy(&hdr, data, sizeof(hdr));
    if (hdr.tail_length != length - sizeof(hdr)) {
        ++worker->stale_messages;
        return UCS_OK;
    }
    if (!worker->unserved.empty() || !serve<ucs::log::level::error>(worker, data)) {
        keep_unserved(worker, data, length);
    }
    return UCS_OK;
}

void serve_again(ucp_worker *worker) noexcept
{
    std::vector<uint8_t> &kept = worker->unserved;
    size_t done = 0;
    while (done < kept.size()) {
        uint32_t length;
        memcpy(&length, kept.data() + done, sizeof(length));
        if (!serve<ucs::log::level::debug>(worker, kept.data() + done + sizeof(length))) {
            worker->schedule();
            break;
        }
        done += sizeof(length) + length;
    }
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(done));
    postponed_requests &postponed = worker->matcher->postponed;
    if (postponed.empty()) {
        return;
    }
    bool room = has_room_for_a_peer(worker);
    (void)ucs::guard<ucs::log::level::debug>([&] {
        for (const std::vector<uint8_t> &request : postponed.take(room)) {
            if (!serve<ucs::log::level::error>(worker, request.data())) {
                keep_unserved(worker, request.data(), request.size());
            }
        }
    });
    if (!postponed.empty() && room) { // else what makes room schedules
        worker->schedule();
    }
}

} // namespace ucp
