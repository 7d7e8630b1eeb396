// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a worker that is to sleep polls a little longer instead. Sleeping and waking take some
// ten microseconds on each side; an answer that comes sooner is better polled for. While this class
// says so, ucp_worker_arm() returns UCS_ERR_BUSY, and so the program polls.
//
// That is done for a limited time after an event, and seldom where it does not help: after a wait
// that was longer than the limit, one wait is not polled for, then three, seven, up to 63; a wait
// that ends in time begins anew. It is not done while the kernel takes the processor away from this
// thread, since the peer may need it.
#pragma once

#include "ucs/compiler.h"

#include <cstdint>

namespace ucp {

class linger {
  public:
    // What it asks; a test has its own.
    struct machine {
        uint64_t (*now)();      // ns
        uint64_t (*switches)(); // of this thread that it did not ask for
    };
    static const machine real;

    // limit: seconds to poll for; 0: never.
    explicit linger(double limit, const machine &m = real);

    // After each poll: how many events it found.
    void polled(unsigned count) noexcept { arrived_ |= count > 0; }

    // To be asked before arming. True: poll again.
    bool keeps_polling() noexcept;

  private:
    bool begins(uint64_t now) noexcept;
    bool crowded(uint64_t now) noexcept;

    const machine &machine_;
    const uint64_t limit_; // ns
    bool arrived_ = false; // something, since the last question
    bool polling_ = false; // the last answer
    uint64_t since_ = 0;   // the wait began, ns
    unsigned skipped_ = 0; // waits that are not polled for after one in vain
    unsigned to_skip_ = 0; // of these, the ones to come
    bool crowded_ = false;
    uint64_t ask_at_ = 0; // when the kernel is asked again, ns
    uint64_t switches_ = 0;
};

} // namespace ucp
