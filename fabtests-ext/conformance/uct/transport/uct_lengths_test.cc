// SPDX-License-Identifier: BSD-3-Clause
// Messages of all lengths, up to the longest that the interface offers when it is asked for more.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <random>

namespace uct_conformance {
namespace {

class uct_lengths : public uct_test {
  protected:
    ssize_t send(uct_ep_h ep, uint8_t id, const std::string &data)
    {
        packed p{data};
        return post([&] { return uct_ep_am_bcopy(ep, id, pack, &p, 0); });
    }
};

// Over two endpoints to one peer, which reads when there is no more room.
TEST_P(uct_lengths, messages_of_any_length_arrive_whole_and_in_order)
{
    open({.seg_size = "20k"});
    size_t most = a().attr.cap.am.max_bcopy;
    uct_ep_h eps[] = {a().connect(b()), a().connect(b())};
    std::vector<std::string> expected[2];
    std::minstd_rand random(7);
    for (unsigned i = 0; i < 600; ++i) {
        unsigned which = random() % 2;
        std::string data = pattern(1 + random() % most, i);
        ASSERT_EQ(send(eps[which], static_cast<uint8_t>(which), data),
                  static_cast<ssize_t>(data.size()));
        expected[which].push_back(std::move(data));
    }
    ASSERT_TRUE(until([&] { return b().received.size() == 600; })) << b().received.size();
    size_t next[2] = {0, 0};
    for (const message &m : b().received) {
        ASSERT_EQ(m.data, expected[m.id][next[m.id]++]);
    }
}

TEST_P(uct_lengths, a_long_message_may_be_kept)
{
    open({.rx_headroom = 24, .am_alignment = 256, .am_align_offset = 24, .seg_size = "20k"});
    b().keep = true;
    std::string data = pattern(std::min<size_t>(20000, a().attr.cap.am.max_bcopy), 3);
    uct_ep_h ep = a().connect(b());
    for (unsigned i = 0; i < 100; ++i) {
        ASSERT_EQ(send(ep, 1, data), static_cast<ssize_t>(data.size()));
    }
    ASSERT_TRUE(until([&] { return b().received.size() == 100; }));
    EXPECT_EQ((reinterpret_cast<uintptr_t>(b().last_data) + 24) % 256, 0u);
    EXPECT_EQ(b().received.back().data, data);
    if (!alone()) {
        ASSERT_EQ(b().kept.size(), 100u);
        EXPECT_EQ(memcmp(static_cast<char *>(b().kept.front()) + 24, data.data(), data.size()), 0);
    }
}

UCT_INSTANTIATE(uct_lengths);

// Users of UCT are to agree in the length of segments. One that does not loses what is too long,
// and nothing else.
TEST(uct_lengths_on_node, what_is_longer_than_the_receivers_buffers_stays_out_of_them)
{
    entity from("shm", {});
    entity to("shm", {.am_alignment = 64, .seg_size = "1k"});
    to.keep = true;
    uct_ep_h ep = from.connect(to);
    constexpr unsigned count = 130;
    constexpr unsigned too_long = 30;
    auto end = std::chrono::steady_clock::now() + patience;
    for (unsigned sent = 0; sent < count && std::chrono::steady_clock::now() < end;) {
        packed p{pattern(sent == too_long ? 4000 : 100, sent)};
        sent += uct_ep_am_bcopy(ep, 1, pack, &p, 0) > 0;
        uct_worker_progress(from.worker);
        uct_worker_progress(to.worker);
    }
    while (to.received.size() < count - 1 && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(from.worker);
        uct_worker_progress(to.worker);
    }
    ASSERT_EQ(to.received.size(), count - 1);
    ASSERT_EQ(to.kept.size(), count - 1);
    for (size_t i = 0; i < to.received.size(); ++i) {
        std::string expected = pattern(100, static_cast<unsigned>(i < too_long ? i : i + 1));
        EXPECT_EQ(to.received[i].data, expected);
        EXPECT_EQ(memcmp(to.kept[i], expected.data(), expected.size()), 0) << i;
    }
}

} // namespace
} // namespace uct_conformance
