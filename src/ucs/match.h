// SPDX-License-Identifier: BSD-3-Clause
//
// Tag matching: receives that wait for a message (expected) and messages that wait for a receive
// (unexpected). Both are found in posting order: of the receives that fit a message the one posted
// first wins, whether it names one exact tag or is a wildcard; of the messages that fit a receive
// the one that arrived first wins.
//
// Receives that name an exact tag, and all messages, are hashed by tag; wildcard receives have a
// list of their own, and a sequence number decides between the two. A wildcard receive walks all
// unexpected messages in arrival order.
//
// The policy says what a receive asks for (pattern), what a message carries (key) and how they are
// compared:
//   struct P {
//       struct/using pattern, key;
//       static bool is_exact(const pattern &);
//       static bool matches(const pattern &, const key &);
//       static uint64_t hash(const pattern &);
//       static uint64_t hash(const key &);
//   };
// A pattern that is exact is looked up by its hash, which equals that of every key that it fits.
// Entries are intrusive and owned by the caller, which derives from them or embeds them. No locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace ucs {

template <class P>
class matcher {
    struct link {
        link *next = nullptr;
        link *prev = nullptr;

        bool linked() const noexcept { return next; }
        void make_head() noexcept { next = prev = this; }
        bool empty() const noexcept { return next == this; }
        void insert_before(link *at) noexcept
        {
            next = at;
            prev = at->prev;
            at->prev->next = this;
            at->prev = this;
        }
        void unlink() noexcept
        {
            prev->next = next;
            next->prev = prev;
            next = prev = nullptr;
        }
    };

  public:
    using pattern = typename P::pattern;
    using key = typename P::key;

    class recv_entry : link {
        friend class matcher;
        uint64_t seq_; // of one that waits
        pattern pattern_;

      public:
        bool is_waiting() const noexcept { return this->linked(); }
        const pattern &what() const noexcept { return pattern_; }
    };

    class msg_entry {
        friend class matcher;
        struct order_link : link {
            msg_entry *owner;
        };
        struct bucket_link : link {
            msg_entry *owner;
        };
        bucket_link bucket_;
        order_link order_;
        key key_ = {};

      public:
        bool is_waiting() const noexcept { return order_.linked(); }
        const key &what() const noexcept { return key_; }
    };

    // 2^bits hash buckets for each of the two sides.
    explicit matcher(unsigned bits = 8)
        : mask_((size_t(1) << bits) - 1), expected_(new link[mask_ + 1]),
          unexpected_(new link[mask_ + 1])
    {
        for (size_t i = 0; i <= mask_; ++i) {
            expected_[i].make_head();
            unexpected_[i].make_head();
        }
        wild_.make_head();
        order_.make_head();
    }
    matcher(const matcher &) = delete;
    matcher &operator=(const matcher &) = delete;

    // A receive that found no message waits. The entry stays with the matcher until match_recv()
    // gives it out or remove() takes it back.
    void add_recv(recv_entry *e, const pattern &p) noexcept
    {
        e->pattern_ = p;
        e->seq_ = ++seq_;
        if (P::is_exact(p)) {
            e->insert_before(&expected_[index(P::hash(p))]);
            ++exact_count_;
        } else {
            e->insert_before(&wild_);
            ++wild_count_;
        }
    }

    // The receive that a message with key `k` belongs to, taken out of the queue; nullptr if none
    // waits.
    recv_entry *match_recv(const key &k) noexcept
    {
        recv_entry *e = exact_count_ ? find_recv(&expected_[index(P::hash(k))], k) : nullptr;
        if (wild_count_) {
            recv_entry *w = find_recv(&wild_, k);
            if (w && (!e || w->seq_ < e->seq_)) {
                e = w;
            }
        }
        if (e) {
            remove(e);
        }
        return e;
    }

    // Cancel a receive. It must be waiting.
    void remove(recv_entry *e) noexcept
    {
        --(P::is_exact(e->pattern_) ? exact_count_ : wild_count_);
        e->unlink();
    }

