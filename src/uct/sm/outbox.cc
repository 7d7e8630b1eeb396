// SPDX-License-Identifier: BSD-3-Clause
// A sender's side of an inbox.
#include "ucs/error.h"
#include "uct/sm/inbox.h"

namespace uct::sm {

outbox::outbox(int fd, uint64_t nonce, pid_t pid, uint32_t birth)
    : mapped_(std::make_unique<inbox_memory>(fd, nonce)), page_(mapped_->operator->())
{
    attach(pid, birth);
}

outbox::outbox(inbox &own, pid_t pid, uint32_t birth) : page_(own.memory_.operator->())
{
    attach(pid, birth);
}

// No claim is open: publish() follows every claim().
outbox::~outbox()
{
    page_->senders[owner_].store(0, std::memory_order_release);
}

void outbox::attach(pid_t pid, uint32_t birth)
{
    uint64_t entry = static_cast<uint32_t>(pid) | uint64_t(birth) << 32;
    // Attaching senders begin at different places, so that each finds a free one soon.
    unsigned first = static_cast<unsigned>(pid) % max_senders;
    for (unsigned n = 0; n < max_senders; ++n) {
        unsigned owner = 1 + (first + n) % max_senders;
        uint64_t none = 0;
        if (page_->senders[owner].load(std::memory_order_relaxed) == 0 &&
            page_->senders[owner].compare_exchange_strong(none, entry, std::memory_order_acq_rel)) {
            owner_ = owner;
            return;
        }
    }
    throw ucs::error(UCS_ERR_EXCEEDS_LIMIT, "a peer's inbox has %u senders already", max_senders);
}

bool outbox::claim_from(uint64_t index)
{
    for (;; ++index) {
        if (UCS_UNLIKELY(index >= limit_) && !may_claim(index)) {
            return false;
        }
        std::atomic<uint64_t> &w = page_->slots[index % slot_count].word;
        uint64_t seen = word::make(index, 0, word::free);
        if (UCS_LIKELY(w.compare_exchange_strong(seen, word::make(index, owner_, word::claimed),
                                                 std::memory_order_acq_rel))) {
            break;
        }
        if (word::turn(seen) == index / slot_count && (seen & word::mask) == word::free) {
            if (claim_armed(index, seen)) {
                break;
            }
            --index; // somebody else was faster, or the receiver has woken up: look again
        } else if (word::turn(seen) < index / slot_count && !passed_over(index, seen)) {
            return false;
        }
        // else it is taken, or the receiver has read it, or nobody gets this index
    }
    claimed(index, page_->tail.load(std::memory_order_relaxed));
    return true;
}

// The ring's length in front of the receiver, and no further.
bool outbox::may_claim(uint64_t index)
{
    limit_ = page_->position.load(std::memory_order_acquire) + slot_count;
    return index < limit_;
}

// The slot has not come to the turn of this index: the receiver has passed over an open claim
// there, or it has not read the message yet.
bool outbox::passed_over(uint64_t index, uint64_t seen)
{
    uint64_t of_seen = word::turn(seen) * slot_count + index % slot_count;
    if ((seen & word::mask) == word::free) {
        return false;
    }
    return of_seen + slot_count < limit_ || (may_claim(index) && of_seen + slot_count < limit_);
}

bool outbox::claim_armed(uint64_t index, uint64_t seen)
{
    arm_count_ = word::owner(seen);
    arm_after(index);
    return page_->slots[index % slot_count].word.compare_exchange_strong(
        seen, word::make(index, owner_, word::claimed) | word::armed, std::memory_order_acq_rel);
}

// The receiver sleeps. If this sender stops before it publishes, the next one has to find the bit,
// too.
void outbox::arm_after(uint64_t index)
{
    while (++index < limit_) {
        uint64_t seen = word::make(index, 0, word::free);
        uint64_t armed = word::make(index, arm_count_, word::free) | word::armed;
        std::atomic<uint64_t> &w = page_->slots[index % slot_count].word;
        if (w.compare_exchange_strong(seen, armed, std::memory_order_acq_rel) || seen == armed) {
            armed_next_ = index;
            return;
        }
        if (word::turn(seen) == index / slot_count && (seen & word::mask) == word::free) {
            break; // the receiver has armed it anew
        }
    }
    arm_count_ = 0;
}

void outbox::rung()
{
    if (arm_count_ != 0) {
        uint64_t seen = word::make(armed_next_, arm_count_, word::free) | word::armed;
        page_->slots[armed_next_ % slot_count].word.compare_exchange_strong(
            seen, word::make(armed_next_, 0, word::free), std::memory_order_relaxed);
        arm_count_ = 0;
    }
}

} // namespace uct::sm
