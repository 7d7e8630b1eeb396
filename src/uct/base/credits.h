// SPDX-License-Identifier: BSD-3-Clause
// What sends of an interface may lack, and the endpoints that wait for it. The cost of a round of
// progress does not depend on the number of endpoints that wait. An endpoint waits for one of
// these:
//   - Credits, which the endpoints of the interface share. The first go on when some came back.
//   - The end of an operation of its own, which calls wake().
//   - Room of which no event tells, as in the queue of a core or in a peer's inbox. A few of those
//     that wait for it try again in each round, by turns.
#pragma once

#include "ucs/list.h"
#include "ucs/mpool.h"

#include <cstddef>
#include <cstdint>

namespace uct {

class credits;

// An endpoint's place among those that wait.
struct waiter {
    enum class place : uint8_t { none, credits, trying, parked, woken };

    ucs::list_node wait_link;
    // What the last send that found no room wanted: credits, or the end of an operation of its own;
    // neither: anything else.
    credits *lacks = nullptr;
    bool lacks_own = false;
    place where = place::none;

    bool waits() const { return where != place::none; }
};

// A bounded number of objects that sends take and give back. Used by the interface's thread.
class credits {
  public:
    explicit credits(const ucs::mpool_base::params &params) : pool_(params) {}

    void *get() { return pool_.get(); } // nullptr: none is free
    void put(void *object) { pool_.put(object); }
    bool available() const { return pool_.available(); }

  private:
    friend class waiters;

    ucs::mpool_base pool_;
    ucs::list<waiter, &waiter::wait_link> waiting_;
    ucs::list_node link_; // among those that are waited for
};

// Those of one interface. One that waits is removed before it is destroyed.
class waiters {
  public:
    // Most of one kind that a round serves in vain.
    static constexpr unsigned most_vain = 16;

    bool empty() const { return count_ == 0; }
    bool idle() const { return count_ == parked_; } // there is nothing that a round may serve
    // A round may find room for one, though there are no news.
    bool untried() const;
    // Something has come back to the core or the interface.
    void news() { tried_ = 0; }

    // w: waits for nothing yet. parks: for wake() alone, otherwise for what it lacks.
    void add(waiter &w, bool parks);
    void remove(waiter &w); // also one that does not wait
    // It is served in the next round, whatever it waited for.
    void wake(waiter &w);

    // serve(waiter): returns how much was done; 0: still no room. It may add, remove and destroy
    // any of them, and begin a round itself. Each waiter is served once, in the order in which they
    // came; those that wait on are behind the others in the next round. Returns the sum.
    template <class Serve>
    unsigned round(Serve &&serve)
    {
        list woken, trying;
        woken.splice_back(woken_);
        trying.splice_back(trying_);
        ucs::list<credits, &credits::link_> lacking;
        lacking.splice_back(lacking_);
        unsigned count = 0;
        while (waiter *w = woken.pop_front()) {
            leave(*w);
            count += serve(*w);
        }
        while (credits *c = lacking.pop_front()) {
            list turn;
            turn.splice_back(c->waiting_);
            auto available = [c] { return c->available(); };
            unsigned vain = 0;
            count += serve_first(turn, available, serve, &vain);
            put_back(turn, c->waiting_);
            if (!c->waiting_.empty() && !c->link_.linked()) {
                lacking_.push_back(c);
            }
        }
        auto always = [] { return true; };
        unsigned vain = 0;
        unsigned done = serve_first(trying, always, serve, &vain);
        put_back(trying, trying_);
        tried_ = done > 0 ? 0 : tried_ + vain;
        return count + done;
    }

  private:
    using list = ucs::list<waiter, &waiter::wait_link>;

    void leave(waiter &w);

    template <class MayGoOn, class Serve>
    unsigned serve_first(list &turn, MayGoOn &&may_go_on, Serve &&serve, unsigned *vain)
    {
        unsigned count = 0;
        while (*vain < most_vain && may_go_on()) {
            waiter *w = turn.pop_front();
            if (!w) {
                break;
            }
            leave(*w);
            unsigned done = serve(*w);
            *vain += done == 0;
            count += done;
        }
        return count;
    }

    // Those that were not served come first in the next round.
    static void put_back(list &turn, list &waiting)
    {
        turn.splice_back(waiting);
        waiting.splice_back(turn);
    }

    list woken_;
    list trying_;
    ucs::list<credits, &credits::link_> lacking_; // that are waited for
    size_t count_ = 0;                            // of all that wait; of them
    size_t parked_ = 0;                           // those that are parked,
    size_t woken_count_ = 0;                      // woken,
    size_t trying_count_ = 0;                     // and those that try
    size_t tried_ = 0;                            // in vain since the last news
};

} // namespace uct
