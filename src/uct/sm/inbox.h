// SPDX-License-Identifier: BSD-3-Clause
// The queue of `sm`: one inbox for each receiving interface, in memory that any number of senders
// map. It is a ring of slots, each a cache-line pair with a word of its own and a frame for a
// message that does not fit the slot.
//
// The word of a slot, a 64-bit atomic:
//
//    63          24 23       8 7     3   2      1  0
//   | turn         | owner    | 0     | armed | state |      state: free, claimed, published; of a
//   free and armed
//                                                            word, owner is the count of the
//                                                            receiver's last arm()
//
// An index counts slots from the beginning of time: index = turn * slot_count + slot. Turn has 40
// bits; at a message every 10 ns it wraps after 89 years of use of one inbox.
//
//   sender    free(turn) -> claimed(turn, owner)        compare-and-swap: claim and owner in one
//   step
//             claimed    -> published(turn, owner)      exchange, which tells whether the receiver
//             sleeps
//   receiver  published  -> free(turn + 1)              after the message was copied out
//
// Order. A sender claims ever higher indices and has one claim open at most, and the receiver reads
// in the order of indices: messages of one sender arrive in order. Across senders there is no order
// to keep.
//
// A sender that stops between claim and publication holds nobody up. The receiver passes over the
// claim (a hole) and looks at it again later; senders that come to the same slot a turn later step
// over it. Before a message is taken, a hole of the same owner that has been published since is
// taken first. A hole that ends gets a turn that no sender can have stepped over: see end_turn().
//
// A sender that dies with an open claim is found by the owner in the word: the table of senders
// names its process (pid and birth), and bury() publishes an empty message in its name.
//
// Sleeping. arm() sets the armed bit, by compare-and-swap, in the free word that will be claimed
// next and in the words of all holes; whoever publishes there sees the bit in the word that its
// exchange returns, and rings. Store and load of both sides are of the same word, so there is no
// window in which both miss each other. A sender that claims an armed slot first arms the next one:
// if it stops or dies before it publishes, the next message rings. When it has rung it takes that
// bit back (rung()), unless the receiver has armed anew since: the count tells.
//
// Trust. Every attached sender can write all of this memory. The receiver reads each word and
// header once, checks its copy and never follows anything in the memory beyond its bounds;
// attribution and progress hold as long as senders keep to the protocol (they are processes of the
// same user).
#pragma once

#include "ucs/compiler.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/types.h>
#include <vector>

namespace uct::sm {

constexpr size_t slot_count = 256;       // of one inbox, a power of two
constexpr size_t inline_size = 112;      // bytes of the largest message that travels in its slot
constexpr size_t segment_size = 8448;    // bytes of the largest message, in the slot's frame
constexpr unsigned max_senders = 4095;   // attached to one inbox at the same time
constexpr unsigned claim_patience = 256; // looks at an open claim before it is passed over: a frame
                                         // is filled meanwhile, and a hole costs more than waiting

namespace word {

enum state : uint64_t { free = 0, claimed = 1, published = 2, mask = 3 };
constexpr uint64_t armed = 4;
constexpr unsigned owner_shift = 8;
constexpr unsigned turn_shift = 24;

constexpr uint64_t turn_of(uint64_t index)
{
    return (index / slot_count) << turn_shift;
}
constexpr uint64_t make(uint64_t index, unsigned owner, state s)
{
    return turn_of(index) | uint64_t(owner) << owner_shift | s;
}
constexpr uint64_t turn(uint64_t w)
{
    return w >> turn_shift;
}
constexpr unsigned owner(uint64_t w)
{
    return static_cast<unsigned>(w >> owner_shift) & 0xffff;
}

} // namespace word

struct slot {
    std::atomic<uint64_t> word;
    uint64_t header; // id in bits 0-7, flags in 8-15, length in bytes in 32-63
    char data[inline_size];
};
static_assert(sizeof(slot) == 128);

constexpr uint64_t header_in_frame = 1 << 8;
constexpr uint64_t header_dropped = 1 << 9; // stands for a claim whose owner died

// What both sides map. 128 bytes between what the receiver writes and what the senders write.
struct page {
    uint64_t magic;
    uint64_t nonce;                          // random; the inbox's address has it, too
    alignas(128) std::atomic<uint64_t> tail; // a hint: the index that the next sender tries first
    alignas(128) std::atomic<uint64_t> position; // all slots below are free again, or holes
    alignas(128) std::atomic<uint64_t> senders[max_senders + 1]; // pid | birth << 32; 0: no sender.
                                                                 // [0] is not used
    alignas(128) slot slots[slot_count];
    alignas(128) char frames[slot_count][segment_size];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// The memory of one inbox as a file descriptor and a mapping that a child process does not inherit.
class inbox_memory {
  public:
    inbox_memory(); // a new one; throws ucs::error, which names the limit that is met
    inbox_memory(int fd,
                 uint64_t nonce); // a peer's, which has to prove itself; the caller closes fd
    inbox_memory(const inbox_memory &) = delete;
    inbox_memory &operator=(const inbox_memory &) = delete;
    ~inbox_memory();

