// SPDX-License-Identifier: BSD-3-Clause
// The connection's callbacks to the user. They run on the async thread without the engine's mutex;
// when call_out() returns false, the connection was given up meanwhile and is not touched again.
#include "uct/ofi/cm/conn.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/ofi/cm/ep.h"
#include "uct/ofi/cm/listener.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/core/md.h"
#include "uct/ofi/core/route.h"

#include <algorithm>
#include <cstring>
#include <memory>

namespace uct::ofi {

namespace {

void copy_name(char (&out)[UCT_DEVICE_NAME_MAX], const std::string &name)
{
    size_t length = std::min(name.size(), sizeof(out) - 1);
    memcpy(out, name.data(), length);
    out[length] = '\0';
}

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

void cm_conn::deliver_resolve(cm_engine::lock &held)
{
    if (!user_) {
        return;
    }
    ucs_status_t status = UCS_OK;
    try {
        resolve();
    } catch (const ucs::error &e) {
        ucs_debug("%s", e.what());
        status = e.status();
    } catch (const std::bad_alloc &) {
        status = UCS_ERR_NO_MEMORY;
    }
    const cm_ep::callbacks &user = user_->user();
    if (!user.resolve) {
        if (status != UCS_OK) {
            fail(status);
        } else if (user.pack ? pack(held) : connect_asked_) {
            start_connecting();
        }
        return;
    }
    if (status != UCS_OK) {
        state_ = state::over;
        status_ = status;
    }
    uct_cm_ep_resolve_args_t args{};
    args.field_mask = UCT_CM_EP_RESOLVE_ARGS_FIELD_STATUS;
    args.status = status;
    if (status == UCS_OK) {
        args.field_mask |= UCT_CM_EP_RESOLVE_ARGS_FIELD_DEV_NAME;
        copy_name(args.dev_name, device_name_);
    }
    bool early = connect_asked_;
    ucs_status_t answer = UCS_OK;
    bool alive =
        engine_.call_out(held, this, user_, [&] { answer = user.resolve(user.user_data, &args); });
    if (!alive || status != UCS_OK) {
        return;
    }
    if (answer != UCS_OK) {
        ucs_debug("connection %p: the resolve callback returned %s", static_cast<void *>(this),
                  ucs_status_string(answer));
        state_ = state::over; // and not another word
        status_ = answer;
        close_endpoint();
    } else if (early && state_ == state::resolved) {
        start_connecting();
    }
}

// The private data of a client without resolve callback. False: it shall not connect.
bool cm_conn::pack(cm_engine::lock &held)
{
    const cm_ep::callbacks &user = user_->user();
    uct_cm_ep_priv_data_pack_args_t args{};
    args.field_mask = UCT_CM_EP_PRIV_DATA_PACK_ARGS_FIELD_DEVICE_NAME;
    copy_name(args.dev_name, device_name_);
    size_t room = engine_.max_priv();
    auto buffer = std::make_unique_for_overwrite<char[]>(room);
    ssize_t length = 0;
    bool alive = engine_.call_out(held, this, user_,
                                  [&] { length = user.pack(user.user_data, &args, buffer.get()); });
    if (!alive) {
        return false;
    }
    if (length < 0 || static_cast<size_t>(length) > room) {
        ucs_debug("connection %p: the pack callback returned %zd", static_cast<void *>(this),
                  length);
        state_ = state::over; // and not another word
        status_ = length < 0 ? static_cast<ucs_status_t>(length) : UCS_ERR_EXCEEDS_LIMIT;
        close_endpoint();
        return false;
    }
    to_send_.assign(buffer.get(), buffer.get() + length);
    connect_asked_ = true;
    return true;
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

void cm_conn::deliver_request(cm_engine::lock &held)
{
    if (!listener_ || listener_->closing()) {
        reject();
        return;
    }
    if (device_name_.empty()) {
        device_name_ = listener_->device();
    }
    if (device_name_.empty()) {
        try {
            device_name_ = find_route(engine_.provider(), remote(), nullptr).device;
        } catch (const ucs::error &e) {
            ucs_debug("%s", e.what());
        }
    }
    device_address address;
    uct_cm_remote_data_t data = remote_data(&address);
    sockaddr_storage client = remote_;
    uct_cm_listener_conn_request_args_t args{};
    args.field_mask = UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_DEV_NAME |
                      UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_CONN_REQUEST |
                      UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_REMOTE_DATA |
                      UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_CLIENT_ADDR;
    copy_name(args.dev_name, device_name_);
    args.conn_request = this;
    args.remote_data = &data;
    args.client_address.addr = reinterpret_cast<sockaddr *>(&client);
    args.client_address.addrlen =
        static_cast<socklen_t>(ucs::sockaddr_length(args.client_address.addr));
    delivered_ = true;
    cm_listener *listener = listener_;
    engine_.call_out(held, this, listener, [&] { listener->run_callback(args); });
}

void cm_conn::deliver_connect(cm_engine::lock &held)
{
    if (!user_) {
        return;
    }
    const cm_ep::callbacks &user = user_->user();
    device_address address;
    uct_cm_remote_data_t data{};
    if (status_ == UCS_OK) {
        told_open_ = true;
        data = remote_data(&address);
    }
    uct_cm_ep_client_connect_args_t args{};
    args.field_mask = UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_REMOTE_DATA |
                      UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_STATUS;
    args.remote_data = &data;
    args.status = status_;
    cm_ep *ep = user_;
    if (user.connect &&
        !engine_.call_out(held, this, ep, [&] { user.connect(ep, user.user_data, &args); })) {
        return;
    }
    received_ = std::vector<char>();
}

void cm_conn::deliver_notify(cm_engine::lock &held)
{
    if (!user_) {
        return;
    }
    const cm_ep::callbacks &user = user_->user();
    told_open_ = status_ == UCS_OK;
    uct_cm_ep_server_conn_notify_args_t args{};
    args.field_mask = UCT_CM_EP_SERVER_CONN_NOTIFY_ARGS_FIELD_STATUS;
    args.status = status_;
    cm_ep *ep = user_;
    if (user.notify) {
        engine_.call_out(held, this, ep, [&] { user.notify(ep, user.user_data, &args); });
    }
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

} // namespace uct::ofi
