// SPDX-License-Identifier: BSD-3-Clause
// The queue of `sm`: one inbox for each receiving interface, in memory that any number of senders
// map. It is a ring of slots. Each has a claim, which senders compete for; a line of 128 bytes
// with a mark and the bytes of a small message; and a frame for a message that does not fit there.
// A claim and its slot lie apart, since the receiver looks at marks all the time: what it looks at,
// a sender writes once.
//
// An index counts slots from the beginning of time: index = turn * slot_count + slot. A claim tells
// how many turns of its slot have been given out. Turn has 40 bits; at a message every 10 ns it
// wraps after 89 years of use of one inbox.
//
//    claim: | turns 63..24 | owner 23..8 | 0 | hole 1 | armed 0 |    owner: a sender; of a claim
//                                                                    that is armed and no hole, the
//                                                                    count of the receiver's arm()
//    mark:  | turn + 1 63..32 | length 31..16 | flags 15..8 | id 7..0 |
//
//   sender    claim: turn -> turn + 1, owner    compare-and-swap: claim and owner in one step
//             mark:  turn + 1                   a store: the message is there
//   receiver  position: past the index          a store for many messages: these slots are free
//
// Order. A sender claims ever higher indices and has one claim open at most, and the receiver reads
// in the order of indices: messages of one sender arrive in order. Across senders there is no order
// to keep. No index is left out: each below a claimed one is claimed as well, or given to no
// sender.
//
// A sender that stops between claim and mark delays no other. The receiver passes over the claim (a
// hole, which the claim then says) and looks at its mark again later; senders that come to the same
// slot a turn later step over it. Before a message is taken, a hole of the same owner that has got
// its mark since is taken first. A hole that ends gets a turn that no sender can have stepped over:
// see end_turn().
//
// A sender that dies with an open claim is found by the owner in the claim: the table of senders
// names its process (pid and birth), and bury() marks an empty message in its name.
//
// Sleeping. arm() sets the armed bit, by compare-and-swap, in the claim that will be given out
// next. No higher index is claimed by then, so whatever sender claims next finds the bit, and rings
// when it has set the mark. Before that it arms the claim that follows: if it stops or dies, the
// next message rings. When it has rung it takes that bit back (rung()), unless the receiver has
// armed anew since: the count tells. A claim that is open when the receiver arms keeps it awake for
// a while; then it is a hole, which gets the armed bit, too. Its sender looks for the bit when it
// has set the mark. The store and that load are not ordered, so if both happen within the time in
// which the store leaves the processor, the bell does not ring: hole_is_ready() finds such a
// message, and a receiver that sleeps over a hole asks it now and then.
//
// Memory order, for processors that reorder more than x86. Where one word decides, its atomic
// operations have one order for all. What has to be seen together:
//   - A message. The sender writes data or frame, then the mark with release; the receiver loads
//     the mark with acquire, then reads. It finds the claim's owner, too, which was written before.
//   - A slot that is used again. The receiver has copied the message, then stores position with
//     release; a sender loads position with acquire before it goes beyond its limit_. A hole's slot
//     comes back by end_turn(), a release store of the claim, which the next sender's
//     compare-and-swap acquires.
//   - Messages of one sender. The first one's mark is stored before the second one's claim and mark
//     are, both with release. So take_hole(), after the later mark was acquired, finds the earlier.
//   - Arming. Sender and receiver change the same claim by compare-and-swap: one of them is first.
//     That no higher index is claimed follows from the claims alone: a sender goes to an index only
//     when the one below has been won, by itself or by the sender whose hint it follows.
//   - The bell. A sender stores the mark before it writes to the pipe; the system call that reports
//     the byte returns after that, and the receiver finds the mark.
//   - The tail is a hint: it may be seen before the claim that it follows. An index that is claimed
//     because of it was free, and the receiver waits for the lower one first.
//   - Puts by stores are seen before the messages behind them, whose marks have release. Two puts
//     are in order when a fence of the endpoint or the interface is between them.
//
// A full inbox has to be shared out, since those that find room by chance would take it all:
// share.h.
//
// Trust. Every attached sender can write all of this memory. The receiver reads each claim and mark
// once, checks its copy and never follows anything in the memory beyond its bounds; attribution and
// progress hold as long as senders keep to the protocol (they are processes of the same user).
#pragma once

#include "ucs/compiler.h"
#include "ucs/processor.h"
#include "uct/sm/share.h"

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <sys/types.h>
#include <vector>

