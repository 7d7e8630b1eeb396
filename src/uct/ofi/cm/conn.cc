// SPDX-License-Identifier: BSD-3-Clause
// What both sides of a connection have in common: its events, its callbacks and its end. The
// sources of a connection are this one, client.cc, server.cc and channel.cc. Every function runs
// with the engine's mutex. Callbacks to the user are made without it, by deliver_*() through
// call_out(); when that returns false, the connection was given up meanwhile and is not touched
// again.
#include "uct/ofi/cm/conn.h"

#include "ucs/sockaddr.h"
#include "uct/ofi/cm/ep.h"
#include "uct/ofi/cm/listener.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/core/md.h"

#include <algorithm>
#include <cstring>

namespace uct::ofi {

namespace {

// The peer's address as its interfaces on that device give it. Its host is known when it is ours.
device_address address_of(const core &c, const sockaddr *peer)
{
    device_address a{};
    a.header = make_header(address_kind::device, transport_hash(c.transport), sizeof(a));
    a.family = peer->sa_family;
    a.loopback = ucs::sockaddr_is_loopback(peer);
    a.host = a.loopback ? network_identity() : 0;
    if (peer->sa_family == AF_INET6) {
        memcpy(a.ip, &reinterpret_cast<const sockaddr_in6 *>(peer)->sin6_addr, 16);
    } else {
        memcpy(a.ip, &reinterpret_cast<const sockaddr_in *>(peer)->sin_addr, 4);
    }
    return a;
}

} // namespace

void copy_name(char (&out)[UCT_DEVICE_NAME_MAX], const std::string &name)
{
    size_t length = std::min(name.size(), sizeof(out) - 1);
    memcpy(out, name.data(), length);
    out[length] = '\0';
}

cm_conn::cm_conn(cm_engine &engine, cm_ep *user, const sockaddr *remote, const sockaddr *local)
    : engine_(engine), user_(user), server_(false), state_(state::resolving)
{
    memcpy(&remote_, remote, ucs::sockaddr_length(remote));
    if (local) {
        memcpy(&local_, local, ucs::sockaddr_length(local));
    }
    engine_.add(this);
}

cm_conn::cm_conn(cm_engine &engine, cm_listener *listener, fid_pep *pep, info_ptr info)
    : engine_(engine), listener_(listener), pep_(pep), server_(true), state_(state::collecting),
      info_(std::move(info))
{
    auto *client = static_cast<const sockaddr *>(info_->dest_addr);
    if (client) {
        memcpy(&remote_, client, std::min(ucs::sockaddr_length(client), sizeof(remote_)));
    }
    engine_.add(this);
    if (listener_) {
        listener_->add(this);
    }
}

cm_conn::~cm_conn()
{
    bury();
    engine_.remove(this);
}

bool cm_conn::bury()
{
    if (buried_) {
        return false;
    }
    buried_ = true;
    state_ = state::over;
    due_ = 0;
    deadline_ = 0;
    close_endpoint();
    drop_request();
    if (listener_) {
        listener_->remove(this);
        listener_ = nullptr;
    }
    user_ = nullptr;
    return true;
}

void cm_conn::notice(unsigned bits)
{
    due_ |= bits;
    engine_.schedule(this);
}

void cm_conn::deliver(cm_engine::lock &held)
{
    unsigned next = due_ & -due_; // the lowest: that is their order
    due_ &= ~next;
    if (due_) {
        engine_.schedule(this);
    }
    switch (next) {
    case due_resolve:
        return deliver_resolve(held);
    case due_request:
        return deliver_request(held);
    case due_connect:
        return deliver_connect(held);
    case due_notify:
        return deliver_notify(held);
    case due_disconnect:
        return deliver_disconnect(held);
    default:
        return;
    }
}

void cm_conn::on_connected(const void *data, size_t length)
{
    up_ = true;
    if (server_) {
        if (rest_follows_) {
            send_rest(std::min(to_send_.size(), cm_data_max_ - cm_wire::header_size));
            to_send_ = std::vector<char>();
        }
        flush_sends();
        return;
    }
    on_answer(data, length);
    if (engine_.provider().transport == "tcp") {
        post_next_receive();
    }
}

void cm_conn::handle(const cm_wire::message &m)
{
    switch (m.type) {
    case cm_wire::type::reply:
        if (!server_ && state_ == state::connecting) {
            begin_data(m);
            return;
        }
        break;
    case cm_wire::type::reject:
        if (!server_ && state_ == state::connecting) {
            fail(UCS_ERR_REJECTED);
            return;
        }
        break;
    case cm_wire::type::data:
        add_data(m);
        return;
    case cm_wire::type::notify:
        if (server_ && state_ == state::accepting) {
            state_ = state::open;
            notice(due_notify);
            return;
        }
        break;
    case cm_wire::type::disconnect:
        if (state_ == state::open) {
            if (!peer_left_) {
                peer_left_ = true;
                notice(due_disconnect);
            }
            return;
        }
        break;
    case cm_wire::type::connect:
    case cm_wire::type::accept:
    case cm_wire::type::proceed:
        break;
    }
    fail(UCS_ERR_CONNECTION_RESET); // out of turn
}

void cm_conn::data_complete()
{
    deadline_ = 0;
    if (server_) {
        state_ = state::requested;
        notice(due_request);
    } else {
        state_ = state::open;
        to_send_ = std::vector<char>();
        notice(due_connect);
    }
}

void cm_conn::on_down(int error, const void *data, size_t length)
{
    if (lingering_) {
        engine_.retire(this);
        return;
    }
    ucs_status_t status = UCS_ERR_CONNECTION_RESET;
    if (state_ == state::connecting && !up_) {
        cm_wire::message m;
        bool rejected = data && cm_wire::parse(data, length, m) && m.type == cm_wire::type::reject;
        status = rejected ? UCS_ERR_REJECTED : connect_status(error);
    }
    fail(status);
}

void cm_conn::fail(ucs_status_t status)
{
    if (state_ == state::over) {
        close_endpoint();
        return;
    }
    bool was_open = state_ == state::open;
    state_ = state::over;
    close_endpoint();
    if (!user_) {
        if (!delivered_) {
            engine_.retire(this);
        }
        return;
    }
    if (was_open) {
        if (!peer_left_) {
            peer_left_ = true;
            notice(due_disconnect);
        }
        return;
    }
    status_ = status;
    notice(server_ ? due_notify : due_connect);
}

uct_cm_remote_data_t cm_conn::remote_data(device_address *address) const
{
    uct_cm_remote_data_t data{};
    data.field_mask = UCT_CM_REMOTE_DATA_FIELD_DEV_ADDR | UCT_CM_REMOTE_DATA_FIELD_DEV_ADDR_LENGTH |
                      UCT_CM_REMOTE_DATA_FIELD_CONN_PRIV_DATA |
                      UCT_CM_REMOTE_DATA_FIELD_CONN_PRIV_DATA_LENGTH;
    *address = address_of(engine_.provider(), remote());
    data.dev_addr_length = sizeof(*address);
    data.dev_addr = reinterpret_cast<const uct_device_addr_t *>(address);
    data.conn_priv_data = received_.data();
    data.conn_priv_data_length = received_.size();
    return data;
}

void cm_conn::deliver_disconnect(cm_engine::lock &held)
{
    if (!user_) {
        return;
    }
    const cm_ep::callbacks &user = user_->user();
    told_disconnect_ = true;
    cm_ep *ep = user_;
    if (user.disconnect) {
        engine_.call_out(held, this, ep, [&] { user.disconnect(ep, user.user_data); });
    }
}

ucs_status_t cm_conn::disconnect()
{
    if (!told_open_) {
        return state_ == state::over ? UCS_ERR_NOT_CONNECTED : UCS_ERR_BUSY;
    }
    if (disconnecting_) {
        return told_disconnect_ ? UCS_ERR_NOT_CONNECTED : UCS_INPROGRESS;
    }
    disconnecting_ = true;
    if (endpoint_) {
        send({cm_wire::type::disconnect, 0, 0, nullptr, 0});
    }
    return UCS_OK;
}

void cm_conn::detach()
{
    engine_.retire(this);
}

ucs_status_t cm_conn::query(uct_ep_attr_t *attr) const
{
    // A server's endpoint was accepted by whoever asks: messages may come over the transport before
    // the event that the connection is up, and its addresses are those of the request. A client's
    // are certain with that event; over verbs a message of the peer may be seen before it.
    bool certain = server_ || up_ || state_ == state::open;
    if (!endpoint_ || !certain) {
        return UCS_ERR_NOT_CONNECTED;
    }
    if (attr->field_mask & UCT_EP_ATTR_FIELD_TX_TOKEN) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (attr->field_mask & UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR) {
        size_t length = sizeof(attr->local_address);
        attr->local_address = {};
        if (fi_getname(&endpoint_->fid, &attr->local_address, &length) != 0) {
            return UCS_ERR_NOT_CONNECTED;
        }
    }
    if (attr->field_mask & UCT_EP_ATTR_FIELD_REMOTE_SOCKADDR) {
        attr->remote_address = remote_;
    }
    return UCS_OK;
}

} // namespace uct::ofi
