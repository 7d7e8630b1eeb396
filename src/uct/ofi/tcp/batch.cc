// SPDX-License-Identifier: BSD-3-Clause
// Filling a batch, and taking one apart: see batch.h.
#include "uct/ofi/tcp/batch.h"

#include "ucs/sys.h"
#include "uct/ofi/core/ep.h"
#include "uct/ofi/tcp/tcp_companion.h"

#include <cstring>
#include <utility>

namespace uct::ofi {

ucs_status_t batch::add(uint8_t id, const void *head, size_t head_length, const void *payload,
                        size_t length, unsigned alone)
{
    uint64_t now = ucs::monotonic_ns();
    size_t total = head_length + length;
    bool paused = now - last_small_ > burst_gap_ns;
    last_small_ = now;
    if (begun() &&
        (gathered_->length + batch_step(total) > room_ || now - begun_at_ > batch_age_ns)) {
        send();
        if (UCS_UNLIKELY(!sender_.ready())) {
            return sender_.not_ready();
        }
    }
    if (!begun()) {
        gathered_ = sender_.get_send_buffer();
        if (UCS_UNLIKELY(!gathered_)) {
            return sender_.no_buffer();
        }
        gathered_->length = 0;
        begun_at_ = now;
        tcp_.begun(*this);
    }
    char *at = gathered_->data + gathered_->length;
    batch_record record{.length = static_cast<uint32_t>(total), .id = id, .reserved = {}};
    memcpy(at, &record, sizeof(record));
    copy_bytes(at + sizeof(record), head, head_length);
    copy_bytes(at + sizeof(record) + head_length, payload, length);
    size_t step = batch_step(total);
    memset(at + sizeof(record) + total, 0, step - sizeof(record) - total);
    gathered_->length += step;
    if (UCS_UNLIKELY(paused)) {
        burst_ = 0; // the burst was over: nothing may follow for long
        send();
    } else if (UCS_UNLIKELY(burst_ <= alone)) {
        send(); // it found a batch of announcements
    }
    return UCS_OK;
}

buffer_op *batch::take()
{
    link.unlink();
    return std::exchange(gathered_, nullptr);
}

void batch::send()
{
    sender_.post_gathered(take());
}

void batch::drop()
{
    tcp_.home().put(take());
}

void deliver_batch(msg_iface &home, char *data, size_t length)
{
    size_t at = 0;
    while (at + sizeof(batch_record) <= length) {
        batch_record record;
        memcpy(&record, data + at, sizeof(record));
        size_t payload = at + sizeof(record);
        if (record.id >= UCT_AM_ID_MAX || record.length > length - payload) {
            break;
        }
        home.deliver(record.id, data + payload, record.length, 0);
        at += batch_step(record.length);
    }
    if (UCS_UNLIKELY(at != length)) {
        ucs_warn("%s/%s: dropped a damaged batch of messages from byte %zu of %zu",
                 home.domain.provider.transport.c_str(), home.domain.dev.name.c_str(), at, length);
    }
}

} // namespace uct::ofi
