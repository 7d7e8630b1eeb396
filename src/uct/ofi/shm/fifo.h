// SPDX-License-Identifier: BSD-3-Clause
// Active messages between two processes of a machine. A small one is in one cache line or two: less
// than half of what the shm core needs for one. The payload of a larger one is in a frame, where it
// was packed. The receiver has pages with a number of queues, next to its doorbell; each sender
// that has something to say claims one, and is the only one to write to it. Everything else goes
// through the core, and so do the messages of those who say little or find no queue that is free.
//
//   sender                                   receiver
//     frame: payload of a larger one
//     slot: payload, length, id, turn -->      reads slots in their order, while the turn is
//                                              theirs, and the next frame for each larger one
//                                     <--      consumed: slots that may be written again
//                                     <--      vacated: frames that may
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
#include "ucs/processor.h"
#include "ucs/tsan.h"
#include "uct/ofi/shm/doorbell.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace uct::ofi {

constexpr unsigned fifo_queues = 64;
constexpr unsigned fifo_slots = 64;
constexpr size_t fifo_payload = 120; // largest message of a slot, bytes
constexpr unsigned fifo_frames = 16;
constexpr size_t fifo_frame_size = 8192 + 256; // with the headers of the layers above

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
    uint16_t length;            // above fifo_payload: of what is in the frame
    uint8_t id;
    uint8_t reserved;
    char payload[fifo_payload];
};
static_assert(sizeof(fifo_slot) == 128);
static_assert(fifo_frame_size <= UINT16_MAX);

struct fifo_queue {
    // Of claiming and leaving.
    alignas(ucs::cache_line) std::atomic<uint64_t> claimed_by; // id of an interface; 0: free
    std::atomic<uint32_t> left;                                // its owner has gone
    uint32_t owners;                                           // before the one it has now
    // The receiver's.
    alignas(ucs::cache_line) std::atomic<uint32_t> consumed;
    std::atomic<uint32_t> vacated;
    std::atomic<uint32_t> passed;
    alignas(ucs::cache_line) fifo_slot slots[fifo_slots];
    alignas(ucs::cache_line) char frames[fifo_frames][fifo_frame_size];
};
static_assert(fifo_frame_size % ucs::cache_line == 0);

// All zeros in the beginning. What is not touched takes no memory.
struct fifo_pages {
    // Queues that were ever claimed: the first ones.
    alignas(ucs::cache_line) std::atomic<uint32_t> used;
    std::atomic<uint32_t> departures; // queues that were ever left
    alignas(ucs::cache_line) fifo_queue queues[fifo_queues];
};

// The sender's half. For one thread at a time.
class send_fifo {
  public:
    // own_id: of the interface that sends. Throws ucs::error.
    send_fifo(const bell_address &receiver, uint64_t own_id);
    send_fifo(const send_fifo &) = delete;
    send_fifo &operator=(const send_fifo &) = delete;
    ~send_fifo();

    enum class outcome { done, full, not_mine };
    // A message of a head and a rest.
    UCS_ALWAYS_INLINE outcome send(uint8_t id, const void *head, size_t head_length,
                                   const void *payload, size_t length)
    {
        size_t total = head_length + length;
        if (UCS_UNLIKELY(total > fifo_payload)) {
            return send_larger(id, head, head_length, payload, length);
        }
        outcome room = slot_free();
        if (UCS_LIKELY(room == outcome::done)) {
            char *to = next_slot().payload;
            ucs::copy_small(to, head, head_length);
            ucs::copy_small(to + head_length, payload, length);
            write(id, total);
        }
        return room;
    }
    // Where a message of up to fifo_frame_size bytes can be packed. It is sent by send_frame(), if
    // at all, before anything else.
    UCS_ALWAYS_INLINE outcome frame(char **data)
    {
        outcome room = slot_free();
        if (UCS_LIKELY(room == outcome::done)) {
            if (UCS_UNLIKELY(next_frame_ - vacated_ == fifo_frames)) {
                vacated_ = queue_->vacated.load(std::memory_order_acquire);
                if (next_frame_ - vacated_ == fifo_frames) {
                    return outcome::full;
                }
            }
            *data = queue_->frames[next_frame_ % fifo_frames];
        }
        return room;
    }
    UCS_ALWAYS_INLINE void send_frame(uint8_t id, size_t length)
    {
        if (length > fifo_payload) {
            ++next_frame_;
        } else {
            ucs::copy_small(next_slot().payload, queue_->frames[next_frame_ % fifo_frames], length);
        }
        write(id, length);
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
    UCS_ALWAYS_INLINE outcome slot_free()
    {
        if (UCS_UNLIKELY(!usable())) {
            return outcome::not_mine;
        }
        if (UCS_UNLIKELY(next_ - consumed_ == fifo_slots)) {
            consumed_ = queue_->consumed.load(std::memory_order_acquire);
            if (next_ - consumed_ == fifo_slots) {
                return outcome::full;
            }
        }
        return outcome::done;
    }
    fifo_slot &next_slot() { return queue_->slots[next_ % fifo_slots]; }
    // The payload is there.
    UCS_ALWAYS_INLINE void write(uint8_t id, size_t length)
    {
        fifo_slot &slot = next_slot();
        slot.length = static_cast<uint16_t>(length);
        slot.id = id;
        ucs::tsan_release(own_id_);
        slot.turn.store(next_ / fifo_slots + 1, std::memory_order_release);
        ++next_;
    }
    UCS_NOINLINE outcome send_larger(uint8_t id, const void *head, size_t head_length,
                                     const void *payload, size_t length);
    UCS_NOINLINE void claim();

    fifo_queue *queue_ = nullptr;
    uint32_t next_ = 0;       // slots ever written
    uint32_t consumed_ = 0;   // of them, as last seen
    uint32_t next_frame_ = 0; // frames ever written
    uint32_t vacated_ = 0;    // of them, as last seen
    uint32_t posted_ = 0;     // messages through the core, since the queue was claimed
    uint32_t passed_ = 0;     // of them, as last seen
    bool closed_ = false;
    uint64_t mark_ = 0;
    fifo_pages *pages_;
    uint64_t own_id_;
};

// The receiver's half. For one thread at a time.
class receive_fifos {
  public:
    explicit receive_fifos(void *pages) : pages_(static_cast<fifo_pages *>(pages)) {}

