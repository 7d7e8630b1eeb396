// SPDX-License-Identifier: BSD-3-Clause
// A sender's side of an inbox.
#include "ucs/error.h"
#include "uct/sm/inbox.h"

#include <algorithm>
#include <utility>

namespace uct::sm {

constexpr size_t most_steps = 4 * slot_count; // to a claim, in one call

outbox::outbox(int fd, uint64_t nonce, pid_t pid, uint32_t birth)
    : mapped_(std::make_unique<inbox_memory>(fd, nonce)), page_(mapped_->operator->()),
      share_(page_->rounds)
{
    attach(pid, birth);
}

outbox::outbox(inbox &own, pid_t pid, uint32_t birth)
    : page_(own.memory_.operator->()), share_(page_->rounds)
{
    attach(pid, birth);
}

// No claim is open: publish() follows every claim().
outbox::~outbox()
{
    share_.leave();
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
    // What stands in the memory decides how far this goes, and a sender that lies can write that.
    for (size_t steps = 0; steps < most_steps; ++steps, ++index) {
        if (UCS_UNLIKELY(index >= stop_) && !may_claim(index)) {
            rings_ = false;
            return false;
        }
        std::atomic<uint64_t> &c = page_->claims[index % slot_count];
        uint64_t seen = c.load(std::memory_order_acquire);
        if ((seen & claim::hole) || claim::turns(seen) > turn_of(index)) {
            // No sender gets this index, or another one has it. Nor does one get what the receiver
            // is past, which may be far: with a hole in each slot it goes round with every look.
            if (index + 1 + slot_count < limit_) {
                index = limit_ - slot_count - 1;
            }
            continue;
        }
        if (claim::turns(seen) < turn_of(index)) { // no sender of ours leaves an index out
            rings_ = false;
            return false;
        }
        rings_ = seen & claim::armed;
        if (rings_ ? claim_armed(index, seen)
                   : c.compare_exchange_strong(seen, claim::make(turn_of(index) + 1, owner_),
                                               std::memory_order_acq_rel)) {
            share_.count_sent();
            claimed(index, page_->tail.load(std::memory_order_relaxed));
            return true;
        }
        --index; // another sender was faster, or the receiver has armed or woken up: look again
    }
    rings_ = false;
    return false;
}

// The ring's length in front of the receiver, and no further; and this sender's share of it.
bool outbox::may_claim(uint64_t index)
{
    if (index >= limit_) {
        limit_ = page_->position.load(std::memory_order_acquire) + slot_count;
    }
    if (index >= limit_) {
        share_.refuse();
        return false;
    }
    if (!share_.grant(page_->tail.load(std::memory_order_relaxed))) {
        return false;
    }
    stop_ = share_.is_limited() ? index + 1 : limit_;
    return true;
}

bool outbox::claim_armed(uint64_t index, uint64_t seen)
{
    arm_count_ = claim::owner(seen);
    arm_after(index);
    return page_->claims[index % slot_count].compare_exchange_strong(
        seen, claim::make(turn_of(index) + 1, owner_), std::memory_order_acq_rel);
}

// The receiver sleeps. If this sender stops before it publishes, the next one has to find the bit,
// too.
void outbox::arm_after(uint64_t index)
{
    uint64_t end = std::min(limit_, index + slot_count);
    while (++index < end) {
        std::atomic<uint64_t> &c = page_->claims[index % slot_count];
        uint64_t seen = c.load(std::memory_order_acquire);
        uint64_t armed = claim::make(turn_of(index), arm_count_) | claim::armed;
        if (is_free(seen, turn_of(index))
                ? c.compare_exchange_strong(seen, armed, std::memory_order_acq_rel)
                : seen == armed) {
            armed_next_ = index;
            return;
        }
        if (claim::is_armed_only(seen) && claim::turns(seen) == turn_of(index)) {
            break; // the receiver has armed it anew
        }
    }
    arm_count_ = 0;
}

bool outbox::has_to_ring(uint64_t c)
{
    return std::exchange(rings_, false) || (c & claim::armed);
}

void outbox::rung()
{
    if (arm_count_ != 0) {
        uint64_t seen = claim::make(turn_of(armed_next_), arm_count_) | claim::armed;
        page_->claims[armed_next_ % slot_count].compare_exchange_strong(
            seen, claim::make(turn_of(armed_next_), 0), std::memory_order_relaxed);
        arm_count_ = 0;
    }
}

} // namespace uct::sm
