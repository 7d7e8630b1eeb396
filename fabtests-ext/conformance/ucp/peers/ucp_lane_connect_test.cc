// SPDX-License-Identifier: BSD-3-Clause
//
// Client endpoints that are asked for over the lane of a shared connection
// (connect/lane_connect.h): they arrive where a call at the address would, have what such an
// endpoint has, and each end is told once of the other's, whatever happens on the way.
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/conformance/ucp/peers/client_server.h"
#include "ucp/connect/lane_connect.h"
#include "ucs/sockaddr.h"

namespace {

using namespace ucp_test;

class ucp_lane_connect : public client_server {
  protected:
    // Two endpoints, of which the second shares the connection of the first on both sides.
    void open_sharing()
    {
        exchange(open_first());
        const ends &second = begin();
        exchange(second);
        ASSERT_TRUE(until([&] { return !has_its_own(second.client) && known(c) == known(s); }));
        shared = connection_of(second.client);
        ASSERT_TRUE(shared->shared());
        ASSERT_EQ(shared->peer_id, connection_of(second.server)->id);
    }

    // A third, which the server has been asked for over the lane.
    ends &ask_over_lane()
    {
        ends &k = ask();
        EXPECT_TRUE(is_asking(k.client));
        EXPECT_TRUE(listening.requests.back()->asks);
        return k;
    }

    // With this local address; the server accepts. Whether it was asked over the lane.
    bool ask_over_lane_from(sockaddr_in from)
    {
        ends &k = all.emplace_back();
        sockaddr_in to = host_address(listening.port);
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                            UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR;
        params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        params.sockaddr = {reinterpret_cast<sockaddr *>(&to), sizeof(to)};
        params.local_sockaddr = {reinterpret_cast<sockaddr *>(&from), sizeof(from)};
        k.client_errors.watch(&params);
        EXPECT_EQ(UCS_OK, ucp_ep_create(c.worker, &params, &k.client));
        EXPECT_TRUE(until([&] { return !listening.requests.empty(); }));
        bool asks = listening.requests.front()->asks;
        EXPECT_EQ(is_asking(k.client), asks);
        EXPECT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
        return asks;
    }

    static bool is_asking(const ucp_ep *ep) { return !ep->control->by_cm->asking.empty(); }

    // The last endpoints talk, by a connection of their own or by the shared one.
    void expect_connected(bool by_call)
    {
        const ends &k = all.back();
        exchange(k);
        EXPECT_EQ(0, k.client_errors.count + k.server_errors.count);
        if (by_call) {
            EXPECT_NE(nullptr, connection_of(k.client));
        } else {
            EXPECT_EQ(shared, connection_of(k.client));
            EXPECT_EQ(shared->peer_id, connection_of(k.server)->id);
        }
    }

    // A message of the handshake, as the client's worker would send it over the shared lane.
    void say(const ucp::wireup_hdr &hdr, std::vector<uint8_t> tail)
    {
        ASSERT_EQ(UCS_OK, shared->send({hdr, std::move(tail)}));
        exchange(all.front());
    }

    ucp::wireup_hdr connect_hdr(uint64_t client) const
    {
        return {ucp::wireup_kind::connect, 0, 0, 0, c.worker->uuid, client, shared->peer_id};
    }

    // What follows it.
    std::vector<uint8_t> connect_tail(uint64_t client)
    {
        ucp::client_hello says;
        says.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        says.ep_id = client;
        says.to_share = shared->peer_id;
        std::vector<uint8_t> hello = ucp::pack_client_hello(*c.worker->cm, says);
        std::string at = shared->asked_at;
        std::vector<uint8_t> tail(1 + at.size() + hello.size());
        tail[0] = static_cast<uint8_t>(at.size());
        std::copy(at.begin(), at.end(), tail.begin() + 1);
        std::copy(hello.begin(), hello.end(),
                  tail.begin() + 1 + static_cast<std::ptrdiff_t>(at.size()));
        return tail;
    }

