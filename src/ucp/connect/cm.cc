// SPDX-License-Identifier: BSD-3-Clause
//
// The connection manager's side of endpoints: private data, callbacks, events.
#include "ucp/connect/cm.h"

#include "ucp/connect/lane_connect.h"
#include "ucp/connect/listener.h"
#include "ucp/connect/locality.h"
#include "ucp/connect/wireup.h"
#include "ucp/endpoint/ep_control.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ucp {

namespace {

ucs_status_t keep_answer(ucp_ep *ep, std::span<const uint8_t> data)
{
    cm_control &m = *ep->control->by_cm;
    return ucs::guard([&] {
        if (m.answered) {
            m.answer = std::make_unique<std::vector<uint8_t>>(data.begin(), data.end());
        }
    });
}

// Callbacks of the connection manager's thread. The connection outlives its uct endpoint, whose
// destruction waits for a running callback.
ssize_t pack_hello(void *arg, const uct_cm_ep_priv_data_pack_args_t *, void *dest)
{
    const auto &data = static_cast<cm_connection *>(arg)->private_data;
    memcpy(dest, data.data(), data.size());
    return static_cast<ssize_t>(data.size());
}

void client_cb(uct_ep_h, void *arg, const uct_cm_ep_client_connect_args_t *args)
{
    auto *connection = static_cast<cm_connection *>(arg);
    event ev{event::kind::connected, UCS_OK, connection->id};
    if (args->field_mask & UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_STATUS) {
        ev.status = args->status;
    }
    if ((args->field_mask & UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_REMOTE_DATA) && args->remote_data &&
        (args->remote_data->field_mask & UCT_CM_REMOTE_DATA_FIELD_CONN_PRIV_DATA) &&
        (args->remote_data->field_mask & UCT_CM_REMOTE_DATA_FIELD_CONN_PRIV_DATA_LENGTH)) {
        const auto *p = static_cast<const uint8_t *>(args->remote_data->conn_priv_data);
        ucs_status_t kept =
            ucs::guard([&] { ev.data.assign(p, p + args->remote_data->conn_priv_data_length); });
        ev.status = kept == UCS_OK ? ev.status : kept;
    }
    connection->worker->post_event(std::move(ev));
}

void server_cb(uct_ep_h, void *arg, const uct_cm_ep_server_conn_notify_args_t *args)
{
    auto *connection = static_cast<cm_connection *>(arg);
    bool has_status = args->field_mask & UCT_CM_EP_SERVER_CONN_NOTIFY_ARGS_FIELD_STATUS;
    connection->worker->post_event(
        {event::kind::notified, has_status ? args->status : UCS_OK, connection->id});
}

void disconnect_cb(uct_ep_h, void *arg)
{
    auto *connection = static_cast<cm_connection *>(arg);
    connection->worker->post_event({event::kind::connection_ended, UCS_OK, connection->id});
}

} // namespace

cm::cm(ucp_worker *worker)
    : address(pack_address(*worker, false)), net_address(pack_address(*worker, true))
{
    const ucp_context &context = *worker->context;
    ucs_status_t status = UCS_ERR_UNSUPPORTED;
    for (uct_component_h cmpt : context.connection_managers()) {
        uct_cm_config_t *config = nullptr;
        status = uct_cm_config_read(cmpt, context.source.prefix(), context.source.file(), &config);
        if (status != UCS_OK) {
            continue;
        }
        for (const auto &[name, value] : context.overrides) {
            (void)uct_config_modify(config, name.c_str(), value.c_str());
        }
        if (!context.config.cm_reuseaddr) {
            (void)uct_config_modify(config, "REUSEADDR", "n");
        }
        status = uct_cm_open(cmpt, worker->uct, config, &uct);
        uct_config_release(config);
        if (status == UCS_OK) {
            break;
        }
    }
    if (!uct) {
        throw ucs::error(status, "no connection manager is available: %s",
                         ucs_status_string(status));
    }
    uct_cm_attr_t attr = {};
    attr.field_mask = UCT_CM_ATTR_FIELD_MAX_CONN_PRIV;
    if (uct_cm_query(uct, &attr) == UCS_OK) {
        max_private_data = attr.max_conn_priv;
    }
}

