// SPDX-License-Identifier: BSD-3-Clause
// A sender that never pauses and a receiver that is slow: queues fill, nothing is lost, doubled,
// damaged or reordered. One test for each form and size.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <algorithm>

namespace uct_conformance {
namespace {

constexpr uint64_t most_messages = 10000, fewest_messages = 1000;
constexpr uint64_t most_bytes = (sanitized ? 32 : 128) << 20;
constexpr int stalls_per_look = 64; // so often the sender finds no room before the receiver looks

class uct_overrun : public uct_test {
  protected:
    void SetUp() override
    {
        uct_test::SetUp();
        if (!IsSkipped()) {
            ep = a().connect(b());
        }
    }

    // Many times what the queues hold.
    static uint64_t messages_of(size_t size)
    {
        return std::clamp<uint64_t>(most_bytes / size, fewest_messages, most_messages);
    }

    // What message number i of a size holds; the number stands in front.
    static std::string body(uint64_t i, size_t size)
    {
        std::string s(size, static_cast<char>(i * 7));
        memcpy(s.data(), &i, sizeof(i));
        return s;
    }

    bool intact(const message &m, uint64_t i, size_t size)
    {
        uint64_t number = 0;
        if (m.data.size() != size || size < sizeof(number)) {
            return false;
        }
        memcpy(&number, m.data.data(), sizeof(number));
        auto last = static_cast<char>(i * 7);
        return number == i && (size == sizeof(number) || m.data.back() == last);
    }

    void check_received(size_t size)
    {
        for (const message &m : b().received) {
            ASSERT_TRUE(intact(m, arrived, size))
                << "message " << arrived << " of " << size << " bytes is lost, doubled or damaged";
            ++arrived;
        }
        b().received.clear();
    }

    // Sends all of them; send returns UCS_OK, UCS_INPROGRESS or a length when it took the message.
    template <class Send>
    void flood(size_t size, Send &&send)
    {
        arrived = 0;
        int stalls = 0;
        const uint64_t count = messages_of(size);
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
        for (uint64_t i = 0; i < count;) {
            auto status = posting([&] { return send(i); });
            if (status >= 0) {
                ++i;
                continue;
            }
            ASSERT_EQ(status, UCS_ERR_NO_RESOURCE);
            ASSERT_LT(std::chrono::steady_clock::now(), end) << "stuck at " << i;
            uct_worker_progress(a().worker);
            if (++stalls % stalls_per_look == 0) {
                uct_worker_progress(b().worker);
                check_received(size);
            }
        }
        ASSERT_TRUE(until([&] {
            check_received(size);
            return arrived == count || HasFatalFailure();
        })) << arrived;
        for (int i = 0; i < 100; ++i) {
            progress();
        }
        EXPECT_TRUE(b().received.empty()) << "more arrived than was sent";
        EXPECT_TRUE(a().errors.empty());
        EXPECT_TRUE(b().errors.empty());
    }

    void flood_short(size_t size)
    {
        flood(size, [&](uint64_t i) {
            std::string s = body(i, size);
            return uct_ep_am_short(ep, 2, i, s.data() + 8, static_cast<unsigned>(size - 8));
        });
    }

    void flood_bcopy(size_t size)
    {
        packed p;
        uint64_t made = UINT64_MAX;
        flood(size, [&](uint64_t i) {
            if (i != made) { // most tries find no room
                p.data = body(i, size);
                made = i;
            }
            return uct_ep_am_bcopy(ep, 2, pack, &p, 0);
        });
    }

    void flood_zcopy(size_t size);