    ucp::cm_connection *shared = nullptr; // the client's
};

TEST_P(ucp_lane_connect, takes_no_descriptor)
{
    open_sharing();
    size_t files = open_files();
    size_t connections = known(c) + known(s);
    for (int i = 0; i < 50; ++i) {
        ends &k = ask_over_lane();
        EXPECT_EQ(files, open_files());
        ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
        expect_connected(false);
    }
    EXPECT_EQ(files, open_files());
    EXPECT_EQ(connections, known(c) + known(s));
    close_all();
}

TEST_P(ucp_lane_connect, has_the_addresses_of_the_shared_one)
{
    open_sharing();
    ends &k = ask_over_lane();
    ucp_conn_request_attr_t request = {};
    request.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
    ASSERT_EQ(UCS_OK, ucp_conn_request_query(listening.requests.front(), &request));
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(false);
    ucp_ep_attr_t client = {}, server = {}, first = {};
    client.field_mask = server.field_mask = first.field_mask =
        UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    ASSERT_EQ(UCS_OK, ucp_ep_query(k.client, &client));
    ASSERT_EQ(UCS_OK, ucp_ep_query(k.server, &server));
    ASSERT_EQ(UCS_OK, ucp_ep_query(all.front().client, &first));
    auto text = [](const sockaddr_storage &a) {
        return ucs::sockaddr_string(reinterpret_cast<const sockaddr *>(&a));
    };
    EXPECT_EQ(text(first.local_sockaddr), text(client.local_sockaddr));
    EXPECT_EQ(text(first.remote_sockaddr), text(client.remote_sockaddr));
    EXPECT_EQ(text(client.local_sockaddr), text(server.remote_sockaddr));
    EXPECT_EQ(text(client.remote_sockaddr), text(server.local_sockaddr));
    EXPECT_EQ(text(client.local_sockaddr), text(request.client_address));
    close_all();
}

TEST_P(ucp_lane_connect, sends_what_was_posted_before_the_answer)
{
    open_sharing();
    ends &k = ask_over_lane();
    char word[8] = {};
    ucp_request_param_t none = {};
    void *sent = ucp_tag_send_nbx(k.client, "a word", 7, 5, &none);
    void *received = recv_nb(s, word, sizeof(word), 5);
    ucs_status_ptr_t closing = close_nb(k.client); // behind it
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    EXPECT_EQ(UCS_OK, finish(sent));
    EXPECT_EQ(UCS_OK, finish(received));
    EXPECT_STREQ("a word", word);
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
    EXPECT_EQ(UCS_OK, finish(closing));
    all.pop_back();
    close_all();
}

TEST_P(ucp_lane_connect, is_rejected)
{
    open_sharing();
    const ends &k = ask_over_lane();
    EXPECT_EQ(UCS_OK, ucp_listener_reject(listening.listener, listening.requests.front()));
    listening.requests.clear();
    ASSERT_TRUE(until([&] { return k.client_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_REJECTED, k.client_errors.status);
    EXPECT_EQ(0u, s.context->asked_over_lanes.load());
    EXPECT_TRUE(c.worker->cm->connections.withdrawn.empty());
    close_all();
}

TEST_P(ucp_lane_connect, is_rejected_with_its_listener)
{
    open_sharing();
    ends &k = all.emplace_back();
    ASSERT_EQ(UCS_OK, connect_trusting(kept, c, listening.port, &k.client, &k.client_errors));
    ASSERT_TRUE(run_until({&c}, [&] { // it has come, and the program was not told
        uct_worker_progress(s.worker->uct);
        return s.context->asked_over_lanes.load() == 1;
    }));
    listening.destroy();
    ASSERT_TRUE(until([&] { return k.client_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_REJECTED, k.client_errors.status);
    close_all();
}

TEST_P(ucp_lane_connect, calls_where_another_listener_has_the_address)
{
    open_sharing();
    uint16_t port = listening.port;
    listening.destroy();
    server next(s, false, host_address(port));
    for (int i = 0; i < 2; ++i) {
        ends &k = all.emplace_back();
        ASSERT_EQ(UCS_OK, connect_trusting(kept, c, port, &k.client, &k.client_errors));
        EXPECT_EQ(i == 0, is_asking(k.client)) << "it asks a second time";
        ASSERT_TRUE(until([&] { return !next.requests.empty(); }));
        EXPECT_FALSE(next.requests.front()->asks);
        ASSERT_EQ(UCS_OK, next.accept(&k.server, &k.server_errors));
        expect_connected(true);
    }
    close_all();
}

// As behind an address that leads to one of several servers.
TEST_P(ucp_lane_connect, calls_where_the_address_is_not_the_servers)
{
    open_sharing();
    ucp::cm_connection *of_server = s.worker->cm->connections.by_id.at(shared->peer_id).get();
    auto *local = const_cast<ucp::cm_addresses *>(of_server->addresses());
    ASSERT_NE(nullptr, local);
    ucs::sockaddr_set_port(reinterpret_cast<sockaddr *>(&local->local), 1);
    ends &k = all.emplace_back();
    ASSERT_EQ(UCS_OK, connect_trusting(kept, c, listening.port, &k.client, &k.client_errors));
    EXPECT_TRUE(is_asking(k.client));
    ASSERT_TRUE(until([&] { return !listening.requests.empty(); }));
    EXPECT_FALSE(listening.requests.front()->asks);
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(true);
    EXPECT_FALSE(shared->takes_clients);
    close_all();
}

TEST_P(ucp_lane_connect, calls_where_it_has_to_have_a_port_of_its_own)
{
    open_sharing();
    int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); // for a port that is free
    sockaddr_in from = host_address(0);
    socklen_t length = sizeof(from);
    ASSERT_EQ(0, bind(probe, reinterpret_cast<sockaddr *>(&from), length));
    ASSERT_EQ(0, getsockname(probe, reinterpret_cast<sockaddr *>(&from), &length));
    ASSERT_EQ(0, close(probe));
    EXPECT_FALSE(ask_over_lane_from(from));
    expect_connected(true);
    close_all();
}

TEST_P(ucp_lane_connect, comes_from_the_host_that_it_names_and_from_no_other)
{
    open_sharing();
    sockaddr_in other = host_address(0);
    other.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
    EXPECT_TRUE(ask_over_lane_from(host_address(0))) << "it is that of the shared one";
    expect_connected(false);
    EXPECT_FALSE(ask_over_lane_from(other));
    expect_connected(true);
    shared->local_was_named = true;
    ends &k = ask();
    EXPECT_FALSE(is_asking(k.client)) << "the system would choose another";
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(true);
    close_all();
}

TEST_P(ucp_lane_connect, calls_where_too_many_wait)
{
    open_sharing();
    s.context->config.listener_backlog = 2;
    for (int i = 0; i < 5; ++i) {
        ends &k = all.emplace_back();
        ASSERT_EQ(UCS_OK, connect_trusting(kept, c, listening.port, &k.client, &k.client_errors));
    }
    ASSERT_TRUE(until([&] { return listening.requests.size() == 5; }));
    EXPECT_EQ(2, std::count_if(listening.requests.begin(), listening.requests.end(),
                               [](ucp_conn_request_h r) { return r->asks; }));
    for (ends &k : all) {
        while (!k.server && !listening.requests.empty()) {
            ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
        }
    }
    EXPECT_TRUE(until([&] {
        return std::all_of(all.begin(), all.end(), [](const ends &k) {
            return k.client->state == ucp::ep_state::connected &&
                   k.server->state == ucp::ep_state::connected;
        });
    }));
    EXPECT_TRUE(shared->takes_clients);
    EXPECT_EQ(0u, s.context->asked_over_lanes.load());
    close_all();
}

TEST_P(ucp_lane_connect, calls_when_the_connection_ends_before_the_answer)
{
    open_sharing();
    ends &k = ask_over_lane();
    ucp::on_connection_ended(c.worker, shared->id);
    ucp::on_connection_ended(s.worker, connection_of(all.front().server)->id);
    shared = nullptr;
    ASSERT_TRUE(until([&] { return listening.requests.size() == 2; })) << "it has not called";
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, listening.accept(&k.server, &k.server_errors))
        << "what was asked for over the lane is accepted without it";
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(true);
    close_all();
}

// The lane may be faster than the client's confirmation of the connection.
TEST_P(ucp_lane_connect, is_taken_before_the_connection_is_confirmed)
{
    open_sharing();
    ucp::cm_connection *of_server = connection_of(all.front().server);
    of_server->established = false;
    all.front().server->control->by_cm->established = false;
    ends &k = ask_over_lane();
    EXPECT_TRUE(of_server->established);
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(false);
    close_all();
}

// The server has forgotten the connection, and the client has not read the notices of that.
TEST_P(ucp_lane_connect, calls_where_the_server_does_not_know_the_connection)
{
    for (int i = 0; i < 2; ++i) {
        exchange(begin(ucp::lane_trust::all));
    }
    ASSERT_TRUE(until([&] { return known(c) == 1 && known(s) == 1; }));
    for (ends &k : all) {
        EXPECT_EQ(UCS_OK, wait({&s}, close_nb(std::exchange(k.server, nullptr), true)));
    }
    ASSERT_TRUE(run_until({&s}, [&] { return known(s) == 0; }));
    ends &k = all.emplace_back();
    ASSERT_EQ(UCS_OK, connect_trusting(kept, c, listening.port, &k.client, &k.client_errors));
    ASSERT_TRUE(is_asking(k.client));
    ASSERT_TRUE(until([&] { return !listening.requests.empty(); }));
    EXPECT_FALSE(listening.requests.front()->asks);
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(true);
    close_all();
}

TEST_P(ucp_lane_connect, keeps_the_connection_that_all_others_have_left)
{
    open_sharing();
    ends &k = ask_over_lane();
    while (all.size() > 1) {
        const ends &other = all.front();
        ucs_status_ptr_t x = close_nb(other.client);
        ucs_status_ptr_t y = close_nb(other.server);
        EXPECT_EQ(UCS_OK, finish(x));
        EXPECT_EQ(UCS_OK, finish(y));
        all.pop_front();
    }
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(false);
    close_all();
}

TEST_P(ucp_lane_connect, the_server_is_told_that_the_client_closed_before_the_answer)
{
    open_sharing();
    ends &k = ask_over_lane();
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(std::exchange(k.client, nullptr), true)));
    EXPECT_EQ(1u, c.worker->cm->connections.withdrawn.size());
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_told(k.server_errors);
}

TEST_P(ucp_lane_connect, the_server_is_told_that_the_client_closed_at_once)
{
    open_sharing();
    ends &k = ask_over_lane();
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    ASSERT_TRUE(run_until({&c}, [&] { return !is_asking(k.client); }));
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(std::exchange(k.client, nullptr), true)));
    expect_told(k.server_errors);
}

