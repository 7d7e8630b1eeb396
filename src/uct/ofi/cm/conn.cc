// SPDX-License-Identifier: BSD-3-Clause
// The connection's way through the handshake. Every function here runs with the engine's mutex and
// calls no user code; what the user is to know is noted by notice().
#include "uct/ofi/cm/conn.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "ucs/sys.h"
#include "uct/ofi/cm/ep.h"
#include "uct/ofi/cm/listener.h"
#include "uct/ofi/core/error.h"
#include "uct/ofi/core/route.h"

#include <algorithm>
#include <cstring>

namespace uct::ofi {

namespace {

// Verbs refuses what finds no receive. tcp leaves it in the socket: one is posted at a time, by a
// client when it is connected and knows whether more of the answer follows.
constexpr size_t receives_posted_verbs = 2;
constexpr uint64_t linger_ns = 3'000'000'000;   // for the peer to take the last message
constexpr uint64_t collect_ns = 10'000'000'000; // for a client to send the rest of its request

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

} // namespace

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

// ---- The core endpoint

void cm_conn::open_endpoint(fi_info *info)
{
    device_ = &engine_.device_of(info);
    fid_ep *endpoint = nullptr;
    check(fi_endpoint(device_->domain(), info, &endpoint, this), "fi_endpoint");
    endpoint_.reset(endpoint);
    engine_.bind(&endpoint->fid, this);
    try {
        check(fi_ep_bind(endpoint, &engine_.eq()->fid, 0), "fi_ep_bind to the event queue");
        check(fi_ep_bind(endpoint, &device_->cq()->fid, FI_TRANSMIT | FI_RECV),
              "fi_ep_bind to the completion queue");
        check(fi_enable(endpoint), "fi_enable");
        size_t length = sizeof(cm_data_max_);
        check(
            fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &cm_data_max_, &length),
            "fi_getopt(FI_OPT_CM_DATA_SIZE)");
        if (cm_data_max_ < cm_wire::header_size) {
            throw ucs::error(UCS_ERR_UNSUPPORTED, "%s carries only %zu bytes of connection data",
                             engine_.provider().provider.c_str(), cm_data_max_);
        }
        cm_data_max_ = std::min(cm_data_max_, cm_wire::message_max);
        inject_size_ = info->tx_attr->inject_size;
        bool tcp = engine_.provider().transport == "tcp";
        if (!tcp) {
            for (size_t i = 0; i < receives_posted_verbs; ++i) {
                post_receive(device_->get_op(this, true, cm_wire::message_max));
            }
        } else if (server_) {
            post_receive(device_->get_op(this, true, next_message()));
        }
    } catch (...) {
        close_endpoint();
        throw;
    }
}

void cm_conn::close_endpoint()
{
    if (!endpoint_) {
        return;
    }
    engine_.unbind(&endpoint_->fid);
    while (cm_op *op = sends_head_) {
        sends_head_ = op->next;
        device_->put_op(op);
    }
    sends_tail_ = &sends_head_;
    for (cm_op *op : posted_) {
        op->owner = nullptr; // its completion frees it
    }
    posted_.clear();
    endpoint_.reset();
    up_ = false;
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
        fid_ep *endpoint = nullptr;
        if (fi_endpoint(engine_.device_of(info_.get()).domain(), info_.get(), &endpoint, nullptr) ==
            0) {
            fi_close(&endpoint->fid);
        }
    }
    info_.reset();
}

// What the peer may say next, in bytes: private data follows only until all of it is here.
size_t cm_conn::next_message() const
{
    bool data = state_ == state::collecting || (!server_ && state_ != state::open);
    return data ? cm_wire::message_max : cm_wire::header_size;
}

void cm_conn::post_receive(cm_op *op)
{
    ssize_t ret = fi_recv(endpoint_.get(), op->data(), op->room, op->desc, 0, &op->context);
    if (ret != 0) {
        device_->put_op(op);
        check(ret, "fi_recv");
    }
    posted_.push_back(op);
}

