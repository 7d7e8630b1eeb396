// SPDX-License-Identifier: BSD-3-Clause
// Which sources a worker polls: slow ones ever less often while a fast one has traffic, or while
// they rest and rounds are short, but at once when they have something to do.
#include "uct/base/worker.h"

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

// Rounds take as long as the test says.
struct a_resting_source : testing::Test {
    static inline uint64_t now_ns;

    uct::worker worker{UCS_THREAD_MODE_SINGLE};
    sleeper other{&worker, false};
    sleeper source{&worker};

    void SetUp() override
    {
        now_ns = 1'000'000'000; // not soon after the start of time
        worker.clock_ns = [] { return now_ns; };
        worker.add_source({sleeper::poll, &other, true});
        worker.add_source({sleeper::poll, &source, true});
    }

    unsigned polls_in(unsigned rounds, unsigned round_ns)
    {
        unsigned before = source.polls;
        for (unsigned i = 0; i < rounds; ++i) {
            worker.progress();
            now_ns += round_ns;
        }
        return source.polls - before;
    }
};

TEST_F(a_resting_source, is_polled_once_in_64_rounds_while_another_is_polled_in_each)
{
    polls_in(1000, 40);
    EXPECT_EQ(100u, polls_in(6400, 40));
    EXPECT_EQ(7400u, other.polls);
}

TEST_F(a_resting_source, is_polled_in_every_round_from_when_it_does_not_rest)
{
    polls_in(1000, 40);
    source.rests = false;
    EXPECT_GE(polls_in(100 + 64, 40), 100u);
    source.rests = true;
    polls_in(1000, 40);
    worker.hasten(&source);
    EXPECT_EQ(1u, polls_in(1, 40));
}

TEST_F(a_resting_source, is_polled_in_every_round_where_rounds_are_long)
{
    EXPECT_EQ(100u, polls_in(100, 20'000));
    polls_in(1000, 40);
    polls_in(64, 20'000); // until its turn comes, that shows how long they are
    EXPECT_EQ(100u, polls_in(100, 20'000));
}

} // namespace
