// SPDX-License-Identifier: BSD-3-Clause
//
// Client-server endpoints that give their connection up for their lanes (connect/greeting.h). The
// descriptors show it, and nothing else does: each endpoint closes, fails and is told of its peer.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/conformance/ucp/peers/client_server.h"
#include "ucp/core/am_id.h"

namespace {

using namespace ucp_test;

class ucp_lane_connection : public client_server {
  protected:
    ends &begin(bool by_lanes)
    {
        return client_server::begin(by_lanes ? ucp::lane_trust::all : ucp::lane_trust::none);
    }

    // How many descriptors both ends of it keep.
    size_t open(bool by_lanes)
    {
        size_t before = open_files();
        exchange(begin(by_lanes));
        if (by_lanes) {
            EXPECT_TRUE(until([&] { return !connected(c) && !connected(s); }));
        }
        return open_files() - before;
    }

    // Whether the worker has a connection of the connection manager.
    static bool connected(const entity &e)
    {
        bool found = false;
        for (const auto &[id, connection] : e.worker->cm->connections.by_id) {
            found = found || connection->uct;
        }
        return found;
    }

    // Its peer does not read meanwhile.
    static void fill(uct_ep_h lane)
    {
        auto pack = [](void *dest, void *) {
            ucp::wireup_hdr ping = {};
            ping.kind = ucp::wireup_kind::ping;
            memcpy(dest, &ping, sizeof(ping));
            return sizeof(ping);
        };
        ssize_t sent = 0;
        while (sent >= 0) {
            sent = uct_ep_am_bcopy(lane, ucp::AM_ID_WIREUP, pack, nullptr, 0);
        }
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, sent);
    }
};

TEST_P(ucp_lane_connection, takes_two_descriptors_fewer)
{
    open(false); // the lanes stay when it is closed
    close_all();
    size_t usual = open(false);
    close_all();
    EXPECT_EQ(2u, usual) << "a socket at each end";
    EXPECT_EQ(0u, open(true));
    exchange(all.front());
    close_all();
}

// What a program makes; on a node its connection is kept.
TEST_P(ucp_lane_connection, of_a_client_of_ucp_takes_no_descriptor)
{
    open(true); // the lanes stay when it is closed
    close_all();
    size_t before = open_files();
    exchange(client_server::begin(ucp::lane_trust::networks));
    EXPECT_TRUE(until([&] { return !connected(c) && !connected(s); }));
    EXPECT_EQ(before, open_files());
    close_all();
}

TEST_P(ucp_lane_connection, of_those_that_joined_before_it_was_given_up)
{
    begin(true);
    ASSERT_TRUE(until([&] { return all.front().client->control->by_cm->established; }));
    for (int i = 0; i < 3; ++i) {
        begin(true);
    }
    for (const ends &k : all) {
        exchange(k);
    }
    EXPECT_TRUE(until([&] { return !connected(c) && !connected(s); }));
    EXPECT_TRUE(until([&] { return known(c) == 1 && known(s) == 1; }));
    close_all();
}

TEST_P(ucp_lane_connection, is_shared_by_others)
{
    open(true);
    size_t with_one = open_files();
    for (bool by_lanes : {false, true, false}) {
        exchange(begin(by_lanes));
    }
    EXPECT_TRUE(until([&] { return !connected(c) && !connected(s); }));
    EXPECT_EQ(with_one, open_files());
    EXPECT_EQ(1u, known(c));
    EXPECT_EQ(1u, known(s));
    for (const ends &k : all) {
        exchange(k);
        EXPECT_EQ(0, k.client_errors.count + k.server_errors.count);
    }
    close_all();
}

TEST_P(ucp_lane_connection, keeps_the_addresses)
{
    open(true);
    for (auto [ep, local] : {std::pair(all.front().client, false), {all.front().server, true}}) {
        ucp_ep_attr_t attr = {};
        attr.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
        ASSERT_EQ(UCS_OK, ucp_ep_query(ep, &attr));
        const auto &listener = local ? attr.local_sockaddr : attr.remote_sockaddr;
        EXPECT_EQ(listening.port, ntohs(reinterpret_cast<const sockaddr_in &>(listener).sin_port));
    }
    close_all();
}

TEST_P(ucp_lane_connection, ends_with_a_flushed_close)
{
    open(true);
    ends &k = all.front();
    EXPECT_EQ(UCS_OK, finish(close_nb(k.client))); // the server has not closed its end
    k.client = nullptr;
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, k.server_errors.status);
    close_all();
}

TEST_P(ucp_lane_connection, ends_with_a_forced_close)
{
    for (bool by_client : {true, false}) {
        open(true);
        ends &k = all.front();
        EXPECT_EQ(UCS_OK, finish(close_nb(by_client ? k.client : k.server, true)));
        (by_client ? k.client : k.server) = nullptr;
        const errors &seen = by_client ? k.server_errors : k.client_errors;
        ASSERT_TRUE(until([&] { return seen.count > 0; }));
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, seen.status);
        EXPECT_EQ(1, seen.count);
        close_all();
    }
}