    page *operator->() const { return page_; }
    int fd() const { return fd_; }
    void close_file(); // the mapping stays

  private:
    int fd_ = -1; // of a new one
    page *page_ = nullptr;
};

// The receiver's side. Calls from one thread at a time.
class inbox {
  public:
    // A message that is in the inbox until release().
    struct message {
        uint64_t index;
        const char *data; // other processes can write it: copy it out, then look at the copy
        uint32_t length;  // at most segment_size
        uint8_t id;
        bool hole;
    };

    int fd() const { return memory_.fd(); }
    // The interface closes: the file goes, which tells other processes. Senders of this process
    // keep the memory until they have gone, too.
    void close() { memory_.close_file(); }
    uint64_t nonce() const { return memory_->nonce; }
    static constexpr size_t size() { return sizeof(page); }

    // The next message in order. Every message has to be released before next() is called again.
    UCS_ALWAYS_INLINE bool next(message *m)
    {
        uint64_t w = at(position_).word.load(std::memory_order_acquire);
        if (UCS_UNLIKELY(!holes_.empty())) {
            return find_next(m);
        }
        if (w == word::make(position_, 0, word::free)) {
            return false;
        }
        if (UCS_UNLIKELY((w & word::mask) != word::published ||
                         word::turn(w) != position_ / slot_count)) {
            return find_next(m);
        }
        looks_ = 0;
        return UCS_LIKELY(take(position_++, false, m)) || find_next(m);
    }
    UCS_ALWAYS_INLINE void release(const message &m)
    {
        uint64_t turn =
            UCS_UNLIKELY(m.hole) ? end_turn(m.index) : word::turn_of(m.index + slot_count);
        at(m.index).word.store(turn | word::free, std::memory_order_release);
    }
    // Lets senders claim further. Has to follow every round of next() and release(), also one that
    // found nothing: next() may have passed over slots.
    void publish_position()
    {
        if (published_ != position_) {
            published_ = position_;
            memory_->position.store(position_, std::memory_order_release);
        }
    }

    // False: something is there to be read. After true, the next message that is published rings;
    // only next() after that ends it.
    bool arm();

    // A claim was passed over and is still open: its owner is stopped, slow or dead.
    bool has_holes() const { return !holes_.empty(); }

    // alive(pid, birth): is that process still there? Asked for the owners of holes, or for all
    // senders. What dead ones have claimed is dropped by next(), and their places are given to
    // others. Returns their number.
    template <class Alive>
    unsigned bury(bool all, Alive &&alive)
    {
        unsigned dead = 0;
        for (unsigned owner = 1; owner <= max_senders; ++owner) {
            uint64_t entry = memory_->senders[owner].load(std::memory_order_acquire);
            if (entry != 0 && (all || owns_hole(owner)) &&
                !alive(static_cast<pid_t>(entry & 0xffffffff),
                       static_cast<uint32_t>(entry >> 32))) {
                bury_sender(owner, entry);
                ++dead;
            }
        }
        return dead;
    }

    uint64_t damaged() const { return damaged_; } // headers that no sender of ours writes

  private:
    friend class outbox;

