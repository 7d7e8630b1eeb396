// SPDX-License-Identifier: BSD-3-Clause
//
// Which receive a message meets, and which message a receive: receives that wait are found by what
// they name (tag, source, both or neither), messages that wait by each of these. Of the receives
// that fit a message the one posted first wins, wildcard or not; of the messages that fit a receive
// the one that arrived first.
//
// A receive is in one of four indexes, by its class. A message looks into those that are not empty,
// and sequence numbers decide between what it finds. Within an index the entries of one key are a
// queue, so that many of a kind cost no more than one; only receives that ignore a part of the tag
// are walked through, and messages by those receives.
//
// An index of messages exists from the first search on that needs it: a program that always names
// its sources does not pay for those that never do. Tables grow with the number of keys. The
// entries belong to the caller; the only memory that is asked for is that of larger tables, and
// without it a search is slower.
#pragma once

#include "ucs/compiler.h"
#include "ucs/list.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

namespace ucxlike {

struct conn;
struct match_entry;

struct match_key {
    uint64_t tag;       // 0 where messages have none
    const conn *source; // nullptr in a receive: any
};

struct match_node {
    match_node *next = nullptr; // a ring of those with the same key, oldest first
    match_node *prev = nullptr;
    match_node *chain = nullptr; // of the oldest: the oldest of another key in this bucket
    match_node **at = nullptr;   // of the oldest: what points to it
    match_entry *owner = nullptr;

    bool linked() const { return next; }
};

struct match_entry {
    match_key key = {};
    ucs::list_node order; // in which they came

    bool is_waiting() const { return order.linked(); }
};

// What counts the entries that a search looks at, in tests.
struct match_uncounted {
    static void visit() {}
};

// Queues of entries, found by those parts of their key that count here.
template <class Probe>
class match_index {
  public:
    match_index(bool by_tag, bool by_source)
        : tag_mask_(by_tag ? ~uint64_t(0) : 0), source_mask_(by_source ? ~uintptr_t(0) : 0)
    {
    }
    ~match_index() { release(); }
    match_index(const match_index &) = delete;
    match_index &operator=(const match_index &) = delete;

    bool empty() const { return keys_ == 0; }

    // The oldest of those with this key; nullptr: there is none.
    UCS_ALWAYS_INLINE match_node *first(const match_key &k) const
    {
        return first_in(*bucket(k), k);
    }

    UCS_ALWAYS_INLINE void add(match_node *n, match_entry *owner)
    {
        n->owner = owner;
        match_node **at = bucket(owner->key);
        if (match_node *oldest = first_in(*at, owner->key)) {
            n->next = oldest;
            n->prev = oldest->prev;
            oldest->prev->next = n;
            oldest->prev = n;
            return;
        }
        n->next = n->prev = n;
        put(n, at);
        if (UCS_UNLIKELY(++keys_ > mask_ + 1)) {
            grow();
        }
    }

    UCS_ALWAYS_INLINE void remove(match_node *n)
    {
        if (n->at) {
            match_node *after = n->next;
            if (after == n) {
                --keys_;
                after = n->chain;
            } else {
                after->chain = n->chain;
                if (after->chain) {
                    after->chain->at = &after->chain;
                }
            }
            *n->at = after;
            if (after) {
                after->at = n->at;
            }
            n->at = nullptr;
        }
        n->prev->next = n->next;
        n->next->prev = n->prev;
        n->next = nullptr;
    }

  private:
    static constexpr size_t least = 16;

    bool same(const match_key &a, const match_key &b) const
    {
        return ((a.tag ^ b.tag) & tag_mask_) == 0 &&
               ((address_of(a.source) ^ address_of(b.source)) & source_mask_) == 0;
    }
    // Tags often differ in their upper bits alone.
    size_t hash(const match_key &k) const
    {
        uint64_t h =
            (k.tag & tag_mask_) + (address_of(k.source) & source_mask_) * 0xd6e8feb86659fd93ull;
        h ^= h >> 32;
        return static_cast<size_t>((h * 0x9e3779b97f4a7c15ull) >> 32);
    }
    static uintptr_t address_of(const conn *c) { return reinterpret_cast<uintptr_t>(c); }

    match_node **bucket(const match_key &k) const
    {
        return UCS_LIKELY(mask_ == 0) ? table_ : &table_[hash(k) & mask_];
    }
    match_node *first_in(match_node *n, const match_key &k) const
    {
        for (; n; n = n->chain) {
            Probe::visit();
            if (same(n->owner->key, k)) {
                break;
            }
        }
        return n;
    }
    static void put(match_node *n, match_node **at)
    {
        n->at = at;
        n->chain = *at;
        if (n->chain) {
            n->chain->at = &n->chain;
        }
        *at = n;
    }

    UCS_NOINLINE void grow()
    {
        size_t size = mask_ ? 4 * (mask_ + 1) : least;
        auto **larger = new (std::nothrow) match_node *[size]();
        if (!larger) {
            return;
        }
        match_node **old = table_;
        size_t buckets = mask_ + 1;
        table_ = larger;
        mask_ = size - 1;
        for (size_t i = 0; i < buckets; ++i) {
            for (match_node *n = old[i], *next; n; n = next) {
                next = n->chain;
                put(n, bucket(n->owner->key));
            }
        }
        if (old != &single_) {
            delete[] old;
        }
    }

    void release()
    {
        if (table_ != &single_) {
            delete[] table_;
        }
    }

    uint64_t tag_mask_;
    uintptr_t source_mask_;
    size_t mask_ = 0;
    size_t keys_ = 0;
    match_node *single_ = nullptr; // the table of an index that has had one key at a time
    match_node **table_ = &single_;
};

template <class Probe = match_uncounted>
class basic_matcher {
  public:
    struct recv_entry : match_entry {
        uint64_t ignore = 0; // bits of the tag
        uint64_t seq = 0;
        match_node node;
    };

