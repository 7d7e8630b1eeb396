// SPDX-License-Identifier: BSD-3-Clause
// Polls a core for a program that does something else now. Where messages leave only when the core
// is polled, a peer may wait for one that was sent, and the program for that peer in another
// worker, as Open MPI's windows do. Where software of the target takes and acknowledges messages, a
// peer that closes its own endpoint waits for this process, which may wait for that peer outside
// of the library, as in the barrier at the end of a job.
//
// From the first endpoint on, or the first key of memory that a peer may have, the helper thread of
// the process looks at times whether the program has polled since, and if not moves the core. It
// takes nothing from the completion queue, so that no handler and no callback runs there. What
// arrives fills the posted receive buffers: a program that does not come back takes as many
// messages as it has of those.
#pragma once

#include "ucs/async.h"
#include "ucs/biased_lock.h"
#include "ucs/compiler.h"

#include <cstdint>

namespace uct::ofi {

class rdm_iface;

class idle_polls {
  public:
    explicit idle_polls(rdm_iface &home) : home_(home) {}

    // The program's threads are its owner while they are inside the interface.
    ucs::biased_lock lock;

    // The owner calls these: it has polled, and peers may have keys of its memory or have none; it
    // has opened or closed an endpoint.
    void polled(bool exposed)
    {
        ++polls_;
        if (UCS_UNLIKELY(exposed && !exposed_)) {
            exposed_ = true;
            begin();
        }
    }
    uint64_t polls() const { return polls_; }
    void begin() noexcept;

  private:
    void look();

    rdm_iface &home_;
    uint64_t polls_ = 0; // under the lock, as all that follows
    uint64_t polls_seen_ = 0;
    uint64_t interval_ns_ = 0;
    bool exposed_ = false;
    ucs::async_watch timer_;
};

} // namespace uct::ofi