    // Gives the messages there are to `to`; returns how many. A small one as
    //   to.small(id, data, length): data is a copy;
    // a larger one as
    //   k = to.keep(data, length), which copies it, and
    //   to.kept(id, k, length);
    // or as a small one, if k is nullptr. What small() and kept() call may read on.
    template <class To>
    UCS_ALWAYS_INLINE unsigned read(To &&to)
    {
        unsigned count = 0;
        uint32_t used = queues_in_use();
        for (uint32_t i = 0; i < used; ++i) {
            count += read_queue(i, to);
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
        uint32_t next = 0;       // slots ever read
        uint32_t next_frame = 0; // frames ever read
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
    template <class To>
    UCS_ALWAYS_INLINE unsigned read_queue(uint32_t i, To &to)
    {
        unsigned count = 0;
        for (; count < fifo_slots && has_next(i); ++count) {
            const fifo_slot &slot = pages_->queues[i].slots[states_[i].next % fifo_slots];
            ucs::tsan_acquire(pages_->queues[i].claimed_by);
            size_t length = slot.length;
            uint8_t id = slot.id;
            if (UCS_LIKELY(length <= fifo_payload)) {
                alignas(16) char data[fifo_payload];
                ucs::copy_small(data, slot.payload, length);
                consume(i);
                to.small(id, data, length);
            } else {
                read_frame(i, id, length <= fifo_frame_size ? length : 0, to);
            }
        }
        return count;
    }
    template <class To>
    UCS_ALWAYS_INLINE void read_frame(uint32_t i, uint8_t id, size_t length, To &to)
    {
        const char *data = pages_->queues[i].frames[states_[i].next_frame % fifo_frames];
        auto *k = to.keep(data, length);
        if (UCS_UNLIKELY(!k)) {
            read_frame_to_stack(i, id, length, to);
            return;
        }
        vacate(i);
        consume(i);
        to.kept(id, k, length);
    }
    template <class To>
    UCS_NOINLINE void read_frame_to_stack(uint32_t i, uint8_t id, size_t length, To &to)
    {
        alignas(ucs::cache_line) char data[fifo_frame_size];
        memcpy(data, pages_->queues[i].frames[states_[i].next_frame % fifo_frames], length);
        vacate(i);
        consume(i);
        to.small(id, data, length);
    }
    // It has been copied.
    UCS_ALWAYS_INLINE void consume(uint32_t i)
    {
        uint32_t next = ++states_[i].next;
        if (next % (fifo_slots / 4) == 0) {
            pages_->queues[i].consumed.store(next, std::memory_order_release);
        }
    }
    UCS_ALWAYS_INLINE void vacate(uint32_t i)
    {
        uint32_t next = ++states_[i].next_frame;
        if (next % (fifo_frames / 4) == 0) {
            pages_->queues[i].vacated.store(next, std::memory_order_release);
        }
    }
    UCS_NOINLINE void free_left();
    void free_queue(uint32_t i);

    fifo_pages *pages_;
    uint32_t departed_ = 0;
    state states_[fifo_queues];
};

} // namespace uct::ofi
