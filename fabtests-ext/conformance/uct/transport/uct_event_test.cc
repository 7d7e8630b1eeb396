// SPDX-License-Identifier: BSD-3-Clause
// Sleeping on an interface's descriptor: no wake-up is lost, and a busy interface does not arm.
#include "fabtests-ext/common/epoll_members.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <atomic>
#include <poll.h>
#include <string>
#include <thread>

namespace uct_conformance {
namespace {

class uct_event : public uct_test {
  protected:
    void SetUp() override
    {
        uct_test::SetUp();
        if (!IsSkipped() && !(a().attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD)) {
            GTEST_SKIP() << "no descriptor";
        }
    }

    // Progresses until it arms, then sleeps; false when it slept for nothing.
    static bool sleep(entity &e)
    {
        int fd = -1;
        EXPECT_EQ(uct_iface_event_fd_get(e.iface, &fd), UCS_OK);
        if (uct_worker_progress(e.worker) > 0) {
            return true;
        }
        ucs_status_t status = uct_iface_event_arm(e.iface, UCT_EVENT_RECV | UCT_EVENT_SEND_COMP);
        if (status == UCS_ERR_BUSY) {
            return true;
        }
        EXPECT_EQ(status, UCS_OK);
        pollfd p{fd, POLLIN, 0};
        return poll(&p, 1, patience_ms) == 1;
    }
};

TEST_P(uct_event, 210_arm_is_busy_with_a_message_waiting)
{
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    int fd = -1;
    ASSERT_EQ(uct_iface_event_fd_get(b().iface, &fd), UCS_OK);
    ucs_status_t status = uct_iface_event_arm(b().iface, UCT_EVENT_RECV);
    if (status == UCS_OK) {
        // On its way still: then the descriptor tells.
        pollfd p{fd, POLLIN, 0};
        EXPECT_EQ(poll(&p, 1, patience_ms), 1);
    } else {
        EXPECT_EQ(status, UCS_ERR_BUSY);
    }
    EXPECT_TRUE(until([&] { return b().received.size() == 2; }));
}

TEST_P(uct_event, 210_two_threads_that_sleep_wake_each_other)
{
    if (alone()) {
        GTEST_SKIP();
    }
    uct_ep_h there = a().connect(b());
    uct_ep_h back = b().connect(a());
    ASSERT_EQ(post([&] { return uct_ep_am_short(there, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_EQ(post([&] { return uct_ep_am_short(back, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return a().received.size() == 1 && b().received.size() == 1; }));
    constexpr size_t count = 2000;
    std::atomic<bool> failed = false;
    auto turn = [&](entity &self, uct_ep_h ep, bool first) {
        size_t received = 1;
        for (size_t i = 0; i < count && !failed; ++i) {
            if (first) {
                while (uct_ep_am_short(ep, 1, i, nullptr, 0) == UCS_ERR_NO_RESOURCE) {
                    uct_worker_progress(self.worker);
                }
            }
            while (self.received.size() == received && !failed) {
                if (!sleep(self)) {
                    failed = true;
                }
            }
            received = self.received.size();
            if (!first) {
                while (uct_ep_am_short(ep, 1, i, nullptr, 0) == UCS_ERR_NO_RESOURCE) {
                    uct_worker_progress(self.worker);
                }
            }
        }
    };
    std::thread other([&] { turn(b(), back, false); });
    turn(a(), there, true);
    other.join();
    EXPECT_FALSE(failed) << "a wake-up was lost";
}

TEST_P(uct_event, 210_who_has_read_everything_sleeps)
{
    if (alone()) {
        GTEST_SKIP();
    }
    uct_ep_h ep = a().connect(b());
    int fd = -1;
    ASSERT_EQ(uct_iface_event_fd_get(b().iface, &fd), UCS_OK);
    for (size_t round = 1; round <= 3; ++round) {
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        ASSERT_TRUE(until([&] { return b().received.size() == round; }));
        EXPECT_TRUE(until([&] {
            pollfd p{fd, POLLIN, 0};
            return uct_iface_event_arm(b().iface, UCT_EVENT_RECV) == UCS_OK && poll(&p, 1, 0) == 0;
        }));
    }
}

// An interface may treat a program that polls all the time differently: sleeping again is as good
// as before.
TEST_P(uct_event, 210_who_has_polled_for_long_is_woken)
{
    if (alone()) {
        GTEST_SKIP();
    }
    uct_ep_h ep = a().connect(b());
    int fd = -1;
    ASSERT_EQ(uct_iface_event_fd_get(b().iface, &fd), UCS_OK);
    for (size_t round = 1; round <= 3; ++round) {
        for (int i = 0; i < 2000; ++i) {
            uct_worker_progress(a().worker);
            uct_worker_progress(b().worker);
        }
        while (uct_iface_event_arm(b().iface, UCT_EVENT_RECV) == UCS_ERR_BUSY) {
            uct_worker_progress(b().worker);
        }
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        uct_worker_progress(a().worker);
        pollfd p{fd, POLLIN, 0};
        EXPECT_EQ(poll(&p, 1, patience_ms), 1);
        EXPECT_TRUE(until([&] { return b().received.size() == round; }));
    }
}

TEST_P(uct_event, 210_an_arm_holds_however_often_nothing_was_found)
{
    if (alone()) {
        GTEST_SKIP();
    }
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    int fd = -1;
    ASSERT_EQ(uct_iface_event_fd_get(b().iface, &fd), UCS_OK);
    for (int since_armed = 0; since_armed < 2000; ++since_armed) {
        if (uct_worker_progress(b().worker) > 0) {
            since_armed = 0;
        }
        while (since_armed == 0 && uct_iface_event_arm(b().iface, UCT_EVENT_RECV) == UCS_ERR_BUSY) {
            uct_worker_progress(b().worker);
        }
    }
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    uct_worker_progress(a().worker);
    pollfd p{fd, POLLIN, 0};
    EXPECT_EQ(poll(&p, 1, patience_ms), 1);
    EXPECT_TRUE(until([&] { return b().received.size() == 2; }));
}

// Each set of descriptors above a socket costs its senders.
TEST_P(uct_event, 210_who_only_polls_is_in_no_set)
{
    if (alone()) {
        GTEST_SKIP();
    }
    int fd = -1;
    ASSERT_EQ(uct_iface_event_fd_get(b().iface, &fd), UCS_OK);
    size_t at_first = epoll_members(fd).size();
    if (at_first == 0) {
        GTEST_SKIP() << "the descriptor is no set";
    }
    uct_ep_h ep = a().connect(b());
    for (size_t round = 1; round <= 2; ++round) {
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        ASSERT_TRUE(until([&] { return b().received.size() == round; }));
        for (int i = 0; i < 2000; ++i) {
            uct_worker_progress(b().worker);
        }
        EXPECT_EQ(epoll_members(fd).size(), 0u);
        EXPECT_EQ(uct_iface_event_arm(b().iface, UCT_EVENT_RECV), UCS_OK);
        EXPECT_EQ(epoll_members(fd).size(), at_first);
    }
}

// The callback comes once for each arming, as often as that is done.
TEST_P(uct_event, 211_the_callback_can_be_armed_again)
{
    if (!(a().attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_ASYNC_CB)) {
        GTEST_SKIP() << "no callback";
    }
    std::atomic<size_t> calls = 0;
    open({.on_event = [](void *arg, unsigned) { ++*static_cast<std::atomic<size_t> *>(arg); },
          .on_event_arg = &calls});
    // A connection that is still being made has events of its own, which progress takes away.
    uct_ep_h ep = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
    ASSERT_TRUE(until([&] { return b().received.size() == 1; }));
    for (size_t round = 1; round <= 4; ++round) {
        ucs_status_t status = UCS_ERR_BUSY;
        ASSERT_TRUE(until([&] {
            status = uct_iface_event_arm(b().iface, UCT_EVENT_RECV);
            return status != UCS_ERR_BUSY;
        }));
        ASSERT_EQ(status, UCS_OK) << round;
        size_t before = calls;
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        auto end = std::chrono::steady_clock::now() + patience;
        while (calls == before && std::chrono::steady_clock::now() < end) {
            uct_worker_progress(a().worker);
        }
        ASSERT_GT(calls, before) << round;
        ASSERT_TRUE(until([&] { return b().received.size() == round + 1; }));
    }
}

UCT_INSTANTIATE(uct_event);

} // namespace
} // namespace uct_conformance
