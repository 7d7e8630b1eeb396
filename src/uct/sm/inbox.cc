// SPDX-License-Identifier: BSD-3-Clause
// The receiver's side of an inbox.
#include "uct/sm/inbox.h"

#include <algorithm>

namespace uct::sm {

bool inbox::find_next(message *m)
{
    if (UCS_UNLIKELY(!holes_.empty()) && take_hole(0, m)) {
        return true;
    }
    // A slot is looked at once in a call, whatever stands in the memory.
    for (size_t n = 0; n < slot_count; ++n) {
        slot &s = at(position_);
        uint64_t w = s.word.load(std::memory_order_acquire);
        uint64_t free = word::make(position_, 0, word::free);
        if (UCS_LIKELY(w == free)) {
            return false;
        }
        if (word::turn(w) != position_ / slot_count) {
            ++position_; // a hole was here: no message has this index
            continue;
        }
        switch (w & word::mask) {
        case word::published:
            // Its owner may have published what it claimed before.
            if (UCS_UNLIKELY(!holes_.empty()) && take_hole(word::owner(w), m)) {
                return true;
            }
            looks_ = 0;
            if (take(position_++, false, m)) {
                return true;
            }
            break;
        case word::claimed:
            if (++looks_ < claim_patience) {
                return false;
            }
            looks_ = 0;
            holes_.push_back(position_++);
            break;
        default: // free and armed: the receiver is awake
            if (s.word.compare_exchange_strong(w, free, std::memory_order_relaxed)) {
                return false;
            }
            break; // a sender has claimed it: look again
        }
    }
    return false;
}

// The turn of a slot that was a hole. Senders may have stepped over its index of the turn that the
// receiver has not read yet, so that index is given to nobody: the slot comes back one turn later.
uint64_t inbox::end_turn(uint64_t index) const
{
    uint64_t unread = index + (position_ - index + slot_count - 1) / slot_count * slot_count;
    return word::turn_of(unread + slot_count);
}

bool inbox::take_hole(unsigned owner, message *m)
{
    for (size_t i = 0; i < holes_.size(); ++i) {
        uint64_t index = holes_[i];
        uint64_t w = at(index).word.load(std::memory_order_acquire);
        if ((w & word::mask) != word::published || (owner != 0 && word::owner(w) != owner)) {
            continue;
        }
        holes_.erase(holes_.begin() + static_cast<ptrdiff_t>(i--));
        if (take(index, true, m)) {
            return true;
        }
    }
    return false;
}

bool inbox::owns_hole(unsigned owner) const
{
    return std::any_of(holes_.begin(), holes_.end(), [&](uint64_t index) {
        return word::owner(at(index).word.load(std::memory_order_relaxed)) == owner;
    });
}

// Nobody else writes to what a dead process has claimed: it is published in its name, as nothing.
void inbox::bury_sender(unsigned owner, uint64_t entry)
{
    for (slot &s : memory_->slots) {
        uint64_t w = s.word.load(std::memory_order_acquire);
        if ((w & word::mask) == word::claimed && word::owner(w) == owner) {
            s.header = header_dropped;
            s.word.store((w & ~uint64_t(word::mask | word::armed)) | word::published,
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
        slot &s = at(position_);
        uint64_t w = s.word.load(std::memory_order_acquire);
        if (word::turn(w) != position_ / slot_count) {
            ++position_;
        } else if ((w & word::mask) == word::published) {
            return false;
        } else if ((w & word::mask) == word::claimed) {
            holes_.push_back(position_++);
        } else { // if a sender claims it now, it is looked at again
            armed = s.word.compare_exchange_strong(
                w, word::make(position_, arm_count_, word::free) | word::armed,
                std::memory_order_acq_rel);
        }
    }
    publish_position();
    return armed && arm_holes();
}

bool inbox::arm_holes()
{
    for (uint64_t index : holes_) {
        std::atomic<uint64_t> &w = at(index).word;
        uint64_t seen = w.load(std::memory_order_acquire);
        do {
            if ((seen & word::mask) == word::published) {
                return false;
            }
        } while (!w.compare_exchange_weak(seen, seen | word::armed, std::memory_order_acq_rel));
    }
    return true;
}

} // namespace uct::sm
