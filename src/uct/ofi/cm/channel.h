// SPDX-License-Identifier: BSD-3-Clause
// The channel of a connection: the core endpoint and the messages on it. Every function is called
// with the engine's mutex.
#pragma once

#include "uct/ofi/cm/device.h"
#include "uct/ofi/cm/wire.h"
#include "uct/ofi/fabric/fid.h"

#include <vector>

namespace uct::ofi {

class cm_conn;
class cm_engine;

class cm_channel {
  public:
    // owner: hears of the events and the completions.
    cm_channel(cm_engine &engine, cm_conn &owner) : engine_(engine), owner_(owner) {}
    cm_channel(const cm_channel &) = delete;
    cm_channel &operator=(const cm_channel &) = delete;
    ~cm_channel() { close(); }

    // Opens the endpoint, with that many receives posted, for messages of `room` bytes. Throws
    // ucs::error and leaves it closed.
    void open(fi_info *info, size_t receives, size_t room);
    void close();
    bool is_open() const { return endpoint_ != nullptr; }
    fid_ep *endpoint() const { return endpoint_.get(); }
    // The largest message that goes with the core's handshake, bytes.
    size_t handshake_max() const { return handshake_max_; }

    // The core has connected it: what was sent before goes now.
    void connected();
    bool up() const { return up_; }

    // The message is copied. That it could not be sent shows as the end of the connection.
    void send(const cm_wire::message &m);
    // Private data from an offset on, in as many messages as that takes.
    void send_data(const std::vector<char> &data, size_t offset);
    // For a message of `room` bytes at most. Throws ucs::error.
    void post_receive(size_t room);
    // A completion: the operation is the caller's, to be given to release() at last.
    void completed(cm_op *op) { std::erase(posted_, op); }
    void release(cm_op *op) { device_->put_op(op); }
    // There may be room again for what waits to be sent.
    void flush();

  private:
    void note_posted(cm_op *op);

    cm_engine &engine_;
    cm_conn &owner_;
    cm_device *device_ = nullptr;
    fid_ptr<fid_ep> endpoint_;
    size_t handshake_max_ = 0;
    size_t inject_size_ = 0;
    bool up_ = false;
    cm_op *sends_head_ = nullptr; // not yet taken by the provider
    cm_op **sends_tail_ = &sends_head_;
    std::vector<cm_op *> posted_;
};

} // namespace uct::ofi