namespace uct::sm {

constexpr size_t slot_count = 256;       // of one inbox, a power of two
constexpr size_t inline_size = 120;      // bytes of the largest message that travels in its slot
constexpr size_t segment_size = 8448;    // bytes of the largest message, in the slot's frame
constexpr unsigned max_senders = 4095;   // attached to one inbox at the same time
constexpr unsigned claim_patience = 256; // looks between two at a claim. What is open at both is
                                         // passed over: a frame is filled meanwhile, and a hole
                                         // costs more than waiting
constexpr size_t prefetched_slots = 8;   // as far ahead of its claim a sender fetches the slot

constexpr uint64_t turn_of(uint64_t index)
{
    return index / slot_count;
}

namespace claim {

constexpr uint64_t armed = 1;
constexpr uint64_t hole = 2;
constexpr unsigned owner_shift = 8;
constexpr unsigned turns_shift = 24;

constexpr uint64_t make(uint64_t turns, unsigned owner)
{
    return turns << turns_shift | uint64_t(owner) << owner_shift;
}
constexpr uint64_t turns(uint64_t c)
{
    return c >> turns_shift;
}
constexpr unsigned owner(uint64_t c)
{
    return static_cast<unsigned>(c >> owner_shift) & 0xffff;
}
constexpr bool is_armed_only(uint64_t c)
{
    return (c & (armed | hole)) == armed;
}

} // namespace claim

namespace mark {

constexpr uint64_t in_frame = 1 << 8;
constexpr uint64_t dropped = 1 << 9; // stands for a claim whose owner died
constexpr unsigned length_shift = 16;
constexpr unsigned turn_shift = 32;

// turns: as the claim has it. Length: the lower 16 bits.
constexpr uint64_t make(uint64_t turns, uint32_t length, uint64_t flags_and_id)
{
    return turns << turn_shift | uint64_t(length & 0xffff) << length_shift | flags_and_id;
}
constexpr bool has_turns(uint64_t m, uint64_t turns)
{
    return static_cast<uint32_t>(m >> turn_shift) == static_cast<uint32_t>(turns);
}

} // namespace mark

struct slot {
    std::atomic<uint64_t> mark;
    char data[inline_size];
};
static_assert(sizeof(slot) == ucs::cache_line);

// What both sides map. What the receiver writes lies apart from what the senders write.
struct page {
    uint64_t magic;
    uint64_t nonce; // random; the inbox's address has it, too
    // See share.h. An older sender leaves it alone, and takes more than its share.
    std::atomic<uint64_t> rounds;
    // When a sender last saw that the receiver is there: nanoseconds of the monotonic clock. Others
    // need not look then; an older sender does not tell.
    std::atomic<uint64_t> seen;
    // A hint: the index that the next sender tries first.
    alignas(ucs::cache_line) std::atomic<uint64_t> tail;
    // All slots below have been read, or are holes.
    alignas(ucs::cache_line) std::atomic<uint64_t> position;
    // pid | birth << 32; 0: no sender. [0] is not used.
    alignas(ucs::cache_line) std::atomic<uint64_t> senders[max_senders + 1];
    alignas(ucs::cache_line) std::atomic<uint64_t> claims[slot_count];
    alignas(ucs::cache_line) slot slots[slot_count];
    alignas(ucs::cache_line) char frames[slot_count][segment_size];
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
        uint64_t w = at(position_).mark.load(std::memory_order_acquire);
        if (UCS_UNLIKELY(special_)) {
            return find_next(m);
        }
        if (!mark::has_turns(w, turn_of(position_) + 1)) {
            return UCS_UNLIKELY(++looks_ >= claim_patience) && find_next(m);
        }
        looks_ = 0;
        return UCS_LIKELY(take(w, position_++, false, m)) || find_next(m);
    }
    // True: next() would find nothing, and nothing that has to follow it is to be done.
    UCS_ALWAYS_INLINE bool is_quiet()
    {
        uint64_t w = at(position_).mark.load(std::memory_order_acquire);
        return UCS_LIKELY(!special_ && !mark::has_turns(w, turn_of(position_) + 1)) &&
               ++looks_ < claim_patience;
    }
    UCS_ALWAYS_INLINE void release(const message &m)
    {
        if (UCS_UNLIKELY(m.hole)) {
            end_turn(m.index);
        }
    }
    // Frees the slots of what was released. Has to follow every round of next() and release(), also
    // one that found nothing: next() may have passed over slots.
    void publish_position()
    {
        if (published_ != position_) {
            published_ = position_;
            memory_->position.store(position_, std::memory_order_release);
        }
    }

    // False: something is there to be read, or will be soon. After true, the next message that is
    // published rings, but see hole_is_ready(); only next() after that ends it.
    bool arm();

