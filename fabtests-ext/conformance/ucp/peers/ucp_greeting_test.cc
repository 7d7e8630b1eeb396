// SPDX-License-Identifier: BSD-3-Clause
//
// Client-server connections that carry the bytes of a protocol on top of UCP (connect/greeting.h):
// what each side is told, and when.
#include "fabtests-ext/common/ucp_entity.h"
#include "ucp/connect/greeting.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/endpoint/ep_control.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace {

using namespace ucp_test;

// One side's endpoint, and what it was told in order: the bytes of a greeting, or "failed".
struct side {
    ucp_ep_h ep = nullptr;
    std::vector<std::string> told;
    ucs_status_t status = UCS_OK;

    void create(entity &e, ucp_ep_params_t params, const std::string &says)
    {
        params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler.cb = [](void *arg, ucp_ep_h, ucs_status_t why) {
            static_cast<side *>(arg)->told.push_back("failed");
            static_cast<side *>(arg)->status = why;
        };
        params.err_handler.arg = this;
        ucp::greeting g;
        g.data = says.data();
        g.length = says.size();
        g.answered = [](void *arg, const void *data, size_t length) {
            static_cast<side *>(arg)->told.emplace_back(static_cast<const char *>(data), length);
        };
        g.arg = this;
        ASSERT_EQ(UCS_OK, ucp::create_ep(e.worker, &params, g, &ep));
    }
};

class ucp_greeting : public testing::Test {
  protected:
    static options over_shared_memory()
    {
        options o;
        o.tls = "sm";
        return o;
    }

    ucp_greeting() : c_(over_shared_memory()), s_(over_shared_memory()), listening_(s_) {}

    ~ucp_greeting() override
    {
        for (const side *i : {&client_, &server_}) {
            if (i->ep) {
                EXPECT_EQ(UCS_OK, wait({&c_, &s_}, close_nb(i->ep, true)));
            }
        }
    }

    // Up to where the server has answered. It has not progressed since.
    void answer()
    {
        sockaddr_in to = host_address(listening_.port);
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
        params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        params.sockaddr.addr = reinterpret_cast<sockaddr *>(&to);
        params.sockaddr.addrlen = sizeof(to);
        client_.create(c_, params, "hello");
        ASSERT_TRUE(run_until({&c_, &s_}, [&] { return !listening_.requests.empty(); }));
        ucp_conn_request_h request = listening_.requests.front();
        auto said = ucp::greeting_of(request);
        EXPECT_EQ("hello", std::string(said.begin(), said.end()));
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = request;
        server_.create(s_, params, "welcome");
    }

    entity c_, s_;
    server listening_;
    side client_, server_;
};

TEST_F(ucp_greeting, each_side_is_told_once)
{
    ASSERT_NO_FATAL_FAILURE(answer());
    ASSERT_TRUE(run_until({&c_, &s_}, [&] { return server_.told.size() == 1; }));
    EXPECT_EQ(std::vector<std::string>{"welcome"}, client_.told);
    EXPECT_EQ(std::vector<std::string>{""}, server_.told);
}

// The lane of a client that connected and ended may tell of its end before its confirmation, which
// another connection brought, has been looked at.
TEST_F(ucp_greeting, a_client_that_confirmed_and_has_gone_was_connected)
{
    ASSERT_NO_FATAL_FAILURE(answer());
    ASSERT_TRUE(run_until({&c_}, [&] { return client_.told.size() == 1; }));
    ASSERT_TRUE(run_until({&c_}, [&] { return s_.worker->has_events.load(); }));
    ucp::on_lane_failed(s_.worker, server_.ep->am_ep, UCS_ERR_CONNECTION_RESET);
    EXPECT_TRUE(server_.told.empty());
    ASSERT_TRUE(run_until({&c_, &s_}, [&] { return server_.told.size() == 2; }));
    EXPECT_EQ((std::vector<std::string>{"", "failed"}), server_.told);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, server_.status);
}

// The same when the confirmation has been looked at, and the lane never came up.
TEST_F(ucp_greeting, a_client_that_has_gone_before_its_lane_was_up_was_connected)
{
    ASSERT_NO_FATAL_FAILURE(answer());
    server_.ep->control->by_cm->answer = std::make_unique<std::vector<uint8_t>>();
    server_.ep->set_failed(UCS_ERR_CONNECTION_RESET);
    ASSERT_TRUE(run_until({&c_, &s_}, [&] { return server_.told.size() == 2; }));
    EXPECT_EQ((std::vector<std::string>{"", "failed"}), server_.told);
}

// One that never confirmed has not: its end is all that there is to tell.
TEST_F(ucp_greeting, a_client_that_has_gone_without_a_word_was_not_connected)
{
    ASSERT_NO_FATAL_FAILURE(answer());
    EXPECT_EQ(UCS_OK, wait({&c_}, close_nb(client_.ep, true)));
    client_.ep = nullptr;
    ucp::on_lane_failed(s_.worker, server_.ep->am_ep, UCS_ERR_CONNECTION_RESET);
    ASSERT_TRUE(run_until({&c_, &s_}, [&] { return !server_.told.empty(); }));
    EXPECT_EQ(std::vector<std::string>{"failed"}, server_.told);
}

} // namespace
