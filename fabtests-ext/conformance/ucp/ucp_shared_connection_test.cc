// SPDX-License-Identifier: BSD-3-Clause
//
// Client-server endpoints between the same two workers share one connection of the connection
// manager once they stand. Nothing of that may be seen but the descriptors: each endpoint closes,
// fails and is told of its peer by itself.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <list>

using namespace ucp_test;

namespace {

class ucp_shared_connection : public testing::TestWithParam<const char *> {
  protected:
    static options with_tls()
    {
        options o;
        o.tls = GetParam();
        return o;
    }

    ucp_shared_connection() : c(with_tls()), s(with_tls()), listening(s) {}

    ucs_status_t finish(ucs_status_ptr_t p) { return wait({&c, &s}, p); }
    bool until(const std::function<bool()> &done) { return run_until({&c, &s}, done); }

    connection &open()
    {
        connection &k = all.emplace_back(c, s, listening);
        listening.requests.clear();
        exchange(k);
        return k;
    }

    void exchange(connection &k)
    {
        ping(c, k.client, s);
        ping(s, k.server, c);
    }

    // The first one's descriptors, and none for the others.
    void open_sharing(unsigned count)
    {
        open();
        size_t with_one = open_files();
        for (unsigned i = 1; i < count; ++i) {
            open();
        }
        ASSERT_TRUE(until([&] { return open_files() <= with_one; }))
            << open_files() << " for " << count << " connections, " << with_one << " for one";
    }

    // Everything of the others works, and they were told nothing.
    void expect_untouched(const std::list<connection *> &closed)
    {
        for (connection &k : all) {
            if (std::find(closed.begin(), closed.end(), &k) == closed.end()) {
                EXPECT_EQ(0, k.client_errors.count);
                EXPECT_EQ(0, k.server_errors.count);
                exchange(k);
            }
        }
    }

    void close_all()
    {
        for (connection &k : all) {
            ucs_status_ptr_t x = k.client ? close_nb(k.client) : nullptr;
            ucs_status_ptr_t y = k.server ? close_nb(k.server) : nullptr;
            EXPECT_EQ(UCS_OK, finish(x));
            EXPECT_EQ(UCS_OK, finish(y));
        }
        all.clear();
    }

    entity c, s;
    server listening;
    std::list<connection> all;
};

TEST_P(ucp_shared_connection, has_one_descriptor_and_ends_with_the_last)
{
    size_t before = open_files();
    open_sharing(20);
    size_t with_all = open_files();
    expect_untouched({});
    close_all();
    // Over tcp there was none beside the lanes, which stay.
    bool by_lanes = std::string_view(GetParam()) == "tcp,self";
    EXPECT_TRUE(until([&] { return by_lanes || open_files() < with_all; }))
        << before << ", " << with_all;
    EXPECT_LE(open_files(), with_all);
    open_sharing(2);
    close_all();
}

TEST_P(ucp_shared_connection, keeps_the_addresses_of_each)
{
    open_sharing(3);
    for (connection &k : all) {
        ucp_ep_attr_t client = {}, server = {};
        client.field_mask = server.field_mask =
            UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
        ASSERT_EQ(UCS_OK, ucp_ep_query(k.client, &client));
        ASSERT_EQ(UCS_OK, ucp_ep_query(k.server, &server));
        auto port = [](const sockaddr_storage &a) {
            return ntohs(reinterpret_cast<const sockaddr_in &>(a).sin_port);
        };
        EXPECT_EQ(listening.port, port(client.remote_sockaddr));
        EXPECT_EQ(listening.port, port(server.local_sockaddr));
        EXPECT_EQ(port(client.local_sockaddr), port(server.remote_sockaddr));
    }
    close_all();
}

TEST_P(ucp_shared_connection, the_first_one_closed_leaves_the_others)
{
    open_sharing(4);
    connection &first = all.front();
    ucs_status_ptr_t x = close_nb(first.client);
    ucs_status_ptr_t y = close_nb(first.server);
    EXPECT_EQ(UCS_OK, finish(x));
    EXPECT_EQ(UCS_OK, finish(y));
    first.client = first.server = nullptr;
    expect_untouched({&first});
    open();
    expect_untouched({&first});
    close_all();
}

TEST_P(ucp_shared_connection, a_flushed_close_ends_by_the_peers_failure)
{
    open_sharing(3);
    for (connection *k : {&all.front(), &all.back()}) {
        EXPECT_EQ(UCS_OK, finish(close_nb(k->client))); // the server has not closed its end
        k->client = nullptr;
        ASSERT_TRUE(until([&] { return k->server_errors.count > 0; }));
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, k->server_errors.status);
        EXPECT_EQ(UCS_OK, finish(close_nb(k->server)));
        k->server = nullptr;
    }
    expect_untouched({&all.front(), &all.back()});
    close_all();
}