    // A message that found no receive waits.
    void add_msg(msg_entry *m, const key &k) noexcept
    {
        m->key_ = k;
        m->bucket_.owner = m->order_.owner = m;
        m->bucket_.insert_before(&unexpected_[index(P::hash(k))]);
        m->order_.insert_before(&order_);
        ++msg_count_;
    }

    // The first message that the pattern fits, which stays in the queue (probe); nullptr if none.
    // `filter`, if given, can refuse candidates: bool(msg_entry *).
    msg_entry *find_msg(const pattern &p) const noexcept
    {
        return find_msg(p, [](msg_entry *) { return true; });
    }

    template <class F>
    msg_entry *find_msg(const pattern &p, F &&filter) const noexcept
    {
        if (msg_count_ == 0) {
            return nullptr;
        }
        if (P::is_exact(p)) {
            link *head = &unexpected_[index(P::hash(p))];
            for (link *l = head->next; l != head; l = l->next) {
                msg_entry *m = static_cast<typename msg_entry::bucket_link *>(l)->owner;
                if (P::matches(p, m->key_) && filter(m)) {
                    return m;
                }
            }
            return nullptr;
        }
        for (link *l = order_.next; l != &order_; l = l->next) {
            msg_entry *m = static_cast<typename msg_entry::order_link *>(l)->owner;
            if (P::matches(p, m->key_) && filter(m)) {
                return m;
            }
        }
        return nullptr;
    }

    // The same, taken out of the queue.
    msg_entry *match_msg(const pattern &p) noexcept
    {
        msg_entry *m = find_msg(p);
        if (m) {
            remove(m);
        }
        return m;
    }

    // Take a message out. It must be waiting.
    void remove(msg_entry *m) noexcept
    {
        m->bucket_.unlink();
        m->order_.unlink();
        --msg_count_;
    }

    // Any message / any receive, oldest first: for emptying the queues at the end.
    msg_entry *first_msg() const noexcept
    {
        return order_.empty() ? nullptr
                              : static_cast<typename msg_entry::order_link *>(order_.next)->owner;
    }
    recv_entry *any_recv() const noexcept
    {
        if (!wild_.empty()) {
            return static_cast<recv_entry *>(wild_.next);
        }
        if (exact_count_ == 0) {
            return nullptr;
        }
        for (size_t i = 0; i <= mask_; ++i) {
            if (!expected_[i].empty()) {
                return static_cast<recv_entry *>(expected_[i].next);
            }
        }
        return nullptr;
    }

    // Call f(recv_entry *) for every waiting receive; f may remove that one.
    template <class F>
    void for_each_recv(F &&f)
    {
        each(&wild_, f);
        for (size_t i = 0; i <= mask_; ++i) {
            each(&expected_[i], f);
        }
    }

    size_t recv_count() const noexcept { return exact_count_ + wild_count_; }
    size_t msg_count() const noexcept { return msg_count_; }

  private:
    size_t mask_;
    size_t exact_count_ = 0;
    size_t wild_count_ = 0;
    size_t msg_count_ = 0;
    uint64_t seq_ = 0;
    link wild_;
    link order_;
    std::unique_ptr<link[]> expected_;
    std::unique_ptr<link[]> unexpected_;

    size_t index(uint64_t h) const noexcept { return ((h * 0x9e3779b97f4a7c15ull) >> 40) & mask_; }

    static recv_entry *find_recv(link *head, const key &k) noexcept
    {
        for (link *l = head->next; l != head; l = l->next) {
            recv_entry *e = static_cast<recv_entry *>(l);
            if (P::matches(e->pattern_, k)) {
                return e;
            }
        }
        return nullptr;
    }

    template <class F>
    static void each(link *head, F &f)
    {
        for (link *l = head->next, *next; l != head; l = next) {
            next = l->next;
            f(static_cast<recv_entry *>(l));
        }
    }
};

} // namespace ucs
