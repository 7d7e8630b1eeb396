// SPDX-License-Identifier: BSD-3-Clause
//
// Random schedules of two RDM endpoints against a model of what fi_msg(3), fi_tagged(3) and
// fi_rma(3) promise: messages of each kind and size, receives with masks and short buffers, peek,
// claim, discard, cancel, puts and gets, messages to a group that is left and joined again, with
// receive contexts of their own and shared ones, and with a second thread that accesses memory
// of its own.
#include "fabtests-ext/common/schedule_runner.h"
#include "fabtests-ext/common/transports.h"
#include "fabtests-ext/conformance/common/rdm_model_beside.h"

#include <optional>

using namespace rdm_model;

namespace {

enum class way { plain, shared, two_threads };

using variant = std::tuple<const char *, way>;

std::string run(const variant &v, const schedule::schedules &all, std::atomic<size_t> *done)
{
    return run_pair(
        [&](partner &) {
            auto [tls, how] = v;
            setenv("FI_UCXLIKE_TLS", tls, 1);
            side a(how == way::shared), b(how == way::shared);
            a.know(b);
            b.know(a);
            side::meet(a, b);
            std::optional<schedule::second_thread<beside>> other;
            if (how == way::two_threads) {
                other.emplace(a, b);
            }
            for (const schedule::steps &steps : all) {
                schedule::carry_out(steps, a, b);
                ++*done;
            }
        },
        [](partner &) {}, 300 + static_cast<int>(all.size() / 20));
}

class prov_schedule_test : public testing::TestWithParam<variant> {};

TEST_P(prov_schedule_test, does_what_the_model_says)
{
    schedule::check(schedule::wanted(kinds), [](const auto &all, std::atomic<size_t> *done) {
        return run(GetParam(), all, done);
    });
}

std::string name_of(const testing::TestParamInfo<variant> &info)
{
    auto [tls, how] = info.param;
    const char *names[] = {"", "_shared", "_two_threads"};
    return prov_test::first_transport(tls) + names[static_cast<int>(how)];
}

INSTANTIATE_TEST_SUITE_P(, prov_schedule_test,
                         testing::Combine(testing::ValuesIn(prov_test::transports()),
                                          testing::Values(way::plain, way::shared,
                                                          way::two_threads)),
                         name_of);

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