void cm_conn::send(const cm_wire::message &m)
{
    cm_op *op = device_->get_op(this, false, cm_wire::header_size + m.chunk_len);
    op->length = static_cast<uint32_t>(cm_wire::write(op->data(), m));
    *sends_tail_ = op;
    sends_tail_ = &op->next;
    flush_sends();
}

void cm_conn::flush_sends()
{
    while (up_ && sends_head_) {
        cm_op *op = sends_head_;
        // No completion to wait for. A connection has a few of these, fewer than its queue holds.
        bool inject = op->length <= inject_size_;
        ssize_t ret =
            inject ? fi_inject(endpoint_.get(), op->data(), op->length, 0)
                   : fi_send(endpoint_.get(), op->data(), op->length, op->desc, 0, &op->context);
        if (ret == -FI_EAGAIN) {
            return; // a completion brings us back
        }
        sends_head_ = op->next;
        if (!sends_head_) {
            sends_tail_ = &sends_head_;
        }
        if (ret != 0) {
            // The end of the connection is reported by its event.
            ucs_debug("connection %p: fi_send: %s", static_cast<void *>(this),
                      fi_strerror(static_cast<int>(-ret)));
        }
        if (ret != 0 || inject) {
            device_->put_op(op);
        } else {
            posted_.push_back(op);
        }
    }
}

// The private data behind what the first message carried.
void cm_conn::send_rest(size_t offset)
{
    for (; offset < to_send_.size(); offset += cm_wire::chunk_max) {
        send({cm_wire::type::data, static_cast<uint32_t>(to_send_.size()),
              static_cast<uint32_t>(offset), to_send_.data() + offset,
              std::min(to_send_.size() - offset, cm_wire::chunk_max)});
    }
}

void cm_conn::on_sent(cm_op *op, int error)
{
    std::erase(posted_, op);
    device_->put_op(op);
    if (error) {
        on_operation_failed(error);
    } else {
        flush_sends();
    }
}

// Operations that were given up because the connection ended, or never came up, say less than the
// event that follows. A broken one may be all that is ever said.
void cm_conn::on_operation_failed(int error)
{
    if (up_ && error != FI_ECANCELED) {
        on_down(error, nullptr, 0);
    }
}

void cm_conn::on_received(cm_op *op, size_t length, int error)
{
    std::erase(posted_, op);
    cm_wire::message m;
    if (error) {
        on_operation_failed(error);
        device_->put_op(op);
        return;
    }
    if (cm_wire::parse(op->data(), length, m)) {
        handle(m);
    } else {
        ucs_debug("connection %p: %zu bytes that are no message", static_cast<void *>(this),
                  length);
        fail(UCS_ERR_CONNECTION_RESET);
    }
    device_->put_op(op);
    post_next_receive();
}

void cm_conn::post_next_receive()
{
    if (endpoint_ &&
        ucs::guard([&] { post_receive(device_->get_op(this, true, next_message())); }) != UCS_OK) {
        fail(UCS_ERR_CONNECTION_RESET);
    }
}

void cm_conn::on_deadline()
{
    deadline_ = 0;
    if (lingering_ || state_ == state::collecting) {
        engine_.retire(this);
    }
}

// ---- Private data

// What goes with fi_connect and fi_accept: header and as much as the core carries.
size_t cm_conn::first_message(void *out, cm_wire::type type) const
{
    bool data = type == cm_wire::type::connect || type == cm_wire::type::accept;
    size_t chunk = data ? std::min(to_send_.size(), cm_data_max_ - cm_wire::header_size) : 0;
    return cm_wire::write(out, {type, data ? static_cast<uint32_t>(to_send_.size()) : 0,
                                data ? engine_.incarnation() : 0, to_send_.data(), chunk});
}

