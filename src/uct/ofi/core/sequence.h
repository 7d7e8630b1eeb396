// SPDX-License-Identifier: BSD-3-Clause
// Order of messages, where the core gives none. Each active message begins with
//
//   0       8      12
//   sender  epoch  number
//
// and has am_sequenced in its completion data. sender: id of its interface; epoch: grows whenever
// the interface begins anew to send to the receiver; number: of the message in the epoch, from 0,
// and 0 again after 2^32 - 1. The receiver holds back what comes too early.
//
// A message's completion means here that it has reached the receiver's queue, and no message leaves
// whose number is a window above one without completion. So a receiver holds less than a window of
// messages of a sender, and anything else is damaged.
//
// Messages that the core matches by tags would be matched before they are in order: an interface
// that puts messages in order offers none.
#pragma once

#include "ucs/mpool.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace uct::ofi {

struct receive_op;

struct order_prefix {
    uint64_t sender;
    uint32_t epoch;
    uint32_t number;
};
static_assert(sizeof(order_prefix) == 16);

constexpr uint32_t order_window = 64; // messages

// The sender's side, of one peer.
class send_order {
  public:
    // first: number of the first message, other than 0 for tests.
    send_order(uint64_t sender, uint32_t epoch, uint32_t first = 0)
        : sender_(sender), epoch_(epoch), next_(first), oldest_(first)
    {
    }

    bool full() const { return next_ - oldest_ == order_window; }
    order_prefix prefix() const { return {sender_, epoch_, next_}; }
    // The message with that prefix was posted; returns its number, which completed() wants.
    uint32_t posted() { return next_++; }
    void completed(uint32_t number)
    {
        done_ |= uint64_t(1) << (number - oldest_);
        while (done_ & 1) {
            done_ >>= 1;
            ++oldest_;
        }
    }
    // Nothing is on its way.
    bool idle() const { return next_ == oldest_; }

  private:
    uint64_t sender_;
    uint32_t epoch_;
    uint32_t next_;
    uint32_t oldest_;   // without completion
    uint64_t done_ = 0; // those from oldest_ on that have one
    static_assert(order_window == 64, "done_ has a bit for each");
};

// The receiver's side, of all senders. For one thread at a time.
class receive_order {
  public:
    struct message {
        receive_op *buffer;
        uint32_t length;
        uint8_t id;
    };
    enum class verdict {
        now,   // it is due: take() the next ones after it
        later, // it is held
        drop   // it came before, or is damaged
    };

    // buffers: where those of messages come from that will never be due. first: as above.
    explicit receive_order(ucs::mpool_base &buffers, uint32_t first = 0)
        : buffers_(buffers), first_(first)
    {
    }
    receive_order(const receive_order &) = delete;
    receive_order &operator=(const receive_order &) = delete;
    ~receive_order();

    verdict arrived(const order_prefix &prefix, const message &m);
    // One that was held and is due now. False: there is none.
    bool take(uint64_t sender, message *m);
    // Nothing comes from that interface any more.
    void sender_died(uint64_t sender);

    size_t held() const { return held_; } // messages, of all senders

  private:
    struct stream {
        uint32_t epoch;
        uint32_t next;
        uint32_t waiting = 0;
        std::unique_ptr<message[]> early; // by number, modulo the window; made when it is needed
    };

    stream *find(const order_prefix &prefix);
    void drop_early(stream &s);

    ucs::mpool_base &buffers_;
    const uint32_t first_;
    std::unordered_map<uint64_t, stream> streams_;
    size_t held_ = 0;
};

} // namespace uct::ofi
