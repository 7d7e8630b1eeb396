// SPDX-License-Identifier: BSD-3-Clause
// Small active messages between two processes of a machine, in one cache line or two each: less
// than half of what the shm core needs for one. The receiver has pages with a number of queues,
// next to its doorbell; each sender that has something to say claims one, and is the only one to
// write to it. Everything else goes through the core, and so do the small messages of those who say
// little or find no queue that is free.
//
//   sender                                   receiver
//     slot: payload, length, id, turn -->      reads slots in their order, while the turn is theirs
//                                     <--      consumed: slots that may be written again
//     message through the core        -->      handles what is in the queue, then the message
//                                     <--      passed: how many messages of the core it has handled
//
// Order. Messages of one sender are handled in the order in which they were sent, whichever way
// they go. The receiver empties the queues before it handles what it has got from the core, so that
// no message of the core overtakes one in a queue. A sender that has sent something through the
// core uses its queue only when the receiver has counted that: a message of the core says in its
// data which queue its sender has. What the core was given before the queue was claimed, and what
// is no message, is not counted; one more message goes through the core behind it.
//
// Death. Nobody waits for anybody: a sender that is killed leaves an unwritten slot. What it wrote
// before is read, and then the queue is free for another.
#pragma once

#include "ucs/compiler.h"
#include "ucs/copy.h"
#include "ucs/tsan.h"
#include "uct/ofi/doorbell.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uct::ofi {

constexpr unsigned fifo_queues = 64;
constexpr unsigned fifo_slots = 64;
constexpr size_t fifo_payload = 120; // largest message, bytes

// In the completion data of a message of the core, above its id: 1 + the sender's queue, and which
// of the queue's owners it is.
constexpr unsigned fifo_mark_shift = 8;
struct fifo_mark {
    uint8_t queue; // 1 + its number; 0: none
    uint16_t owner;

    static fifo_mark of(uint64_t data)
    {
        return {static_cast<uint8_t>(data >> fifo_mark_shift),
                static_cast<uint16_t>(data >> (fifo_mark_shift + 8))};
    }
    uint64_t data() const { return (uint64_t{owner} << 8 | queue) << fifo_mark_shift; }
};

struct fifo_slot {
    std::atomic<uint32_t> turn; // 1 + how often the queue had gone round; written last
    uint16_t length;
    uint8_t id;
    uint8_t reserved;
    char payload[fifo_payload];
};
static_assert(sizeof(fifo_slot) == 128);

struct fifo_queue {
    // Of claiming and leaving.
    alignas(64) std::atomic<uint64_t> claimed_by; // id of an interface; 0: free
    std::atomic<uint32_t> left;                   // its owner has gone
    uint32_t owners;                              // before the one it has now
    // The receiver's.
    alignas(64) std::atomic<uint32_t> consumed;
    std::atomic<uint32_t> passed;
    alignas(64) fifo_slot slots[fifo_slots];
};

// All zeros in the beginning. What is not touched takes no memory.
struct fifo_pages {
    alignas(64) std::atomic<uint32_t> used; // queues that were ever claimed: the first ones
    std::atomic<uint32_t> departures;       // queues that were ever left
    alignas(64) fifo_queue queues[fifo_queues];
};

// The sender's half. For one thread at a time.
class send_fifo {
  public:
    // own_id: of the interface that sends. Throws ucs::error.
    send_fifo(const bell_address &receiver, uint64_t own_id);
    send_fifo(const send_fifo &) = delete;
    send_fifo &operator=(const send_fifo &) = delete;
    ~send_fifo();

    enum class outcome { sent, full, not_mine };
    // A message of a head and a rest.
    UCS_ALWAYS_INLINE outcome send(uint8_t id, const void *head, size_t head_length,
                                   const void *payload, size_t length)
    {
        size_t total = head_length + length;
        if (UCS_UNLIKELY(total > fifo_payload || !usable())) {
            return outcome::not_mine;
        }
        if (UCS_UNLIKELY(next_ - consumed_ == fifo_slots)) {
            consumed_ = queue_->consumed.load(std::memory_order_acquire);
            if (next_ - consumed_ == fifo_slots) {
                return outcome::full;
            }
        }
        fifo_slot &slot = queue_->slots[next_ % fifo_slots];
        ucs::copy_small(slot.payload, head, head_length);
        ucs::copy_small(slot.payload + head_length, payload, length);
        slot.length = static_cast<uint16_t>(total);
        slot.id = id;
        ucs::tsan_release(own_id_);
        slot.turn.store(next_ / fifo_slots + 1, std::memory_order_release);
        ++next_;
        return outcome::sent;
    }
    // What a message that goes through the core has to carry in its data.
    uint64_t mark() const { return mark_; }
    // One was posted.
    void posted_message()
    {
        ++posted_;
        closed_ = false;
        if (UCS_UNLIKELY(!queue_) && posted_ >= claim_after) {
            claim();
        }
    }
    // Something else was.
    void posted_other() { closed_ = true; }

