// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that wait to send. A round of progress serves as many as there are credits for, tries
// few of those that wait for room of which no event tells, and leaves the others alone.
#include "uct/base/credits.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

namespace {

using namespace uct;

constexpr size_t many = 10000;

// An endpoint that wants one credit, or room that it finds where `room` says so.
struct endpoint : waiter {
    size_t number = 0;
    bool done = false;
};

class uct_credits : public testing::Test {
  protected:
    uct_credits()
    {
        for (size_t i = 0; i < all_.size(); ++i) {
            all_[i].number = i;
        }
    }

    void everyone_lacks(credits *of)
    {
        for (endpoint &e : all_) {
            e.lacks = of;
            waiting_.add(e, false);
        }
    }

    // As an interface does it. An endpoint that finds no room waits again.
    unsigned round()
    {
        served_.clear();
        return waiting_.round([this](waiter &w) { return serve(static_cast<endpoint &>(w)); });
    }

    unsigned serve(endpoint &e)
    {
        served_.push_back(e.number);
        if (!room_(e)) {
            waiting_.add(e, false);
            return 0;
        }
        e.done = true;
        return 1;
    }

    bool take()
    {
        void *one = buffers_.get();
        if (one) {
            taken_.push_back(one);
        }
        return one;
    }

    std::vector<endpoint> all_{many};
    waiters waiting_;
    credits buffers_{{.object_size = 64, .chunk = 4, .max = 8}};
    std::vector<void *> taken_;
    std::function<bool(endpoint &)> room_ = [this](endpoint &) { return take(); };
    std::vector<size_t> served_; // in the last round
};

TEST_F(uct_credits, nobody_is_served_while_there_are_none)
{
    while (take()) {
    }
    EXPECT_EQ(taken_.size(), 8u);
    EXPECT_FALSE(buffers_.available());
    everyone_lacks(&buffers_);
    EXPECT_EQ(round(), 0u);
    EXPECT_TRUE(served_.empty());
    EXPECT_FALSE(waiting_.empty());

    // As many as came back, the first first.
    for (size_t turn = 0; turn < 3; ++turn) {
        for (int i = 0; i < 2; ++i) {
            buffers_.put(taken_.back());
            taken_.pop_back();
        }
        EXPECT_EQ(round(), 2u);
        EXPECT_EQ(served_, (std::vector<size_t>{2 * turn, 2 * turn + 1}));
    }
}

TEST_F(uct_credits, few_try_in_a_round_where_nobody_tells_of_room)
{
    room_ = [](endpoint &) { return false; };
    everyone_lacks(nullptr);
    std::vector<unsigned> tried(many);
    constexpr size_t rounds = many / waiters::most_vain;
    for (size_t i = 0; i < rounds; ++i) {
        EXPECT_EQ(round(), 0u);
        ASSERT_EQ(served_.size(), waiters::most_vain);
        for (size_t number : served_) {
            ++tried[number];
        }
    }
    EXPECT_EQ(tried, std::vector<unsigned>(many, 1)); // by turns
}

TEST_F(uct_credits, all_that_find_room_go_in_one_round)
{
    room_ = [](endpoint &e) { return e.number % 3 != 0 || e.number > 30; };
    everyone_lacks(nullptr);
    EXPECT_EQ(round(), many - 11);
    EXPECT_EQ(served_.size(), many);
    room_ = [](endpoint &) { return true; };
    EXPECT_EQ(round(), 11u);
    EXPECT_TRUE(waiting_.empty());
    EXPECT_TRUE(waiting_.idle());
}

TEST_F(uct_credits, a_parked_one_is_served_when_it_was_woken)
{
    room_ = [](endpoint &) { return true; };
    for (endpoint &e : all_) {
        waiting_.add(e, true);
    }
    EXPECT_TRUE(waiting_.idle());
    EXPECT_FALSE(waiting_.empty());
    EXPECT_EQ(round(), 0u);
    waiting_.wake(all_[77]);
    EXPECT_FALSE(waiting_.idle());
    EXPECT_EQ(round(), 1u);
    EXPECT_EQ(served_, std::vector<size_t>{77});
    for (endpoint &e : all_) {
        waiting_.remove(e);
    }
    EXPECT_TRUE(waiting_.empty());
}

// A program may sleep when each has been tried since something happened, and not before.
TEST_F(uct_credits, it_is_known_when_all_were_tried)
{
    EXPECT_FALSE(waiting_.untried());
    room_ = [](endpoint &) { return false; };
    everyone_lacks(nullptr);
    for (size_t i = 0; i < many / waiters::most_vain; ++i) {
        EXPECT_TRUE(waiting_.untried()) << i;
        round();
    }
    EXPECT_FALSE(waiting_.untried());
    waiting_.news();
    EXPECT_TRUE(waiting_.untried());
    for (size_t i = 0; i < many / waiters::most_vain; ++i) {
        round();
    }
    EXPECT_FALSE(waiting_.untried());

    // Some of those that were tried are gone, so that fewer tries are enough, but not of the
    // others.
    waiting_.news();
    round();
    for (size_t number : served_) {
        waiting_.remove(all_[number]);
    }
    for (size_t i = 1; i < many / waiters::most_vain; ++i) {
        EXPECT_TRUE(waiting_.untried()) << i;
        round();
    }
    EXPECT_FALSE(waiting_.untried());

    waiting_.wake(all_[many - 1]);
    EXPECT_TRUE(waiting_.untried());
    round();
    EXPECT_EQ(served_.front(), many - 1); // before all others
}

TEST_F(uct_credits, credits_that_come_back_between_rounds_are_seen)
{
    while (take()) {
    }
    everyone_lacks(&buffers_);
    EXPECT_EQ(round(), 0u);
    EXPECT_FALSE(waiting_.untried());
    buffers_.put(taken_.back());
    taken_.pop_back();
    EXPECT_TRUE(waiting_.untried());
    EXPECT_EQ(round(), 1u);
    EXPECT_FALSE(waiting_.untried());
}

// One that got its credit and then lacks something else is tried in the next round.
TEST_F(uct_credits, each_is_served_once_in_a_round)
{
    room_ = [](endpoint &e) {
        e.lacks = nullptr;
        return false;
    };
    everyone_lacks(&buffers_);
    EXPECT_EQ(round(), 0u);
    EXPECT_EQ(served_.size(), waiters::most_vain);
}

// Serving one may remove any other, and begin a round of its own.
TEST_F(uct_credits, one_that_is_removed_meanwhile_is_not_served)
{
    everyone_lacks(nullptr);
    room_ = [this](endpoint &e) {
        if (e.number == 0) {
            for (size_t i = 1; i < many; i += 2) {
                waiting_.remove(all_[i]);
            }
            EXPECT_EQ(waiting_.round([](waiter &) { return 1u; }), 0u); // the outer round has them
        }
        return true;
    };
    EXPECT_EQ(round(), many / 2);
    for (size_t i = 0; i < many; ++i) {
        EXPECT_EQ(all_[i].done, i % 2 == 0) << i;
    }
    EXPECT_TRUE(waiting_.empty());
}

// A pool that cannot grow says that there are some, and gives none.
TEST_F(uct_credits, without_memory_few_try)
{
    room_ = [](endpoint &) { return false; };
    EXPECT_TRUE(buffers_.available());
    everyone_lacks(&buffers_);
    EXPECT_EQ(round(), 0u);
    EXPECT_EQ(served_.size(), waiters::most_vain);
}

} // namespace
