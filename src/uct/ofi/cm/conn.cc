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
    : engine_(engine), user_(user), server_(false), phase_(cm_phase::resolving),
      channel_(engine, *this)
{
    memcpy(&remote_, remote, ucs::sockaddr_length(remote));
    if (local) {
        memcpy(&local_, local, ucs::sockaddr_length(local));
    }
    engine_.add(this);
}

cm_conn::cm_conn(cm_engine &engine, cm_listener *listener, fid_pep *pep, info_ptr info)
    : engine_(engine), listener_(listener), pep_(pep), server_(true),
      phase_(listener ? cm_phase::arrived : cm_phase::offered), info_(std::move(info)),
      channel_(engine, *this)
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
    if (phase_ == cm_phase::gone || !step(cm_event::retire)) {
        return false;
    }
    due_ = 0;
    drop_request();
    leave_listener();
    user_ = nullptr;
    return true;
}

bool cm_conn::step(cm_event event, ucs_status_t status)
{
    const auto *next = cm_phases.find(phase_, event);
    if (!next) {
        ucs_debug("connection %p: %s does not fit while it is %s", static_cast<void *>(this),
                  name_of(event), name_of(phase_));
        return false;
    }
    phase_ = next->to;
    if (phase_ == cm_phase::over || phase_ == cm_phase::gone) {
        engine_.end_deadline(this);
        remember_name();
        channel_.close();
    }
    act(next->action, status);
    return true;
}

void cm_conn::act(cm_action action, ucs_status_t status)
{
    switch (action) {
    case cm_action::none:
    case cm_action::count:
        return;
    case cm_action::connect:
        start_connecting();
        return;
    case cm_action::send_rest:
        send_rest();
        return;
    case cm_action::tell_request:
        engine_.end_deadline(this);
        notice(due_request);
        return;
    case cm_action::tell_connect:
        to_send_ = std::vector<char>();
        status_ = status;
        notice(due_connect);
        return;
    case cm_action::tell_notify:
        engine_.end_deadline(this);
        status_ = status;
        notice(due_notify);
        return;
    case cm_action::tell_disconnect:
        notice(due_disconnect);
        return;
    case cm_action::drop:
        engine_.retire(this);
        return;
    }
}

bool cm_conn::step(cm_view_event event)
{
    const auto *next = cm_views.find(view_, event);
    if (next) {
        view_ = next->to;
    }
    return next;
}

void cm_conn::fail(ucs_status_t status)
{
    [[maybe_unused]] bool allowed = step(cm_event::broken, status);
}

// No more callbacks: the user has been told, or has ended it.
void cm_conn::give_up(ucs_status_t status)
{
    if (step(cm_event::give_up)) {
        due_ = 0;
        status_ = status;
    }
}

void cm_conn::leave_listener()
{
    if (listener_) {
        listener_->remove(this);
        listener_ = nullptr;
    }
}

void cm_conn::open_channel(fi_info *info)
{
    // Verbs refuses what finds no receive. tcp leaves it in the socket: one is posted at a time, by
    // a client when it is connected and knows whether more of the answer follows.
    if (engine_.provider().sockets()) {
        channel_.open(info, server_ ? 1 : 0, next_message());
    } else {
        channel_.open(info, 2, cm_wire::message_max);
    }
}

// What the peer may say next, in bytes: private data follows only until all of it is here.
size_t cm_conn::next_message() const
{
    return expects_data(phase_) ? cm_wire::message_max : cm_wire::header_size;
}

void cm_conn::post_next_receive()
{
    if (channel_.is_open() &&
        ucs::guard([&] { channel_.post_receive(next_message()); }) != UCS_OK) {
        fail(UCS_ERR_CONNECTION_RESET);
    }
}

void cm_conn::on_sent(cm_op *op, int error)
{
    channel_.completed(op);
    channel_.release(op);
    if (error) {
        on_operation_failed(error);
    } else {
        channel_.flush();
    }
}

void cm_conn::on_received(cm_op *op, size_t length, int error)
{
    channel_.completed(op);
    cm_wire::message m;
    if (error) {
        on_operation_failed(error);
        channel_.release(op);
        return;
    }
    if (cm_wire::parse(op->data(), length, m) && !cm_wire::with_handshake(m.type)) {
        handle(m);
    } else {
        ucs_debug("connection %p: %zu bytes that are no message", static_cast<void *>(this),
                  length);
        fail(UCS_ERR_CONNECTION_RESET);
    }
    channel_.release(op);
    post_next_receive();
}

// Operations that were given up because the connection ended, or never came up, say less than the
// event that follows. A broken one may be all that is ever said.
void cm_conn::on_operation_failed(int error)
{
    if (channel_.up() && error != FI_ECANCELED) {
        on_down(error, nullptr, 0);
    }
}

// What goes with fi_connect and fi_accept: header and as much as the core carries.
size_t cm_conn::first_message(void *out, cm_wire::type type) const
{
    bool data = type == cm_wire::type::connect || type == cm_wire::type::accept;
    size_t chunk =
        data ? std::min(to_send_.size(), channel_.handshake_max() - cm_wire::header_size) : 0;
    return cm_wire::write(out, {type, data ? static_cast<uint32_t>(to_send_.size()) : 0,
                                data ? engine_.incarnation() : 0, to_send_.data(), chunk});
}

