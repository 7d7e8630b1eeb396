// SPDX-License-Identifier: BSD-3-Clause
//
// Runs random schedules, each batch in a process of its own. One that fails is made short and
// printed. Environment: UCXLIKE_TEST_SCHEDULES, how many; UCXLIKE_TEST_SEED, the first;
// UCXLIKE_TEST_SCHEDULE, the text of one to run instead; UCXLIKE_TEST_PATIENCE, the seconds after
// which one hangs.
#pragma once

#include "fabtests-ext/common/schedule.h"

#include <atomic>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <thread>

namespace schedule {

using schedules = std::vector<steps>;

inline schedules wanted(const std::vector<unsigned> &kinds)
{
    if (const char *one = getenv("UCXLIKE_TEST_SCHEDULE")) {
        return {read(one)};
    }
    schedules all;
    unsigned first = number("UCXLIKE_TEST_SEED", 1);
    for (unsigned i = 0; i < number("UCXLIKE_TEST_SCHEDULES", 15); ++i) {
        all.push_back(draw(first + i, 60, kinds));
    }
    return all;
}

// Takes turns of its work while it exists, beside the thread that carries a schedule out.
template <class Work>
class second_thread {
  public:
    template <class... Args>
    explicit second_thread(Args &&...args)
        : work_(std::forward<Args>(args)...), thread_([this] {
              while (!over_) {
                  work_.turn();
                  sched_yield();
              }
          })
    {
    }
    ~second_thread()
    {
        over_ = true;
        thread_.join();
    }

  private:
    Work work_;
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

// run(all, done): carries them out one after the other in another process, counts in `done` what it
// has finished, and returns what went wrong, or "".
template <class Run>
void check(const schedules &all, Run &&run)
{
    constexpr size_t size = sizeof(std::atomic<size_t>);
    void *shared = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    auto *done = new (shared) std::atomic<size_t>(0);
    ASSERT_FALSE(all.empty());
    std::string result = run(all, done);
    size_t failing = *done;
    if (!result.empty() && failing < all.size()) {
        auto enough = std::chrono::steady_clock::now() + std::chrono::minutes(2);
        auto fails = [&](const steps &s) {
            return std::chrono::steady_clock::now() < enough && !run(schedules{s}, done).empty();
        };
        steps least = all[failing];
        bool alone = fails(least);
        least = alone ? shrink(least, 200, fails) : least;
        ADD_FAILURE() << result << (alone ? "" : "not alone, but after others: ")
                      << "UCXLIKE_TEST_SCHEDULE='" << write(least) << "'";
    }
    EXPECT_EQ(result, "");
    munmap(shared, size);
}

} // namespace schedule