void cm_conn::begin_data(const cm_wire::message &m)
{
    if (begun_ || m.total_len > engine_.max_priv()) {
        if (!begun_) {
            ucs_diag("a peer sends %u bytes of private data, more than the %zu allowed here",
                     m.total_len, engine_.max_priv());
        }
        fail(UCS_ERR_CONNECTION_RESET);
        return;
    }
    begun_ = true;
    received_.resize(m.total_len);
    if (m.chunk_len > 0) {
        memcpy(received_.data(), m.chunk, m.chunk_len);
    }
    received_bytes_ = m.chunk_len;
    if (received_bytes_ == received_.size()) {
        data_complete();
    }
}

void cm_conn::add_data(const cm_wire::message &m)
{
    bool wanted = begun_ && (state_ == state::connecting || state_ == state::collecting);
    if (!wanted || m.total_len != received_.size() || m.arg != received_bytes_) {
        fail(UCS_ERR_CONNECTION_RESET);
        return;
    }
    memcpy(received_.data() + received_bytes_, m.chunk, m.chunk_len);
    received_bytes_ += m.chunk_len;
    if (received_bytes_ == received_.size()) {
        data_complete();
    }
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

// ---- Client

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
    if (local || engine_.provider().transport != "tcp") {
        set_address(&info->src_addr, &info->src_addrlen, source);
    }
    set_address(&info->dest_addr, &info->dest_addrlen, remote());
    open_endpoint(info.get());
    state_ = state::resolved;
}

ucs_status_t cm_conn::connect(const void *data, size_t length)
{
    if (state_ == state::over) {
        return status_ == UCS_OK ? UCS_ERR_NOT_CONNECTED : status_;
    }
    if (server_ || connect_asked_ || (user_ && user_->user().pack)) {
        ucs_error("uct_ep_connect: ep must be a client endpoint without sockaddr_pack_cb that was "
                  "not connected before");
        return UCS_ERR_INVALID_PARAM;
    }
    connect_asked_ = true;
    const char *bytes = static_cast<const char *>(data);
    to_send_.assign(bytes, bytes + length);
    if (state_ == state::resolved) {
        start_connecting();
    }
    return UCS_OK;
}

// Failures are told by the connect callback.
void cm_conn::start_connecting()
{
    char first[cm_wire::message_max];
    size_t length = first_message(first, cm_wire::type::connect);
    state_ = state::connecting;
    int ret = fi_connect(endpoint_.get(), &remote_, first, length);
    if (ret != 0) {
        ucs_debug("fi_connect to %s: %s", ucs::sockaddr_string(remote()).c_str(),
                  fi_strerror(-ret));
        fail(connect_status(-ret));
    }
}

ucs_status_t cm_conn::notify()
{
    if (server_ || notified_) {
        ucs_error("uct_cm_client_ep_conn_notify: ep must be a client endpoint, once");
        return UCS_ERR_INVALID_PARAM;
    }
    if (!told_open_) {
        return state_ == state::over ? UCS_ERR_NOT_CONNECTED : UCS_ERR_BUSY;
    }
    if (state_ != state::open) {
        return UCS_ERR_NOT_CONNECTED;
    }
    notified_ = true;
    send({cm_wire::type::notify, 0, 0, nullptr, 0});
    return UCS_OK;
}

// ---- Server

void cm_conn::on_request(const void *data, size_t length)
{
    cm_wire::message m;
    if (!listener_ || remote_.ss_family == AF_UNSPEC || !cm_wire::parse(data, length, m) ||
        m.type != cm_wire::type::connect) {
        ucs_debug("dropping a connection request that is not of this protocol");
        engine_.retire(this);
        return;
    }
    if (engine_.provider().transport != "tcp" && info_->domain_attr->name) {
        device_name_ = info_->domain_attr->name;
    }
    begin_data(m);
    if (state_ != state::collecting) {
        return;
    }
    // The rest comes on the connection, so there has to be one.
    ucs_status_t status = ucs::guard([&] {
        open_endpoint(info_.get());
        accept_core(cm_wire::type::proceed);
    });
    if (status != UCS_OK) {
        engine_.retire(this);
        return;
    }
    deadline_ = ucs::monotonic_ns() + collect_ns;
    engine_.arm_deadlines();
}