TEST_P(ucp_lane_connect, the_client_is_told_that_the_server_closed_at_once)
{
    open_sharing();
    ends &k = ask_over_lane();
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    EXPECT_EQ(UCS_OK, wait({&s}, close_nb(std::exchange(k.server, nullptr), true)));
    expect_told(k.client_errors);
}

// The notice over the connection's lane is faster than the answer, or all that comes.
TEST_P(ucp_lane_connect, the_client_is_told_that_the_server_closed_without_an_answer)
{
    open_sharing();
    const ends &k = ask_over_lane();
    const ucp_ep *client = k.client;
    ucp::wireup_hdr notice = {ucp::wireup_kind::close, 1, 0, 0, s.worker->uuid, 7,
                              client->local_id};
    connection_of(all.front().server)->send_notice(notice);
    ASSERT_TRUE(until([&] { return k.client_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, k.client_errors.status);
    EXPECT_EQ(UCS_OK, ucp_listener_reject(listening.listener, listening.requests.front()));
    close_all();
}

TEST_P(ucp_lane_connect, is_accepted_by_another_worker)
{
    open_sharing();
    ucp_worker_h other = s.second_worker(with_tls());
    ends &k = ask_over_lane();
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors, other));
    auto connected = [&] {
        ucp_worker_progress(other);
        return k.client->state == ucp::ep_state::connected &&
               k.server->state == ucp::ep_state::connected;
    };
    ASSERT_TRUE(until(connected));
    char word[8] = {};
    ucp_request_param_t none = {};
    void *sent = ucp_tag_send_nbx(k.server, "a word", 7, 5, &none);
    void *received = recv_nb(c, word, sizeof(word), 5);
    EXPECT_EQ(UCS_OK, finish(received));
    EXPECT_EQ(UCS_OK, finish(sent));
    EXPECT_EQ(nullptr, connection_of(k.client));
    ucs_status_ptr_t closing = close_nb(k.client);
    ASSERT_TRUE(until([&] { return ucp_worker_progress(other) && k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(closing));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
    all.pop_back();

    EXPECT_FALSE(shared->takes_clients);
    shared->takes_clients = true;
    ends &gone = ask_over_lane();
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(gone.client, true)));
    ASSERT_EQ(UCS_OK, listening.accept(&gone.server, &gone.server_errors, other));
    ASSERT_TRUE(until([&] {
        ucp_worker_progress(other);
        return gone.server_errors.count > 0;
    }));
    EXPECT_EQ(UCS_OK, finish(close_nb(gone.server, true)));
    all.pop_back();
    close_all();
}

