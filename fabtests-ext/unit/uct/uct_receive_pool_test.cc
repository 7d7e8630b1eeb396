// SPDX-License-Identifier: BSD-3-Clause
// Receive buffers of the interfaces of a worker: what they have in common.
#include "uct/ofi/core/receive_pool.h"

#include "uct/ofi/core/iface.h"

#include <gtest/gtest.h>

namespace uct::ofi {
namespace {

constexpr unsigned total = receive_budget::total;
constexpr unsigned first = receive_budget::first;

struct uct_receive_budget : testing::Test {
    uct::worker worker{UCS_THREAD_MODE_SINGLE};
    std::shared_ptr<receive_budget> budget = receive_budget::of(worker);

    // As much as it ever gets.
    void take_all(receive_share &s)
    {
        while (budget->more(s) > 0) {
        }
    }
};

TEST_F(uct_receive_budget, is_one_of_a_worker)
{
    EXPECT_EQ(receive_budget::of(worker), budget);
    uct::worker other{UCS_THREAD_MODE_SINGLE};
    EXPECT_NE(receive_budget::of(other), budget);
}

TEST_F(uct_receive_budget, one_interface_begins_with_few_and_gets_all)
{
    receive_share s{.most = total};
    budget->join(s);
    EXPECT_EQ(s.kept, first);
    EXPECT_EQ(budget->more(s), first); // twice as many
    take_all(s);
    EXPECT_EQ(s.kept, total);
    budget->leave(s);
}

TEST_F(uct_receive_budget, one_that_wants_less_gets_no_more)
{
    receive_share few{.most = 16};
    budget->join(few);
    EXPECT_EQ(few.kept, 16u);
    EXPECT_EQ(budget->more(few), 0u);
    receive_share some{.most = 40};
    budget->join(some);
    EXPECT_EQ(budget->more(some), 8u);
    budget->leave(few);
    budget->leave(some);
}

TEST_F(uct_receive_budget, four_interfaces_have_little_more_than_one)
{
    receive_share s[4];
    for (receive_share &share : s) {
        share.most = total;
        budget->join(share);
    }
    take_all(s[0]);
    EXPECT_EQ(s[0].kept, total - 3 * first);
    EXPECT_EQ(s[1].kept + s[2].kept + s[3].kept, 3 * first);
    for (receive_share &share : s) {
        budget->leave(share);
    }
}

// An interface that had all gives back what is above its part, one for each that it would post
// again.
TEST_F(uct_receive_budget, an_interface_gets_its_part_though_another_has_all)
{
    receive_share greedy{.most = total};
    budget->join(greedy);
    take_all(greedy);
    EXPECT_FALSE(greedy.has_surplus);
    receive_share late{.most = total};
    budget->join(late);
    take_all(late);
    EXPECT_EQ(late.kept, total / 2);
    EXPECT_TRUE(greedy.has_surplus);
    EXPECT_FALSE(late.has_surplus);
    while (budget->shrink(greedy)) {
    }
    EXPECT_EQ(greedy.kept, total / 2);
    EXPECT_FALSE(greedy.has_surplus);
    budget->leave(late);
    take_all(greedy);
    EXPECT_EQ(greedy.kept, total);
    budget->leave(greedy);
}

TEST_F(uct_receive_budget, one_that_joins_shows_a_surplus)
{
    receive_share greedy{.most = total};
    budget->join(greedy);
    take_all(greedy);
    receive_share late{.most = total};
    budget->join(late);
    EXPECT_TRUE(greedy.has_surplus);
    budget->leave(greedy);
    EXPECT_FALSE(greedy.has_surplus);
    budget->leave(late);
}

TEST(uct_receive_pool, is_one_of_a_worker_and_a_shape)
{
    uct::worker worker{UCS_THREAD_MODE_SINGLE};
    receive_pool::shape s{.domain = nullptr,
                          .headroom = 16,
                          .length = 1000,
                          .prefix = 0,
                          .align = 0,
                          .align_offset = 0};
    auto pool = receive_pool::of(worker, s);
    EXPECT_EQ(receive_pool::of(worker, s), pool);
    receive_pool::shape wider = s;
    wider.length = 2000;
    EXPECT_NE(receive_pool::of(worker, wider), pool);
    uct::worker other{UCS_THREAD_MODE_SINGLE};
    EXPECT_NE(receive_pool::of(other, s), pool);
    pool.reset();
    EXPECT_EQ(receive_pool::of(worker, s)->used(), 0u); // a new one
}

// What a program keeps is not taken from it.
TEST(uct_receive_pool, takes_back_what_an_interface_had_at_its_core)
{
    receive_pool pool({.domain = nullptr,
                       .headroom = 0,
                       .length = 100,
                       .prefix = 0,
                       .align = 64,
                       .align_offset = 8});
    char one, other; // only their addresses count
    auto &mine = reinterpret_cast<iface &>(one);
    auto &theirs = reinterpret_cast<iface &>(other);
    receive_op *kept = pool.get(mine);
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ((reinterpret_cast<uintptr_t>(kept->payload) + 8) % 64, 0u);
    kept->user = nullptr;
    for (int i = 0; i < 5; ++i) {
        EXPECT_NE(pool.get(mine), nullptr);
        EXPECT_NE(pool.get(theirs), nullptr);
    }
    EXPECT_EQ(pool.used(), 11u);
    pool.take_back(mine);
    EXPECT_EQ(pool.used(), 6u);
    pool.take_back(theirs);
    EXPECT_EQ(pool.used(), 1u);
    kept->release.cb(&kept->release, nullptr);
    EXPECT_EQ(pool.used(), 0u);
}

} // namespace
} // namespace uct::ofi
