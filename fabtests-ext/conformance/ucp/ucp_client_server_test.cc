// SPDX-License-Identifier: BSD-3-Clause
//
// Client-server endpoints beyond connecting: every way of closing, failures while messages are
// half-way, and every kind of operation posted before the connection stands. Names begin with the
// section of the list of behaviours that they hold: s31 rules, s33 statuses, s34 scenarios, s36 the
// suite of UCX.
#include "fabtests-ext/common/ucp_pair.h"

#include <functional>

using namespace ucp_test;

namespace {

class ucp_client_server : public testing::TestWithParam<const char *> {
  protected:
    static options with(const std::string &tls, uint64_t features = all_features)
    {
        options o;
        o.tls = tls;
        o.features = features;
        return o;
    }
    static constexpr uint64_t all_features =
        UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA;

    ucp_client_server() : c(with(GetParam())), s(with(GetParam())), listening(s) {}

    ucs_status_t finish(ucs_status_ptr_t p) { return wait({&c, &s}, p); }
    bool until(const std::function<bool()> &done) { return run_until({&c, &s}, done); }

    // What an operation may end with when its peer has closed or died.
    static bool is_loss(ucs_status_t status)
    {
        return status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_ENDPOINT_TIMEOUT ||
               status == UCS_ERR_CANCELED || status == UCS_ERR_NOT_CONNECTED;
    }