    uct_ep_h ep = nullptr;
    uint64_t arrived = 0;
};

// Memory in flight may not change: as many buffers as there are values of the filling.
void uct_overrun::flood_zcopy(size_t size)
{
    constexpr size_t fillings = 256;
    std::string memory(fillings * size, '\0');
    for (size_t i = 0; i < fillings; ++i) {
        memset(memory.data() + i * size, static_cast<char>(i * 7), size);
    }
    uct_mem_h memh = UCT_MEM_HANDLE_NULL;
    if (a().md_attr.cap.flags & UCT_MD_FLAG_NEED_MEMH) {
        ASSERT_EQ(
            uct_md_mem_reg(a().md, memory.data(), memory.size(), UCT_MD_MEM_ACCESS_ALL, &memh),
            UCS_OK);
    }
    uint64_t called = 0;
    uint64_t expected = 0;
    struct counter : uct_completion_t {
        uint64_t *called;
    };
    std::vector<counter> completions(messages_of(size));
    for (counter &c : completions) {
        static_cast<uct_completion_t &>(c) = {.func =
                                                  [](uct_completion_t *self) {
                                                      auto *done = static_cast<counter *>(self);
                                                      EXPECT_EQ(self->status, UCS_OK);
                                                      EXPECT_FALSE(in_call);
                                                      ++*done->called;
                                                  },
                                              .count = 1,
                                              .status = UCS_OK};
        c.called = &called;
    }
    flood(size, [&](uint64_t i) {
        uct_iov_t iov{memory.data() + i % fillings * size + 8, size - 8, memh, 0, 1};
        ucs_status_t status = uct_ep_am_zcopy(ep, 2, &i, 8, &iov, 1, 0, &completions[i]);
        expected += status == UCS_INPROGRESS;
        return status;
    });
    EXPECT_TRUE(until([&] { return called == expected; })) << called << " of " << expected;
    if (memh != UCT_MEM_HANDLE_NULL) {
        EXPECT_EQ(uct_md_mem_dereg(a().md, memh), UCS_OK);
    }
}

TEST_P(uct_overrun, 199_short)
{
    flood_short(8);
}

TEST_P(uct_overrun, 199_longest_short)
{
    flood_short(a().attr.cap.am.max_short);
}

TEST_P(uct_overrun, 199_bcopy)
{
    flood_bcopy(200);
}

TEST_P(uct_overrun, 199_longest_bcopy)
{
    flood_bcopy(a().attr.cap.am.max_bcopy);
}

TEST_P(uct_overrun, 199_zcopy)
{
    flood_zcopy(200);
}

TEST_P(uct_overrun, 199_longest_zcopy)
{
    flood_zcopy(a().attr.cap.am.max_zcopy);
}

// The receiver looks when neither of them gets on: it has 32 buffers for both until it has seen
// that much arrives.
TEST_P(uct_overrun, a_burst_of_two_senders_arrives)
{
    if (alone()) {
        GTEST_SKIP() << "one interface";
    }
    constexpr uint64_t each = 300;
    entity c(GetParam(), {});
    struct sender {
        entity &home;
        uct_ep_h ep;
        uint8_t id;
        uint64_t sent;
        uint64_t arrived;
    } senders[] = {{a(), ep, 1, 0, 0}, {c, c.connect(b()), 2, 0, 0}};
    auto look = [&] {
        uct_worker_progress(b().worker);
        for (const message &m : b().received) {
            sender &s = senders[m.id - 1];
            ASSERT_TRUE(intact(m, s.arrived++, 64))
                << "message " << s.arrived - 1 << " of " << m.id;
        }
        b().received.clear();
    };
    auto end = std::chrono::steady_clock::now() + patience;
    auto arrived = [&] { return senders[0].arrived + senders[1].arrived; };
    while (arrived() < 2 * each && !HasFatalFailure() && std::chrono::steady_clock::now() < end) {
        bool goes_on = false;
        for (sender &s : senders) {
            std::string text = body(s.sent, 64);
            if (s.sent < each &&
                posting([&] { return uct_ep_am_short(s.ep, s.id, s.sent, text.data() + 8, 56); }) ==
                    UCS_OK) {
                ++s.sent;
                goes_on = true;
            }
            goes_on |= uct_worker_progress(s.home.worker) > 0;
        }
        if (!goes_on) {
            look();
        }
    }
    EXPECT_EQ(arrived(), 2 * each);
    EXPECT_TRUE(a().errors.empty() && b().errors.empty() && c.errors.empty());
}

UCT_INSTANTIATE(uct_overrun);

} // namespace
} // namespace uct_conformance
