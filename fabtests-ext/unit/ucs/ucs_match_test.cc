// SPDX-License-Identifier: BSD-3-Clause
//
// The tag matcher: order over exact and wildcard receives, against a plain list that is obviously
// right.
#include "ucs/match.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <vector>

namespace {

struct policy {
    struct pattern {
        uint64_t tag, mask;
    };
    using key = uint64_t;
    static bool is_exact(const pattern &p) { return p.mask == ~uint64_t(0); }
    static bool matches(const pattern &p, key k) { return ((p.tag ^ k) & p.mask) == 0; }
    static uint64_t hash(const pattern &p) { return p.tag; }
    static uint64_t hash(key k) { return k; }
};

using matcher = ucs::matcher<policy>;
constexpr uint64_t full = ~uint64_t(0);

TEST(ucs_match, earlier_wildcard_receive_wins_over_exact)
{
    matcher m;
    matcher::recv_entry wild, exact;
    m.add_recv(&wild, {0, 0});
    m.add_recv(&exact, {5, full});
    EXPECT_EQ(&wild, m.match_recv(5));
    EXPECT_EQ(&exact, m.match_recv(5));
    EXPECT_EQ(nullptr, m.match_recv(5));
}

TEST(ucs_match, earlier_exact_receive_wins_over_wildcard)
{
    matcher m;
    matcher::recv_entry wild, exact;
    m.add_recv(&exact, {5, full});
    m.add_recv(&wild, {0, 0});
    EXPECT_EQ(&wild, m.match_recv(6));
    EXPECT_EQ(&exact, m.match_recv(5));
}

TEST(ucs_match, wildcard_takes_messages_in_arrival_order)
{
    matcher m;
    matcher::msg_entry a, b, c;
    m.add_msg(&a, 0x10);
    m.add_msg(&b, 0x21);
    m.add_msg(&c, 0x11);
    EXPECT_EQ(&b, m.find_msg({1, 0xf})) << "probe leaves it";
    EXPECT_EQ(&b, m.match_msg({1, 0xf}));
    EXPECT_EQ(&c, m.match_msg({1, 0xf}));
    EXPECT_EQ(&a, m.match_msg({0, 0}));
    EXPECT_EQ(0u, m.msg_count());
}

TEST(ucs_match, filter_skips_candidates)
{
    matcher m;
    matcher::msg_entry a, b;
    m.add_msg(&a, 1);
    m.add_msg(&b, 1);
    EXPECT_EQ(&b, m.find_msg({1, full}, [&](matcher::msg_entry *e) { return e != &a; }));
}

TEST(ucs_match, removed_receive_is_not_matched)
{
    matcher m;
    matcher::recv_entry a, b;
    m.add_recv(&a, {1, full});
    m.add_recv(&b, {1, full});
    EXPECT_TRUE(a.is_waiting());
    m.remove(&a);
    EXPECT_FALSE(a.is_waiting());
    EXPECT_EQ(&b, m.match_recv(1));
    EXPECT_EQ(0u, m.recv_count());
}

TEST(ucs_match, random_traffic_matches_like_two_lists)
{
    struct recv : matcher::recv_entry {
        policy::pattern p;
    };
    struct msg : matcher::msg_entry {
        uint64_t tag;
    };
    std::mt19937 rng(1);
    matcher m(3);
    std::deque<std::unique_ptr<recv>> recvs;
    std::deque<std::unique_ptr<msg>> msgs;
    const uint64_t masks[] = {full, full, full, 0, 0xf, 0xf0};
    for (int i = 0; i < 20000; ++i) {
        uint64_t tag = rng() % 64;
        if (rng() % 2) {
            policy::pattern p = {tag, masks[rng() % 6]};
            auto expected = msgs.begin();
            while (expected != msgs.end() && !policy::matches(p, (*expected)->tag)) {
                ++expected;
            }
            matcher::msg_entry *got = m.match_msg(p);
            ASSERT_EQ(expected == msgs.end() ? nullptr : expected->get(), got);
            if (got) {
                msgs.erase(expected);
            } else {
                recvs.push_back(std::make_unique<recv>());
                recvs.back()->p = p;
                m.add_recv(recvs.back().get(), p);
            }
        } else {
            auto expected = recvs.begin();
            while (expected != recvs.end() && !policy::matches((*expected)->p, tag)) {
                ++expected;
            }
            matcher::recv_entry *got = m.match_recv(tag);
            ASSERT_EQ(expected == recvs.end() ? nullptr : expected->get(), got);
            if (got) {
                recvs.erase(expected);
            } else {
                msgs.push_back(std::make_unique<msg>());
                msgs.back()->tag = tag;
                m.add_msg(msgs.back().get(), tag);
            }
        }
    }
    EXPECT_EQ(recvs.size(), m.recv_count());
    EXPECT_EQ(msgs.size(), m.msg_count());
    size_t seen = 0;
    m.for_each_recv([&](matcher::recv_entry *e) {
        m.remove(e);
        ++seen;
    });
    EXPECT_EQ(recvs.size(), seen);
}

} // namespace
