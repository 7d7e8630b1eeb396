// SPDX-License-Identifier: BSD-3-Clause
//
// Client and server: connecting, refusing, closing, and what each side is told. Names begin with
// the section of the list of behaviours that they hold: s31 rules, s33 statuses, s34 scenarios, s36
// the suite of UCX.
#include "fabtests-ext/common/ucp_entity.h"

#include <sys/resource.h>

using namespace ucp_test;

namespace {

class ucp_sockaddr : public testing::TestWithParam<const char *> {
  protected:
    static options with(uint64_t client_id = 0)
    {
        options o;
        o.tls = GetParam();
        o.client_id = client_id;
        return o;
    }
    ucp_sockaddr() : c(with(0x101)), s(with()) {}

    void both(double seconds) { run_for({&c, &s}, seconds); }
    ucs_status_t finish(ucs_status_ptr_t p) { return wait({&c, &s}, p); }

    entity c, s;
};

TEST_P(ucp_sockaddr, s36_listen_bidirectional)
{
    server listening(s);
    connection k(c, s, listening);
    ping(c, k.client, s, 8);
    ping(s, k.server, c, 8);
    ping(c, k.client, s, 2000000);
    ping(s, k.server, c, 2000000);
    EXPECT_EQ(UCS_OK, finish(close_nb(k.client)));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return k.server_errors.count > 0; }));
    both(0.02);
    EXPECT_EQ(1, k.server_errors.count);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, k.server_errors.status);
    EXPECT_EQ(0, k.client_errors.count);
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
}

TEST_P(ucp_sockaddr, s36_onesided_disconnect_by_the_server)
{
    server listening(s);
    connection k(c, s, listening);
    ping(c, k.client, s);
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server)));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return k.client_errors.count > 0; }));
    EXPECT_EQ(1, k.client_errors.count);
    EXPECT_EQ(0, k.server_errors.count);
    EXPECT_TRUE(UCS_PTR_IS_ERR(send_nb(k.client, "x", 1, 1)));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.client)));
}

TEST_P(ucp_sockaddr, s31_flush_close_delivers_what_was_sent_before)
{
    for (unsigned round = 0; round < 5; ++round) {
        server listening(s);
        connection k(c, s, listening);
        std::vector<char> out(3000, 'y'), in(3000);
        std::vector<ucs_status_ptr_t> sends;
        for (unsigned i = 0; i < 100; ++i) {
            sends.push_back(send_nb(k.client, out.data(), out.size(), i));
        }
        EXPECT_EQ(UCS_OK, finish(close_nb(k.client)));
        for (ucs_status_ptr_t p : sends) {
            EXPECT_EQ(UCS_OK, finish(p));
        }
        for (unsigned i = 0; i < 100; ++i) {
            ASSERT_EQ(UCS_OK, wait({&s}, recv_nb(s, in.data(), in.size(), i)));
        }
        ASSERT_TRUE(run_until({&c, &s}, [&] { return k.server_errors.count > 0; }));
        EXPECT_EQ(1, k.server_errors.count);
        EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
    }
}

TEST_P(ucp_sockaddr, s31_sends_wait_for_the_connection)
{
    server listening(s);
    ucp_ep_h client, accepted;
    errors ce, se;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    std::vector<char> out(100000, 'z'), in(100000);
    ucs_status_ptr_t send = send_nb(client, out.data(), out.size(), 3);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send));
    ucs_status_ptr_t recv = recv_nb(s, in.data(), in.size(), 3);
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    ASSERT_EQ(UCS_OK, listening.accept(&accepted, &se));
    EXPECT_EQ(UCS_OK, finish(send));
    EXPECT_EQ(UCS_OK, finish(recv));
    EXPECT_EQ(out, in);
    ucs_status_ptr_t c1 = close_nb(client), c2 = close_nb(accepted);
    EXPECT_EQ(UCS_OK, finish(c1));
    EXPECT_EQ(UCS_OK, finish(c2));
}