TEST_P(ucp_lane_connect, what_is_refused_by_another_worker_is_told)
{
    open_sharing();
    ucp_worker_h other = s.second_worker(with_tls());
    const ends &k = ask_over_lane();
    ucp::refuse_request(other, listening.requests.front());
    listening.requests.clear();
    ASSERT_TRUE(until([&] {
        ucp_worker_progress(other);
        return k.client_errors.count > 0;
    }));
    EXPECT_EQ(UCS_ERR_REJECTED, k.client_errors.status);
    close_all();
}

TEST_P(ucp_lane_connect, believes_no_message_that_contradicts_itself)
{
    open_sharing();
    constexpr uint64_t client = 77;
    const std::vector<uint8_t> right = connect_tail(client);
    uint64_t stale = s.worker->stale_messages;
    auto expect_dropped = [&](ucp::wireup_hdr hdr, std::vector<uint8_t> tail) {
        say(hdr, std::move(tail));
        EXPECT_EQ(++stale, s.worker->stale_messages);
        EXPECT_TRUE(listening.requests.empty());
    };
    for (size_t length = 0; length < right.size(); ++length) {
        expect_dropped(connect_hdr(client),
                       {right.begin(), right.begin() + static_cast<std::ptrdiff_t>(length)});
    }
    ucp::wireup_hdr hdr = connect_hdr(client + 1); // the hello is another's
    expect_dropped(hdr, right);
    hdr = connect_hdr(client);
    hdr.src_uuid ^= 1;
    expect_dropped(hdr, right);
    hdr = connect_hdr(client);
    hdr.dst_ep ^= uint64_t(1) << 40; // no connection has that name
    expect_dropped(hdr, right);
    std::vector<uint8_t> long_text = right;
    long_text[0] = UINT8_MAX;
    expect_dropped(connect_hdr(client), long_text);
    close_all();
}

