// SPDX-License-Identifier: BSD-3-Clause
// Owner and visitor are never inside together, and neither waits for ever.
#include "ucs/biased_lock.h"

#include <gtest/gtest.h>

#include <thread>

namespace {

TEST(biased_lock, owner_and_visitor_exclude_each_other)
{
    ucs::biased_lock lock;
    uint64_t value = 0; // plain: only the lock orders it
    std::atomic<bool> done = false;
    uint64_t visits = 0;
    std::thread visitor([&] {
        while (!done.load()) {
            if (lock.try_visit()) {
                value = value + 1;
                ++visits;
                lock.end_visit();
            }
        }
    });
    // Ends when both had their turns, however the threads are scheduled.
    uint64_t rounds = 0;
    uint64_t seen = 0;
    while (rounds < 200'000 || seen < 100) {
        ucs::biased_lock::owner outer(lock);
        uint64_t before = value;
        {
            ucs::biased_lock::owner inner(lock);
            value = value + 1;
        }
        ASSERT_EQ(before + 1, value);
        ++rounds;
        seen = value - rounds;
    }
    done = true;
    visitor.join();
    EXPECT_EQ(rounds + visits, value);
}

TEST(biased_lock, visitor_is_turned_away_while_the_owner_is_inside)
{
    ucs::biased_lock lock;
    {
        ucs::biased_lock::owner owner(lock);
        bool entered = true;
        std::thread([&] { entered = lock.try_visit(); }).join();
        EXPECT_FALSE(entered);
        EXPECT_TRUE(lock.occupied());
    }
    EXPECT_FALSE(lock.occupied());
    bool entered = false;
    std::thread([&] {
        entered = lock.try_visit();
        if (entered) {
            lock.end_visit();
        }
    }).join();
    EXPECT_TRUE(entered);
}

} // namespace