TEST_P(ucp_sockaddr, s36_ep_query_tells_the_addresses)
{
    server listening(s);
    connection k(c, s, listening);
    ping(c, k.client, s);
    ucp_ep_attr_t at_c = {}, at_s = {};
    at_c.field_mask = at_s.field_mask =
        UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    ASSERT_EQ(UCS_OK, ucp_ep_query(k.client, &at_c));
    ASSERT_EQ(UCS_OK, ucp_ep_query(k.server, &at_s));
    auto port = [](const sockaddr_storage &a) {
        return ntohs(reinterpret_cast<const sockaddr_in *>(&a)->sin_port);
    };
    EXPECT_EQ(listening.port, port(at_c.remote_sockaddr));
    EXPECT_EQ(listening.port, port(at_s.local_sockaddr));
    EXPECT_EQ(port(at_c.local_sockaddr), port(at_s.remote_sockaddr));
    ucs_status_ptr_t c1 = close_nb(k.client), c2 = close_nb(k.server);
    EXPECT_EQ(UCS_OK, finish(c1));
    EXPECT_EQ(UCS_OK, finish(c2));
    EXPECT_EQ(0, k.client_errors.count + k.server_errors.count);
}

TEST_P(ucp_sockaddr, s36_ep_query_tells_a_client_whom_it_asks_before_progress)
{
    server listening(s);
    ucp_ep_h client = nullptr;
    errors none;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &none));
    ucp_ep_attr_t attr = {};
    attr.field_mask = UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR;
    ASSERT_EQ(UCS_OK, ucp_ep_query(client, &attr));
    EXPECT_EQ(listening.port,
              ntohs(reinterpret_cast<const sockaddr_in *>(&attr.remote_sockaddr)->sin_port));
    EXPECT_EQ(UCS_OK, finish(close_nb(client, true)));
}

TEST_P(ucp_sockaddr, s36_concurrent_force_close)
{
    server listening(s);
    connection k(c, s, listening);
    ping(c, k.client, s);
    ucs_status_ptr_t c1 = close_nb(k.client, true), c2 = close_nb(k.server, true);
    EXPECT_EQ(UCS_OK, finish(c1));
    EXPECT_EQ(UCS_OK, finish(c2));
    both(0.05);
    EXPECT_EQ(0, k.client_errors.count + k.server_errors.count);
}

TEST_P(ucp_sockaddr, s36_one_sided_force_close)
{
    server listening(s);
    connection k(c, s, listening);
    ping(c, k.client, s);
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return k.client_errors.count > 0; }));
    both(0.02);
    EXPECT_EQ(1, k.client_errors.count);
    EXPECT_EQ(UCS_OK, finish(close_nb(k.client))); // FLUSH of a failed endpoint ends
}

TEST_P(ucp_sockaddr, s36_reject)
{
    server listening(s);
    ucp_ep_h client;
    errors ce;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    ucs_status_ptr_t send = send_nb(client, "12345678", 8, 1);
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    EXPECT_EQ(UCS_OK, ucp_listener_reject(listening.listener, listening.requests[0]));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return ce.count > 0; }));
    EXPECT_EQ(UCS_ERR_REJECTED, ce.status);
    EXPECT_EQ(UCS_ERR_REJECTED, finish(send));
    both(0.02);
    EXPECT_EQ(1, ce.count);
    EXPECT_EQ(nullptr, close_nb(client, true));
}

TEST_P(ucp_sockaddr, s36_conn_request_query_tells_who_asks)
{
    server listening(s);
    ucp_ep_h client;
    errors ce;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce, UCP_ERR_HANDLING_MODE_PEER,
                              UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    ucp_conn_request_attr_t attr = {};
    attr.field_mask =
        UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR | UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID;
    ASSERT_EQ(UCS_OK, ucp_conn_request_query(listening.requests[0], &attr));
    EXPECT_EQ(0x101u, attr.client_id);
    EXPECT_EQ(AF_INET, attr.client_address.ss_family);
    EXPECT_EQ(UCS_OK, ucp_listener_reject(listening.listener, listening.requests[0]));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return ce.count > 0; }));
    close_nb(client, true);
}

TEST_P(ucp_sockaddr, s33_s36_nobody_listens)
{
    uint16_t port;
    {
        server listening(s);
        port = listening.port;
    }
    ucp_ep_h client;
    errors ce;
    ASSERT_EQ(UCS_OK, connect(c, port, &client, &ce));
    ucs_status_ptr_t send = send_nb(client, "x", 1, 1);
    ASSERT_TRUE(run_until({&c}, [&] { return ce.count > 0; }));
    EXPECT_TRUE(ce.status == UCS_ERR_NOT_CONNECTED || ce.status == UCS_ERR_CONNECTION_RESET ||
                ce.status == UCS_ERR_UNREACHABLE)
        << ucs_status_string(ce.status);
    EXPECT_NE(UCS_OK, finish(send));
    EXPECT_TRUE(UCS_PTR_IS_ERR(send_nb(client, "x", 1, 1)));
    EXPECT_EQ(1, ce.count);
    EXPECT_EQ(UCS_OK, finish(close_nb(client)));
}