TEST_P(ucp_lane_connect, believes_no_answer_to_what_it_has_not_asked)
{
    open_sharing();
    ends &k = ask_over_lane();
    uint64_t stale = c.worker->stale_messages;
    ucp::cm_connection *of_server = connection_of(all.front().server);
    auto say_to_client = [&](ucp::wireup_kind kind, uint64_t from, uint64_t to,
                             std::vector<uint8_t> tail) {
        ucp::wireup_hdr hdr = {kind, 0, 0, 0, s.worker->uuid, from, to};
        ASSERT_EQ(UCS_OK, of_server->send({hdr, std::move(tail)}));
        exchange(all.front());
    };
    say_to_client(ucp::wireup_kind::refused, of_server->id ^ 1, k.client->local_id, {});
    EXPECT_EQ(++stale, c.worker->stale_messages) << "in the name of another connection";
    say_to_client(ucp::wireup_kind::refused, of_server->id, all.front().client->local_id, {});
    EXPECT_EQ(++stale, c.worker->stale_messages) << "to an endpoint that stands";
    say_to_client(ucp::wireup_kind::accepted, 5, all.front().client->local_id, {1, 2, 3});
    EXPECT_EQ(++stale, c.worker->stale_messages) << "the same";
    EXPECT_TRUE(is_asking(k.client));
    ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
    expect_connected(false);
    close_all();
}