void cm_conn::accept_core(cm_wire::type type)
{
    char first[cm_wire::message_max];
    size_t length = first_message(first, type);
    int ret = fi_accept(endpoint_.get(), first, length);
    if (ret != 0) {
        close_endpoint();
        throw ucs::error(UCS_ERR_CONNECTION_RESET, "fi_accept of a request from %s: %s",
                         ucs::sockaddr_string(remote()).c_str(), fi_strerror(-ret));
    }
    info_.reset();
}

void cm_conn::forget_listener(bool pep_stays)
{
    listener_ = nullptr;
    if (pep_stays || !movable()) {
        return;
    }
    // The core's request dies with the passive endpoint, a connection does not.
    ucs_status_t status = ucs::guard([&] {
        open_endpoint(info_.get());
        accept_core(cm_wire::type::proceed);
    });
    if (status != UCS_OK) {
        drop_request();
        state_ = state::over;
    }
}

void cm_conn::accept(cm_ep *user, const void *data, size_t length)
{
    if (state_ == state::over) {
        ucs_debug("the client at %s has gone", ucs::sockaddr_string(remote()).c_str());
        throw peer_gone{UCS_ERR_CONNECTION_RESET};
    }
    const char *bytes = static_cast<const char *>(data);
    to_send_.assign(bytes, bytes + length);
    if (endpoint_) {
        size_t chunk = std::min(length, cm_wire::chunk_max);
        send({cm_wire::type::reply, static_cast<uint32_t>(length), engine_.incarnation(),
              to_send_.data(), chunk});
        send_rest(chunk);
        to_send_ = std::vector<char>();
    } else {
        try {
            open_endpoint(info_.get());
            accept_core(cm_wire::type::accept);
            rest_follows_ = true;
        } catch (const ucs::error &e) {
            // Out of memory or descriptors is ours, anything else is a client that has gone.
            if (e.status() == UCS_ERR_NO_MEMORY) {
                throw;
            }
            ucs_debug("%s", e.what());
            throw peer_gone{UCS_ERR_CONNECTION_RESET};
        }
    }
    if (listener_) {
        listener_->remove(this);
        listener_ = nullptr;
    }
    user_ = user;
    delivered_ = true;
    received_ = std::vector<char>();
    state_ = state::accepting;
}

ucs_status_t cm_conn::reject()
{
    if (state_ == state::over) {
        engine_.retire(this);
        return UCS_ERR_CONNECTION_RESET;
    }
    if (endpoint_) {
        send({cm_wire::type::reject, 0, 0, nullptr, 0});
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
        open_endpoint(info_.get());
        accept_core(cm_wire::type::reject);
    });
    if (status == UCS_OK) {
        linger();
    } else {
        engine_.retire(this);
    }
    return status;
}

// The last message is under way; the peer closes when it has it.
void cm_conn::linger()
{
    state_ = state::over;
    lingering_ = true;
    due_ = 0;
    if (listener_) {
        listener_->remove(this);
        listener_ = nullptr;
    }
    deadline_ = ucs::monotonic_ns() + linger_ns;
    engine_.arm_deadlines();
}

// ---- Both

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

void cm_conn::on_answer(const void *data, size_t length)
{
    cm_wire::message m;
    if (!cm_wire::parse(data, length, m)) {
        fail(UCS_ERR_CONNECTION_RESET);
    } else if (m.type == cm_wire::type::proceed) {
        send_rest(std::min(to_send_.size(), cm_data_max_ - cm_wire::header_size));
    } else if (m.type == cm_wire::type::accept) {
        begin_data(m);
    } else {
        fail(m.type == cm_wire::type::reject ? UCS_ERR_REJECTED : UCS_ERR_CONNECTION_RESET);
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

void cm_conn::notice(unsigned bits)
{
    due_ |= bits;
    engine_.schedule(this);
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
