// SPDX-License-Identifier: BSD-3-Clause
// Which sources a worker polls: slow ones ever less often while a fast one has traffic, or while
// they rest and rounds are short, but at once when they have something to do.
#include "uct/base/worker.h"

#include "ucs/sys.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace {

struct source {
    unsigned work;
    unsigned polls = 0;

    static unsigned poll(void *arg)
    {
        auto *self = static_cast<source *>(arg);
        ++self->polls;
        return self->work;
    }
};

struct a_worker : testing::Test {
    uct::worker worker{UCS_THREAD_MODE_SINGLE};
    source fast{1};
    source slow{0};

    void SetUp() override
    {
        worker.add_source({source::poll, &fast, false});
        worker.add_source({source::poll, &slow, true});
        for (int i = 0; i < 5000; ++i) {
            worker.progress();
        }
    }
};

TEST_F(a_worker, polls_an_idle_slow_source_ever_less_often)
{
    EXPECT_EQ(fast.polls, 5000u);
    EXPECT_LT(slow.polls, 100u);
    EXPECT_GT(slow.polls, 5u);
}

TEST_F(a_worker, polls_a_slow_source_with_something_to_do_in_the_next_round)
{
    for (unsigned i = 1; i <= 3; ++i) {
        unsigned before = slow.polls;
        worker.hasten(&slow);
        worker.progress();
        EXPECT_EQ(slow.polls, before + 1) << i;
    }
    unsigned before = slow.polls;
    for (int i = 0; i < 5000; ++i) {
        worker.progress();
    }
    EXPECT_LT(slow.polls, before + 100);
}

TEST_F(a_worker, polls_everything_when_the_fast_sources_are_quiet)
{
    fast.work = 0;
    for (int i = 0; i < 1000; ++i) {
        worker.progress();
    }
    unsigned before = slow.polls;
    worker.progress();
    EXPECT_EQ(slow.polls, before + 1);
}

struct sleeper {
    uct::worker *worker;
    bool rests = true;
    unsigned polls = 0;

    static unsigned poll(void *arg)
    {
        auto *self = static_cast<sleeper *>(arg);
        ++self->polls;
        if (self->rests) {
            self->worker->rest(self);
        }
        return 0;
    }
};

struct a_resting_source : testing::Test {
    uct::worker worker{UCS_THREAD_MODE_SINGLE};
    sleeper other{&worker, false};
    sleeper source{&worker};

    void SetUp() override
    {
        worker.add_source({sleeper::poll, &other, true});
        worker.add_source({sleeper::poll, &source, true});
    }

    unsigned polls_in(unsigned rounds)
    {
        unsigned before = source.polls;
        for (unsigned i = 0; i < rounds; ++i) {
            worker.progress();
        }
        return source.polls - before;
    }
};

TEST_F(a_resting_source, is_polled_seldom_while_another_is_polled_always)
{
    polls_in(10'000); // a process that loses its processor between begins anew
    unsigned least = 10'000;
    for (int i = 0; i < 100; ++i) {
        least = std::min(least, polls_in(1000));
    }
    EXPECT_LT(least, 1000 / 32);
    EXPECT_GE(least, 1000 / 64 - 1);
    EXPECT_EQ(110'000u, other.polls);
}

TEST_F(a_resting_source, is_polled_in_every_round_from_when_it_does_not_rest)
{
    polls_in(10'000);
    source.rests = false;
    EXPECT_GE(polls_in(100 + 64), 100u);
    source.rests = true;
    polls_in(10'000);
    worker.hasten(&source);
    EXPECT_EQ(1u, polls_in(1));
}

TEST_F(a_resting_source, is_polled_in_every_round_where_rounds_are_long)
{
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(1u, polls_in(1));
        uint64_t end = ucs::monotonic_ns() + 20'000;
        while (ucs::monotonic_ns() < end) {
        }
    }
}

} // namespace
