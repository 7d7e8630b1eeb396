// SPDX-License-Identifier: BSD-3-Clause
// The receiver's side of the order of messages.
#include "uct/ofi/core/sequence.h"

#include "uct/ofi/core/iface.h"

#include <utility>

namespace uct::ofi {

void iface::left_order(buffer_op *b)
{
    if (b->order) {
        b->order->completed(b->number);
        b->order = nullptr;
    }
}

receive_order::~receive_order()
{
    for (auto &[sender, s] : streams_) {
        drop_early(s);
    }
}

void receive_order::drop_early(stream &s)
{
    for (uint32_t i = 0; s.waiting > 0 && i < order_window; ++i) {
        if (s.early[i].buffer) {
            buffers_.put(s.early[i].buffer);
            s.early[i].buffer = nullptr;
            --s.waiting;
            --held_;
        }
    }
}

// nullptr: it is of an epoch that is over, or of a sender that has not begun like this.
receive_order::stream *receive_order::find(const order_prefix &prefix)
{
    auto found = streams_.find(prefix.sender);
    if (found == streams_.end()) {
        if (prefix.number - first_ >= order_window) {
            return nullptr;
        }
        stream begun{.epoch = prefix.epoch, .next = first_};
        return &streams_.emplace(prefix.sender, std::move(begun)).first->second;
    }
    stream &s = found->second;
    auto newer = static_cast<int32_t>(prefix.epoch - s.epoch);
    if (newer < 0) {
        return nullptr;
    }
    if (newer > 0) {
        drop_early(s);
        s.epoch = prefix.epoch;
        s.next = first_;
    }
    return &s;
}

receive_order::verdict receive_order::arrived(const order_prefix &prefix, const message &m)
{
    stream *s = find(prefix);
    if (!s) {
        return verdict::drop;
    }
    uint32_t ahead = prefix.number - s->next;
    if (ahead == 0) {
        ++s->next;
        return verdict::now;
    }
    if (ahead >= order_window) {
        return verdict::drop;
    }
    if (!s->early) {
        s->early = std::make_unique<message[]>(order_window);
    }
    message &slot = s->early[prefix.number % order_window];
    if (slot.buffer) {
        return verdict::drop;
    }
    slot = m;
    ++s->waiting;
    ++held_;
    return verdict::later;
}

bool receive_order::take(uint64_t sender, message *m)
{
    auto found = streams_.find(sender);
    if (found == streams_.end() || found->second.waiting == 0) {
        return false;
    }
    stream &s = found->second;
    message &slot = s.early[s.next % order_window];
    if (!slot.buffer) {
        return false;
    }
    *m = slot;
    slot.buffer = nullptr;
    --s.waiting;
    --held_;
    ++s.next;
    return true;
}

void receive_order::sender_died(uint64_t sender)
{
    auto found = streams_.find(sender);
    if (found != streams_.end()) {
        drop_early(found->second);
        streams_.erase(found);
    }
}

} // namespace uct::ofi