TEST_P(ucp_sockaddr, s34_error_modes_must_agree)
{
    server listening(s);
    ucp_ep_h client, accepted = nullptr;
    errors ce, se;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce, UCP_ERR_HANDLING_MODE_NONE));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, listening.accept(&accepted, &se));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return ce.count > 0; }));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(close_nb(client, true)));
    EXPECT_EQ(UCS_OK, finish(close_nb(client)));
}

TEST_P(ucp_sockaddr, s34_accept_on_another_worker)
{
    server listening(s);
    ucp_worker_h other = s.second_worker(with());
    ucp_ep_h client, accepted;
    errors ce, se;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    ASSERT_EQ(UCS_OK, listening.accept(&accepted, &se, other));
    char in[8] = {};
    ucp_request_param_t param = {};
    ucs_status_ptr_t recv = ucp_tag_recv_nbx(other, in, 8, 5, ~ucp_tag_t(0), &param);
    EXPECT_EQ(UCS_OK, finish(send_nb(client, "abcdefg", 8, 5)));
    EXPECT_EQ(UCS_OK, finish(recv));
    EXPECT_STREQ("abcdefg", in);
    ucs_status_ptr_t c1 = close_nb(client), c2 = close_nb(accepted);
    EXPECT_EQ(UCS_OK, finish(c1));
    EXPECT_EQ(UCS_OK, finish(c2));
}

TEST_P(ucp_sockaddr, s31_accept_handler_gets_an_endpoint)
{
    server listening(s, true);
    ucp_ep_h client;
    errors ce, se;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.accepted.empty(); }));
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_handler.cb = errors::handler;
    params.err_handler.arg = &se;
    EXPECT_EQ(nullptr, ucp_ep_modify_nb(listening.accepted[0], &params));
    ping(c, client, s);
    EXPECT_EQ(UCS_OK, finish(close_nb(client)));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return se.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(close_nb(listening.accepted[0], true)));
}

TEST_P(ucp_sockaddr, s34_client_goes_before_accept)
{
    server listening(s);
    ucp_ep_h client, accepted = nullptr;
    errors ce, se;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    EXPECT_EQ(nullptr, close_nb(client, true));
    both(0.05);
    ucs_status_t status = listening.accept(&accepted, &se);
    if (status == UCS_OK) {
        ASSERT_TRUE(run_until({&c, &s}, [&] { return se.count > 0; }));
        EXPECT_EQ(UCS_OK, finish(close_nb(accepted, true)));
    }
}

TEST_P(ucp_sockaddr, s31_s34_listener_goes_with_requests_pending)
{
    auto listening = std::make_unique<server>(s);
    ucp_ep_h one, two;
    errors e1, e2;
    ASSERT_EQ(UCS_OK, connect(c, listening->port, &one, &e1));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening->requests.empty(); }));
    ASSERT_EQ(UCS_OK, connect(c, listening->port, &two, &e2));
    run_for({&c}, 0.1); // arrives, but the server's user never hears of it
    listening->destroy();
    ASSERT_TRUE(run_until({&c, &s}, [&] { return e2.count > 0; }));
    EXPECT_EQ(nullptr, close_nb(one, true));
    EXPECT_EQ(nullptr, close_nb(two, true));
    ucp_ep_h accepted = nullptr;
    errors se;
    if (listening->accept(&accepted, &se) == UCS_OK) {
        EXPECT_TRUE(run_until({&s}, [&] { return se.count > 0; }));
        EXPECT_EQ(UCS_OK, finish(close_nb(accepted, true)));
    }
}

TEST_P(ucp_sockaddr, a_listener_goes_though_no_descriptors_are_left)
{
    auto listening = std::make_unique<server>(s);
    rlimit before;
    ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
    rlimit none = {0, before.rlim_max};
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
    listening.reset();
    ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
    server again(s);
    connection k(c, s, again);
    ping(c, k.client, s);
}

TEST_P(ucp_sockaddr, s31_existing_connections_outlive_the_listener)
{
    server listening(s);
    connection k(c, s, listening);
    ping(c, k.client, s);
    listening.destroy();
    ping(s, k.server, c, 5000);
    ucs_status_ptr_t c1 = close_nb(k.client), c2 = close_nb(k.server);
    EXPECT_EQ(UCS_OK, finish(c1));
    EXPECT_EQ(UCS_OK, finish(c2));
}

