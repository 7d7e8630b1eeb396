// SPDX-License-Identifier: BSD-3-Clause
// The core endpoint of a connection, its sends and its receives.
#include "uct/ofi/cm/channel.h"

#include "ucs/error.h"
#include "uct/ofi/cm/engine.h"
#include "uct/ofi/fabric/error.h"

#include <algorithm>

namespace uct::ofi {

void cm_channel::open(fi_info *info, size_t receives, size_t room)
{
    device_ = &engine_.device_of(info);
    fid_ep *endpoint = nullptr;
    check(fi_endpoint(device_->domain(), info, &endpoint, &owner_), "fi_endpoint");
    endpoint_.reset(endpoint);
    try {
        engine_.bind(&endpoint->fid, &owner_);
        check(fi_ep_bind(endpoint, &engine_.eq()->fid, 0), "fi_ep_bind to the event queue");
        check(fi_ep_bind(endpoint, &device_->cq()->fid, FI_TRANSMIT | FI_RECV),
              "fi_ep_bind to the completion queue");
        check(fi_enable(endpoint), "fi_enable");
        size_t length = sizeof(handshake_max_);
        check(fi_getopt(&endpoint->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &handshake_max_,
                        &length),
              "fi_getopt(FI_OPT_CM_DATA_SIZE)");
        if (handshake_max_ < cm_wire::header_size) {
            throw ucs::error(UCS_ERR_UNSUPPORTED, "%s carries only %zu bytes of connection data",
                             engine_.provider().provider.c_str(), handshake_max_);
        }
        handshake_max_ = std::min(handshake_max_, cm_wire::message_max);
        inject_size_ = info->tx_attr->inject_size;
        for (size_t i = 0; i < receives; ++i) {
            post_receive(room);
        }
    } catch (...) {
        close();
        throw;
    }
}

void cm_channel::close()
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
        if (engine_.provider().sockets()) {
            device_->leave_behind(op);
        } else {
            device_->count(op);
        }
    }
    posted_.clear();
    endpoint_.reset();
    if (up_) {
        device_->channel_down();
        up_ = false;
    }
}

void cm_channel::connected()
{
    if (!up_) {
        device_->channel_up();
        up_ = true;
    }
    flush();
}

void cm_channel::send(const cm_wire::message &m)
{
    cm_op *op = device_->get_op(&owner_, false, cm_wire::header_size + m.chunk_len);
    op->length = static_cast<uint32_t>(cm_wire::write(op->data(), m));
    *sends_tail_ = op;
    sends_tail_ = &op->next;
    flush();
}

void cm_channel::send_data(const std::vector<char> &data, size_t offset)
{
    for (; offset < data.size(); offset += cm_wire::chunk_max) {
        send({cm_wire::type::data, static_cast<uint32_t>(data.size()),
              static_cast<uint32_t>(offset), data.data() + offset,
              std::min(data.size() - offset, cm_wire::chunk_max)});
    }
}

void cm_channel::flush()
{
    while (up_ && sends_head_) {
        cm_op *op = sends_head_;
        // No completion to wait for. A connection has a few of these, fewer than its queue holds.
        bool inject = op->length <= inject_size_;
        posted_.reserve(posted_.size() + 1); // afterwards it would be too late to throw
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
            ucs_debug("connection %p: fi_send: %s", static_cast<void *>(&owner_),
                      fi_strerror(static_cast<int>(-ret)));
        }
        if (ret != 0 || inject) {
            device_->put_op(op);
        } else {
            note_posted(op);
        }
    }
}

void cm_channel::post_receive(size_t room)
{
    posted_.reserve(posted_.size() + 1);
    cm_op *op = device_->get_op(&owner_, true, room);
    ssize_t ret = fi_recv(endpoint_.get(), op->data(), op->room, op->desc, 0, &op->context);
    if (ret != 0) {
        device_->put_op(op);
        check(ret, "fi_recv");
    }
    note_posted(op);
}

// Over sockets nothing completes before the channel is up, unless it is closed.
void cm_channel::note_posted(cm_op *op)
{
    if (!engine_.provider().sockets()) {
        device_->count(op);
    }
    posted_.push_back(op);
}

} // namespace uct::ofi
