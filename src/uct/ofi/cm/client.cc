// SPDX-License-Identifier: BSD-3-Clause
// The client's side of the handshake, in its order: resolve, connect, the server's answer, notify.
#include "uct/ofi/cm/conn.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/ofi/cm/ep.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/fabric/route.h"

#include <memory>

namespace uct::ofi {

// What went wrong before the server had answered.
ucs_status_t connect_status(int error)
{
    switch (error) {
    case FI_ECONNREFUSED:
        return UCS_ERR_NOT_CONNECTED;
    case FI_EHOSTUNREACH:
    case FI_ENETUNREACH:
    case FI_EHOSTDOWN:
    case FI_ENETDOWN:
    case FI_ETIMEDOUT:
    case FI_EADDRNOTAVAIL:
    case FI_EINVAL:
        return UCS_ERR_UNREACHABLE;
    default:
        return UCS_ERR_CONNECTION_RESET;
    }
}

void cm_conn::start_resolving()
{
    notice(due_resolve);
}

// Runs in deliver(). Throws ucs::error.
void cm_conn::resolve()
{
    auto *local = local_.ss_family ? reinterpret_cast<sockaddr *>(&local_) : nullptr;
    route way = find_route(engine_.provider(), remote(), local);
    device_name_ = way.device;
    info_ptr info = engine_.make_info(way.device, remote_.ss_family);
    // Left to the kernel a source is chosen by the route; a user's choice or verbs needs it said.
    auto *source = local ? local : reinterpret_cast<sockaddr *>(&way.source);
    if (local || !engine_.provider().sockets()) {
        set_address(&info->src_addr, &info->src_addrlen, source);
    }
    set_address(&info->dest_addr, &info->dest_addrlen, remote());
    open_channel(info.get());
    if (!step(cm_event::route)) {
        throw ucs::error(UCS_ERR_NOT_CONNECTED, "the way to %s comes too late",
                         ucs::sockaddr_string(remote()).c_str());
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
        } else if (user.pack) {
            pack(held);
        } else {
            connect_if_ready();
        }
        return;
    }
    if (status != UCS_OK) {
        give_up(status);
    }
    uct_cm_ep_resolve_args_t args{};
    args.field_mask = UCT_CM_EP_RESOLVE_ARGS_FIELD_STATUS;
    args.status = status;
    if (status == UCS_OK) {
        args.field_mask |= UCT_CM_EP_RESOLVE_ARGS_FIELD_DEV_NAME;
        copy_name(args.dev_name, device_name_);
    }
    ucs_status_t answer = UCS_OK;
    bool alive =
        engine_.call_out(held, this, user_, [&] { answer = user.resolve(user.user_data, &args); });
    if (!alive || status != UCS_OK) {
        return;
    }
    if (answer != UCS_OK) {
        ucs_debug("connection %p: the resolve callback returned %s", static_cast<void *>(this),
                  ucs_status_string(answer));
        give_up(answer);
    } else {
        connect_if_ready();
    }
}

// The private data came before the way was known.
void cm_conn::connect_if_ready()
{
    if (phase_ == cm_phase::ready && !step(cm_event::go)) {
        fail(UCS_ERR_NOT_CONNECTED);
    }
}

// The private data of a client without resolve callback.
void cm_conn::pack(cm_engine::lock &held)
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
        return;
    }
    if (length < 0 || static_cast<size_t>(length) > room) {
        ucs_debug("connection %p: the pack callback returned %zd", static_cast<void *>(this),
                  length);
        give_up(length < 0 ? static_cast<ucs_status_t>(length) : UCS_ERR_EXCEEDS_LIMIT);
        return;
    }
    to_send_.assign(buffer.get(), buffer.get() + length);
    if (!step(cm_event::prepare)) {
        fail(UCS_ERR_NOT_CONNECTED);
    }
}

ucs_status_t cm_conn::connect(const void *data, size_t length)
{
    if (phase_ == cm_phase::over) {
        return status_ == UCS_OK ? UCS_ERR_NOT_CONNECTED : status_;
    }
    bool packs = user_ && user_->user().pack;
    if (packs || !cm_phases.find(phase_, cm_event::prepare)) {
        ucs_error("uct_ep_connect: ep must be a client endpoint without sockaddr_pack_cb that was "
                  "not connected before");
        return UCS_ERR_INVALID_PARAM;
    }
    const char *bytes = static_cast<const char *>(data);
    to_send_.assign(bytes, bytes + length);
    return step(cm_event::prepare) ? UCS_OK : UCS_ERR_NOT_CONNECTED;
}

// Failures are told by the connect callback.
void cm_conn::start_connecting()
{
    char first[cm_wire::message_max];
    size_t length = first_message(first, cm_wire::type::connect);
    int ret = fi_connect(channel_.endpoint(), &remote_, first, length);
    if (ret != 0) {
        ucs_debug("fi_connect to %s: %s", ucs::sockaddr_string(remote()).c_str(),
                  fi_strerror(-ret));
        fail(connect_status(-ret));
    }
}

void cm_conn::on_answer(const void *data, size_t length)
{
    cm_wire::message m;
    if (!cm_wire::parse(data, length, m)) {
        bool other = ucs::is_other_version(cm_wire::protocol, data, length,
                                           ucs::sockaddr_string(remote()).c_str());
        fail(other ? UCS_ERR_UNSUPPORTED : UCS_ERR_CONNECTION_RESET);
    } else {
        handle(m);
    }
}

// Sockets keep what was sent when they are closed. A core that drops it keeps the connection until
// the peer ends it. False: nothing is on its way.
bool cm_conn::stay_for_notify()
{
    if (server_ || engine_.provider().sockets() || phase_ != cm_phase::open ||
        !channel_.is_open()) {
        return false;
    }
    ucs_status_t status = ucs::guard([&] {
        channel_.send({cm_wire::type::disconnect, 0, 0, nullptr, 0});
    });
    if (status != UCS_OK || !step(cm_event::part)) {
        return false;
    }
    due_ = 0;
    user_ = nullptr;
    return ucs::guard([&] { engine_.let_linger(this); }) == UCS_OK;
}

void cm_conn::deliver_connect(cm_engine::lock &held)
{
    if (!user_) {
        return;
    }
    const cm_ep::callbacks &user = user_->user();
    device_address address;
    uct_cm_remote_data_t data{};
    if (status_ == UCS_OK && step(cm_view_event::told_open)) {
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

ucs_status_t cm_conn::notify()
{
    if (server_ || phase_ == cm_phase::open) {
        ucs_error("uct_cm_client_ep_conn_notify: ep must be a client endpoint, once");
        return UCS_ERR_INVALID_PARAM;
    }
    if (view_ == cm_view::waiting) {
        return phase_ == cm_phase::over ? UCS_ERR_NOT_CONNECTED : UCS_ERR_BUSY;
    }
    if (!step(cm_event::confirm)) {
        return UCS_ERR_NOT_CONNECTED;
    }
    channel_.send({cm_wire::type::notify, 0, 0, nullptr, 0});
    return UCS_OK;
}

} // namespace uct::ofi
