// SPDX-License-Identifier: BSD-3-Clause
// The lock that is nothing without threads: it excludes, it nests, and off it does not wait.
#include "ucs/lock.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace {

TEST(opt_lock, threads_exclude_each_other_and_may_nest)
{
    ucs::opt_lock lock(true);
    uint64_t value = 0; // plain: only the lock orders it
    constexpr uint64_t rounds = 20'000;
    constexpr unsigned threads = 4;
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i) {
        all.emplace_back([&] {
            for (uint64_t n = 0; n < rounds; ++n) {
                ucs::opt_guard outer(lock);
                uint64_t before = value;
                {
                    ucs::opt_guard inner(lock);
                    value = value + 1;
                }
                if (value != before + 1) {
                    ADD_FAILURE() << "another thread was inside";
                    return;
                }
            }
        });
    }
    for (std::thread &t : all) {
        t.join();
    }
    EXPECT_EQ(threads * rounds, value);
}

TEST(opt_lock, is_tried_without_waiting_and_nests_so_too)
{
    ucs::opt_lock lock(true);
    auto tried_elsewhere = [&] {
        bool taken = false;
        std::thread([&] {
            taken = lock.try_lock();
            if (taken) {
                lock.unlock();
            }
        }).join();
        return taken;
    };
    ASSERT_TRUE(lock.try_lock());
    ASSERT_TRUE(lock.try_lock());
    EXPECT_FALSE(tried_elsewhere());
    lock.unlock();
    EXPECT_FALSE(tried_elsewhere());
    lock.unlock();
    EXPECT_TRUE(tried_elsewhere());
    ucs::opt_lock off(false);
    ucs::opt_guard here(off);
    EXPECT_TRUE(off.try_lock());
}

TEST(opt_lock, off_it_keeps_nobody_out)
{
    ucs::opt_lock lock(false);
    ucs::opt_guard here(lock);
    bool entered = false;
    std::thread([&] {
        ucs::opt_guard there(lock);
        entered = true;
    }).join();
    EXPECT_TRUE(entered);
}

} // namespace
