// SPDX-License-Identifier: BSD-3-Clause
//
// When to give the processor up: see spin.h.
#include "ucp/core/spin.h"

#include "ucs/sys.h"

#include <sched.h>

namespace ucp {

namespace {

constexpr uint32_t usual_patience = 64;  // polls: a few microseconds
constexpr uint32_t crowded_patience = 8; // polls
constexpr uint64_t slow_poll = 5000;     // ns; a program that polls less often computes in between
constexpr uint64_t ask_interval = 1000000; // ns

} // namespace

const spin::machine spin::real = {
    .now = ucs::monotonic_ns,
    .switches = ucs::involuntary_switches,
    .yield = [] { sched_yield(); },
};

spin::spin(ucs::config::ternary when, const machine &m)
    : machine_(m), when_(when),
      patience_(when == ucs::config::ternary::no ? UINT32_MAX : usual_patience)
{
}

void spin::look() noexcept
{
    uint64_t now = machine_.now();
    bool spinning = now - looked_ < patience_ * slow_poll;
    looked_ = now;
    vain_ = 0;
    if (when_ == ucs::config::ternary::no || !spinning) {
        return;
    }
    if (when_ != ucs::config::ternary::yes && now >= ask_at_) {
        ask(now);
    }
    if (crowded_ || when_ == ucs::config::ternary::yes) {
        machine_.yield();
        looked_ = machine_.now(); // what the others took is not this program's pause
    }
}

void spin::ask(uint64_t now) noexcept
{
    uint64_t switches = machine_.switches();
    crowded_ = ask_at_ != 0 && switches != switches_;
    switches_ = switches;
    ask_at_ = now + ask_interval;
    patience_ = crowded_ ? crowded_patience : usual_patience;
}

} // namespace ucp
