// SPDX-License-Identifier: BSD-3-Clause
// Gathering small messages, and taking a batch apart: see batch.h.
#include "uct/ofi/tcp/batch.h"

#include "ucs/sys.h"
#include "uct/ofi/core/ep.h"

#include <cstring>
#include <utility>

namespace uct::ofi {

// Whether the small message that is about to be posted joins a batch. The first of a round of
// progress does not, and costs no look at the clock: one message at a time is no burst.
bool ep::streaming(unsigned alone)
{
    if (batch_) {
        ++burst_;
        return true;
    }
    if (burst_round_ != round()) {
        burst_round_ = round();
        burst_ = 0;
    } else if (burst_ > 1 && ucs::monotonic_ns() - last_small_ > burst_gap_ns) {
        burst_ = 0;
    }
    return ++burst_ > alone && batch_room_ > 0;
}

// A peer without room for a record of the largest message that joins gets none.
void ep::set_batch_room(size_t most)
{
    batch_room_ = batch_step(owner().limit.batched) <= most ? most : 0;
}

ucs_status_t ep::add_to_batch(uint8_t id, const void *head, size_t head_length, const void *payload,
                              size_t length, unsigned alone)
{
    uint64_t now = ucs::monotonic_ns();
    size_t total = head_length + length;
    bool paused = now - last_small_ > burst_gap_ns;
    last_small_ = now;
    if (batch_ &&
        (batch_->length + batch_step(total) > batch_room_ || now - batch_begun_ > batch_age_ns)) {
        flush_batch();
        if (UCS_UNLIKELY(!ready())) {
            return not_ready();
        }
    }
    if (!batch_) {
        batch_ = owner().get_buffer();
        if (UCS_UNLIKELY(!batch_)) {
            return no_resource();
        }
        batch_->owner = this;
        batch_->length = 0;
        batch_begun_ = now;
        owner().batches_.push_back(batch_);
        owner().batch_begun();
    }
    char *at = batch_->data + batch_->length;
    batch_record record{.length = static_cast<uint32_t>(total), .id = id, .reserved = {}};
    memcpy(at, &record, sizeof(record));
    copy_bytes(at + sizeof(record), head, head_length);
    copy_bytes(at + sizeof(record) + head_length, payload, length);
    size_t step = batch_step(total);
    memset(at + sizeof(record) + total, 0, step - sizeof(record) - total);
    batch_->length += step;
    if (UCS_UNLIKELY(paused)) {
        burst_ = 0; // the burst was over: nothing may follow for long
        flush_batch();
    } else if (UCS_UNLIKELY(burst_ <= alone)) {
        flush_batch(); // it found a batch of announcements
    }
    return UCS_OK;
}

void ep::flush_batch()
{
    buffer_op *b = std::exchange(batch_, nullptr);
    b->link.unlink();
    if (UCS_UNLIKELY(!target || status() != UCS_OK)) {
        owner().put(b);
        return;
    }
    send_packed(b, am_batch, b->length);
}

void iface::flush_batches()
{
    while (op *b = batches_.front()) {
        b->owner->flush_batch();
    }
}

void iface::deliver_batch(receive_op *r, size_t length)
{
    size_t at = 0;
    while (at + sizeof(batch_record) <= length) {
        batch_record record;
        memcpy(&record, r->payload + at, sizeof(record));
        size_t payload = at + sizeof(record);
        if (record.id >= UCT_AM_ID_MAX || record.length > length - payload) {
            break;
        }
        deliver(record.id, r->payload + payload, record.length, 0);
        at += batch_step(record.length);
    }
    if (UCS_UNLIKELY(at != length)) {
        ucs_warn("%s/%s: dropped a damaged batch of messages from byte %zu of %zu",
                 domain.provider.transport.c_str(), domain.dev.name.c_str(), at, length);
    }
}

} // namespace uct::ofi