    entity c, s;
    server listening;
};

TEST_P(ucp_client_server, s36_close_callback)
{
    connection k(c, s, listening);
    ping(c, k.client, s);
    int calls = 0;
    ucp_request_param_t p = {};
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    p.cb.send = [](void *, ucs_status_t status, void *user_data) {
        EXPECT_EQ(UCS_OK, status);
        ++*static_cast<int *>(user_data);
    };
    p.user_data = &calls;
    ucs_status_ptr_t ptr = ucp_ep_close_nbx(k.client, &p);
    ASSERT_FALSE(UCS_PTR_IS_ERR(ptr));
    bool request = UCS_PTR_IS_PTR(ptr);
    EXPECT_EQ(UCS_OK, finish(ptr));
    EXPECT_EQ(request ? 1 : 0, calls);
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
}

// The peer does not answer, and the worker goes: nothing is left to wait for.
TEST_P(ucp_client_server, destroying_the_worker_ends_a_close_that_waits)
{
    struct {
        int calls = 0;
        ucs_status_t status = UCS_OK;
    } seen;
    ucp_ep_h accepted = nullptr;
    {
        entity leaving(with(GetParam()));
        connection k(leaving, s, listening);
        ping(leaving, k.client, s);
        accepted = k.server;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.cb.send = [](void *request, ucs_status_t status, void *user_data) {
            auto *to = static_cast<decltype(seen) *>(user_data);
            ++to->calls;
            to->status = status;
            ucp_request_free(request);
        };
        p.user_data = &seen;
        ASSERT_TRUE(UCS_PTR_IS_PTR(ucp_ep_close_nbx(k.client, &p)));
        run_for({&leaving}, 0.05);
        EXPECT_EQ(0, seen.calls);
    }
    EXPECT_EQ(1, seen.calls);
    EXPECT_EQ(UCS_ERR_CANCELED, seen.status);
    EXPECT_EQ(UCS_OK, finish(close_nb(accepted, true)));
}

TEST_P(ucp_client_server, s36_concurrent_disconnect)
{
    for (bool traffic : {false, true}) {
        connection k(c, s, listening);
        ping(c, k.client, s);
        std::vector<char> out(1000), in(1000);
        ucs_status_ptr_t receiving = traffic ? recv_nb(s, in.data(), in.size(), 3) : nullptr;
        ucs_status_ptr_t sending = traffic ? send_nb(k.client, out.data(), out.size(), 3) : nullptr;
        ucs_status_ptr_t x = close_nb(k.client);
        ucs_status_ptr_t y = close_nb(k.server);
        EXPECT_EQ(UCS_OK, finish(x));
        EXPECT_EQ(UCS_OK, finish(y));
        EXPECT_EQ(UCS_OK, finish(sending));
        EXPECT_EQ(UCS_OK, finish(receiving));
    }
}

TEST_P(ucp_client_server, s34_double_close)
{
    connection k(c, s, listening);
    ping(c, k.client, s);
    ucs_status_ptr_t first = close_nb(k.client);
    if (UCS_PTR_IS_PTR(first)) { // not finished: the handle is alive
        EXPECT_EQ(UCS_ERR_NOT_CONNECTED, UCS_PTR_STATUS(close_nb(k.client)));
    }
    EXPECT_EQ(UCS_OK, finish(first));
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
}

TEST_P(ucp_client_server, s34_same_port_again_is_busy)
{
    sockaddr_in a = host_address(listening.port);
    ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr = {reinterpret_cast<sockaddr *>(&a), sizeof(a)};
    params.conn_handler.cb = [](ucp_conn_request_h, void *) {};
    ucp_listener_h second = nullptr;
    EXPECT_EQ(UCS_ERR_BUSY, ucp_listener_create(s.worker, &params, &second));
    EXPECT_EQ(nullptr, second);
}

TEST_P(ucp_client_server, s33_no_route_is_an_error_of_the_client)
{
    sockaddr_in a = host_address(1234);
    a.sin_addr.s_addr = htonl(0xf0000000); // 240.0.0.0, reserved
    errors seen;
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = {reinterpret_cast<sockaddr *>(&a), sizeof(a)};
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {errors::handler, &seen};
    ucp_ep_h ep = nullptr;
    ASSERT_EQ(UCS_OK, ucp_ep_create(c.worker, &params, &ep));
    // Refused by the kernel at once, or never answered: then the test only closes.
    if (run_until(
            {&c}, [&] { return seen.count > 0; }, 2)) {
        EXPECT_TRUE(seen.status == UCS_ERR_UNREACHABLE || seen.status == UCS_ERR_NOT_CONNECTED ||
                    seen.status == UCS_ERR_CONNECTION_RESET ||
                    seen.status == UCS_ERR_ENDPOINT_TIMEOUT)
            << ucs_status_string(seen.status);
    }
    EXPECT_EQ(UCS_OK, finish(close_nb(ep, true)));
}

TEST_P(ucp_client_server, s36_error_without_handler_is_only_logged)
{
    uint16_t port;
    {
        entity gone(with(GetParam()));
        server other(gone);
        port = other.port;
    }
    ucp_ep_h ep = nullptr;
    ASSERT_EQ(UCS_OK, connect(c, port, &ep, nullptr));
    ucs_status_ptr_t sending = send_nb(ep, "12345678", 8, 1);
    EXPECT_NE(UCS_OK, finish(sending));
    EXPECT_EQ(UCS_OK, finish(close_nb(ep, true)));
}

TEST_P(ucp_client_server, s36_create_and_destroy_immediately)
{
    ucp_ep_h client = nullptr;
    errors ce, se;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    ASSERT_TRUE(until([&] { return !listening.requests.empty(); }));
    EXPECT_EQ(UCS_OK, finish(close_nb(client, true)));
    ucp_ep_h accepted = nullptr;
    ucs_status_t status = listening.accept(&accepted, &se);
    if (status == UCS_OK) {
        EXPECT_TRUE(until([&] { return se.count > 0; }));
        EXPECT_EQ(UCS_OK, finish(close_nb(accepted, true)));
    } else {
        EXPECT_TRUE(is_loss(status)) << ucs_status_string(status);
    }
}

TEST_P(ucp_client_server, s36_one_side_forces_and_the_other_flushes)
{
    for (bool client_forces : {true, false}) {
        connection k(c, s, listening);
        ping(c, k.client, s);
        ping(s, k.server, c);
        ucp_ep_h forcing = client_forces ? k.client : k.server;
        ucp_ep_h flushing = client_forces ? k.server : k.client;
        errors &told = client_forces ? k.server_errors : k.client_errors;
        EXPECT_EQ(UCS_OK, finish(close_nb(forcing, true)));
        ASSERT_TRUE(until([&] { return told.count > 0; }));
        EXPECT_EQ(UCS_OK, finish(close_nb(flushing)));
        EXPECT_EQ(1, told.count);
    }
}

// Either side closes by force while a rendezvous is on its way: what is received is right or an
// error.
TEST_P(ucp_client_server, s36_force_close_during_rndv)
{
    constexpr size_t length = 4 << 20;
    for (bool sender_closes : {true, false}) {
        entity c(with(GetParam())), s(with(GetParam()));
        server listening(s);
        auto finish = [&](ucs_status_ptr_t p) { return wait({&c, &s}, p); };
        connection k(c, s, listening), other(c, s, listening);
        ping(c, k.client, s);
        ping(c, other.client, s);
        std::vector<char> out = pattern(length, 9);
        std::vector<char> in(length);
        ucs_status_ptr_t receiving = recv_nb(s, in.data(), length, 1);
        ucs_status_ptr_t sending = send_nb(k.client, out.data(), length, 1);
        s.progress();
        ucs_status_ptr_t closing = close_nb(sender_closes ? k.client : k.server, true);
        errors &told = sender_closes ? k.server_errors : k.client_errors;
        EXPECT_EQ(UCS_OK, finish(closing));
        ucs_status_t sent = finish(sending);
        EXPECT_TRUE(sent == UCS_OK || is_loss(sent)) << ucs_status_string(sent);
        ASSERT_TRUE(run_until({&c, &s}, [&] { return told.count > 0; }));
        if (UCS_PTR_IS_PTR(receiving) && ucp_request_check_status(receiving) == UCS_INPROGRESS) {
            ucp_request_cancel(s.worker, receiving); // never matched
        }
        ucs_status_t got = finish(receiving);
        if (got == UCS_OK) {
            EXPECT_EQ(out, in);
        } else {
            EXPECT_TRUE(is_loss(got)) << ucs_status_string(got);
        }
        EXPECT_EQ(UCS_OK, finish(close_nb(sender_closes ? k.server : k.client, true)));
        // What else there is between the two workers goes on.
        run_for({&c, &s}, 0.05);
        ping(c, other.client, s, 100000);
        ping(s, other.server, c, 100000);
        EXPECT_EQ(0, other.client_errors.count + other.server_errors.count);
        ucs_status_ptr_t x = close_nb(other.client), y = close_nb(other.server);
        EXPECT_EQ(UCS_OK, finish(x));
        EXPECT_EQ(UCS_OK, finish(y));
    }
}

// The sender goes after it has announced; its buffer is no longer what it was.
TEST_P(ucp_client_server, s36_killed_sender_of_an_announced_message)
{
    constexpr size_t length = 1 << 20;
    connection k(c, s, listening);
    ping(c, k.client, s);
    std::vector<char> out = pattern(length, 9);
    ucs_status_ptr_t sending = send_nb(k.client, out.data(), length, 1);
    ucp_tag_recv_info_t info = {};
    ucp_tag_message_h message = nullptr;
    ASSERT_TRUE(until([&] {
        message = ucp_tag_probe_nb(s.worker, 1, ~ucp_tag_t(0), 1, &info);
        return message != nullptr;
    }));
    EXPECT_EQ(length, info.length);
    EXPECT_EQ(UCS_OK, finish(close_nb(k.client, true)));
    EXPECT_EQ(UCS_ERR_CANCELED, finish(sending));
    std::fill(out.begin(), out.end(), 0);
    std::vector<char> in(length);
    ucp_request_param_t p = {};
    ucs_status_t got = finish(ucp_tag_msg_recv_nbx(s.worker, in.data(), length, message, &p));
    EXPECT_TRUE(is_loss(got)) << ucs_status_string(got);
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
}

// Eager messages that were probed and taken are whole, whatever became of the connection.
TEST_P(ucp_client_server, s36_taken_eager_message_outlives_its_endpoint)
{
    for (size_t length : {size_t(32), size_t(4000)}) {
        connection k(c, s, listening);
        std::vector<char> out = pattern(length, 2);
        ucs_status_ptr_t sending = send_nb(k.client, out.data(), length, 1);
        ucp_tag_recv_info_t info = {};
        ucp_tag_message_h message = nullptr;
        ASSERT_TRUE(until([&] {
            message = ucp_tag_probe_nb(s.worker, 1, ~ucp_tag_t(0), 1, &info);
            return message != nullptr;
        }));
        EXPECT_EQ(UCS_OK, finish(sending));
        ucs_status_ptr_t x = close_nb(k.client, true);
        ucs_status_ptr_t y = close_nb(k.server, true);
        EXPECT_EQ(UCS_OK, finish(x));
        EXPECT_EQ(UCS_OK, finish(y));
        std::vector<char> in(length);
        ucp_request_param_t p = {};
        EXPECT_EQ(UCS_OK, finish(ucp_tag_msg_recv_nbx(s.worker, in.data(), length, message, &p)));
        EXPECT_EQ(out, in);
    }
}

TEST_P(ucp_client_server, s34_stream_receive_ends_with_the_peer_and_tag_receive_waits)
{
    connection k(c, s, listening);
    ping(c, k.client, s);
    char stream_in[100], tag_in[100];
    size_t length = 0;
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_STREAM_RECV_FLAG_WAITALL;
    ucs_status_ptr_t stream = ucp_stream_recv_nbx(k.server, stream_in, 100, &length, &p);
    ucs_status_ptr_t tag = recv_nb(s, tag_in, 100, 77);
    EXPECT_EQ(UCS_OK, finish(close_nb(k.client)));
    ASSERT_TRUE(until([&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, finish(stream));
    EXPECT_EQ(UCS_INPROGRESS, ucp_request_check_status(tag));
    ucp_request_cancel(s.worker, tag);
    EXPECT_EQ(UCS_ERR_CANCELED, finish(tag));
    EXPECT_EQ(UCS_OK, finish(close_nb(k.server, true)));
}

TEST_P(ucp_client_server, s36_client_with_fewer_transports)
{
    std::string all = GetParam();
    entity few(with(all == "all" ? "tcp" : all.substr(0, all.find(','))));
    connection k(few, s, listening);
    ping(few, k.client, s, 8);
    ping(s, k.server, few, 100000);
    ucs_status_ptr_t closing = close_nb(k.client);
    EXPECT_EQ(UCS_OK, wait({&few, &s}, closing));
    ASSERT_TRUE(run_until({&few, &s}, [&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, wait({&few, &s}, close_nb(k.server, true)));
}

TEST_P(ucp_client_server, s36_remote_memory_features_alone_connect)
{
    entity x(with(GetParam(), UCP_FEATURE_RMA | UCP_FEATURE_AMO64));
    entity y(with(GetParam(), UCP_FEATURE_RMA | UCP_FEATURE_AMO64));
    server other(y);
    connection k(x, y, other);
    EXPECT_EQ(UCS_OK, wait({&x, &y}, flush_nb(k.client)));
    EXPECT_EQ(UCS_OK, wait({&x, &y}, close_nb(k.client)));
    ASSERT_TRUE(run_until({&x, &y}, [&] { return k.server_errors.count > 0; }));
    EXPECT_EQ(UCS_OK, wait({&x, &y}, close_nb(k.server, true)));
}

// Everything is posted before the server has even heard of the client.
TEST_P(ucp_client_server, s36_protocols_before_the_connection_stands)
{
    for (size_t length : {size_t(8), size_t(4096), size_t(65536), size_t(1000000)}) {
        for (unsigned round = 0; round < 3; ++round) {
            ucp_ep_h client = nullptr, accepted = nullptr;
            errors ce, se;
            ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
            std::vector<char> out = pattern(length, round);
            std::vector<char> tag_in(length), stream_in(length);
            ucp_request_param_t p = {};
            ucs_status_ptr_t tag = send_nb(client, out.data(), length, 4);
            ucs_status_ptr_t sync = ucp_tag_send_sync_nbx(client, out.data(), length, 5, &p);
            ucs_status_ptr_t stream = ucp_stream_send_nbx(client, out.data(), length, &p);
            ASSERT_TRUE(until([&] { return !listening.requests.empty(); }));
            ASSERT_EQ(UCS_OK, listening.accept(&accepted, &se));
            EXPECT_EQ(UCS_OK, finish(recv_nb(s, tag_in.data(), length, 4)));
            EXPECT_EQ(out, tag_in);
            EXPECT_EQ(UCS_OK, finish(recv_nb(s, tag_in.data(), length, 5)));
            EXPECT_EQ(out, tag_in);
            size_t got = 0;
            p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            p.flags = UCP_STREAM_RECV_FLAG_WAITALL;
            EXPECT_EQ(UCS_OK,
                      finish(ucp_stream_recv_nbx(accepted, stream_in.data(), length, &got, &p)));
            EXPECT_EQ(out, stream_in);
            EXPECT_EQ(UCS_OK, finish(tag));
            EXPECT_EQ(UCS_OK, finish(sync));
            EXPECT_EQ(UCS_OK, finish(stream));
            ucs_status_ptr_t x = close_nb(client);
            ucs_status_ptr_t y = close_nb(accepted);
            EXPECT_EQ(UCS_OK, finish(x));
            EXPECT_EQ(UCS_OK, finish(y));
            EXPECT_EQ(0, ce.count + se.count);
        }
    }
}

#if UCP_API_VERSION >= UCP_VERSION(1, 14)
// With COPY_HEADER the caller may change the header while the message waits for the connection.
TEST_P(ucp_client_server, s36_am_header_is_copied_while_waiting)
{
    struct arrived {
        std::string header;
        size_t length = 0;
    } got;
    auto on_message = [](void *arg, const void *header, size_t header_length, void *, size_t length,
                         const ucp_am_recv_param_t *) {
        auto *a = static_cast<arrived *>(arg);
        a->header.assign(static_cast<const char *>(header), header_length);
        a->length = length;
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, set_am_handler(s.worker, 3, on_message, &got));
    for (size_t length : {size_t(0), size_t(100), size_t(4000)}) {
        got = {};
        ucp_ep_h client = nullptr, accepted = nullptr;
        errors ce, se;
        ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
        char header[] = "the header";
        std::vector<char> data = pattern(length + 1);
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_AM_SEND_FLAG_COPY_HEADER;
        ucs_status_ptr_t sending =
            ucp_am_send_nbx(client, 3, header, sizeof(header) - 1, data.data(), length, &p);
        memset(header, '?', sizeof(header) - 1);
        ASSERT_TRUE(until([&] { return !listening.requests.empty(); }));
        ASSERT_EQ(UCS_OK, listening.accept(&accepted, &se));
        EXPECT_EQ(UCS_OK, finish(sending));
        ASSERT_TRUE(until([&] { return !got.header.empty(); }));
        EXPECT_EQ("the header", got.header);
        EXPECT_EQ(length, got.length);
        ucs_status_ptr_t x = close_nb(client);
        ucs_status_ptr_t y = close_nb(accepted);
        EXPECT_EQ(UCS_OK, finish(x));
        EXPECT_EQ(UCS_OK, finish(y));
    }
}
#endif

TEST_P(ucp_client_server, s31_handlers_run_in_progress_only)
{
    ucp_ep_h client = nullptr;
    errors ce;
    ASSERT_EQ(UCS_OK, connect(c, listening.port, &client, &ce));
    // The connection manager has its own thread; it must not call us.
    for (unsigned i = 0; i < 1000; ++i) {
        ucp_worker_progress(c.worker);
    }
    EXPECT_TRUE(listening.requests.empty());
    ASSERT_TRUE(until([&] { return !listening.requests.empty(); }));
    EXPECT_EQ(UCS_OK, ucp_listener_reject(listening.listener, listening.requests[0]));
    EXPECT_EQ(0, ce.count);
    ASSERT_TRUE(until([&] { return ce.count > 0; }));
    EXPECT_EQ(nullptr, close_nb(client, true));
}

UCP_TEST_OVER(ucp_client_server, "sm,self", "ofi_shm,self", "tcp,self", "all");

} // namespace
