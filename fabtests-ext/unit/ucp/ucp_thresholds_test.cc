// SPDX-License-Identifier: BSD-3-Clause
// Thresholds are where the expected costs of two protocols cross: on either side of each the
// cheaper one is taken, and they move with the speed of the lane and of copies.
#include "ucp/core/cost.h"

#include <gtest/gtest.h>

namespace ucp {
namespace {

constexpr size_t fragment = 8192, segment = 32768;
constexpr double GB = 1e9;

constexpr lane_figures node{
    .cls = tl_class::shm, .overhead = 1e-8, .latency = 8e-8, .bandwidth = 12 * GB};
constexpr lane_figures sockets{
    .cls = tl_class::net, .overhead = 2e-6, .latency = 2e-6, .bandwidth = 4 * GB};
constexpr lane_figures fabric{.cls = tl_class::rdma,
                              .overhead = 1e-7,
                              .latency = 1e-6,
                              .bandwidth = 12 * GB,
                              .registers = true};

struct chosen {
    size_t zcopy, rndv, rndv_mapped;
};

chosen thresholds_of(const lane_figures &lane, size_t piece, double copies = 0, double diff = 0)
{
    message_costs c = costs_of(lane, lane, piece, copies);
    size_t zcopy = zcopy_threshold(c);
    return {zcopy, rndv_threshold(c, c.read, piece, zcopy, diff),
            rndv_threshold(c, c.read_mapped, piece, zcopy, diff)};
}

double at(const cost &line, size_t length)
{
    return ucs_linear_func_apply(line, static_cast<double>(length));
}

TEST(ucp_crossing, is_the_first_length_that_costs_no_more)
{
    EXPECT_EQ(100u, crossing({10, 0.1}, {0, 0.2}, 0));
    EXPECT_EQ(500u, crossing({10, 0.1}, {0, 0.2}, 500));
    EXPECT_EQ(7u, crossing({0, 0.1}, {10, 0.2}, 7)) << "it never cost more";
    EXPECT_EQ(4u, crossing({10, 0}, {0, 3}, 0)) << "between 3 and 4";
    EXPECT_EQ(SIZE_INF, crossing({10, 0.2}, {0, 0.2}, 0));
    EXPECT_EQ(3u, crossing({10, 0.2}, {10, 0.2}, 3));
    EXPECT_EQ(SIZE_INF, crossing({0, 0.3}, {10, 0.2}, 0)) << "not for all above";
    EXPECT_EQ(SIZE_INF, crossing({1e300, 0}, {0, 1e-9}, 0));
}

// Of all lengths, with an eager message as the zcopy threshold has it.
void takes_the_cheaper(const lane_figures &lane, size_t piece)
{
    message_costs c = costs_of(lane, lane, piece, 0);
    chosen t = thresholds_of(lane, piece);
    for (size_t n = 16; n < (1 << 20); n += n / 16) {
        const cost &copy = n <= piece ? c.copy : c.fragments;
        const cost &eager = n < t.zcopy ? copy : c.zcopy;
        SCOPED_TRACE(std::to_string(n) + " bytes");
        if (n < t.rndv) {
            EXPECT_LE(at(eager, n), at(c.read, n));
            EXPECT_LE(at(eager, n), at(n < t.zcopy ? c.zcopy : copy, n));
        } else {
            EXPECT_GE(at(eager, n), at(c.read, n));
        }
    }
}

TEST(ucp_thresholds, the_cheaper_protocol_is_taken_on_either_side)
{
    takes_the_cheaper(node, fragment);
    takes_the_cheaper(sockets, segment);
    takes_the_cheaper(fabric, segment);
}

TEST(ucp_thresholds, a_message_of_one_piece_is_not_weighed_as_two)
{
    // A rendezvous that pays from the second piece on, and not before.
    message_costs c = {.copy = {0, 1},
                       .fragments = {0, 2},
                       .zcopy = {1e9, 1},
                       .read = {100, 1},
                       .read_mapped = {},
                       .put = {}};
    size_t zcopy = zcopy_threshold(c);
    EXPECT_EQ(SIZE_INF, zcopy);
    EXPECT_EQ(151u, rndv_threshold(c, c.read, 150, zcopy, 0));
    EXPECT_EQ(100u, rndv_threshold(c, c.read, 50, zcopy, 0));
}

TEST(ucp_thresholds, on_a_node_nothing_is_sent_from_where_it_is)
{
    EXPECT_EQ(SIZE_INF, thresholds_of(node, fragment).zcopy);
    EXPECT_NE(SIZE_INF, thresholds_of(sockets, segment).zcopy);
    EXPECT_NE(SIZE_INF, thresholds_of(fabric, segment).zcopy);
}

TEST(ucp_thresholds, in_shared_memory_a_fragment_is_copied_out_while_the_next_is_copied_in)
{
    constexpr size_t many = 32 * fragment;
    message_costs c = costs_of(node, node, fragment, 0);
    EXPECT_NEAR(at(c.copy, fragment), at(c.fragments, fragment), at(c.copy, fragment) / 5);
    EXPECT_LT(at(c.fragments, many), 0.75 * at(c.copy, many));
    lane_figures own = node;
    own.cls = tl_class::self;
    c = costs_of(own, own, fragment, 0);
    EXPECT_GT(at(c.fragments, many), at(c.copy, many)) << "one processor does both";
}

TEST(ucp_thresholds, memory_that_the_receiver_maps_is_read_sooner)
{
    chosen t = thresholds_of(node, fragment);
    EXPECT_LT(t.rndv_mapped, t.rndv);
    t = thresholds_of(sockets, segment);
    EXPECT_EQ(t.rndv_mapped, t.rndv) << "sockets map nothing";
}

TEST(ucp_thresholds, a_rendezvous_with_slower_messages_begins_later)
{
    lane_figures far = fabric, busy = sockets;
    far.latency *= 4;
    EXPECT_LT(thresholds_of(fabric, segment).rndv, thresholds_of(far, segment).rndv);
    busy.overhead *= 4;
    EXPECT_LT(thresholds_of(sockets, segment).rndv, thresholds_of(busy, segment).rndv);
}

TEST(ucp_thresholds, registration_costs_a_lookup)
{
    lane_figures free = fabric;
    free.registers = false;
    EXPECT_LT(thresholds_of(free, segment).zcopy, thresholds_of(fabric, segment).zcopy);
    EXPECT_LT(thresholds_of(free, segment).rndv, thresholds_of(fabric, segment).rndv);
}

TEST(ucp_thresholds, faster_copies_move_what_avoids_them_up)
{
    for (const lane_figures &lane : {node, sockets, fabric}) {
        chosen slow = thresholds_of(lane, segment, 5 * GB);
        chosen fast = thresholds_of(lane, segment, 20 * GB);
        EXPECT_LT(slow.rndv, fast.rndv);
        EXPECT_LT(slow.rndv_mapped, fast.rndv_mapped);
        EXPECT_LE(slow.zcopy, fast.zcopy);
    }
}

size_t put_of(const lane_figures &lane, double copies = 0)
{
    return put_threshold(costs_of(lane, lane, segment, copies));
}

TEST(ucp_thresholds, a_put_that_is_answered_is_a_message_while_copies_cost_less)
{
    EXPECT_EQ(0u, put_of(fabric)) << "the device answers";
    EXPECT_EQ(0u, put_of(node));
    message_costs c = costs_of(sockets, sockets, segment, 0);
    size_t from = put_threshold(c);
    ASSERT_GT(from, 0u);
    EXPECT_LT(at(c.copy, from - 1), at(c.put, from - 1));
    EXPECT_GE(at(c.copy, from), at(c.put, from));
    EXPECT_LT(put_of(sockets, 5 * GB), put_of(sockets, 20 * GB));
}

TEST(ucp_thresholds, a_rendezvous_that_may_be_slower_begins_sooner)
{
    for (const lane_figures &lane : {node, sockets, fabric}) {
        EXPECT_LT(thresholds_of(lane, segment, 0, 10).rndv,
                  thresholds_of(lane, segment, 0, 0).rndv);
        EXPECT_EQ(0u, thresholds_of(lane, segment, 0, 100).rndv);
    }
}

TEST(ucp_thresholds, no_receiver_holds_more_than_a_MiB_that_it_did_not_ask_for)
{
    lane_figures far = fabric;
    far.latency = 1;
    EXPECT_EQ(1u << 20, thresholds_of(far, segment).rndv);
    EXPECT_EQ(1u << 20, thresholds_of(fabric, 1 << 22, 1e30).rndv) << "copies that cost nothing";
}

// Those that the manual names, within a tenth: what the transports of this library say of
// themselves.
TEST(ucp_thresholds, are_about_those_of_the_manual)
{
    auto near = [](size_t expected, size_t is) {
        EXPECT_NEAR(static_cast<double>(expected), static_cast<double>(is),
                    static_cast<double>(expected) / 10);
    };
    constexpr double MiB = 1 << 20;
    lane_figures sm{
        .cls = tl_class::shm, .overhead = 1e-8, .latency = 8e-8, .bandwidth = 12179 * MiB};
    near(4096, thresholds_of(sm, fragment, 0, 1).rndv_mapped);
    near(105 << 10, thresholds_of(sm, fragment, 0, 1).rndv);
    lane_figures tcp{
        .cls = tl_class::net, .overhead = 2e-6, .latency = 1.6e-6, .bandwidth = 4 * GB};
    near(8192, thresholds_of(tcp, segment, 0, 1).zcopy);
    near(90 << 10, thresholds_of(tcp, segment, 0, 1).rndv);
    near(2048, put_of(tcp));
    lane_figures hdr{.cls = tl_class::rdma,
                     .overhead = 75e-9,
                     .latency = 0.6e-6,
                     .bandwidth = 25 * GB,
                     .registers = true};
    near(16 << 10, thresholds_of(hdr, segment, 0, 1).zcopy);
    near(17 << 10, thresholds_of(hdr, segment, 0, 1).rndv);
}

} // namespace
} // namespace ucp