// The last ones fail together, and the lane that tells of it goes with them.
TEST_P(ucp_lane_connection, each_client_is_told_that_its_server_has_failed)
{
    for (int i = 0; i < 40; ++i) {
        exchange(begin(true));
    }
    EXPECT_TRUE(until([&] { return known(c) == 1 && known(s) == 1; }));
    std::vector<ucs_status_ptr_t> closing;
    for (ends &k : all) {
        closing.push_back(close_nb(std::exchange(k.client, nullptr)));
    }
    for (ucs_status_ptr_t r : closing) {
        EXPECT_EQ(UCS_OK, finish(r));
    }
    for (const ends &k : all) {
        EXPECT_EQ(1, k.server_errors.count);
    }
    close_all();
}

// Nothing but the lane is left to tell of it, and that has no room.
TEST_P(ucp_lane_connection, a_forced_close_behind_full_lanes_is_told)
{
    open(true);
    ends &k = all.front();
    std::vector<char> out = pattern(2000);
    std::vector<ucs_status_ptr_t> sends;
    for (unsigned i = 0, waiting = 0; i < 100000 && waiting < 100; ++i) {
        sends.push_back(send_nb(k.client, out.data(), out.size(), 1));
        waiting += UCS_PTR_IS_PTR(sends.back());
    }
    fill(c.worker->cm->connections.by_lane.begin()->first);
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(k.client, true)));
    EXPECT_EQ(1u, known(c));
    k.client = nullptr;
    for (ucs_status_ptr_t p : sends) {
        ucs_status_t status = finish(p);
        EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_CANCELED) << ucs_status_string(status);
    }
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, k.server_errors.status);
    close_all();
}

TEST_P(ucp_lane_connection, fails_once_when_the_peer_goes)
{
    {
        entity leaving(with_tls());
        server there(leaving);
        for (unsigned i = 0; i < 5; ++i) {
            ends &k = all.emplace_back();
            ASSERT_EQ(UCS_OK, connect_trusting(ucp::lane_trust::all, c, there.port, &k.client,
                                               &k.client_errors));
            ASSERT_TRUE(run_until({&c, &leaving}, [&] { return !there.requests.empty(); }));
            ASSERT_EQ(UCS_OK, there.accept(&k.server, &k.server_errors));
            ping(c, k.client, leaving);
            k.server = nullptr; // it goes with its worker
        }
        ASSERT_TRUE(
            run_until({&c, &leaving}, [&] { return !connected(c) && !connected(leaving); }));
    }
    for (const ends &k : all) {
        ASSERT_TRUE(run_until({&c}, [&] { return k.client_errors.count > 0; }));
    }
    run_for({&c}, 0.1);
    for (ends &k : all) {
        EXPECT_EQ(1, k.client_errors.count);
        EXPECT_EQ(UCS_OK, wait({&c}, close_nb(k.client, true)));
        k.client = nullptr;
    }
}

// The request crosses closes at every stage.
TEST_P(ucp_lane_connection, closes_while_it_is_given_up)
{
    for (unsigned turn = 0; turn < 60; ++turn) {
        ends &k = begin(true);
        close_early(c, s, k.client, k.server, turn);
        all.pop_back();
    }
    EXPECT_TRUE(until([&] { return known(c) == 0 && known(s) == 0; }));
    open(true);
    close_all();
}

// The server has agreed to share the first one's connection, and that is lost before the client has
// read it.
TEST_P(ucp_lane_connection, an_endpoint_ends_whose_peer_shares_a_lost_connection)
{
    open(false);
    const ends &first = all.front();
    c.worker->cm->connections.to_address.clear(); // it asks over its lane
    const ends &second = begin(false);
    ASSERT_TRUE(run_until({&c}, [&] { return second.client->control->by_cm->joining != nullptr; }));
    const ucp::cm_connection *own = second.server->control->by_cm->cm;
    ASSERT_EQ(own->id, second.server->local_id) << "too late";
    ASSERT_TRUE(run_until({&s}, [&] { return second.server->control->by_cm->cm != own; }));
    ucp::on_connection_ended(c.worker, first.client->local_id);
    ucp::on_connection_ended(s.worker, first.server->local_id);
    for (const ends *k : {&first, &second}) {
        ASSERT_TRUE(until([&] { return k->server_errors.count > 0; }));
        ASSERT_TRUE(until([&] { return k->client_errors.count > 0; }));
    }
    close_all();
}

UCP_TEST_OVER(ucp_lane_connection, "tcp");

// Between workers of one process nothing tells of the end of a lane of shared memory.
TEST(ucp_no_lane_connection, is_given_up_where_nothing_else_tells_of_the_end)
{
    options o;
    o.tls = "sm";
    entity c(o), s(o);
    server listening(s);
    ucp_ep_h client = nullptr, served = nullptr;
    errors client_errors, server_errors;
    ASSERT_EQ(UCS_OK,
              connect_trusting(ucp::lane_trust::all, c, listening.port, &client, &client_errors));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    ASSERT_EQ(UCS_OK, listening.accept(&served, &server_errors));
    ping(c, client, s);
    ping(s, served, c);
    run_for({&c, &s}, 0.1);
    for (const entity *e : {&c, &s}) {
        ASSERT_EQ(1u, e->worker->cm->connections.by_id.size());
        EXPECT_NE(nullptr, e->worker->cm->connections.by_id.begin()->second->uct);
    }
    ucs_status_ptr_t x = close_nb(client);
    ucs_status_ptr_t y = close_nb(served);
    EXPECT_EQ(UCS_OK, wait({&c, &s}, x));
    EXPECT_EQ(UCS_OK, wait({&c, &s}, y));
}

} // namespace