    // A claim was passed over and is still open: its owner is stopped, slow or dead.
    bool has_holes() const { return !holes_.empty(); }
    // One that was passed over has its message now. From any thread.
    bool hole_is_ready() const;

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
    // Of a mark that was read once. False: it was dropped, or is damaged; its slot is free again.
    UCS_ALWAYS_INLINE bool take(uint64_t w, uint64_t index, bool hole, message *m)
    {
        bool in_frame = w & mark::in_frame;
        m->index = index;
        m->hole = hole;
        m->id = static_cast<uint8_t>(w);
        m->length = static_cast<uint32_t>(w >> mark::length_shift) & 0xffff;
        m->data = in_frame ? memory_->frames[index % slot_count] : at(index).data;
        if (UCS_LIKELY(m->length <= (in_frame ? segment_size : inline_size) &&
                       !(w & mark::dropped))) {
            return true;
        }
        damaged_ += !(w & mark::dropped);
        release(*m);
        return false;
    }
    bool take_hole(unsigned owner, message *m); // owner 0: of any sender
    bool owns_hole(unsigned owner) const;
    bool claim_is_stuck();
    void pass_over();
    bool step_over();
    bool arm_holes();
    void disarm();
    void bury_sender(unsigned owner, uint64_t entry);
    void end_turn(uint64_t index);
    void look_for_special() { special_ = armed_ || !holes_.empty() || left_out_.any(); }
    slot &at(uint64_t index) const { return memory_->slots[index % slot_count]; }
    std::atomic<uint64_t> &claim_at(uint64_t index) const
    {
        return memory_->claims[index % slot_count];
    }

    inbox_memory memory_;
    uint64_t position_ = 0;         // the index to be read next
    uint64_t published_ = 0;        // what senders know of it
    unsigned looks_ = 0;            // in vain, since the last one at the claim at position_
    bool special_ = false;          // armed, or there are holes or indices to step over
    bool armed_ = false;            // at position_
    uint16_t arm_count_ = 0;        // never 0 in a claim
    uint64_t suspect_ = UINT64_MAX; // the claim at this index was open at the last look
    std::vector<uint64_t> holes_;
    std::bitset<slot_count> hole_at_;
    std::bitset<slot_count>
        left_out_; // the slot's next index is given to no sender: see end_turn()
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

    std::atomic<uint64_t> &seen() const { return page_->seen; } // see the page

    // A slot to write a message in: at most inline_size bytes at small(), or segment_size bytes at
    // frame(), and then publish(). False: the inbox is full for now.
    UCS_ALWAYS_INLINE bool claim()
    {
        uint64_t tail = page_->tail.load(std::memory_order_relaxed);
        uint64_t index = tail > next_ ? tail : next_;
        std::atomic<uint64_t> &c = page_->claims[index % slot_count];
        uint64_t seen = c.load(std::memory_order_relaxed);
        if (UCS_UNLIKELY(index >= stop_ || !is_free(seen, turn_of(index)) ||
                         !c.compare_exchange_strong(seen, claim::make(turn_of(index) + 1, owner_),
                                                    std::memory_order_acq_rel))) {
            return claim_from(index);
        }
        claimed(index, tail);
        return true;
    }
    char *small() const { return slot_->data; }
    char *frame() const { return page_->frames[index_ % slot_count]; }
    // length: at most inline_size or segment_size. True: the receiver sleeps, ring its bell.
    bool publish(uint8_t id, uint32_t length, bool in_frame)
    {
        slot_->mark.store(
            mark::make(turn_of(index_) + 1, length, id | (in_frame ? mark::in_frame : 0)),
            std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        uint64_t c = page_->claims[index_ % slot_count].load(std::memory_order_relaxed);
        return UCS_UNLIKELY(rings_ || (c & claim::hole)) && has_to_ring(c);
    }
    // After publish() was true and the bell has been rung: messages that follow need not ring.
    void rung();

  private:
    void attach(pid_t pid, uint32_t birth);
    static bool is_free(uint64_t c, uint64_t turn)
    {
        return (c & (claim::armed | claim::hole)) == 0 && claim::turns(c) == turn;
    }
    UCS_NOINLINE bool claim_from(uint64_t index);
    UCS_NOINLINE bool has_to_ring(uint64_t c);
    void claimed(uint64_t index, uint64_t tail)
    {
        index_ = index;
        next_ = index + 1;
        slot_ = &page_->slots[index % slot_count];
        const slot &ahead = page_->slots[(index + prefetched_slots) % slot_count];
        __builtin_prefetch(&ahead, 1);
        __builtin_prefetch(ahead.data + inline_size - 1, 1); // another line on most processors
        if (tail < next_) {
            page_->tail.store(next_, std::memory_order_relaxed);
        }
    }
    bool may_claim(uint64_t index);
    bool claim_armed(uint64_t index, uint64_t seen);
    void arm_after(uint64_t index);

    const std::unique_ptr<inbox_memory> mapped_; // empty for an inbox of this process
    page *const page_;
    slot *slot_ = nullptr;    // the claim
    uint64_t index_ = 0;      // of it
    uint64_t next_ = 0;       // this sender claims nothing below
    uint64_t limit_ = 0;      // and nothing from here on, before the receiver has moved on,
    uint64_t stop_ = 0;       // and before it has asked may_claim(): at most limit_
    uint64_t armed_next_ = 0; // index that this sender has armed, and
    unsigned arm_count_ = 0;  // with which count; 0: none
    unsigned owner_ = 0;
    bool rings_ = false; // the claim was armed
    share share_;
};

} // namespace uct::sm