TEST_P(ucp_shared_connection, a_forced_close_is_told_to_its_own_peer_alone)
{
    open_sharing(4);
    auto one = all.begin();
    for (bool by_client : {true, false, true}) {
        connection &k = *one++;
        EXPECT_EQ(UCS_OK, finish(close_nb(by_client ? k.client : k.server, true)));
        errors &seen = by_client ? k.server_errors : k.client_errors;
        ASSERT_TRUE(until([&] { return seen.count > 0; }));
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, seen.status);
        EXPECT_EQ(UCS_OK, finish(close_nb(by_client ? k.server : k.client, true)));
        EXPECT_EQ(1, seen.count);
        k.client = k.server = nullptr;
    }
    connection &last = all.back();
    EXPECT_EQ(0, last.client_errors.count + last.server_errors.count);
    exchange(last);
    close_all();
}

// Its own lane has no room for the notice.
TEST_P(ucp_shared_connection, a_forced_close_behind_a_full_lane_is_told)
{
    open_sharing(3);
    connection &k = *std::next(all.begin());
    std::vector<char> out = pattern(2000);
    std::vector<ucs_status_ptr_t> sends;
    for (unsigned i = 0, waiting = 0; i < 100000 && waiting < 100; ++i) {
        sends.push_back(send_nb(k.client, out.data(), out.size(), 1));
        waiting += UCS_PTR_IS_PTR(sends.back());
    }
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(k.client, true)));
    for (ucs_status_ptr_t p : sends) {
        ucs_status_t status = finish(p);
        EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_CANCELED) << ucs_status_string(status);
    }
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
    k.client = k.server = nullptr;
    expect_untouched({&k});
    close_all();
}

TEST_P(ucp_shared_connection, all_fail_once_when_the_peer_goes)
{
    {
        entity leaving(with_tls());
        server there(leaving);
        for (unsigned i = 0; i < 5; ++i) {
            connection &k = all.emplace_back(c, leaving, there);
            there.requests.clear();
            ping(c, k.client, leaving);
        }
    }
    for (connection &k : all) {
        ASSERT_TRUE(run_until({&c}, [&] { return k.client_errors.count > 0; }));
    }
    run_for({&c}, 0.1);
    for (connection &k : all) {
        EXPECT_EQ(1, k.client_errors.count);
        EXPECT_EQ(UCS_OK, wait({&c}, close_nb(k.client, true)));
    }
}

// Requests to share cross closes at every stage.
TEST_P(ucp_shared_connection, closes_while_the_others_are_asked)
{
    open();
    for (unsigned turn = 0; turn < 60; ++turn) {
        connection &k = all.emplace_back(c, s, listening);
        listening.requests.clear();
        close_early(c, s, k.client, k.server, turn);
        all.pop_back();
    }
    exchange(all.front());
    EXPECT_EQ(0, all.front().client_errors.count + all.front().server_errors.count);
    close_all();
}

TEST_P(ucp_shared_connection, of_a_worker_with_itself)
{
    server here(c);
    for (unsigned i = 0; i < 4; ++i) {
        connection &k = all.emplace_back(c, c, here);
        here.requests.clear();
        ping(c, k.client, c);
        ping(c, k.server, c);
    }
    for (connection &k : all) {
        ucs_status_ptr_t x = close_nb(k.client);
        ucs_status_ptr_t y = close_nb(k.server);
        EXPECT_EQ(UCS_OK, finish(x));
        EXPECT_EQ(UCS_OK, finish(y));
    }
}

UCP_TEST_OVER(ucp_shared_connection, "sm,self", "ofi_shm,self", "tcp,self", "all");

} // namespace