cm::~cm()
{
    connections.ended.clear();
    connections.by_id.clear();
    uct_cm_close(uct);
}

cm &worker_cm(ucp_worker *worker)
{
    if (!worker->cm) {
        (void)worker->open_networks(); // connections lead to other hosts
        worker->cm = std::make_unique<cm>(worker);
    }
    return *worker->cm;
}

void keep_callback(ucp_ep *ep, const greeting &mine) noexcept
{
    ep->control->by_cm->answered = mine.answered;
    ep->control->by_cm->answered_arg = mine.arg;
    ep->control->by_cm->trust = mine.trust;
}

void connect_client(ucp_ep *ep, const sockaddr *remote, socklen_t remote_length,
                    const ucs_sock_addr_t *local, bool send_client_id, const greeting &mine)
{
    cm &m = worker_cm(ep->worker);
    std::list<client_call> calls(1);
    client_call &call = calls.front();
    call.ep_id = ep->local_id;
    call.asked_at = ucs::sockaddr_string(remote);
    memcpy(&call.remote, remote, remote_length);
    if (local) {
        memcpy(&call.local, local->addr, ucs::sockaddr_length(local->addr));
    }
    cm_connection *to_share = to_share_at(m.connections, call.asked_at);
    client_hello says;
    says.err_mode = static_cast<uint8_t>(ep->err_mode);
    says.has_client_id = send_client_id;
    says.client_id = send_client_id ? ep->worker->client_id : 0;
    says.ep_id = ep->local_id;
    says.to_share = to_share ? to_share->peer_id : 0;
    says.greeting = mine.bytes();
    call.hello = pack_client_hello(m, says);
    keep_callback(ep, mine);
    if (to_share) {
        join(ep, to_share);
    }
    if (!to_share || !ask_over_lane(ep, &calls)) {
        call_at(ep, call);
    }
}

void call_at(ucp_ep *ep, client_call &call)
{
    cm &m = worker_cm(ep->worker);
    cm_connection *connection = m.connections.open(ep->worker, ep->local_id);
    set_connection(ep, connection);
    connection->asked_at = call.asked_at;
    connection->private_data = std::move(call.hello);
    const auto *local = reinterpret_cast<const sockaddr *>(&call.local);
    connection->local_was_named = call.local.ss_family != AF_UNSPEC && !ucs::sockaddr_is_any(local);

    auto sock_addr = [](const sockaddr_storage &of) {
        const auto *address = reinterpret_cast<const sockaddr *>(&of);
        return ucs_sock_addr_t{address, static_cast<socklen_t>(ucs::sockaddr_length(address))};
    };
    ucs_sock_addr_t to = sock_addr(call.remote);
    ucs_sock_addr_t from = sock_addr(call.local);
    uct_ep_params_t params = {};
    params.field_mask =
        UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_USER_DATA | UCT_EP_PARAM_FIELD_SOCKADDR |
        UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS | UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB |
        UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT | UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB;
    params.cm = m.uct;
    params.user_data = connection;
    params.sockaddr = &to;
    params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
    params.sockaddr_pack_cb = pack_hello;
    params.sockaddr_cb_client = client_cb;
    params.disconnect_cb = disconnect_cb;
    if (from.addrlen != 0) {
        params.field_mask |= UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR;
        params.local_sockaddr = &from;
    }
    ucs_status_t status = uct_ep_create(&params, &connection->uct);
    if (status != UCS_OK) {
        connection->uct = nullptr;
        ep->worker->post_event({event::kind::failed, status, ep->local_id});
        m.connections.release(set_connection(ep, nullptr));
    }
}