TEST_P(ucp_sockaddr, s36_error_handler_may_close)
{
    server listening(s);
    struct closer {
        int count = 0;
        static void handler(void *arg, ucp_ep_h ep, ucs_status_t)
        {
            ++static_cast<closer *>(arg)->count;
            EXPECT_FALSE(UCS_PTR_IS_ERR(close_nb(ep, true)));
        }
    } closing;
    ucp_ep_h client, accepted;
    errors se;
    sockaddr_in a = host_address(listening.port);
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&a);
    params.sockaddr.addrlen = sizeof(a);
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler.cb = closer::handler;
    params.err_handler.arg = &closing;
    ASSERT_EQ(UCS_OK, ucp_ep_create(c.worker, &params, &client));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty(); }));
    ASSERT_EQ(UCS_OK, listening.accept(&accepted, &se));
    ping(c, client, s);
    EXPECT_EQ(UCS_OK, finish(close_nb(accepted, true)));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return closing.count > 0; }));
    both(0.02);
    EXPECT_EQ(1, closing.count);
}

TEST_P(ucp_sockaddr, s36_many_clients)
{
    server listening(s);
    constexpr unsigned count = 30;
    std::vector<ucp_ep_h> clients(count), accepted(count);
    std::vector<errors> ce(count), se(count);
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, connect(c, listening.port, &clients[i], &ce[i]));
    }
    ASSERT_TRUE(run_until({&c, &s}, [&] { return listening.requests.size() == count; }));
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, listening.accept(&accepted[i], &se[i]));
    }
    for (unsigned i = 0; i < count; ++i) {
        ping(c, clients[i], s, 100 + i);
    }
    std::vector<ucs_status_ptr_t> closes;
    for (unsigned i = 0; i < count; ++i) {
        closes.push_back(close_nb(clients[i]));
        closes.push_back(close_nb(accepted[i]));
    }
    for (ucs_status_ptr_t p : closes) {
        EXPECT_EQ(UCS_OK, finish(p));
    }
    for (unsigned i = 0; i < count; ++i) {
        EXPECT_EQ(0, ce[i].count + se[i].count);
    }
}

TEST_P(ucp_sockaddr, s36_listener_invalid_params)
{
    sockaddr_in a = host_address(0);
    ucp_listener_params_t params = {};
    ucp_listener_h listener;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_listener_create(s.worker, nullptr, &listener));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_listener_create(s.worker, &params, &listener));
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_listener_create(s.worker, &params, &listener));
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&a);
    params.sockaddr.addrlen = sizeof(a);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_listener_create(s.worker, &params, &listener));
    params.field_mask |= UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_listener_create(s.worker, &params, &listener));
    params.field_mask |= UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER;
    params.conn_handler.cb = [](ucp_conn_request_h, void *) {};
    params.accept_handler.cb = [](ucp_ep_h, void *) {};
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_listener_create(s.worker, &params, &listener));
    params.field_mask &= ~uint64_t(UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER);
    EXPECT_EQ(UCS_OK, ucp_listener_create(s.worker, &params, &listener));
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    ASSERT_EQ(UCS_OK, ucp_listener_query(listener, &attr));
    memcpy(&a, &attr.sockaddr, sizeof(a));
    ucp_listener_h second;
    EXPECT_EQ(UCS_ERR_BUSY, ucp_listener_create(s.worker, &params, &second));
    ucp_listener_destroy(listener);
}

TEST_P(ucp_sockaddr, s36_listen_on_any_address)
{
    sockaddr_in a = host_address(0);
    a.sin_addr.s_addr = htonl(INADDR_ANY);
    std::vector<ucp_conn_request_h> requests;
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&a);
    params.sockaddr.addrlen = sizeof(a);
    params.conn_handler.cb = [](ucp_conn_request_h r, void *arg) {
        static_cast<std::vector<ucp_conn_request_h> *>(arg)->push_back(r);
    };
    params.conn_handler.arg = &requests;
    ucp_listener_h listener;
    ASSERT_EQ(UCS_OK, ucp_listener_create(s.worker, &params, &listener));
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    ASSERT_EQ(UCS_OK, ucp_listener_query(listener, &attr));
    uint16_t port = ntohs(reinterpret_cast<sockaddr_in *>(&attr.sockaddr)->sin_port);
    ASSERT_NE(0, port);
    ucp_ep_h client;
    errors ce;
    ASSERT_EQ(UCS_OK, connect(c, port, &client, &ce));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !requests.empty(); }));
    EXPECT_EQ(UCS_OK, ucp_listener_reject(listener, requests[0]));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return ce.count > 0; }));
    close_nb(client, true);
    ucp_listener_destroy(listener);
}

