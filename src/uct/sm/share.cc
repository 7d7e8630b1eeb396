// SPDX-License-Identifier: BSD-3-Clause
// Rounds of the senders to a full inbox.
#include "uct/sm/share.h"

namespace uct::sm {

void share::refuse()
{
    if (++vain_ < vain_tries) {
        return;
    }
    uint64_t rounds = rounds_.load(std::memory_order_relaxed);
    place to;
    do {
        follow(rounds);
        if (place_ == place::waiting || place_ == place::served) {
            return;
        }
        to = place_ == place::sending && quota_ == 0 ? place::served : place::waiting;
    } while (!rounds_.compare_exchange_weak(
        rounds, rounds + (to == place::served ? uint64_t(1) << served_shift : 1),
        std::memory_order_relaxed));
    place_ = to;
    looks_ = 0;
}

bool share::grant(uint64_t tail)
{
    if (place_ == place::sending && quota_ > 0) {
        return true;
    }
    uint64_t rounds = rounds_.load(std::memory_order_relaxed);
    bool patient = is_patient(rounds, tail);
    move next;
    do {
        follow(rounds);
        next = next_move(rounds, patient);
    } while (next.rounds != rounds &&
             !rounds_.compare_exchange_weak(rounds, next.rounds, std::memory_order_relaxed));
    round_ = round(next.rounds);
    place_ = next.to;
    if (place_ == place::served) {
        return false;
    }
    if (place_ == place::none) {
        quota_ = 0;
    } else if (quota_ == 0) {
        quota_ = quota;
    }
    vain_ = looks_ = 0;
    return true;
}

// What others have done since: a sender that was served waits in the next round; otherwise it is
// counted no more in a round that has passed.
void share::follow(uint64_t rounds)
{
    if (uint32_t now = round(rounds); now != round_) {
        place_ = place_ == place::served && now == round_ + 1 ? place::waiting : place::none;
        round_ = now;
        quota_ = 0;
    }
}

uint64_t share::without_me(uint64_t rounds) const
{
    if (place_ == place::waiting && waiting(rounds) > 0) {
        return rounds - 1;
    }
    if (place_ == place::served && served(rounds) > 0) {
        return rounds - (uint64_t(1) << served_shift);
    }
    return rounds;
}

share::move share::next_move(uint64_t rounds, bool patient) const
{
    uint64_t others = without_me(rounds);
    if (waiting(others) == 0 && served(others) == 0) {
        return {others, place::none};
    }
    if (place_ == place::none || place_ == place::waiting) {
        return {others, place::sending};
    }
    if (waiting(others) > 0 && patient) {
        return {others + (uint64_t(1) << served_shift), place::served};
    }
    return {uint64_t(round(others) + 1) << round_shift | served(others), place::sending};
}

bool share::is_patient(uint64_t rounds, uint64_t tail)
{
    if (rounds != seen_rounds_ || tail != seen_tail_) {
        seen_rounds_ = rounds;
        seen_tail_ = tail;
        looks_ = 0;
    }
    return place_ != place::served || ++looks_ < patience;
}

// The program closes the endpoint. A share in a round that has passed is not counted any more.
void share::leave()
{
    uint64_t rounds = rounds_.load(std::memory_order_relaxed);
    do {
        follow(rounds);
    } while (without_me(rounds) != rounds &&
             !rounds_.compare_exchange_weak(rounds, without_me(rounds), std::memory_order_relaxed));
    place_ = place::none;
}

} // namespace uct::sm