    UCS_NOINLINE bool find_next(message *m);
    // The memory's header is read once. False: it is for nobody, and its slot is free again.
    UCS_ALWAYS_INLINE bool take(uint64_t index, bool hole, message *m)
    {
        const slot &s = at(index);
        uint64_t header = *const_cast<const volatile uint64_t *>(&s.header);
        bool in_frame = header & header_in_frame;
        m->index = index;
        m->hole = hole;
        m->id = static_cast<uint8_t>(header);
        m->length = static_cast<uint32_t>(header >> 32);
        m->data = in_frame ? memory_->frames[index % slot_count] : s.data;
        if (UCS_LIKELY(m->length <= (in_frame ? segment_size : inline_size) &&
                       !(header & header_dropped))) {
            return true;
        }
        damaged_ += !(header & header_dropped);
        release(*m);
        return false;
    }
    bool take_hole(unsigned owner, message *m); // owner 0: of anyone
    bool owns_hole(unsigned owner) const;
    bool arm_holes();
    void bury_sender(unsigned owner, uint64_t entry);
    uint64_t end_turn(uint64_t index) const;
    slot &at(uint64_t index) const { return memory_->slots[index % slot_count]; }

    inbox_memory memory_;
    uint64_t position_ = 0;  // the index to be read next
    uint64_t published_ = 0; // what senders know of it
    unsigned looks_ = 0;     // at the open claim at position_
    uint16_t arm_count_ = 0; // never 0 in a word
    std::vector<uint64_t> holes_;
    uint64_t damaged_ = 0;
};

// A sender's side of a peer's inbox, or of one in the same process. Calls from one thread at a
// time.
class outbox {
  public:
    // fd: of the peer's memory; not needed afterwards. pid and birth name this process to the
    // receiver, birth in the low 32 bits of what process_birth() tells. Throws ucs::error:
    // UNREACHABLE where the memory is not an inbox with that nonce, EXCEEDS_LIMIT where max_senders
    // are attached.
    outbox(int fd, uint64_t nonce, pid_t pid, uint32_t birth);
    outbox(inbox &own, pid_t pid, uint32_t birth); // it lives longer
    outbox(const outbox &) = delete;
    outbox &operator=(const outbox &) = delete;
    ~outbox();

    // A slot to write a message in: at most inline_size bytes at small(), or segment_size bytes at
    // frame(), and then publish(). False: the inbox is full for now.
    UCS_ALWAYS_INLINE bool claim()
    {
        uint64_t tail = page_->tail.load(std::memory_order_relaxed);
        uint64_t index = tail > next_ ? tail : next_;
        slot &s = page_->slots[index % slot_count];
        uint64_t seen = word::make(index, 0, word::free);
        if (UCS_UNLIKELY(index >= limit_ || !s.word.compare_exchange_strong(
                                                seen, word::make(index, owner_, word::claimed),
                                                std::memory_order_acq_rel))) {
            return claim_from(index);
        }
        claimed(index, tail);
        return true;
    }
    char *small() const { return slot_->data; }
    char *frame() const { return page_->frames[index_ % slot_count]; }
    // True: the receiver sleeps, ring its bell.
    bool publish(uint8_t id, uint32_t length, bool in_frame)
    {
        slot_->header = id | (in_frame ? header_in_frame : 0) | uint64_t(length) << 32;
        uint64_t old = slot_->word.exchange(word::make(index_, owner_, word::published),
                                            std::memory_order_acq_rel);
        return UCS_UNLIKELY(old & word::armed);
    }
    // After publish() was true and the bell has been rung: messages that follow need not ring.
    void rung();

  private:
    void attach(pid_t pid, uint32_t birth);
    UCS_NOINLINE bool claim_from(uint64_t index);
    void claimed(uint64_t index, uint64_t tail)
    {
        index_ = index;
        next_ = index + 1;
        slot_ = &page_->slots[index % slot_count];
        if (tail < next_) {
            page_->tail.store(next_, std::memory_order_relaxed);
        }
    }
    bool may_claim(uint64_t index);
    bool claim_armed(uint64_t index, uint64_t seen);
    bool passed_over(uint64_t index, uint64_t seen);
    void arm_after(uint64_t index);

    const std::unique_ptr<inbox_memory> mapped_; // empty for an inbox of this process
    page *const page_;
    slot *slot_ = nullptr;    // the claim
    uint64_t index_ = 0;      // of it
    uint64_t next_ = 0;       // this sender claims nothing below
    uint64_t limit_ = 0;      // and nothing from here on, before the receiver has moved on
    uint64_t armed_next_ = 0; // index that this sender has armed, and
    unsigned arm_count_ = 0;  // with which count; 0: none
    unsigned owner_ = 0;
};

} // namespace uct::sm
