// SPDX-License-Identifier: BSD-3-Clause
// Receive buffers of the interfaces of a worker: how many there are, and what they have in common.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

#include "ucs/log.h"
#include "uct/ofi/core/iface.h"

namespace uct_conformance {
namespace {

constexpr size_t first = uct::ofi::receive_budget::first;
constexpr size_t total = uct::ofi::receive_budget::total;

// One more interface of the entity's worker.
struct beside : one_more_interface {
    size_t received = 0;

    explicit beside(const entity &home) : one_more_interface(home, home.worker)
    {
        auto count = [](void *arg, void *, size_t, unsigned) {
            ++static_cast<beside *>(arg)->received;
            return UCS_OK;
        };
        EXPECT_EQ(uct_iface_set_am_handler(iface, 1, count, this, 0), UCS_OK);
    }
};

const uct::ofi::iface &of(uct_iface_h iface)
{
    return static_cast<const uct::ofi::iface &>(*iface);
}

// A core that keeps no order has fewer messages under way than that many buffers are for.
constexpr size_t much = total / 2;

class uct_strict_receives : public testing::TestWithParam<std::string> {
  protected:
    uct_strict_receives() : a(GetParam(), {}), b(GetParam(), {}) {}

    template <class Condition>
    bool until(Condition &&holds)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        bool held = false;
        while (!(held = holds()) && std::chrono::steady_clock::now() < end) {
            uct_worker_progress(a.worker);
            uct_worker_progress(b.worker);
        }
        return held;
    }
    // Messages that the core of the receiver has taken before it looks at the first one.
    template <class Count>
    bool burst(uct_ep_h to_ep, uct_iface_h to, Count &&received)
    {
        constexpr size_t count = 80; // many more at a time, and libfabric's sockets stalls
        const size_t before = received();
        for (size_t i = 0; i < count; ++i) {
            if (!until([&] { return uct_ep_am_short(to_ep, 1, i, nullptr, 0) == UCS_OK; })) {
                return false;
            }
        }
        for (size_t i = 0; i < 4 * count; ++i) {
            uct_worker_progress(a.worker);
            static_cast<uct::ofi::iface *>(to)->move_core();
        }
        return until([&] { return received() == before + count; });
    }
    // The same, until something is so.
    template <class Count, class Condition>
    bool bursts_until(uct_ep_h to_ep, uct_iface_h to, Count &&received, Condition &&holds)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (!holds() && std::chrono::steady_clock::now() < end && burst(to_ep, to, received)) {
        }
        return holds();
    }

    entity a;
    entity b;
};

TEST_P(uct_strict_receives, are_few_until_much_arrives)
{
    EXPECT_EQ(of(b.iface).receives_kept(), first);
    EXPECT_LE(of(b.iface).receive_room(), 1200u << 10);
    uct_ep_h ep = a.connect(b);
    auto received = [&] { return b.received.size(); };
    EXPECT_TRUE(
        bursts_until(ep, b.iface, received, [&] { return of(b.iface).receives_kept() >= much; }));
    EXPECT_TRUE(until([&] { return of(b.iface).receives_used() == of(b.iface).receives_kept(); }));
    EXPECT_EQ(of(a.iface).receives_kept(), first); // it only sends
}

TEST_P(uct_strict_receives, are_as_many_as_asked_for_at_once)
{
    entity c(GetParam(), {.rx_queue_len = "100"});
    EXPECT_EQ(of(c.iface).receives_kept(), 100u);
}

class uct_strict_receives_shared : public uct_strict_receives {};

TEST_P(uct_strict_receives_shared, are_bounded_together)
{
    uct_ep_h ep = a.connect(b);
    auto received = [&] { return b.received.size(); };
    EXPECT_TRUE(
        bursts_until(ep, b.iface, received, [&] { return of(b.iface).receives_kept() == total; }));
    beside c(b);
    auto kept = [&] { return of(b.iface).receives_kept() + of(c.iface).receives_kept(); };
    EXPECT_EQ(kept(), total + first);
    // The one that had all gives back what is above its part.
    EXPECT_TRUE(bursts_until(ep, b.iface, received, [&] { return kept() == total; }));
    uct_ep_h to_c = a.connect(c.where);
    EXPECT_TRUE(bursts_until(
        to_c, c.iface, [&] { return c.received; },
        [&] { return of(c.iface).receives_kept() == total / 2; }));
    EXPECT_TRUE(bursts_until(ep, b.iface, received, [&] { return kept() == total; }));
    EXPECT_EQ(of(b.iface).receives_kept(), total / 2);
}

