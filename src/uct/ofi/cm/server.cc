// SPDX-License-Identifier: BSD-3-Clause
// The server's side of the handshake, in its order: the request and what follows of its private
// data, the answer, the client's NOTIFY.
#include "uct/ofi/cm/conn.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/ofi/cm/ep.h"
#include "uct/ofi/cm/listener.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/fabric/route.h"

#include <cstring>

namespace uct::ofi {

void cm_conn::on_request(const void *data, size_t length)
{
    cm_wire::message m;
    if (listener_ && ucs::is_other_version(cm_wire::protocol, data, length,
                                           ucs::sockaddr_string(remote()).c_str())) {
        reject(); // in our version, which the client sees
        return;
    }
    if (!listener_ || remote_.ss_family == AF_UNSPEC || !cm_wire::parse(data, length, m) ||
        m.type != cm_wire::type::connect) {
        ucs_debug("dropping a connection request that is not of this protocol");
        engine_.retire(this);
        return;
    }
    if (!engine_.provider().sockets() && info_->domain_attr->name) {
        device_name_ = info_->domain_attr->name;
    }
    handle(m);
    if (phase_ != cm_phase::collecting) {
        return;
    }
    // The rest comes on the connection, so there has to be one.
    ucs_status_t status = ucs::guard([&] {
        open_channel(info_.get());
        accept_core(cm_wire::type::proceed);
    });
    if (status != UCS_OK) {
        engine_.retire(this);
        return;
    }
    expect_message();
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
    if (!step(cm_event::offer)) {
        return;
    }
    cm_listener *listener = listener_;
    engine_.call_out(held, this, listener, [&] { listener->run_callback(args); });
}

void cm_conn::accept(cm_ep *user, const void *data, size_t length)
{
    if (phase_ == cm_phase::over) {
        ucs_debug("the client at %s has gone", ucs::sockaddr_string(remote()).c_str());
        throw peer_gone{UCS_ERR_CONNECTION_RESET};
    }
    if (!cm_phases.find(phase_, cm_event::accepted)) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_ep_create: params->conn_request was answered before");
    }
    const char *bytes = static_cast<const char *>(data);
    engine_.prepare_deadline();
    to_send_.assign(bytes, bytes + length);
    if (channel_.is_open()) {
        size_t chunk = std::min(length, cm_wire::chunk_max);
        channel_.send({cm_wire::type::reply, static_cast<uint32_t>(length), engine_.incarnation(),
                       to_send_.data(), chunk});
        channel_.send_data(to_send_, chunk);
        to_send_ = std::vector<char>();
    } else {
        try {
            open_channel(info_.get());
            accept_core(cm_wire::type::accept);
        } catch (const ucs::error &e) {
            // Out of memory or descriptors is ours, anything else is a client that has gone.
            if (e.status() == UCS_ERR_NO_MEMORY) {
                throw;
            }
            ucs_debug("%s", e.what());
            throw peer_gone{UCS_ERR_CONNECTION_RESET};
        }
    }
    leave_listener();
    user_ = user;
    received_ = std::vector<char>();
    if (step(cm_event::accepted)) {
        expect_message();
    }
}

void cm_conn::accept_core(cm_wire::type type)
{
    char first[cm_wire::message_max];
    size_t length = first_message(first, type);
    int ret = fi_accept(channel_.endpoint(), first, length);
    if (ret != 0) {
        channel_.close();
        throw ucs::error(UCS_ERR_CONNECTION_RESET, "fi_accept of a request from %s: %s",
                         ucs::sockaddr_string(remote()).c_str(), fi_strerror(-ret));
    }
    info_.reset();
}

ucs_status_t cm_conn::reject()
{
    if (phase_ == cm_phase::over) {
        engine_.retire(this);
        return UCS_ERR_CONNECTION_RESET;
    }
    if (answered()) {
        ucs_error("uct_listener_reject: conn_request was answered before");
        return UCS_ERR_INVALID_PARAM;
    }
    if (channel_.is_open()) {
        channel_.send({cm_wire::type::reject, 0, 0, nullptr, 0});
        linger();
        return UCS_OK;
    }
    if (engine_.usable(pep_)) {
        char answer[cm_wire::header_size];
        size_t length = first_message(answer, cm_wire::type::reject);
        int ret = fi_reject(pep_, info_->handle, answer, length);
        info_.reset();
        engine_.retire(this);
        return ret == 0 ? UCS_OK : UCS_ERR_CONNECTION_RESET;
    }
    // The listener has gone: say it on a connection.
    ucs_status_t status = ucs::guard([&] {
        open_channel(info_.get());
        accept_core(cm_wire::type::reject);
    });
    if (status == UCS_OK) {
        linger();
    } else {
        engine_.retire(this);
    }
    return status;
}

// A request that the core was not told about yet is refused without a word of ours.
void cm_conn::drop_request()
{
    if (!info_ || !info_->handle) {
        return;
    }
    if (engine_.usable(pep_)) {
        fi_reject(pep_, info_->handle, nullptr, 0);
    } else {
        // Without the passive endpoint only an endpoint can take the socket and close it.
        (void)ucs::guard([&] {
            fid_ep *endpoint = nullptr;
            if (fi_endpoint(engine_.device_of(info_.get()).domain(), info_.get(), &endpoint,
                            nullptr) == 0) {
                fi_close(&endpoint->fid);
            }
        });
    }
    info_.reset();
}

// The last message is under way; the peer closes when it has it.
void cm_conn::linger()
{
    if (step(cm_event::refuse)) {
        due_ = 0;
        leave_listener();
        engine_.let_linger(this);
    }
}

void cm_conn::on_deadline()
{
    engine_.end_deadline(this);
    if (!step(cm_event::late, UCS_ERR_ENDPOINT_TIMEOUT)) {
        fail(UCS_ERR_ENDPOINT_TIMEOUT);
    }
}

// The client has something to say before the connection stands.
void cm_conn::expect_message()
{
    if (engine_.peer_ns() != UINT64_MAX) {
        engine_.expect_message(this);
    }
}

void cm_conn::forget_listener(bool pep_stays)
{
    listener_ = nullptr;
    if (pep_stays || !movable()) {
        return;
    }
    // The core's request dies with the passive endpoint, a connection does not.
    ucs_status_t status = ucs::guard([&] {
        open_channel(info_.get());
        accept_core(cm_wire::type::proceed);
    });
    if (status != UCS_OK) {
        drop_request();
        fail(UCS_ERR_CONNECTION_RESET);
    }
}

void cm_conn::deliver_notify(cm_engine::lock &held)
{
    if (!user_) {
        return;
    }
    const cm_ep::callbacks &user = user_->user();
    if (status_ == UCS_OK && !step(cm_view_event::told_open)) {
        return;
    }
    uct_cm_ep_server_conn_notify_args_t args{};
    args.field_mask = UCT_CM_EP_SERVER_CONN_NOTIFY_ARGS_FIELD_STATUS;
    args.status = status_;
    cm_ep *ep = user_;
    if (user.notify) {
        engine_.call_out(held, this, ep, [&] { user.notify(ep, user.user_data, &args); });
    }
}

} // namespace uct::ofi
