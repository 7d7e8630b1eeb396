// SPDX-License-Identifier: BSD-3-Clause
//
// The provider's matcher: the order of posting and of arrival against plain lists that are
// obviously right, and how many entries a search looks at.
#include "prov/ucxlike/data/match.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

namespace ucxlike {
struct conn {
    char name;
};
} // namespace ucxlike

namespace {

using ucxlike::conn;
using ucxlike::match_key;

struct counted {
    static inline size_t visited = 0;
    static void visit() { ++visited; }
};
using matcher = ucxlike::basic_matcher<counted>;

struct receive : matcher::recv_entry {
    receive(uint64_t tag, const conn *source, uint64_t ignored = 0)
    {
        key = {tag, source};
        ignore = ignored;
    }
};

struct message : matcher::msg_entry {
    message(uint64_t tag, const conn *source) { key = {tag, source}; }
};

constexpr uint64_t any_tag = ~uint64_t(0);

TEST(prov_match, an_older_receive_wins_whatever_it_names)
{
    std::array<conn, 2> from = {};
    receive all[] = {{7, &from[0]}, {7, nullptr}, {0, &from[0], any_tag}, {0, nullptr, any_tag}};
    std::vector<int> order = {0, 1, 2, 3};
    do {
        matcher m;
        for (int i : order) {
            m.add_recv(&all[i]);
        }
        for (int i : order) {
            matcher::recv_entry *got = m.find_recv({7, &from[0]});
            ASSERT_EQ(got, &all[i]);
            m.remove(got);
        }
        EXPECT_EQ(m.find_recv({7, &from[0]}), nullptr);
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(prov_match, what_a_receive_does_not_fit_is_left)
{
    std::array<conn, 2> from = {};
    matcher m;
    receive exact(7, &from[0]), directed(0, &from[0], any_tag), masked(0x70, nullptr, 0xf);
    m.add_recv(&exact);
    m.add_recv(&directed);
    m.add_recv(&masked);
    EXPECT_EQ(m.find_recv({7, &from[1]}), nullptr);
    EXPECT_EQ(m.find_recv({0x71, &from[1]}), &masked);
    EXPECT_EQ(m.find_recv({0x71, &from[0]}), &directed);
}

// ---- against plain lists ----

class model {
  public:
    explicit model(unsigned seed) : random_(seed) {}
    void post();
    void arrive();
    void peek();
    void cancel();
    void discard();
    void drain();
    unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }

  private:
    static bool fit(const matcher::recv_entry &r, const matcher::msg_entry &m)
    {
        return ((r.key.tag ^ m.key.tag) & ~r.ignore) == 0 &&
               (!r.key.source || r.key.source == m.key.source);
    }
    receive any_receive()
    {
        constexpr uint64_t ignored[] = {0, 0, 0, 0xf, 0xf0, any_tag};
        const conn *source = draw(2) ? &from_[draw(from_.size())] : nullptr;
        return receive(draw(48), source, ignored[draw(std::size(ignored))]);
    }
    auto expected(const receive &r)
    {
        return std::find_if(msgs_.begin(), msgs_.end(), [&](auto &m) { return fit(r, *m); });
    }

    std::mt19937 random_;
    std::array<conn, 5> from_ = {};
    std::vector<std::unique_ptr<receive>> recvs_;
    std::vector<std::unique_ptr<message>> msgs_;
    matcher matcher_;
};

void model::post()
{
    auto r = std::make_unique<receive>(any_receive());
    auto want = expected(*r);
    matcher::msg_entry *got = matcher_.find_msg(r->key, r->ignore);
    ASSERT_EQ(got, want == msgs_.end() ? nullptr : want->get());
    if (got) {
        matcher_.remove(got);
        msgs_.erase(want);
    } else {
        matcher_.add_recv(r.get());
        recvs_.push_back(std::move(r));
    }
}

void model::arrive()
{
    auto m = std::make_unique<message>(draw(48), &from_[draw(from_.size())]);
    auto want = std::find_if(recvs_.begin(), recvs_.end(), [&](auto &r) { return fit(*r, *m); });
    matcher::recv_entry *got = matcher_.find_recv(m->key);
    ASSERT_EQ(got, want == recvs_.end() ? nullptr : want->get());
    if (got) {
        matcher_.remove(got);
        recvs_.erase(want);
    } else {
        matcher_.add_msg(m.get());
        msgs_.push_back(std::move(m));
    }
}

void model::peek()
{
    receive r = any_receive();
    auto want = expected(r);
    matcher::msg_entry *got = matcher_.find_msg(r.key, r.ignore);
    ASSERT_EQ(got, want == msgs_.end() ? nullptr : want->get());
    if (got && draw(2)) { // claimed
        matcher_.remove(got);
        msgs_.erase(want);
    }
}

void model::cancel()
{
    if (recvs_.empty()) {
        return;
    }
    auto r = recvs_.begin() + draw(recvs_.size());
    matcher_.remove(r->get());
    EXPECT_FALSE((*r)->is_waiting());
    recvs_.erase(r);
}

void model::discard()
{
    if (msgs_.empty()) {
        return;
    }
    auto m = msgs_.begin() + draw(msgs_.size());
    matcher_.remove(m->get());
    EXPECT_FALSE((*m)->is_waiting());
    msgs_.erase(m);
}

void model::drain()
{
    for (auto &r : recvs_) {
        ASSERT_EQ(matcher_.first_recv(), r.get());
        matcher_.remove(r.get());
    }
    for (auto &m : msgs_) {
        ASSERT_EQ(matcher_.first_msg(), m.get());
        matcher_.remove(m.get());
    }
    EXPECT_EQ(matcher_.first_recv(), nullptr);
    EXPECT_EQ(matcher_.first_msg(), nullptr);
}

TEST(prov_match, random_traffic_matches_like_plain_lists)
{
    for (unsigned seed = 1; seed <= 10; ++seed) {
        SCOPED_TRACE(seed);
        model m(seed);
        for (int i = 0; i < 4000 && !HasFatalFailure(); ++i) {
            // Waves: now receives wait, now messages.
            bool receives_first = i / 500 % 2;
            switch (m.draw(8)) {
            case 0:
                m.peek();
                break;
            case 1:
                m.cancel();
                break;
            case 2:
                m.discard();
                break;
            case 3:
            case 4:
                m.arrive();
                break;
            case 5:
            case 6:
                m.post();
                break;
            default:
                receives_first ? m.post() : m.arrive();
            }
        }
        m.drain();
    }
}

// ---- what a search costs ----

// As in an all-to-all: each of n peers has one message, and they come in another order.
class crowd {
  public:
    explicit crowd(size_t n) : from_(n) {}

    // Entries that are looked at for each message when the receives are there first.
    double expected(bool one_tag, bool name_source)
    {
        std::vector<receive> recvs = receives(one_tag, name_source);
        matcher m;
        for (receive &r : recvs) {
            m.add_recv(&r);
        }
        counted::visited = 0;
        for (size_t i = from_.size(); i-- > 0;) {
            matcher::recv_entry *r = m.find_recv({one_tag ? 7 : i, &from_[i]});
            EXPECT_EQ(r, &recvs[one_tag && !name_source ? from_.size() - 1 - i : i]);
            m.remove(r);
        }
        return each();
    }

    // The same when the messages are.
    double unexpected(bool one_tag, bool name_source, uint64_t ignore)
    {
        std::vector<message> msgs;
        for (size_t i = 0; i < from_.size(); ++i) {
            msgs.emplace_back(one_tag ? 7 : i, &from_[i]);
        }
        matcher m;
        counted::visited = 0;
        for (message &u : msgs) {
            m.add_msg(&u);
        }
        for (size_t i = from_.size(); i-- > 0;) {
            match_key k = {one_tag ? 7 : i, name_source ? &from_[i] : nullptr};
            matcher::msg_entry *u = m.find_msg(k, ignore);
            EXPECT_EQ(u, &msgs[one_tag && !name_source ? from_.size() - 1 - i : i]);
            m.remove(u);
        }
        return each();
    }

  private:
    std::vector<receive> receives(bool one_tag, bool name_source)
    {
        std::vector<receive> recvs;
        for (size_t i = 0; i < from_.size(); ++i) {
            recvs.emplace_back(one_tag ? 7 : i, name_source ? &from_[i] : nullptr);
        }
        return recvs;
    }
    double each() const
    {
        return static_cast<double>(counted::visited) / static_cast<double>(from_.size());
    }

    std::vector<conn> from_;
};

constexpr double few = 8;

TEST(prov_match, a_message_looks_at_few_receives)
{
    for (size_t n : {10, 1000, 10000}) {
        SCOPED_TRACE(n);
        EXPECT_LT(crowd(n).expected(true, true), few) << "one tag, by source";
        EXPECT_LT(crowd(n).expected(true, false), few) << "one tag, any source";
        EXPECT_LT(crowd(n).expected(false, true), few) << "many tags, by source";
        EXPECT_LT(crowd(n).expected(false, false), few) << "many tags, any source";
    }
}

TEST(prov_match, a_receive_looks_at_few_messages)
{
    for (size_t n : {10, 1000, 10000}) {
        SCOPED_TRACE(n);
        EXPECT_LT(crowd(n).unexpected(true, true, 0), few) << "one tag, by source";
        EXPECT_LT(crowd(n).unexpected(true, false, 0), few) << "one tag, any source";
        EXPECT_LT(crowd(n).unexpected(false, true, 0), few) << "many tags, by source";
        EXPECT_LT(crowd(n).unexpected(false, false, 0), few) << "many tags, any source";
        EXPECT_LT(crowd(n).unexpected(false, true, any_tag), few) << "any tag, by source";
    }
}

// Tags that differ in a few of their upper bits alone, as those that carry a rank there.
TEST(prov_match, tags_that_differ_anywhere_are_told_apart)
{
    conn from = {};
    for (unsigned shift : {0, 16, 32, 48}) {
        SCOPED_TRACE(shift);
        std::vector<receive> recvs;
        for (uint64_t i = 0; i < 1 << 14; ++i) {
            recvs.emplace_back(i << shift, nullptr);
        }
        matcher m;
        for (receive &r : recvs) {
            m.add_recv(&r);
        }
        counted::visited = 0;
        for (receive &r : recvs) {
            ASSERT_EQ(m.find_recv({r.key.tag, &from}), &r);
            m.remove(&r);
        }
        EXPECT_LT(counted::visited, few * recvs.size());
    }
}

// A queue of equal receives is no obstacle to one that shares nothing with them.
TEST(prov_match, many_of_a_kind_cost_no_more_than_one)
{
    conn from = {};
    matcher m;
    std::vector<receive> equal(1000, receive(1, nullptr));
    for (receive &r : equal) {
        m.add_recv(&r);
    }
    receive other(2, nullptr);
    m.add_recv(&other);
    counted::visited = 0;
    EXPECT_EQ(m.find_recv({2, &from}), &other);
    EXPECT_EQ(m.find_recv({1, &from}), &equal[0]);
    EXPECT_LT(counted::visited, few);
    for (receive &r : equal) {
        m.remove(&r);
    }
    m.remove(&other);
}

} // namespace
