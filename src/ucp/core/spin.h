// SPDX-License-Identifier: BSD-3-Clause
//
// Gives the processor up when a program polls a worker in vain while the machine has more runnable
// threads than processors: the thread that would send the awaited message may be one of those that
// wait for a processor.
//
// Whether that is so, the kernel tells once a millisecond. The processor is shared when the kernel
// has taken it away from this thread (an involuntary switch), and the thread did not run for an
// eighth of the time or longer, or this is the fourth time in a row with less than 20 ms between. A
// row finds others that give the processor back at once, since they poll in vain. A short pause now
// and then says nothing: that is what every machine does beside its programs. Nor does a time in
// which the thread has slept by itself.
//
// For 50 ms the kernel is left to move one of the threads to an idle processor. It does not do that
// with threads that have just run, as all have that yield to each other: two processes would stay
// on one processor while another is idle. After that the thread yields, and for 10 s it does so at
// once when it finds the processor shared again. A call that gave the processor to another one
// counts as being taken away, so this goes on while it helps and ends soon after the others have
// gone.
#pragma once

#include "ucs/compiler.h"
#include "ucs/config/config.h"
#include "ucs/sys.h"

#include <cstdint>

namespace ucp {

class spin {
  public:
    // What it asks and what it does; a test has its own.
    struct machine {
        uint64_t (*now)(); // ns
        ucs::thread_usage (*usage)();
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
    uint64_t looked_ = 0;    // when, ns
    uint64_t asked_ = 0;     // when the kernel was asked, ns; 0: not yet
    uint64_t begun_ = 0;     // when the processor was first found shared, ns
    uint64_t shared_at_ = 0; // and last; 0: never
    uint64_t taken_at_ = 0;  // when the processor was last found taken away, ns
    unsigned row_ = 0;       // how often, with short times between
    ucs::thread_usage usage_ = {};
};

} // namespace ucp