// What did not fit the first message.
void cm_conn::send_rest()
{
    channel_.send_data(to_send_,
                       std::min(to_send_.size(), channel_.handshake_max() - cm_wire::header_size));
}

void cm_conn::begin_data(const cm_wire::message &m)
{
    if (m.total_len > engine_.max_priv()) {
        ucs_diag("a peer sends %u bytes of private data, more than the %zu allowed here",
                 m.total_len, engine_.max_priv());
        fail(UCS_ERR_CONNECTION_RESET);
        return;
    }
    received_.resize(m.total_len);
    if (m.chunk_len > 0) {
        memcpy(received_.data(), m.chunk, m.chunk_len);
    }
    received_bytes_ = m.chunk_len;
    look_whether_complete();
}

void cm_conn::add_data(const cm_wire::message &m)
{
    if (m.total_len != received_.size() || m.arg != received_bytes_) {
        fail(UCS_ERR_CONNECTION_RESET);
        return;
    }
    memcpy(received_.data() + received_bytes_, m.chunk, m.chunk_len);
    received_bytes_ += m.chunk_len;
    look_whether_complete();
}

void cm_conn::look_whether_complete()
{
    if (received_bytes_ == received_.size() && !step(cm_event::complete)) {
        fail(UCS_ERR_CONNECTION_RESET);
    }
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
    channel_.connected();
    if (server_) {
        send_rest(); // of an answer that went with fi_accept
        to_send_ = std::vector<char>();
        return;
    }
    on_answer(data, length);
    if (engine_.provider().sockets()) {
        post_next_receive();
    }
}

void cm_conn::handle(const cm_wire::message &m)
{
    if (!step(event_of(m.type), m.type == cm_wire::type::reject ? UCS_ERR_REJECTED : UCS_OK)) {
        fail(UCS_ERR_CONNECTION_RESET); // out of turn
        return;
    }
    switch (m.type) {
    case cm_wire::type::connect:
    case cm_wire::type::accept:
    case cm_wire::type::reply:
        begin_data(m);
        return;
    case cm_wire::type::data:
        add_data(m);
        return;
    default:
        return;
    }
}

void cm_conn::on_down(int error, const void *data, size_t length)
{
    ucs_status_t status = UCS_ERR_CONNECTION_RESET;
    if (phase_ == cm_phase::connecting) {
        cm_wire::message m;
        bool rejected = data && cm_wire::parse(data, length, m) && m.type == cm_wire::type::reject;
        status = rejected ? UCS_ERR_REJECTED : connect_status(error);
        if (data && ucs::is_other_version(cm_wire::protocol, data, length,
                                          ucs::sockaddr_string(remote()).c_str())) {
            status = UCS_ERR_UNSUPPORTED;
        }
    }
    fail(status);
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
    cm_ep *ep = user_;
    if (step(cm_view_event::told_end) && user.disconnect) {
        engine_.call_out(held, this, ep, [&] { user.disconnect(ep, user.user_data); });
    }
}

ucs_status_t cm_conn::disconnect()
{
    if (view_ == cm_view::waiting) {
        return phase_ == cm_phase::over ? UCS_ERR_NOT_CONNECTED : UCS_ERR_BUSY;
    }
    if (!step(cm_view_event::leave)) {
        return view_ == cm_view::leaving ? UCS_INPROGRESS : UCS_ERR_NOT_CONNECTED;
    }
    if (channel_.is_open()) {
        channel_.send({cm_wire::type::disconnect, 0, 0, nullptr, 0});
    }
    return UCS_OK;
}

void cm_conn::detach()
{
    if (!stay_for_notify()) {
        engine_.retire(this);
    }
}

// A client may end a connection before the program that has accepted it asks where it is.
void cm_conn::remember_name()
{
    size_t length = sizeof(local_);
    if (phase_ == cm_phase::over && server_ && user_ && channel_.is_open() &&
        fi_getname(&channel_.endpoint()->fid, &local_, &length) != 0) {
        local_ = {};
    }
}

ucs_status_t cm_conn::query(uct_ep_attr_t *attr) const
{
    // A server's endpoint was accepted by its caller: messages may come over the transport before
    // the event that the connection is up, and its addresses are those of the request. A client
    // knows the address that it asks; its own address is certain with that event (over verbs a
    // message of the peer may be seen before it), a socket has one from when it connects.
    bool certain = server_ || channel_.up() ||
                   (phase_ == cm_phase::connecting && engine_.provider().sockets());
    bool asks_local = attr->field_mask & UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR;
    bool remembered = server_ && local_.ss_family != AF_UNSPEC;
    if (!(is_connecting(phase_) && !asks_local) && !remembered &&
        (!channel_.is_open() || !certain)) {
        return UCS_ERR_NOT_CONNECTED;
    }
    if (attr->field_mask & UCT_EP_ATTR_FIELD_TX_TOKEN) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (asks_local && remembered) {
        attr->local_address = local_;
    } else if (asks_local) {
        size_t length = sizeof(attr->local_address);
        attr->local_address = {};
        if (fi_getname(&channel_.endpoint()->fid, &attr->local_address, &length) != 0) {
            return UCS_ERR_NOT_CONNECTED;
        }
    }
    if (attr->field_mask & UCT_EP_ATTR_FIELD_REMOTE_SOCKADDR) {
        attr->remote_address = remote_;
    }
    return UCS_OK;
}

} // namespace uct::ofi
