// SPDX-License-Identifier: BSD-3-Clause
// Small active messages that one endpoint posts faster than the core sends them one by one leave
// together in one message of the core, whose completion data has am_batch. It is a sequence of
//
//   0       4   5        8
//   length  id  0        payload ...  zeros up to a multiple of 8
//
// Nothing is gathered before burst_alone messages were posted back to back: in the same round of
// progress, with pauses of the program no longer than burst_gap_ns between them. Of those that
// announce what takes long (UCT_SEND_FLAG_BATCH) only the first goes by itself. A batch leaves when
// it is full or batch_age_ns old, with the message that follows a longer pause or would have gone
// by itself, before anything else that the endpoint sends, at the next progress, and, when the
// program does not call in any more, by the attendant.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uct::ofi {

struct batch_record {
    uint32_t length; // of the payload
    uint8_t id;
    uint8_t reserved[3];
};
static_assert(sizeof(batch_record) == 8);

constexpr size_t batch_step(size_t length)
{
    return sizeof(batch_record) + (length + 7) / 8 * 8;
}

constexpr unsigned burst_alone = 8;
constexpr unsigned announced_alone = 1;
constexpr uint64_t burst_gap_ns = 5'000;
constexpr uint64_t batch_age_ns = 10'000;

} // namespace uct::ofi