TEST_P(ucp_lane_connect, fails_by_an_answer_that_is_damaged)
{
    open_sharing();
    const ends &k = ask_over_lane();
    ucp::wireup_hdr hdr = {ucp::wireup_kind::accepted, 0, 0, 0, s.worker->uuid, 5,
                           k.client->local_id};
    ASSERT_EQ(UCS_OK, connection_of(all.front().server)->send({hdr, {3, 0, 1}}));
    ASSERT_TRUE(until([&] { return k.client_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, k.client_errors.status);
    EXPECT_EQ(UCS_OK, ucp_listener_reject(listening.listener, listening.requests.front()));
    close_all();
}

// What it says arrives while it says it.
TEST_P(ucp_lane_connect, of_a_worker_with_itself)
{
    auto here = std::make_unique<server>(c);
    const uint16_t port = here->port;
    auto begin_here = [&] {
        ends &k = all.emplace_back();
        EXPECT_EQ(UCS_OK, connect_trusting(kept, c, port, &k.client, &k.client_errors));
        EXPECT_TRUE(run_until({&c}, [&] { return !here->requests.empty(); }));
        return &k;
    };
    for (int i = 0; i < 4; ++i) {
        ends &k = *begin_here();
        EXPECT_EQ(i >= 2, here->requests.front()->asks);
        ASSERT_EQ(UCS_OK, here->accept(&k.server, &k.server_errors));
        ping(c, k.client, c);
        ping(c, k.server, c);
    }
    const ends &rejected = *begin_here();
    ASSERT_EQ(UCS_OK, ucp_listener_reject(here->listener, here->requests.front()));
    here->requests.clear();
    ASSERT_TRUE(run_until({&c}, [&] { return rejected.client_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_REJECTED, rejected.client_errors.status);
    here.reset();
    here = std::make_unique<server>(c, false, host_address(port));
    ends &called = *begin_here();
    EXPECT_FALSE(here->requests.front()->asks);
    ASSERT_EQ(UCS_OK, here->accept(&called.server, &called.server_errors));
    ping(c, called.client, c);
    for (ends &k : all) {
        ucs_status_ptr_t x = close_nb(k.client), y = k.server ? close_nb(k.server) : nullptr;
        EXPECT_EQ(UCS_OK, finish(x));
        EXPECT_EQ(UCS_OK, finish(y));
    }
    all.clear();
    EXPECT_TRUE(run_until({&c}, [&] { return known(c) == 0; }));
}

TEST_P(ucp_lane_connect, closes_at_any_moment)
{
    open_sharing();
    for (unsigned turn = 0; turn < 60; ++turn) {
        ends &k = ask_over_lane();
        ASSERT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
        close_early(c, s, k.client, k.server, turn);
        all.pop_back();
    }
    close_all();
}

UCP_TEST_OVER(ucp_lane_connect, "tcp,self", "sm,self", "all");

} // namespace