  private:
    // Who says little goes without a queue.
    static constexpr uint32_t claim_after = 16;

    UCS_ALWAYS_INLINE bool usable()
    {
        if (UCS_UNLIKELY(!queue_ || closed_)) {
            return false;
        }
        if (UCS_UNLIKELY(passed_ != posted_)) {
            passed_ = queue_->passed.load(std::memory_order_acquire);
        }
        return passed_ == posted_;
    }
    UCS_NOINLINE void claim();

    fifo_queue *queue_ = nullptr;
    uint32_t next_ = 0;     // slots ever written
    uint32_t consumed_ = 0; // of them, as last seen
    uint32_t posted_ = 0;   // messages through the core, since the queue was claimed
    uint32_t passed_ = 0;   // of them, as last seen
    bool closed_ = false;
    uint64_t mark_ = 0;
    fifo_pages *pages_;
    uint64_t own_id_;
};

// The receiver's half. For one thread at a time.
class receive_fifos {
  public:
    explicit receive_fifos(void *pages) : pages_(static_cast<fifo_pages *>(pages)) {}

    // Calls handle(id, data, length) for the messages there are; returns how many. data is a copy.
    // What handle() calls may read on.
    template <class Handle>
    UCS_ALWAYS_INLINE unsigned read(Handle &&handle)
    {
        unsigned count = 0;
        uint32_t used = queues_in_use();
        for (uint32_t i = 0; i < used; ++i) {
            count += read_queue(i, handle);
        }
        if (UCS_UNLIKELY(pages_->departures.load(std::memory_order_acquire) != departed_)) {
            free_left();
        }
        return count;
    }
    bool has_messages() const;
    // A message of the core was handled.
    UCS_ALWAYS_INLINE void passed(fifo_mark mark)
    {
        if (mark.queue == 0 || mark.queue > fifo_queues) {
            return;
        }
        fifo_queue &queue = pages_->queues[mark.queue - 1];
        state &s = states_[mark.queue - 1];
        if (UCS_LIKELY(mark.owner == s.owner)) {
            queue.passed.store(++s.passed, std::memory_order_release);
        }
    }
    // The interface died: nothing comes from it any more.
    void owner_died(uint64_t id);

  private:
    struct state {
        uint32_t next = 0; // slots ever read
        uint32_t passed = 0;
        uint16_t owner = 0; // as in the marks
    };

    uint32_t queues_in_use() const
    {
        uint32_t used = pages_->used.load(std::memory_order_acquire);
        return UCS_LIKELY(used <= fifo_queues) ? used : fifo_queues;
    }
    bool has_next(uint32_t i) const
    {
        const state &s = states_[i];
        return pages_->queues[i].slots[s.next % fifo_slots].turn.load(std::memory_order_acquire) ==
               s.next / fifo_slots + 1;
    }
    // As many as there can have been when it was called.
    template <class Handle>
    UCS_ALWAYS_INLINE unsigned read_queue(uint32_t i, Handle &&handle)
    {
        unsigned count = 0;
        for (; count < fifo_slots && has_next(i); ++count) {
            state &s = states_[i];
            fifo_queue &queue = pages_->queues[i];
            const fifo_slot &slot = queue.slots[s.next % fifo_slots];
            ucs::tsan_acquire(queue.claimed_by);
            size_t length = slot.length <= fifo_payload ? slot.length : 0;
            uint8_t id = slot.id;
            alignas(16) char data[fifo_payload];
            ucs::copy_small(data, slot.payload, length);
            if (++s.next % publish_every == 0) {
                queue.consumed.store(s.next, std::memory_order_release);
            }
            handle(id, data, length);
        }
        return count;
    }
    UCS_NOINLINE void free_left();
    void free_queue(uint32_t i);

    static constexpr uint32_t publish_every = fifo_slots / 4;

    fifo_pages *pages_;
    uint32_t departed_ = 0;
    state states_[fifo_queues];
};

} // namespace uct::ofi
