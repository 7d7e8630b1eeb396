// SPDX-License-Identifier: BSD-3-Clause
// The receiver's side of an inbox.
#include "uct/sm/inbox.h"

#include <algorithm>

namespace uct::sm {

bool inbox::find_next(message *m)
{
    disarm();
    if (UCS_UNLIKELY(!holes_.empty()) && take_hole(0, m)) {
        return true;
    }
    // A slot is looked at once in a call, whatever stands in the memory.
    for (size_t n = 0; n < slot_count; ++n) {
        if (UCS_UNLIKELY(step_over())) {
            continue;
        }
        uint64_t w = at(position_).mark.load(std::memory_order_acquire);
        if (mark::has_turns(w, turn_of(position_) + 1)) {
            // Its owner may have set the mark of what it claimed before.
            if (UCS_UNLIKELY(!holes_.empty()) &&
                take_hole(claim::owner(claim_at(position_).load(std::memory_order_relaxed)), m)) {
                return true;
            }
            looks_ = 0;
            if (take(w, position_++, false, m)) {
                return true;
            }
        } else if (claim_is_stuck()) {
            pass_over();
        } else {
            return false;
        }
    }
    return false;
}

// Whether the index at position_ is claimed and stays so. Claims are looked at seldom: each look
// takes a cache line away from the senders.
bool inbox::claim_is_stuck()
{
    if (looks_ < claim_patience && ++looks_ < claim_patience) {
        return false;
    }
    looks_ = 0;
    if (claim::turns(claim_at(position_).load(std::memory_order_relaxed)) <= turn_of(position_)) {
        return false;
    }
    bool again = suspect_ == position_;
    suspect_ = position_;
    return again;
}

void inbox::pass_over()
{
    claim_at(position_).fetch_or(claim::hole, std::memory_order_acq_rel);
    hole_at_.set(position_ % slot_count);
    holes_.push_back(position_++);
    special_ = true;
}

// The index at position_ is given to no sender: they step over the slot of a hole, and over the
// index that end_turn() has left out.
bool inbox::step_over()
{
    size_t i = position_ % slot_count;
    if (!hole_at_[i] && !left_out_[i]) {
        return false;
    }
    left_out_.reset(i);
    ++position_;
    return true;
}

// Senders may have stepped over the index of the hole's slot that the receiver has not read yet, so
// that index is given to no sender: the slot comes back one turn later.
void inbox::end_turn(uint64_t index)
{
    uint64_t unread = index + (position_ - index + slot_count - 1) / slot_count * slot_count;
    hole_at_.reset(index % slot_count);
    left_out_.set(index % slot_count);
    claim_at(index).store(claim::make(turn_of(unread) + 1, 0), std::memory_order_release);
}

bool inbox::take_hole(unsigned owner, message *m)
{
    for (size_t i = 0; i < holes_.size(); ++i) {
        uint64_t index = holes_[i];
        uint64_t w = at(index).mark.load(std::memory_order_acquire);
        if (!mark::has_turns(w, turn_of(index) + 1) ||
            (owner != 0 &&
             claim::owner(claim_at(index).load(std::memory_order_relaxed)) != owner)) {
            continue;
        }
        holes_.erase(holes_.begin() + static_cast<ptrdiff_t>(i--));
        if (take(w, index, true, m)) {
            return true;
        }
    }
    return false;
}

bool inbox::owns_hole(unsigned owner) const
{
    return std::any_of(holes_.begin(), holes_.end(), [&](uint64_t index) {
        return claim::owner(claim_at(index).load(std::memory_order_relaxed)) == owner;
    });
}

bool inbox::hole_is_ready() const
{
    for (size_t i = 0; i < slot_count; ++i) {
        uint64_t c = memory_->claims[i].load(std::memory_order_relaxed);
        if ((c & claim::hole) &&
            mark::has_turns(at(i).mark.load(std::memory_order_relaxed), claim::turns(c))) {
            return true;
        }
    }
    return false;
}

// No other process writes to what a dead one has claimed: it is marked in its name, as nothing.
void inbox::bury_sender(unsigned owner, uint64_t entry)
{
    for (size_t i = 0; i < slot_count; ++i) {
        uint64_t c = memory_->claims[i].load(std::memory_order_acquire);
        std::atomic<uint64_t> &its_mark = at(i).mark;
        if (!claim::is_armed_only(c) && claim::owner(c) == owner &&
            !mark::has_turns(its_mark.load(std::memory_order_acquire), claim::turns(c))) {
            its_mark.store(mark::make(claim::turns(c), 0, mark::dropped),
                           std::memory_order_release);
        }
    }
    memory_->senders[owner].compare_exchange_strong(entry, 0, std::memory_order_release);
}

bool inbox::arm()
{
    arm_count_ = static_cast<uint16_t>(std::max(1, (arm_count_ + 1) & 0xffff));
    bool armed = false;
    for (size_t n = 0; n < 2 * slot_count && !armed; ++n) {
        if (step_over()) {
            continue;
        }
        std::atomic<uint64_t> &c = claim_at(position_);
        uint64_t seen = c.load(std::memory_order_acquire);
        if (mark::has_turns(at(position_).mark.load(std::memory_order_acquire),
                            turn_of(position_) + 1)) {
            return false;
        }
        if (claim::turns(seen) <= turn_of(position_)) { // if a sender claims it now, look again
            armed = c.compare_exchange_strong(
                seen, claim::make(turn_of(position_), arm_count_) | claim::armed,
                std::memory_order_acq_rel);
        } else if (claim_is_stuck()) {
            pass_over();
        } else {
            return false; // its message comes soon
        }
    }
    armed_ = armed;
    look_for_special();
    publish_position();
    return armed && arm_holes();
}

bool inbox::arm_holes()
{
    return std::none_of(holes_.begin(), holes_.end(), [&](uint64_t index) {
        claim_at(index).fetch_or(claim::armed, std::memory_order_seq_cst);
        return mark::has_turns(at(index).mark.load(std::memory_order_acquire), turn_of(index) + 1);
    });
}

// The receiver is awake. What a sender has armed is left: it takes it back itself.
void inbox::disarm()
{
    if (armed_) {
        armed_ = false;
        uint64_t armed = claim::make(turn_of(position_), arm_count_) | claim::armed;
        claim_at(position_).compare_exchange_strong(armed, claim::make(turn_of(position_), 0),
                                                    std::memory_order_relaxed);
    }
    look_for_special();
}

} // namespace uct::sm
