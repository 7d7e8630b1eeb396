// SPDX-License-Identifier: BSD-3-Clause
// Messages that are longer than the core takes at once.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <random>

namespace uct_conformance {
namespace {

class uct_parts : public uct_test {
  protected:
    ssize_t send(uct_ep_h ep, uint8_t id, const std::string &data)
    {
        packed p{data};
        return post([&] { return uct_ep_am_bcopy(ep, id, pack, &p, 0); });
    }
};

// Over two endpoints to one peer, which reads when there is no more room.
TEST_P(uct_parts, messages_of_any_length_arrive_whole_and_in_order)
{
    for (bool fifo : {true, false}) {
        open({.seg_size = "20k", .fifo = fifo});
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
}

TEST_P(uct_parts, a_message_in_parts_may_be_kept)
{
    open({.rx_headroom = 24,
          .am_alignment = 256,
          .am_align_offset = 24,
          .seg_size = "20k",
          .fifo = false});
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

UCT_INSTANTIATE(uct_parts);

// Through a queue on a machine, which does not know how long the receiver's buffers are.
TEST(uct_parts_on_node, what_is_longer_than_the_receivers_buffers_stays_out_of_them)
{
    entity from("shm", {});
    entity to("shm", {.am_alignment = 64, .seg_size = "1k"});
    uct_ep_h ep = from.connect(to);
    size_t sent = 0;
    auto send = [&](size_t length) {
        packed p{pattern(length, static_cast<unsigned>(sent++))};
        auto end = std::chrono::steady_clock::now() + patience;
        ssize_t status = UCS_ERR_NO_RESOURCE;
        while (to.received.size() < sent && std::chrono::steady_clock::now() < end) {
            if (status == UCS_ERR_NO_RESOURCE) {
                status = uct_ep_am_bcopy(ep, 1, pack, &p, 0);
            }
            uct_worker_progress(from.worker);
            uct_worker_progress(to.worker);
        }
    };
    to.keep = true;
    for (unsigned i = 0; i < 30; ++i) { // of which the last ones go through the queue
        send(100);
    }
    to.keep = false;
    send(6000);
    to.keep = true;
    for (unsigned i = 0; i < 100; ++i) {
        send(100);
    }
    ASSERT_EQ(to.received.size(), sent);
    for (size_t i = 0; i < sent; ++i) {
        EXPECT_EQ(to.received[i].data, pattern(i == 30 ? 6000 : 100, static_cast<unsigned>(i)));
    }
    ASSERT_EQ(to.kept.size(), 130u);
    for (size_t i = 0; i < to.kept.size(); ++i) {
        std::string expected = pattern(100, static_cast<unsigned>(i < 30 ? i : i + 1));
        EXPECT_EQ(memcmp(to.kept[i], expected.data(), expected.size()), 0) << i;
    }
}

} // namespace
} // namespace uct_conformance