TEST_P(ucp_sockaddr, s36_local_address_is_bound)
{
    server listening(s);
    sockaddr_in remote = host_address(listening.port), local = host_address(0);
    local.sin_addr.s_addr = htonl(0x7f000002); // 127.0.0.2
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR;
    errors ce;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&remote);
    params.sockaddr.addrlen = sizeof(remote);
    params.local_sockaddr.addr = reinterpret_cast<sockaddr *>(&local);
    params.local_sockaddr.addrlen = sizeof(local);
    ce.watch(&params);
    ucp_ep_h client;
    ASSERT_EQ(UCS_OK, ucp_ep_create(c.worker, &params, &client));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !listening.requests.empty() || ce.count; }));
    ASSERT_EQ(0, ce.count) << ucs_status_string(ce.status);
    ucp_conn_request_attr_t attr = {};
    attr.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
    ASSERT_EQ(UCS_OK, ucp_conn_request_query(listening.requests[0], &attr));
    EXPECT_EQ(local.sin_addr.s_addr,
              reinterpret_cast<sockaddr_in *>(&attr.client_address)->sin_addr.s_addr);
    ucp_listener_reject(listening.listener, listening.requests[0]);
    ASSERT_TRUE(run_until({&c, &s}, [&] { return ce.count > 0; }));
    close_nb(client, true);
}

TEST_P(ucp_sockaddr, s31_ipv6)
{
    sockaddr_in6 a = {};
    a.sin6_family = AF_INET6;
    a.sin6_addr = in6addr_loopback;
    std::vector<ucp_conn_request_h> requests;
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&a);
    params.sockaddr.addrlen = sizeof(a);
    params.conn_handler.cb = [](ucp_conn_request_h r, void *arg) {
        static_cast<std::vector<ucp_conn_request_h> *>(arg)->push_back(r);
    };
    params.conn_handler.arg = &requests;
    ucp_listener_h listener;
    if (ucp_listener_create(s.worker, &params, &listener) != UCS_OK) {
        GTEST_SKIP() << "this machine has no IPv6";
    }
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    ASSERT_EQ(UCS_OK, ucp_listener_query(listener, &attr));
    ucp_ep_params_t ep_params = {};
    ep_params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    errors ce, se;
    ep_params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    ep_params.sockaddr.addr = reinterpret_cast<sockaddr *>(&attr.sockaddr);
    ep_params.sockaddr.addrlen = sizeof(a);
    ce.watch(&ep_params);
    ucp_ep_h client, accepted;
    ASSERT_EQ(UCS_OK, ucp_ep_create(c.worker, &ep_params, &client));
    ASSERT_TRUE(run_until({&c, &s}, [&] { return !requests.empty(); }));
    ep_params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    ep_params.conn_request = requests[0];
    se.watch(&ep_params);
    ASSERT_EQ(UCS_OK, ucp_ep_create(s.worker, &ep_params, &accepted));
    ping(c, client, s);
    ping(s, accepted, c);
    ucs_status_ptr_t c1 = close_nb(client), c2 = close_nb(accepted);
    EXPECT_EQ(UCS_OK, finish(c1));
    EXPECT_EQ(UCS_OK, finish(c2));
    ucp_listener_destroy(listener);
}

TEST_P(ucp_sockaddr, s36_both_close_with_much_in_flight)
{
    server listening(s);
    connection k(c, s, listening);
    ping(c, k.client, s);
    constexpr unsigned count = 800;
    std::vector<char> out(4000, 'm'), in(4000); // eager: a close gives up a rendezvous
    std::vector<ucs_status_ptr_t> sends;
    for (unsigned i = 0; i < count; ++i) {
        sends.push_back(send_nb(k.client, out.data(), out.size(), i));
        sends.push_back(send_nb(k.server, out.data(), out.size(), i));
    }
    ucs_status_ptr_t c1 = close_nb(k.server), c2 = close_nb(k.client);
    EXPECT_EQ(UCS_OK, finish(c1));
    EXPECT_EQ(UCS_OK, finish(c2));
    for (ucs_status_ptr_t p : sends) {
        EXPECT_EQ(UCS_OK, finish(p));
    }
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, wait({&s}, recv_nb(s, in.data(), in.size(), i)));
        ASSERT_EQ(UCS_OK, wait({&c}, recv_nb(c, in.data(), in.size(), i)));
    }
    EXPECT_EQ(0, k.client_errors.count + k.server_errors.count);
}

UCP_TEST_OVER(ucp_sockaddr, "sm,self", "ofi_shm,self", "tcp,self", "all");

} // namespace
