// SPDX-License-Identifier: BSD-3-Clause
// A peer that does not call in: what goes to others goes on.
#include "uct_entity.h"

namespace uct_conformance {
namespace {

class uct_stopped_peer : public uct_test {
  protected:
    ssize_t send(uct_ep_h ep, uint8_t id, const std::string &data)
    {
        packed p{data};
        return post([&] { return uct_ep_am_bcopy(ep, id, pack, &p, 0); });
    }
};

TEST_P(uct_stopped_peer, a_peer_that_does_not_read_holds_up_nobody_else)
{
    if (alone()) {
        GTEST_SKIP() << "an endpoint reaches its own worker alone";
    }
    entity sleeper(GetParam(), {});
    uct_ep_h to_sleeper = a().connect(sleeper);
    uct_ep_h ep = a().connect(b());
    auto reads = [&] {
        uct_worker_progress(sleeper.worker);
        return !sleeper.received.empty();
    };
    ASSERT_TRUE(
        until([&] { return reads() || (uct_ep_am_short(to_sleeper, 1, 1, nullptr, 0), false); }));
    sleeper.received.clear();

    std::string data = pattern(a().attr.cap.am.max_bcopy, 1);
    ASSERT_EQ(send(to_sleeper, 2, data), static_cast<ssize_t>(data.size()));
    ASSERT_EQ(send(ep, 2, data), static_cast<ssize_t>(data.size()));
    EXPECT_TRUE(until([&] { return !b().received.empty(); }));
    EXPECT_TRUE(until([&] { return uct_ep_flush(ep, 0, nullptr) == UCS_OK; }));
    EXPECT_TRUE(until([&] { return reads() && sleeper.received.back().id == 2; }));
    EXPECT_EQ(sleeper.received.back().data, data);
}

UCT_INSTANTIATE(uct_stopped_peer);

} // namespace
} // namespace uct_conformance
