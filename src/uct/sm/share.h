// SPDX-License-Identifier: BSD-3-Clause
// A sender's fair share of an inbox that is full. As long as some senders find no room, sending
// goes by rounds: each sender sends `quota` messages in a round at most, and what goes on to the
// next round waits until all that were refused in this one have had theirs. One word of the page
// has the count of the round, of the senders that wait for room in it, and of those that have had
// their quota and want to send more:
//
//    rounds: | round 63..32 | served 31..16 | waiting 15..0 |
//
//    refused        waiting + 1                               for some time, see vain_tries
//    room again     waiting - 1                               and it sends
//    quota sent     served + 1      while others wait         it steps back
//                   round + 1, those served wait, 0 served    when none waits any more
//
// Only senders that were refused write the word, and only a sender that comes to the end of the
// room that it knows of reads it, so it costs nothing while there is room.
//
// No sender depends on one that is counted and does not come: it may be stopped, dead, or busy
// with something else. A sender that has stepped back looks whether another one has moved; after
// `patience` looks at which none had, it begins the next round. A sender that has not come is
// counted no more until it is refused again.
//
// Memory order: none is needed. The word decides only when a sender asks for a slot; whether there
// is one, and what is seen in it, the claims and the position decide. Its changes are
// compare-and-swaps, so that the counts always fit the round.
#pragma once

#include <atomic>
#include <cstdint>

namespace uct::sm {

class share {
  public:
    static constexpr unsigned quota = 64;      // messages of a sender in a round
    static constexpr unsigned vain_tries = 16; // refused so often in a row, a sender waits
    static constexpr unsigned patience = 1024; // looks; a sender gives its processor to others
                                               // meanwhile, see iface::send_waiting()

    // rounds: of the page. Calls from one thread at a time.
    explicit share(std::atomic<uint64_t> &rounds) : rounds_(rounds) {}

    void refuse(); // a message found no room
    // There is room for one: may this sender take it? tail: moves when any sender has sent.
    bool grant(uint64_t tail);
    void count_sent()
    {
        if (quota_ > 0) {
            --quota_;
        }
    }
    // Each message has to ask, until none waits.
    bool is_limited() const { return place_ != place::none; }
    void leave();

  private:
    enum class place : uint8_t {
        none,    // not counted, and may send
        waiting, // counted
        sending, // not counted; may send quota_ messages
        served   // counted; has to step back
    };
    struct move {
        uint64_t rounds;
        place to;
    };
    static constexpr unsigned served_shift = 16;
    static constexpr unsigned round_shift = 32;

    static unsigned waiting(uint64_t rounds) { return rounds & 0xffff; }
    static unsigned served(uint64_t rounds) { return rounds >> served_shift & 0xffff; }
    static uint32_t round(uint64_t rounds) { return static_cast<uint32_t>(rounds >> round_shift); }
    void follow(uint64_t rounds);
    move next_move(uint64_t rounds, bool patient) const;
    bool is_patient(uint64_t rounds, uint64_t tail);
    uint64_t without_me(uint64_t rounds) const;

    std::atomic<uint64_t> &rounds_;
    place place_ = place::none;
    uint32_t round_ = 0; // in which place_ holds
    unsigned quota_ = 0;
    unsigned vain_ = 0;        // refused since it last might send
    unsigned looks_ = 0;       // since it stepped back, without a change of
    uint64_t seen_rounds_ = 0; // these
    uint64_t seen_tail_ = 0;
};

} // namespace uct::sm