void accept_client(ucp_ep *ep, ucp_conn_request *request, const client_hello &client,
                   const greeting &mine)
{
    unpacked_address peer;
    ucs_status_t status = unpack_address(client.address, client.address_length, &peer);
    if (status == UCS_OK) {
        note_origin(reinterpret_cast<const sockaddr *>(&request->client), &peer);
        status = choose_lanes(ep, peer);
    }
    if (status != UCS_OK) {
        throw ucs::error(status, "ucp_ep_create: no transport reaches the client");
    }
    ep->remote_id = client.ep_id;
    if (request->asks) {
        accept_over_lane(ep, request, peer, mine);
        return;
    }

    cm &m = worker_cm(ep->worker);
    cm_connection *to_share = client.to_share ? agreed(ep, client.to_share, peer) : nullptr;
    server_hello says;
    says.ep_id = ep->local_id;
    says.shares = to_share;
    says.greeting = mine.bytes();
    std::vector<uint8_t> data = pack_server_hello(m, says);
    cm_connection *connection = m.connections.open(ep->worker, ep->local_id);
    connection->peer_id = client.ep_id;
    connection->peer_uuid = peer.uuid;
    connection->listener = request->listens == ep->worker ? request->listener_id : 0;
    set_connection(ep, connection);
    if (to_share) {
        join(ep, to_share);
    }
    keep_callback(ep, mine);
    uct_ep_params_t params = {};
    params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_CONN_REQUEST |
                        UCT_EP_PARAM_FIELD_USER_DATA | UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS |
                        UCT_EP_PARAM_FIELD_PRIV_DATA | UCT_EP_PARAM_FIELD_PRIV_DATA_LENGTH |
                        UCT_EP_PARAM_FIELD_SOCKADDR_NOTIFY_CB_SERVER |
                        UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB;
    params.cm = m.uct;
    params.conn_request = request->uct;
    params.user_data = connection;
    params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
    params.private_data = data.data();
    params.private_data_length = data.size();
    params.sockaddr_cb_server = server_cb;
    params.disconnect_cb = disconnect_cb;
    status = uct_ep_create(&params, &connection->uct);
    request->uct = nullptr; // consumed, also by an error
    if (status != UCS_OK) {
        connection->uct = nullptr;
        m.connections.release(set_connection(ep, nullptr));
        throw ucs::error(status, "ucp_ep_create: the client is gone: %s",
                         ucs_status_string(status));
    }
    if (to_share && (status = keep_addresses(ep)) != UCS_OK) {
        throw ucs::error(status, "ucp_ep_create: the client's address: %s",
                         ucs_status_string(status));
    }
}

// What no listener rejects is rejected by an endpoint that is not to be.
static void refuse(uct_cm_h cm, uct_conn_request_h request)
{
    uct_ep_params_t params = {};
    params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_CONN_REQUEST |
                        UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS | UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB |
                        UCT_EP_PARAM_FIELD_SOCKADDR_NOTIFY_CB_SERVER;
    params.cm = cm;
    params.conn_request = request;
    params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
    params.sockaddr_pack_cb = [](void *, const uct_cm_ep_priv_data_pack_args_t *, void *) {
        return static_cast<ssize_t>(UCS_ERR_REJECTED);
    };
    params.sockaddr_cb_server = [](uct_ep_h, void *, const uct_cm_ep_server_conn_notify_args_t *) {
    };
    uct_ep_h none = nullptr;
    (void)uct_ep_create(&params, &none); // fails, as it should
}

void reject_request(ucp_worker *worker, ucp_conn_request *request) noexcept
{
    if (request->asks) {
        refuse_over_lane(worker, request);
        return;
    }
    std::lock_guard<ucs::opt_lock> guard(request->context->lock);
    uct_conn_request_h rejected = std::exchange(request->uct, nullptr);
    if (rejected && request->listener) {
        (void)uct_listener_reject(request->listener->uct, rejected);
    } else if (rejected) {
        (void)ucs::guard([&] { refuse(worker_cm(worker).uct, rejected); });
    }
}

