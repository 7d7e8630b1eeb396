// SPDX-License-Identifier: BSD-3-Clause
//
// Gives the processor up when a program polls a worker in vain while the machine has more runnable
// threads than processors: the thread that would send the awaited message may be one of those that
// wait for a processor.
//
// Whether that is so, the kernel tells by the count of involuntary switches of this thread: on a
// machine with a processor for each thread it stays as it is. A call that gave the processor to
// somebody else counts, too, so the answer stays true while it helps and becomes false soon after
// the others have gone.
#pragma once

#include "ucs/compiler.h"
#include "ucs/config/config.h"

#include <cstdint>

namespace ucp {

class spin {
  public:
    // What it asks and what it does; a test has its own.
    struct machine {
        uint64_t (*now)();      // ns
        uint64_t (*switches)(); // of this thread that it did not ask for
        void (*yield)();
    };
    static const machine real;

    // no: never; yes: after some polls in vain, always; else when the machine is short of
    // processors.
    explicit spin(ucs::config::ternary when, const machine &m = real);

    // After each poll: how many events it found. The worker's lock is not held.
    void polled(unsigned count) noexcept
    {
        if (UCS_LIKELY(count > 0)) {
            vain_ = 0;
        } else if (UCS_UNLIKELY(++vain_ >= patience_)) {
            look();
        }
    }

  private:
    UCS_NOINLINE void look() noexcept;
    void ask(uint64_t now) noexcept;

    const machine &machine_;
    const ucs::config::ternary when_;
    uint32_t vain_ = 0; // polls since something was found or the last look
    uint32_t patience_; // of them before a look; UINT32_MAX: for ever
    bool crowded_ = false;
    uint64_t looked_ = 0; // when, ns
    uint64_t ask_at_ = 0; // when the kernel is asked again, ns
    uint64_t switches_ = 0;
};

} // namespace ucp
