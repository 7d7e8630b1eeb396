// SPDX-License-Identifier: BSD-3-Clause
// What peers need of a process that has closed its endpoints and polls no more, as at the end of a
// job: their own closes wait until it has taken their last messages.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

namespace uct_conformance {
namespace {

class uct_strict_close : public testing::TestWithParam<std::string> {
  protected:
    template <class Condition>
    static bool until(std::initializer_list<entity *> polled, Condition &&holds)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        bool held = false;
        while (!(held = holds()) && std::chrono::steady_clock::now() < end) {
            for (entity *e : polled) {
                uct_worker_progress(e->worker);
            }
        }
        return held;
    }
    static bool send(uct_ep_h ep) { return uct_ep_am_short(ep, 1, 7, nullptr, 0) == UCS_OK; }
    static bool is_flushed(uct_ep_h ep) { return uct_ep_flush(ep, 0, nullptr) == UCS_OK; }
};

TEST_P(uct_strict_close, a_peer_flushes_though_the_closed_side_polls_no_more)
{
    entity a(GetParam(), {});
    entity b(GetParam(), {});
    uct_ep_h from_a = a.connect(b);
    uct_ep_h from_b = b.connect(a);
    ASSERT_TRUE(until({&a, &b}, [&] { return send(from_a); }));
    ASSERT_TRUE(until({&a, &b}, [&] { return send(from_b); }));
    ASSERT_TRUE(until({&a, &b}, [&] { return a.received.size() + b.received.size() == 2; }));
    ASSERT_TRUE(until({&a, &b}, [&] { return is_flushed(from_a) && is_flushed(from_b); }));
    a.destroy(from_a);
    for (unsigned round = 0; round < 3; ++round) {
        ASSERT_TRUE(until({&b}, [&] { return send(from_b); }));
        ASSERT_TRUE(until({&b}, [&] { return is_flushed(from_b); }));
    }
    EXPECT_EQ(a.received.size(), 1u); // its handlers run when it polls
    EXPECT_TRUE(until({&a}, [&] { return a.received.size() == 4; }));
}

// A program may have more than one worker, and wait in one for what it sent from the other to have
// its effect.
TEST_P(uct_strict_close, a_message_leaves_though_its_sender_polls_no_more)
{
    entity a(GetParam(), {});
    entity b(GetParam(), {});
    uct_ep_h from_a = a.connect(b);
    for (size_t sent = 1; sent <= 20; ++sent) {
        ASSERT_TRUE(until({&a, &b}, [&] { return send(from_a); }));
        EXPECT_TRUE(until({&b}, [&] { return b.received.size() == sent; }));
    }
}

INSTANTIATE_TEST_SUITE_P(over, uct_strict_close,
                         testing::Values("cxi", "efa", "opx", "psm3", "worst", "sockets"),
                         core_name);

} // namespace
} // namespace uct_conformance