TEST_P(uct_strict_receives_shared, have_no_part_for_an_interface_whose_messages_share_buffers)
{
    sharing on(GetParam());
    beside c(b);
    EXPECT_EQ(of(c.iface).receives_kept(), 0u);
    uct_ep_h to_c = a.connect(c.where);
    EXPECT_TRUE(burst(to_c, c.iface, [&] { return c.received; }));
    uct_ep_h ep = a.connect(b);
    auto received = [&] { return b.received.size(); };
    EXPECT_TRUE(
        bursts_until(ep, b.iface, received, [&] { return of(b.iface).receives_kept() == total; }));
    EXPECT_EQ(of(c.iface).receives_kept(), 0u);
}

size_t errors;

struct counted_errors {
    counted_errors()
    {
        errors = 0;
        ucs::log::set_sink([](ucs::log::level level, const char *, int, const char *) {
            errors += level == ucs::log::level::error;
        });
    }
    counted_errors(const counted_errors &) = delete;
    ~counted_errors() { ucs::log::set_sink(nullptr); }
};

// From a peer with larger segments. One that finds room in a shared buffer is none.
TEST_P(uct_strict_receives_shared, messages_that_are_too_long_are_reported_and_the_others_arrive)
{
    // A thread of libfabric's sockets may leave messages for a buffer that was posted when they had
    // come, until another one comes.
    environment polled("FI_STRICT_DESCRIPTOR", "0");
    constexpr size_t count = 24, length = 3000;
    auto pack = [](void *to, void *arg) {
        memset(to, 'a' + static_cast<int>(*static_cast<size_t *>(arg)), length);
        return length;
    };
    for (const char *share : {"n", "y"}) {
        sharing set(GetParam(), share);
        counted_errors counted;
        entity small(GetParam(), {.seg_size = "1024"});
        uct_ep_h ep = a.connect(small);
        auto holds = [&](auto &&condition) {
            return until([&] { return uct_worker_progress(small.worker), condition(); });
        };
        for (size_t i = 0; i < count; ++i) {
            EXPECT_TRUE(until([&] { return uct_ep_am_bcopy(ep, 1, pack, &i, 0) == length; }));
        }
        for (size_t i = 0; i < 8 * count; ++i) {
            uct_worker_progress(a.worker);
            static_cast<uct::ofi::iface *>(small.iface)->move_core();
        }
        EXPECT_TRUE(holds([&] { return small.received.size() + errors == count; })) << errors;
        EXPECT_GT(errors, 0u);
        EXPECT_EQ(errors == count, *share == 'n');
        char last = 0;
        for (const message &m : small.received) {
            EXPECT_GT(m.data[0], last) << "doubled";
            last = m.data[0];
            EXPECT_EQ(m.data, std::string(length, last));
        }
        EXPECT_TRUE(holds([&] { return uct_ep_am_short(ep, 2, 0, nullptr, 0) == UCS_OK; }));
        EXPECT_TRUE(holds([&] { return !small.received.empty() && small.received.back().id == 2; }))
            << share << " " << errors;
        a.destroy(ep);
    }
}

// What one of them closes with, the other may post.
TEST_P(uct_strict_receives, of_interfaces_of_a_worker_are_one_pool)
{
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(until([&] { return of(b.iface).receives_used() == first; }));
        beside c(b);
        EXPECT_TRUE(until([&] { return of(b.iface).receives_used() == 2 * first; }));
        EXPECT_EQ(of(c.iface).receives_used(), 2 * first);
        uct_ep_h to_c = a.connect(c.where);
        EXPECT_TRUE(burst(to_c, c.iface, [&] { return c.received; }));
        a.destroy(to_c);
    }
    EXPECT_TRUE(until([&] { return of(b.iface).receives_used() == first; }));
}

// A peer's last messages are taken though the program polls no more.
TEST_P(uct_strict_receives, are_all_posted_when_an_endpoint_was_closed)
{
    uct_ep_h ep = b.connect(a);
    ASSERT_TRUE(until([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0) == UCS_OK; }));
    ASSERT_TRUE(until([&] { return uct_ep_flush(ep, 0, nullptr) == UCS_OK; }));
    b.destroy(ep);
    bool needs_polling = GetParam() == "opx" || GetParam() == "worst";
    EXPECT_EQ(of(b.iface).receives_kept(), needs_polling ? total : first);
}

INSTANTIATE_TEST_SUITE_P(over, uct_strict_receives,
                         testing::Values("cxi", "efa", "opx", "psm3", "worst"), core_name);
INSTANTIATE_TEST_SUITE_P(over, uct_strict_receives_shared, testing::Values("cxi", "efa", "psm3"),
                         core_name);

} // namespace
} // namespace uct_conformance
