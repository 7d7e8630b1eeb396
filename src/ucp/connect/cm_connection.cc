// SPDX-License-Identifier: BSD-3-Clause
//
// A connection, its end, and the notices that endpoints leave behind. Which endpoints share it:
// sharing.cc.
#include "ucp/connect/cm_connection.h"

#include "ucp/connect/cm.h"
#include "ucp/connect/lane_connect.h"
#include "ucp/endpoint/ep_control.h"
#include "ucs/error.h"

#include <uct/api/v2/uct_v2.h>

#include <cstring>
#include <utility>

namespace ucp {

cm_connection::cm_connection(ucp_worker *w, cm_connections &all, uint64_t ep_id)
    : worker(w), id(ep_id), promise_(w, 3), all_(all)
{
    hook_.self = flush_.self = this;
}

cm_connection::~cm_connection()
{
    all_.share_no_more(this);
    all_.for_once -= for_once;
    flush_.self = nullptr;
    if (lane_) {
        all_.by_lane.erase(lane_);
        uct_ep_pending_purge(
            lane_, [](uct_pending_req_t *, void *) {}, nullptr);
        (void)uct_ep_flush(lane_, UCT_FLUSH_FLAG_CANCEL, nullptr);
        uct_ep_destroy(lane_);
    }
    close_uct();
}

void cm_connection::close_uct() noexcept
{
    if (uct) {
        uct_ep_destroy(std::exchange(uct, nullptr));
    }
}

void cm_connection::on_lane_failed() noexcept
{
    lane_failed_ = true;
    lose_unsent();
    forget_requests();
    all_.share_no_more(this);
    if (users == 0) {
        all_.retire(this);
    }
}

ucs_status_t cm_connection::open_lane(const unpacked_address &peer)
{
    if (lane_) {
        return UCS_OK;
    }
    uct_ep_h lane = nullptr;
    ucs_status_t status = connect_lane(worker, peer, &lane, &room_);
    if (status != UCS_OK) {
        return status;
    }
    status = ucs::guard([&] { all_.by_lane.emplace(lane, this); });
    if (status != UCS_OK) {
        uct_ep_destroy(lane);
        return status;
    }
    lane_ = lane;
    return UCS_OK;
}

ucs_status_t cm_connection::send_unsent() noexcept
{
    while (!unsent_.empty()) {
        std::list<wireup_message> next; // a worker with itself may send more within the call
        next.splice(next.begin(), unsent_, unsent_.begin());
        ucs_status_t status = send_wireup(lane_, next.front());
        if (status == UCS_ERR_NO_RESOURCE) {
            unsent_.splice(unsent_.begin(), next);
            return status;
        }
        if (status != UCS_OK) {
            lose_unsent(); // the peer cannot be reached; the connection's end tells both
            break;
        }
    }
    return UCS_OK;
}

// Their clients call at the address.
void cm_connection::forget_requests() noexcept
{
    users -= requests;
    requests = 0;
}

// An endpoint that has asked over the lane calls at the address.
void cm_connection::lose_unsent() noexcept
{
    unsent_.clear();
    for (cm_control *m : joining) {
        if (!m->asking.empty()) {
            ep_defer(m->ep, WORK_CALL);
        }
    }
}

ucs_status_t cm_connection::on_room(uct_pending_req_t *req)
{
    cm_connection *self = reinterpret_cast<hook *>(req)->self;
    ucs_status_t status = self->send_unsent();
    self->armed_ = status != UCS_OK;
    if (status == UCS_OK && self->users == 0 && !self->flush_notices()) {
        self->all_.retire(self);
    }
    return status;
}

void cm_connection::on_flushed(uct_completion_t *completion)
{
    cm_connection *self = reinterpret_cast<flush *>(completion)->self;
    if (self) {
        self->flushing_ = false;
        if (self->users == 0) {
            self->all_.retire(self);
        }
    }
}

bool cm_connection::flush_notices() noexcept
{
    if (!uct_given_up || !lane_ || lane_failed_) {
        return false;
    }
    if (!unsent_.empty() || armed_ || flushing_) {
        return true;
    }
    // The lane may have gathered them for one message.
    ucs_status_t status;
    do {
        flush_.completion = {};
        flush_.completion.func = on_flushed;
        flush_.completion.count = 1;
        status = uct_ep_flush(lane_, 0, &flush_.completion);
    } while (status == UCS_ERR_NO_RESOURCE && await_room() == UCS_ERR_BUSY);
    flushing_ = status == UCS_INPROGRESS;
    return flushing_ || armed_;
}

// UCS_ERR_BUSY: there is some.
ucs_status_t cm_connection::await_room() noexcept
{
    hook_.req = {};
    hook_.req.func = on_room;
    ucs_status_t status = uct_ep_pending_add(lane_, &hook_.req, 0);
    armed_ = status == UCS_OK;
    return status;
}

void cm_connection::send_notice(const wireup_hdr &notice) noexcept
{
    (void)send({notice, {}});
}

ucs_status_t cm_connection::send(wireup_message &&message) noexcept
{
    if (lane_failed_) {
        return UCS_ERR_CONNECTION_RESET;
    }
    ucs_status_t status = ucs::guard([&] { unsent_.push_back(std::move(message)); });
    while (status == UCS_OK && !armed_ && send_unsent() == UCS_ERR_NO_RESOURCE) {
        status = await_room();
        if (status == UCS_ERR_BUSY) {
            status = UCS_OK;
        } else if (status != UCS_OK) {
            lose_unsent();
        }
    }
    return status;
}

static ucs_status_t query_ends(uct_ep_h uct, which_addresses which, cm_addresses *out) noexcept
{
    uct_ep_attr_t attr = {};
    attr.field_mask = UCT_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    if (which == which_addresses::both) {
        attr.field_mask |= UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR;
    }
    ucs_status_t status = uct_ep_query(uct, &attr);
    if (status == UCS_OK) {
        *out = {attr.local_address, attr.remote_address};
    }
    return status;
}

const cm_addresses *cm_connection::addresses() noexcept
{
    if (!addresses_ && uct) {
        (void)ucs::guard([&] {
            auto ends = std::make_unique<cm_addresses>();
            if (query_ends(uct, which_addresses::both, ends.get()) == UCS_OK) {
                addresses_ = std::move(ends);
            }
        });
    }
    return addresses_.get();
}

cm_connection *cm_connections::open(ucp_worker *worker, uint64_t ep_id)
{
    auto made = std::make_unique<cm_connection>(worker, *this, ep_id);
    return by_id.insert_or_assign(ep_id, std::move(made)).first->second.get();
}

void cm_connections::release(cm_connection *connection) noexcept
{
    if (--connection->users == 0 && !connection->flush_notices()) {
        by_id.erase(connection->id);
    }
}

// If it has not ended before.
void cm_connections::release_request(uint64_t connection) noexcept
{
    auto found = by_id.find(connection);
    if (found != by_id.end() && found->second->requests > 0) {
        --found->second->requests;
        release(found->second.get());
    }
}

void cm_connections::share_no_more(const cm_connection *connection) noexcept
{
    if (auto first = to_peer.find(connection->peer_uuid);
        first != to_peer.end() && first->second == connection) {
        to_peer.erase(first);
    }
    if (auto there = to_address.find(connection->asked_at);
        there != to_address.end() && there->second == connection) {
        to_address.erase(there);
    }
}

void cm_connections::retire(cm_connection *connection) noexcept
{
    auto found = by_id.find(connection->id);
    if (found == by_id.end() || ucs::guard([&] { ended.reserve(ended.size() + 1); }) != UCS_OK) {
        return; // it goes already; or it stays until its worker goes, or another client shares it
    }
    share_no_more(connection);
    ended.push_back(std::move(found->second));
    by_id.erase(found);
    connection->worker->schedule();
}

// Moves an endpoint from the list of one connection to that of another.
template <auto Connection, auto List>
static cm_connection *move_to(cm_control &m, cm_connection *connection) noexcept
{
    if (m.*Connection) {
        (m.*Connection->*List).erase(&m);
    }
    if (connection) {
        (connection->*List).push_back(&m);
    }
    return std::exchange(m.*Connection, connection);
}

cm_connection *set_connection(ucp_ep *ep, cm_connection *connection) noexcept
{
    return move_to<&cm_control::cm, &cm_connection::members>(*ep->control->by_cm, connection);
}

cm_connection *set_joining(ucp_ep *ep, cm_connection *connection) noexcept
{
    return move_to<&cm_control::joining, &cm_connection::joining>(*ep->control->by_cm, connection);
}

ucs_status_t keep_addresses(ucp_ep *ep)
{
    auto addresses = std::make_unique<cm_addresses>();
    ucs_status_t status = query_addresses(ep, addresses.get());
    if (status == UCS_OK) {
        ep->control->by_cm->addresses = std::move(addresses);
    }
    return status;
}

ucs_status_t query_addresses(const ucp_ep *ep, cm_addresses *out, which_addresses which) noexcept
{
    const cm_control *m = ep->control->by_cm.get();
    if (m && m->addresses) {
        *out = *m->addresses;
        return UCS_OK;
    }
    if (!m || !m->cm || !m->cm->uct) {
        return UCS_ERR_NOT_CONNECTED;
    }
    return query_ends(m->cm->uct, which, out);
}

void leave_connection(ucp_ep *ep) noexcept
{
    cm_control *m = ep->control->by_cm.get();
    if (!m || (!m->cm && !m->joining && m->asking.empty())) {
        return;
    }
    cm_connections &all = worker_cm(ep->worker).connections;
    withdraw(m, &all);
    if (!m->cm) {
        if (m->joining) {
            all.release(set_joining(ep, nullptr));
        }
        return;
    }
    // The peer may have what this one is only joining, and not miss this one's own.
    cm_connection *told = m->joining ? m->joining : m->cm;
    if (told->shared() && !told->disconnected && !ep->control->close_sent && ep->remote_id != 0) {
        told->send_notice(notice_of(ep, wireup_kind::close));
    }
    if (m->joining) {
        all.release(set_joining(ep, nullptr));
    }
    all.release(set_connection(ep, nullptr));
    // The one that it gave up, if the client has not read that it shares another: it learns of the
    // end by that alone.
    if (auto own = all.by_id.find(ep->local_id); own != all.by_id.end() && own->second->given_up) {
        all.by_id.erase(own);
    }
}

void on_connection_lane_failed(ucp_worker *worker, uct_ep_h lane) noexcept
{
    if (worker->cm) {
        worker->cm->connections.on_lane_failed(lane);
    }
}

void on_connection_ended(ucp_worker *worker, uint64_t id) noexcept
{
    cm_connections &all = worker_cm(worker).connections;
    auto found = all.by_id.find(id);
    if (found == all.by_id.end()) {
        return;
    }
    cm_connection *ended = found->second.get();
    if (ended->uct_given_up) {
        (void)ended->addresses(); // while it knows them
        ended->close_uct();
        return;
    }
    ended->disconnected = true;
    if (ended->given_up) {
        all.by_id.erase(found);
        return;
    }
    ++ended->users; // for the time of this call
    ended->forget_requests();
    while (cm_control *m = ended->joining.front()) {
        m->ep->control->todo &= static_cast<uint8_t>(~TODO_SHARE);
        if (!m->asking.empty()) {
            ep_defer(m->ep, WORK_CALL);
        }
        all.release(set_joining(m->ep, nullptr));
    }
    ucs::list<cm_control, &cm_control::cm_node> members;
    members.splice_back(ended->members);
    while (cm_control *m = members.pop_front()) {
        ended->members.push_back(m);
        on_disconnected(m->ep);
    }
    all.release(ended);
}

} // namespace ucp
