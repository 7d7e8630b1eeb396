// SPDX-License-Identifier: BSD-3-Clause
//
// Random schedules of two RDM endpoints against a model of what fi_msg(3), fi_tagged(3) and
// fi_rma(3) promise: messages of each kind and size, receives with masks and short buffers, peek,
// claim, discard, cancel, puts and gets, with receive contexts of their own and shared ones. The
// model says which receive each message completes and what it brings; it is exact because messages
// of one endpoint arrive in order, and what depends on the moment waits until all that was sent has
// arrived.
//
// A schedule that fails is made short and printed. Environment: UCXLIKE_TEST_SCHEDULES, how many;
// UCXLIKE_TEST_SEED, the first; UCXLIKE_TEST_SCHEDULE, the text of one to run instead.
#include "fabtests-ext/conformance/common/rdm_model.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

using namespace rdm_model;

namespace {

struct variant {
    const char *name, *tls;
    bool shared = false;
};

void PrintTo(const variant &v, std::ostream *out)
{
    *out << v.name;
}

using schedules = std::vector<schedule::steps>;

// In a process of its own. `current`: where it says which it is at.
std::string run(const variant &v, const schedules &all, std::atomic<size_t> *current)
{
    return run_pair(
        [&](partner &) {
            setenv("FI_UCXLIKE_TLS", v.tls, 1);
            side a(v.shared), b(v.shared);
            a.know(b);
            b.know(a);
            for (const schedule::steps &steps : all) {
                for (const schedule::step &s : steps) {
                    (s.with.back() % 2 ? a : b).carry_out(s);
                }
                a.drain();
                b.drain();
                a.finish();
                b.finish();
                ++*current;
            }
        },
        [](partner &) {});
}

schedules wanted()
{
    if (const char *one = getenv("UCXLIKE_TEST_SCHEDULE")) {
        return {schedule::read(one)};
    }
    schedules all;
    unsigned first = number("UCXLIKE_TEST_SEED", 1);
    for (unsigned i = 0; i < number("UCXLIKE_TEST_SCHEDULES", 40); ++i) {
        all.push_back(schedule::draw(first + i, 60, kinds));
    }
    return all;
}

class prov_schedule_test : public testing::TestWithParam<variant> {};

TEST_P(prov_schedule_test, does_what_the_model_says)
{
    constexpr size_t size = sizeof(std::atomic<size_t>);
    void *shared = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, shared);
    auto *current = new (shared) std::atomic<size_t>(0);
    schedules all = wanted();
    ASSERT_FALSE(all.empty());
    std::string result = run(GetParam(), all, current);
    size_t failing = *current;
    if (!result.empty() && failing < all.size()) {
        auto enough = std::chrono::steady_clock::now() + 2 * patience; // to make it short
        auto fails = [&](const schedule::steps &s) {
            return std::chrono::steady_clock::now() < enough &&
                   !run(GetParam(), {s}, current).empty();
        };
        schedule::steps least = all[failing];
        bool alone = fails(least);
        least = alone ? schedule::shrink(least, 200, fails) : least;
        ADD_FAILURE() << result << (alone ? "" : "not alone, but after others: ")
                      << "UCXLIKE_TEST_SCHEDULE='" << schedule::write(least) << "'";
    }
    EXPECT_EQ(result, "");
    munmap(shared, size);
}

INSTANTIATE_TEST_SUITE_P(, prov_schedule_test,
                         testing::Values(variant{"sm", "\\sm,tcp"},
                                         variant{"ofi_shm", "ofi_shm,tcp"}, variant{"tcp", "tcp"},
                                         variant{"srx_sm", "\\sm,tcp", true},
                                         variant{"srx_tcp", "tcp", true}),
                         [](const auto &i) { return std::string(i.param.name); });

TEST(prov_schedule_steps, what_fails_gets_short)
{
    schedule::steps all = schedule::draw(1, 200, kinds);
    auto has = [](const schedule::steps &s, unsigned what) {
        return std::count_if(s.begin(), s.end(), [&](const auto &i) { return i.what == what; });
    };
    auto fails = [&](const schedule::steps &s) { return has(s, peek) >= 2 && has(s, cancel) >= 1; };
    ASSERT_TRUE(fails(all));
    schedule::steps least = schedule::shrink(all, 10'000, fails);
    EXPECT_EQ(3u, least.size());
    EXPECT_TRUE(fails(least));
    EXPECT_EQ(least, schedule::read(schedule::write(least)));
    EXPECT_EQ(1u, schedule::read("1.2.3.4.5 6.7").size());
}

} // namespace
