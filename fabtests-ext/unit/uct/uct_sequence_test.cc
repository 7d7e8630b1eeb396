// SPDX-License-Identifier: BSD-3-Clause
// Numbers of messages: what comes in any order leaves in order, what is held is bounded, and no
// buffer is lost.
#include "uct/ofi/core/op.h"
#include "uct/ofi/core/sequence.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

using namespace uct::ofi;
using verdict = receive_order::verdict;

class uct_sequence : public ::testing::Test {
  protected:
    explicit uct_sequence(uint32_t first = 0) : order(buffers, first) {}

    // Messages are told apart by their lengths.
    verdict arrive(const order_prefix &prefix, uint32_t length)
    {
        auto *buffer = static_cast<receive_op *>(buffers.get());
        verdict v = order.arrived(prefix, {buffer, length, 0});
        if (v == verdict::now) {
            due.push_back(length);
            receive_order::message next;
            while (order.take(prefix.sender, &next)) {
                due.push_back(next.length);
                buffers.put(next.buffer);
            }
        }
        if (v != verdict::later) {
            buffers.put(buffer);
        }
        return v;
    }

    ucs::mpool_base buffers{{.object_size = sizeof(receive_op), .chunk = 64}};
    receive_order order;
    std::vector<uint32_t> due;
};

// A fabric that lets go of any of the messages on their way.
class uct_sequence_from : public uct_sequence, public testing::WithParamInterface<uint32_t> {
  protected:
    uct_sequence_from() : uct_sequence(GetParam()) {}
};

TEST_P(uct_sequence_from, shuffled_messages_leave_in_order)
{
    std::mt19937 random(7);
    send_order out(1, 1, GetParam());
    std::vector<order_prefix> on_their_way;
    constexpr uint32_t count = 100'000;
    uint32_t posted = 0;
    size_t most_held = 0;
    while (due.size() < count) {
        if (posted < count && !out.full() && random() % 3 != 0) {
            on_their_way.push_back(out.prefix());
            EXPECT_EQ(out.posted(), GetParam() + posted++);
        } else if (!on_their_way.empty()) {
            size_t i = random() % on_their_way.size();
            order_prefix p = on_their_way[i];
            on_their_way.erase(on_their_way.begin() + static_cast<ptrdiff_t>(i));
            ASSERT_NE(arrive(p, p.number), verdict::drop);
            out.completed(p.number);
            most_held = std::max(most_held, order.held());
        }
    }
    for (uint32_t i = 0; i < count; ++i) {
        ASSERT_EQ(due[i], GetParam() + i);
    }
    EXPECT_GT(most_held, order_window / 2);
    EXPECT_LT(most_held, order_window);
    EXPECT_TRUE(out.idle());
    EXPECT_EQ(buffers.used(), 0u);
}

// From 0, and over the largest number.
INSTANTIATE_TEST_SUITE_P(numbers, uct_sequence_from,
                         testing::Values(0u, UINT32_MAX - 50'000, UINT32_MAX),
                         testing::PrintToStringParamName());

// What is too early or late by little is so on the other side of the largest number, too.
TEST(uct_sequence_wrap, what_came_before_or_is_a_window_ahead_is_dropped)
{
    ucs::mpool_base buffers({.object_size = sizeof(receive_op), .chunk = 64});
    constexpr uint32_t first = UINT32_MAX - 1;
    receive_order order(buffers, first);
    auto arrive = [&](uint32_t ahead) {
        auto *buffer = static_cast<receive_op *>(buffers.get());
        verdict v = order.arrived({1, 1, first + ahead}, {buffer, 0, 0});
        if (v != verdict::later) {
            buffers.put(buffer);
        }
        return v;
    };
    EXPECT_EQ(arrive(order_window), verdict::drop);
    EXPECT_EQ(arrive(UINT32_MAX), verdict::drop);
    EXPECT_EQ(arrive(order_window - 1), verdict::later);
    EXPECT_EQ(arrive(2), verdict::later); // number 0
    EXPECT_EQ(arrive(2), verdict::drop);
    EXPECT_EQ(arrive(0), verdict::now);
    EXPECT_EQ(arrive(0), verdict::drop);
    EXPECT_EQ(arrive(1), verdict::now);
    receive_order::message next;
    ASSERT_TRUE(order.take(1, &next));
    buffers.put(next.buffer);
    EXPECT_FALSE(order.take(1, &next));
    EXPECT_EQ(order.held(), 1u);
}

TEST_F(uct_sequence, no_message_leaves_a_window_above_one_without_completion)
{
    send_order out(1, 1);
    for (uint32_t i = 0; i < order_window; ++i) {
        ASSERT_FALSE(out.full());
        out.posted();
    }
    EXPECT_TRUE(out.full());
    for (uint32_t i = 1; i < order_window; ++i) {
        out.completed(i);
    }
    EXPECT_TRUE(out.full());
    out.completed(0);
    EXPECT_FALSE(out.full());
    EXPECT_TRUE(out.idle());
}

TEST_F(uct_sequence, what_came_before_or_is_a_window_ahead_is_dropped)
{
    EXPECT_EQ(arrive({1, 1, order_window}, 0), verdict::drop);
    EXPECT_EQ(arrive({1, 1, 0}, 10), verdict::now);
    EXPECT_EQ(arrive({1, 1, 0}, 10), verdict::drop);
    EXPECT_EQ(arrive({1, 1, 3}, 13), verdict::later);
    EXPECT_EQ(arrive({1, 1, 3}, 13), verdict::drop);
    EXPECT_EQ(arrive({1, 1, 1 + order_window}, 0), verdict::drop);
    EXPECT_EQ(arrive({1, 1, order_window}, 99), verdict::later);
    EXPECT_EQ(arrive({1, 1, UINT32_MAX}, 0), verdict::drop);
    EXPECT_EQ(order.held(), 2u);
    EXPECT_EQ(due, (std::vector<uint32_t>{10}));
}

TEST_F(uct_sequence, senders_have_orders_of_their_own)
{
    EXPECT_EQ(arrive({1, 1, 1}, 11), verdict::later);
    EXPECT_EQ(arrive({2, 1, 0}, 20), verdict::now);
    EXPECT_EQ(arrive({1, 1, 0}, 10), verdict::now);
    EXPECT_EQ(due, (std::vector<uint32_t>{20, 10, 11}));
}

TEST_F(uct_sequence, a_later_epoch_ends_the_one_before)
{
    EXPECT_EQ(arrive({1, 1, 2}, 12), verdict::later);
    EXPECT_EQ(arrive({1, 2, 1}, 21), verdict::later);
    EXPECT_EQ(order.held(), 1u);
    EXPECT_EQ(arrive({1, 1, 0}, 10), verdict::drop);
    EXPECT_EQ(arrive({1, 2, 0}, 20), verdict::now);
    EXPECT_EQ(due, (std::vector<uint32_t>{20, 21}));
    EXPECT_EQ(buffers.used(), 0u);
}

TEST_F(uct_sequence, a_dead_sender_leaves_no_buffers)
{
    EXPECT_EQ(arrive({1, 1, 1}, 11), verdict::later);
    EXPECT_EQ(arrive({2, 1, 1}, 21), verdict::later);
    order.sender_died(1);
    EXPECT_EQ(order.held(), 1u);
    EXPECT_EQ(buffers.used(), 1u);
    order.sender_died(3);
    EXPECT_EQ(order.held(), 1u);
}

} // namespace
