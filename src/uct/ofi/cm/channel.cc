// SPDX-License-Identifier: BSD-3-Clause
// The channel of a connection: the core endpoint, the messages on it, and the private data that
// they carry in pieces.
#include "uct/ofi/cm/conn.h"

#include "ucs/error.h"
#include "uct/ofi/core/error.h"

#include <algorithm>
#include <cstring>

namespace uct::ofi {

namespace {

// Verbs refuses what finds no receive. tcp leaves it in the socket: one is posted at a time, by a
// client when it is connected and knows whether more of the answer follows.
constexpr size_t receives_posted_verbs = 2;

} // namespace

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

void cm_conn::post_next_receive()
{
    if (endpoint_ &&
        ucs::guard([&] { post_receive(device_->get_op(this, true, next_message())); }) != UCS_OK) {
        fail(UCS_ERR_CONNECTION_RESET);
    }
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

// Operations that were given up because the connection ended, or never came up, say less than the
// event that follows. A broken one may be all that is ever said.
void cm_conn::on_operation_failed(int error)
{
    if (up_ && error != FI_ECANCELED) {
        on_down(error, nullptr, 0);
    }
}

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

} // namespace uct::ofi
