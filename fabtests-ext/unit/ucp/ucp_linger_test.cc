// SPDX-License-Identifier: BSD-3-Clause
// When a worker polls a little longer before it sleeps. Clock and kernel are the test's own.
#include "ucp/core/linger.h"

#include <gtest/gtest.h>

namespace ucp {
namespace {

constexpr double limit = 50e-6; // s
constexpr uint64_t step = 1000; // ns from one poll to the next
constexpr unsigned polls = 50;  // in the limit

uint64_t now_ns, switch_count;

const linger::machine machine = {.now = [] { return now_ns; },
                                 .switches = [] { return switch_count; }};

class ucp_linger : public testing::Test {
  protected:
    ucp_linger()
    {
        now_ns = 1000000000;
        switch_count = 5;
        l.polled(1); // the count of switches becomes known
        l.keeps_polling();
        l.polled(1);
    }

    // After an event: polls in vain before the worker may sleep, `most` at most.
    unsigned wait(unsigned most = UINT32_MAX)
    {
        unsigned count = 0;
        while (count < most && l.keeps_polling()) {
            ++count;
            now_ns += step;
            l.polled(0);
        }
        return count;
    }
    void wake()
    {
        now_ns += 1000000;
        l.polled(1);
    }

    linger l{limit, machine};
};

TEST_F(ucp_linger, polls_for_a_limited_time_after_an_event)
{
    EXPECT_EQ(wait(), polls);
    EXPECT_EQ(wait(), 0u); // nothing has come since
}

TEST_F(ucp_linger, sleeps_at_once_before_the_first_event)
{
    linger fresh(limit, machine);
    fresh.polled(0);
    EXPECT_FALSE(fresh.keeps_polling());
}

TEST_F(ucp_linger, polls_each_time_while_answers_come_soon)
{
    for (unsigned n = 0; n < 1000; ++n) {
        ASSERT_EQ(wait(polls / 2), polls / 2);
        l.polled(1);
    }
}

TEST_F(ucp_linger, seldom_polls_where_waits_are_long)
{
    unsigned waits = 0, polled_for = 0;
    for (; waits < 640; ++waits) {
        polled_for += wait() > 0;
        wake();
    }
    // 1, 3, 7, 15, 31, then always 63 waits between two.
    EXPECT_EQ(polled_for, 6 + (640u - (1 + 3 + 7 + 15 + 31 + 5) - 1) / 64);
}

TEST_F(ucp_linger, an_answer_in_time_begins_anew)
{
    for (unsigned n = 0; n < 2 + 1 + 3; ++n) { // two waits in vain and those skipped
        wait();
        wake();
    }
    EXPECT_EQ(wait(3), 3u);
    l.polled(1);
    EXPECT_EQ(wait(), polls);
    wake();
    EXPECT_EQ(wait(), 0u);
    wake();
    EXPECT_EQ(wait(), polls) << "more than one wait was skipped";
}

TEST_F(ucp_linger, sleeps_while_others_want_the_processor)
{
    now_ns += 2000000;
    ++switch_count;
    EXPECT_EQ(wait(), 0u);
    now_ns += 2000000;
    l.polled(1);
    EXPECT_EQ(wait(), 0u);
    now_ns += 10000000;
    l.polled(1);
    EXPECT_EQ(wait(), polls);
}

TEST_F(ucp_linger, a_switch_long_ago_does_not_count)
{
    now_ns += 1000000000;
    ++switch_count;
    EXPECT_EQ(wait(), polls);
}

TEST_F(ucp_linger, never_polls_with_a_limit_of_0)
{
    for (double none : {0.0, -1.0}) {
        linger off(none, machine);
        off.polled(1);
        EXPECT_FALSE(off.keeps_polling());
    }
}

} // namespace
} // namespace ucp
