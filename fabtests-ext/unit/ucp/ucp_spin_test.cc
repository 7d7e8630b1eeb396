// SPDX-License-Identifier: BSD-3-Clause
// When a worker that polls in vain gives the processor up. Clock, kernel and sched_yield() are the
// test's own.
#include "ucp/core/spin.h"

#include <gtest/gtest.h>

namespace ucp {
namespace {

uint64_t now_ns;
ucs::thread_usage usage; // of the polling thread
unsigned yields;
uint64_t taken_by_yield; // ns that others run for when they are yielded to

void take_away(uint64_t ns)
{
    now_ns += ns;
    ++usage.involuntary;
}

const spin::machine machine = {
    .now = [] { return now_ns; },
    .usage = [] { return usage; },
    .yield =
        [] {
            ++yields;
            if (taken_by_yield) {
                take_away(taken_by_yield);
            }
        },
};

class ucp_spin : public testing::Test {
  protected:
    ucp_spin()
    {
        now_ns = 1000000000;
        usage = {.cpu = 5000000, .involuntary = 5, .voluntary = 5};
        yields = 0;
        taken_by_yield = 0;
    }

    static void run(uint64_t ns)
    {
        now_ns += ns;
        usage.cpu += ns;
    }

    // Others take 3 ms of every 5, for longer than the kernel needs to move a thread.
    static void share(spin &s)
    {
        for (unsigned n = 0; n < 12; ++n) {
            take_away(3000000);
            poll(s, 20000, 100);
        }
    }

    // Polls that find nothing, each of which takes this long.
    static unsigned poll(spin &s, unsigned times, uint64_t each_ns)
    {
        unsigned before = yields;
        for (unsigned n = 0; n < times; ++n) {
            run(each_ns);
            s.polled(0);
        }
        return yields - before;
    }
};

TEST_F(ucp_spin, never_yields_where_processors_are_enough)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 10000, 100); // learns the count of switches
    EXPECT_EQ(poll(s, 10000000, 100), 0u);
}

TEST_F(ucp_spin, yields_while_others_want_the_processor)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    taken_by_yield = 2000;
    share(s);
    EXPECT_GT(poll(s, 1000, 100), 100u) << "at most every tenth poll";
    // What is given up is not taken: it stops.
    taken_by_yield = 0;
    poll(s, 20000, 100);
    EXPECT_EQ(poll(s, 1000000, 100), 0u);
}

TEST_F(ucp_spin, lets_the_kernel_move_a_thread_first)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    taken_by_yield = 2000;
    take_away(3000000);
    EXPECT_EQ(poll(s, 400000, 100), 0u);
    take_away(3000000);
    EXPECT_EQ(poll(s, 60000, 100), 0u) << "within 50 ms";
    take_away(3000000);
    EXPECT_GT(poll(s, 20000, 100), 100u) << "it did not move one";
}

TEST_F(ucp_spin, yields_at_once_when_others_come_back_soon)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    share(s);
    poll(s, 20000, 100);
    EXPECT_EQ(poll(s, 5000000, 1000), 0u) << "alone for 5 s";
    take_away(3000000);
    EXPECT_GT(poll(s, 20000, 100), 100u);
    EXPECT_EQ(poll(s, 11000000, 1000), 0u) << "alone for 11 s";
    take_away(3000000);
    EXPECT_EQ(poll(s, 20000, 100), 0u);
}

// They give it back as soon as they find nothing themselves.
TEST_F(ucp_spin, yields_while_others_take_the_processor_for_short_times)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    for (unsigned n = 0; n < 40; ++n) {
        take_away(7000);
        yields = 0;
        poll(s, 20000, 100);
    }
    EXPECT_GT(yields, 100u);
    poll(s, 20000, 100);
    EXPECT_EQ(poll(s, 1000000, 100), 0u);
}

// The kernel's own threads, interrupts, a shell that ends.
TEST_F(ucp_spin, does_not_yield_to_what_every_machine_does_beside_its_programs)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    for (unsigned n = 0; n < 50; ++n) {
        take_away(50000);
        EXPECT_EQ(poll(s, 300000, 100), 0u);
    }
}

TEST_F(ucp_spin, does_not_yield_for_having_slept)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    for (unsigned n = 0; n < 1000; ++n) {
        take_away(10000);
        now_ns += 50000000;
        ++usage.voluntary;
        EXPECT_EQ(poll(s, 10000, 100), 0u);
    }
}

// What happened before it polled for the first time does not count.
TEST_F(ucp_spin, does_not_yield_for_what_was_before)
{
    take_away(100000000);
    spin s(ucs::config::ternary::auto_, machine);
    EXPECT_EQ(poll(s, 100000, 100), 0u);
}

TEST_F(ucp_spin, does_not_yield_when_something_is_found)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    yields = 0;
    for (unsigned n = 0; n < 100000; ++n) {
        run(100);
        take_away(100);
        s.polled(n % 4 == 0);
    }
    EXPECT_EQ(yields, 0u);
}

TEST_F(ucp_spin, does_not_yield_to_a_program_that_computes_between_polls)
{
    spin s(ucs::config::ternary::auto_, machine);
    for (unsigned n = 0; n < 10000; ++n) {
        take_away(100000);
        poll(s, 1, 100000);
    }
    EXPECT_EQ(yields, 0u);
}

TEST_F(ucp_spin, does_as_it_is_told)
{
    spin never(ucs::config::ternary::no, machine);
    taken_by_yield = 2000;
    for (unsigned n = 0; n < 100; ++n) {
        take_away(3000000);
        EXPECT_EQ(poll(never, 20000, 100), 0u);
    }
    taken_by_yield = 0;
    spin always(ucs::config::ternary::yes, machine);
    poll(always, 1000, 100);
    EXPECT_GT(poll(always, 1000, 100), 10u);
}

} // namespace
} // namespace ucp
