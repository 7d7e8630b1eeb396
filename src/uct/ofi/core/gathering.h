// SPDX-License-Identifier: BSD-3-Clause
// Small active messages that an endpoint posts faster than the core sends them one by one leave
// together in one message of the core, whose completion data has am_batch. Here stands which of
// them join; how they lie in that message and when it leaves at the latest is a matter of the
// folder of a kind of core (tcp/batch.h), which gives an endpoint its gathering when it connects.
//
// Nothing is gathered before burst_alone messages were posted back to back: in the same round of
// progress, with pauses of the program no longer than burst_gap_ns between them. Of those that
// announce what takes long (UCT_SEND_FLAG_BATCH) only the first goes by itself.
#pragma once

#include "ucs/compiler.h"
#include "ucs/list.h"
#include "ucs/sys.h"

#include <uct/api/uct.h>

#include <cstddef>
#include <cstdint>

namespace uct::ofi {

constexpr unsigned burst_alone = 8;
constexpr unsigned announced_alone = 1;
constexpr uint64_t burst_gap_ns = 5'000;

struct buffer_op;

class gathering {
  public:
    gathering() = default;
    gathering(const gathering &) = delete;
    gathering &operator=(const gathering &) = delete;
    virtual ~gathering() = default;

    // Whether the small message that is about to be posted in this round of progress joins others.
    // The first of a round does not, and costs no look at the clock: one message at a time is no
    // burst. `alone`: how many of a burst go by themselves.
    UCS_ALWAYS_INLINE bool joins(unsigned alone, uint64_t round)
    {
        if (begun()) {
            ++burst_;
            return true;
        }
        if (burst_round_ != round) {
            burst_round_ = round;
            burst_ = 0;
        } else if (burst_ > 1 && ucs::monotonic_ns() - last_small_ > burst_gap_ns) {
            burst_ = 0;
        }
        return ++burst_ > alone;
    }
    // A small message went by itself. The time that the core took for it is not the program's
    // pause.
    UCS_ALWAYS_INLINE void went_alone(unsigned alone)
    {
        if (UCS_UNLIKELY(burst_ > 1 || burst_ >= alone)) {
            last_small_ = ucs::monotonic_ns();
        }
    }
    // One that joins(), a head and a rest. UCS_OK, or as a send that found no room.
    virtual ucs_status_t add(uint8_t id, const void *head, size_t head_length, const void *payload,
                             size_t length, unsigned alone) = 0;

    bool begun() const { return gathered_ != nullptr; }
    // What is there; only what has begun(). It may fail the endpoint.
    virtual void send() = 0;
    virtual void drop() = 0;

    ucs::list_node link; // among those that have begun

  protected:
    buffer_op *gathered_ = nullptr;
    unsigned burst_ = 0;      // small messages posted back to back
    uint64_t last_small_ = 0; // when the last one of a burst had been posted

  private:
    uint64_t burst_round_ = 0; // the round of progress they were posted in
};

} // namespace uct::ofi
