// SPDX-License-Identifier: BSD-3-Clause
//
// When to give the processor up: see spin.h.
#include "ucp/core/spin.h"

#include <sched.h>

namespace ucp {

namespace {

constexpr uint32_t usual_patience = 64;  // polls: a few microseconds
constexpr uint32_t crowded_patience = 8; // polls
constexpr uint64_t slow_poll = 5000;     // ns; a program that polls less often computes in between
constexpr uint64_t ask_interval = 1000000;     // ns
constexpr uint64_t repeat_interval = 20000000; // ns; above the scheduler's slices and its tick
constexpr unsigned long_row = 4;
constexpr uint64_t move_time = 50000000;      // ns
constexpr uint64_t memory_time = 10000000000; // ns
constexpr uint64_t shared_part = 8; // lost time of this part of all, and more, is taken by others

} // namespace

const spin::machine spin::real = {
    .now = ucs::monotonic_ns,
    .usage = ucs::usage_of_thread,
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
    if (when_ != ucs::config::ternary::yes && now >= asked_ + ask_interval) {
        ask(now);
    }
    if (crowded_ || when_ == ucs::config::ternary::yes) {
        machine_.yield();
        looked_ = machine_.now(); // what the others took is not this program's pause
    }
}

void spin::ask(uint64_t now) noexcept
{
    ucs::thread_usage usage = machine_.usage();
    uint64_t passed = now - asked_;
    uint64_t ran = usage.cpu - usage_.cpu;
    bool taken = asked_ != 0 && usage.involuntary != usage_.involuntary;
    bool slept = usage.voluntary != usage_.voluntary;
    if (taken && !slept) {
        row_ = now - taken_at_ < repeat_interval ? row_ + 1 : 1;
        taken_at_ = now;
        if (row_ >= long_row || ran < passed - passed / shared_part) {
            begun_ = shared_at_ != 0 && now - shared_at_ < memory_time ? begun_ : now;
            shared_at_ = now;
            crowded_ = now - begun_ >= move_time;
        }
    }
    crowded_ = crowded_ && taken;
    usage_ = usage;
    asked_ = now;
    patience_ = crowded_ ? crowded_patience : usual_patience;
}

} // namespace ucp