void on_conn_request(ucp_worker *worker, event &ev) noexcept
{
    ucp_conn_request *request = ev.request;
    ucp_listener *listener = request->listener;
    ev.request = nullptr;
    client_hello client;
    if (!listener || parse_client_hello(request->data, &client) != UCS_OK) {
        reject_request(worker, request);
        delete request;
        return;
    }
    request->client_id = client.has_client_id ? client.client_id : 0;
    if (listener->accept.cb) {
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = request;
        ucp_ep_h ep = nullptr;
        if (ucp_ep_create(worker, &params, &ep) == UCS_OK) {
            listener->accept.cb(ep, listener->accept.arg);
        }
        return;
    }
    ucs_status_t status = ucs::guard([&] {
        std::lock_guard<ucs::opt_lock> guard(request->context->lock);
        listener->delivered.push_back(request);
    });
    if (status != UCS_OK) {
        reject_request(worker, request);
        delete request;
        return;
    }
    request->delivered = true;
    listener->conn.cb(request, listener->conn.arg);
}

ucs_status_t take_answer(ucp_ep *ep, std::span<const uint8_t> data, server_hello *server,
                         unpacked_address *peer) noexcept
{
    ucs_status_t status = parse_server_hello(data, server);
    if (status == UCS_OK) {
        status = ucs::guard(
            [&] { return unpack_address(server->address, server->address_length, peer); });
    }
    if (status == UCS_OK) {
        cm_addresses ends = {};
        (void)query_addresses(ep, &ends, which_addresses::remote); // none: it is of no host
        note_origin(reinterpret_cast<const sockaddr *>(&ends.remote), peer);
        status = ucs::guard([&] { return choose_lanes(ep, *peer); });
    }
    if (status == UCS_OK) {
        status = keep_answer(ep, server->greeting);
    }
    if (status == UCS_OK && server->shares) {
        status = ucs::guard([&] { return prepare_to_share(ep, *peer); });
    }
    return status;
}

void on_connected(ucp_ep *ep, const event &ev) noexcept
{
    if (ep->status != UCS_OK || ep->state == ep_state::closed) {
        return;
    }
    cm_control &m = *ep->control->by_cm;
    m.cm->private_data = std::vector<uint8_t>(); // it was sent
    if (ev.status != UCS_OK) {
        ep->set_failed(ev.status);
        return;
    }
    server_hello server;
    unpacked_address peer;
    ucs_status_t status = take_answer(ep, ev.data, &server, &peer);
    if (status == UCS_OK) {
        status = uct_cm_client_ep_conn_notify(m.cm->uct);
    }
    if (status != UCS_OK) {
        ucs_diag("ep %p: the server's answer cannot be used: %s", static_cast<void *>(ep),
                 ucs_status_string(status));
        ep->set_failed(status);
        return;
    }
    ep->remote_id = server.ep_id;
    m.established = true;
    m.cm->established = true;
    m.cm->peer_id = server.ep_id;
    m.cm->peer_uuid = peer.uuid;
    settle_sharing(ep, server.shares);
    ep_connected(ep);
    if (!server.shares) {
        (void)ucs::guard([&] { share_connection(ep, peer); }); // else it keeps its own
    }
    if (ep->control->close_seen) { // the lane of another endpoint was faster than the answer
        on_peer_closed(ep);
    } else {
        ep_tell_answer_when_up(ep);
    }
}

void on_notified(ucp_ep *ep, const event &ev) noexcept
{
    if (ep->status != UCS_OK || ep->state == ep_state::closed) {
        return;
    }
    if (ev.status != UCS_OK) {
        ep->set_failed(ev.status);
        return;
    }
    client_confirmed(ep);
    ep_tell_answer_when_up(ep);
}

void client_confirmed(ucp_ep *ep) noexcept
{
    cm_control &m = *ep->control->by_cm;
    if (m.established) {
        return;
    }
    if (keep_answer(ep, {}) != UCS_OK) {
        ep->set_failed(UCS_ERR_NO_MEMORY);
        return;
    }
    m.established = true;
    if (m.cm) {
        m.cm->established = true;
    }
    if (m.joining) {
        begin_to_share(ep); // the client ends its own
    }
    ep_connected(ep);
    if (std::unique_ptr<share_request> early = std::move(m.early_share)) {
        (void)ucs::guard([&] { on_share(ep, std::move(*early)); }); // else the client keeps its own
    }
}

} // namespace ucp
