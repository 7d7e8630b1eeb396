// SPDX-License-Identifier: BSD-3-Clause
// When a worker that polls in vain gives the processor up. Clock, kernel and sched_yield() are the
// test's own.
#include "ucp/core/spin.h"

#include <gtest/gtest.h>

namespace ucp {
namespace {

uint64_t now_ns, switch_count;
unsigned yields;
uint64_t switched_by_yield; // how many switches one yield() makes

const spin::machine machine = {
    .now = [] { return now_ns; },
    .switches = [] { return switch_count; },
    .yield =
        [] {
            ++yields;
            switch_count += switched_by_yield;
        },
};

class ucp_spin : public testing::Test {
  protected:
    ucp_spin()
    {
        now_ns = 1000000000;
        switch_count = 5;
        yields = 0;
        switched_by_yield = 0;
    }

    // Polls that find nothing, each of which takes this long.
    static unsigned poll(spin &s, unsigned times, uint64_t each_ns)
    {
        unsigned before = yields;
        for (unsigned n = 0; n < times; ++n) {
            now_ns += each_ns;
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
    yields = 0;
    switch_count += 1;
    switched_by_yield = 1;
    poll(s, 20000, 100);
    EXPECT_GT(poll(s, 1000, 100), 100u) << "at most every tenth poll";
    // Nobody takes what is given up: it stops.
    switched_by_yield = 0;
    poll(s, 20000, 100);
    EXPECT_EQ(poll(s, 1000000, 100), 0u);
}

TEST_F(ucp_spin, does_not_yield_when_something_is_found)
{
    spin s(ucs::config::ternary::auto_, machine);
    poll(s, 20000, 100);
    yields = 0;
    for (unsigned n = 0; n < 100000; ++n) {
        now_ns += 100;
        switch_count += 1;
        s.polled(n % 4 == 0);
    }
    EXPECT_EQ(yields, 0u);
}

TEST_F(ucp_spin, does_not_yield_to_a_program_that_computes_between_polls)
{
    spin s(ucs::config::ternary::auto_, machine);
    for (unsigned n = 0; n < 10000; ++n) {
        switch_count += 1;
        poll(s, 1, 100000);
    }
    EXPECT_EQ(yields, 0u);
}

TEST_F(ucp_spin, does_as_it_is_told)
{
    spin never(ucs::config::ternary::no, machine);
    switched_by_yield = 1;
    for (unsigned n = 0; n < 100; ++n) {
        switch_count += 1;
        EXPECT_EQ(poll(never, 20000, 100), 0u);
    }
    switched_by_yield = 0;
    spin always(ucs::config::ternary::yes, machine);
    poll(always, 1000, 100);
    EXPECT_GT(poll(always, 1000, 100), 10u);
}

} // namespace
} // namespace ucp
