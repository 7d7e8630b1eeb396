// SPDX-License-Identifier: BSD-3-Clause
// Which sources a worker polls: slow ones ever less often while a fast one has traffic, but at once
// when they have something to do.
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

} // namespace