  private:
    // What a receive names.
    enum what : unsigned { both, tag_alone, source_alone, neither, kinds };

  public:
    struct msg_entry : match_entry {
        match_node nodes[neither]; // in the indexes that exist
    };

    // A receive that found no message waits; its key and what it ignores are set.
    UCS_ALWAYS_INLINE void add_recv(recv_entry *r)
    {
        r->seq = ++seq_;
        recv_order_.push_back(r);
        what w = what_of(r->key, r->ignore);
        waiting_ |= 1u << w;
        recvs_[w].add(&r->node, r);
    }

    // The receive that a message with this key belongs to; nullptr if none waits.
    UCS_ALWAYS_INLINE recv_entry *find_recv(const match_key &k) const
    {
        recv_entry *best = nullptr;
        for (unsigned rest = waiting_; rest; rest &= rest - 1) {
            auto w = static_cast<what>(std::countr_zero(rest));
            best = older(recvs_[w].first(k), k, best, w >= source_alone);
        }
        return best;
    }

    UCS_ALWAYS_INLINE void remove(recv_entry *r)
    {
        r->order.unlink();
        what w = what_of(r->key, r->ignore);
        recvs_[w].remove(&r->node);
        if (recvs_[w].empty()) {
            waiting_ &= ~(1u << w);
        }
    }

    // A message that found no receive waits; its key is set.
    void add_msg(msg_entry *m)
    {
        msg_order_.push_back(m);
        for (unsigned w = both; w < neither; ++w) {
            if (exists_ & 1u << w) {
                msgs_[w].add(&m->nodes[w], m);
            }
        }
    }

    // The first message that such a receive fits, which goes on waiting; nullptr if none does.
    UCS_ALWAYS_INLINE msg_entry *find_msg(const match_key &k, uint64_t ignore)
    {
        return UCS_LIKELY(msg_order_.empty()) ? nullptr : search(k, ignore);
    }

    void remove(msg_entry *m)
    {
        m->order.unlink();
        for (unsigned w = both; w < neither; ++w) {
            if (m->nodes[w].linked()) {
                msgs_[w].remove(&m->nodes[w]);
            }
        }
    }

    // The oldest.
    msg_entry *first_msg() const { return static_cast<msg_entry *>(msg_order_.front()); }
    recv_entry *first_recv() const { return static_cast<recv_entry *>(recv_order_.front()); }
    // The oldest receive for which f(recv_entry *) is true.
    template <class F>
    recv_entry *find_recv_if(F &&f)
    {
        for (match_entry *e : recv_order_) {
            if (f(static_cast<recv_entry *>(e))) {
                return static_cast<recv_entry *>(e);
            }
        }
        return nullptr;
    }

  private:
    using entries = ucs::list<match_entry, &match_entry::order>;

    static what what_of(const match_key &k, uint64_t ignore)
    {
        return static_cast<what>((ignore ? 2u : 0u) + (k.source ? 0u : 1u));
    }
    static bool fits(const match_key &wanted, uint64_t ignore, const match_key &k)
    {
        return ((wanted.tag ^ k.tag) & ~ignore) == 0 &&
               (!wanted.source || wanted.source == k.source);
    }

    // The first in this queue that fits, if it is older than `best`; else best. Where no part of a
    // tag is ignored all of a queue fit.
    UCS_ALWAYS_INLINE static recv_entry *older(match_node *first, const match_key &k,
                                               recv_entry *best, bool ignoring)
    {
        for (match_node *n = first; n;) {
            auto *r = static_cast<recv_entry *>(n->owner);
            Probe::visit();
            if (UCS_UNLIKELY(best != nullptr) && best->seq < r->seq) {
                return best;
            }
            if (!ignoring || fits(r->key, r->ignore, k)) {
                return r;
            }
            n = n->next == first ? nullptr : n->next;
        }
        return best;
    }

    msg_entry *search(const match_key &k, uint64_t ignore)
    {
        what w = what_of(k, ignore);
        if (w == neither) {
            return walk_all(k, ignore);
        }
        if (UCS_UNLIKELY(!(exists_ & 1u << w))) {
            build(w);
        }
        match_node *first = msgs_[w].first(k);
        match_node *n = first;
        while (n && !fits(k, ignore, n->owner->key)) {
            Probe::visit();
            n = n->next == first ? nullptr : n->next;
        }
        return n ? static_cast<msg_entry *>(n->owner) : nullptr;
    }

    msg_entry *walk_all(const match_key &k, uint64_t ignore)
    {
        for (match_entry *e : msg_order_) {
            Probe::visit();
            if (fits(k, ignore, e->key)) {
                return static_cast<msg_entry *>(e);
            }
        }
        return nullptr;
    }

    UCS_NOINLINE void build(what w)
    {
        exists_ |= 1u << w;
        for (match_entry *e : msg_order_) {
            Probe::visit();
            msgs_[w].add(&static_cast<msg_entry *>(e)->nodes[w], e);
        }
    }

    uint64_t seq_ = 0;
    unsigned waiting_ = 0; // which of recvs_ are not empty, a bit each
    unsigned exists_ = 0;  // of msgs_
    entries recv_order_;
    entries msg_order_;
    match_index<Probe> recvs_[kinds] = {{true, true}, {true, false}, {false, true}, {false, false}};
    match_index<Probe> msgs_[neither] = {{true, true}, {true, false}, {false, true}};
};
using matcher = basic_matcher<>;

} // namespace ucxlike
