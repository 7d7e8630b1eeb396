// SPDX-License-Identifier: BSD-3-Clause
//
// Client-server endpoints between the same two workers, as their connections are seen from inside.
#pragma once

#include "fabtests-ext/common/ucp_pair.h"
#include "ucp/connect/cm.h"
#include "ucp/connect/greeting.h"
#include "ucp/endpoint/ep_control.h"

#include <list>

namespace ucp_test {

// trust: of the endpoint in its lanes (connect/greeting.h).
inline ucs_status_t connect_trusting(ucp::lane_trust trust, entity &client, uint16_t port,
                                     ucp_ep_h *ep, errors *seen)
{
    sockaddr_in to = host_address(port);
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = reinterpret_cast<sockaddr *>(&to);
    params.sockaddr.addrlen = sizeof(to);
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    seen->watch(&params, UCP_ERR_HANDLING_MODE_PEER);
    ucp::greeting g;
    g.trust = trust;
    return ucp::create_ep(client.worker, &params, g, ep);
}

class client_server : public testing::TestWithParam<const char *> {
  protected:
    struct ends {
        ucp_ep_h client = nullptr, server = nullptr;
        errors client_errors, server_errors;
    };

    static options with_tls()
    {
        options o;
        o.tls = GetParam();
        return o;
    }

    client_server() : c(with_tls()), s(with_tls()), listening(s) {}

    ucs_status_t finish(ucs_status_ptr_t p) { return wait({&c, &s}, p); }
    bool until(const std::function<bool()> &done) { return run_until({&c, &s}, done); }

    // The connection is kept, so that its end can be told.
    static constexpr ucp::lane_trust kept = ucp::lane_trust::none;

    // A client that the server has not answered yet.
    ends &ask(ucp::lane_trust trust = kept)
    {
        ends &k = all.emplace_back();
        EXPECT_EQ(UCS_OK, connect_trusting(trust, c, listening.port, &k.client, &k.client_errors));
        EXPECT_TRUE(until([&] { return !listening.requests.empty(); }));
        return k;
    }

    ends &begin(ucp::lane_trust trust = kept)
    {
        ends &k = ask(trust);
        EXPECT_EQ(UCS_OK, listening.accept(&k.server, &k.server_errors));
        return k;
    }

    void exchange(const ends &k)
    {
        ping(c, k.client, s);
        ping(s, k.server, c);
    }

    // Opens the first endpoints. The others share their connection.
    const ends &open_first()
    {
        exchange(begin());
        EXPECT_TRUE(until([&] { return connection_of(all.front().server)->established; }));
        return all.front();
    }

    // The end that was not closed is told, once, and the first endpoints are not.
    void expect_told(const errors &told)
    {
        ASSERT_TRUE(until([&] { return told.count > 0; }));
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, told.status);
        ends &last = all.back();
        for (ucp_ep_h *ep : {&last.client, &last.server}) {
            EXPECT_TRUE(!*ep || finish(close_nb(*ep, true)) == UCS_OK);
            *ep = nullptr;
        }
        EXPECT_EQ(1, told.count);
        all.pop_back();
        EXPECT_EQ(0, all.front().client_errors.count + all.front().server_errors.count);
        exchange(all.front());
        close_all();
    }

    // Connections, also of which only a lane is left.
    static size_t known(const entity &e) { return e.worker->cm->connections.by_id.size(); }
    static ucp::cm_connection *connection_of(const ucp_ep *ep) { return ep->control->by_cm->cm; }
    static bool has_its_own(const ucp_ep *ep)
    {
        return connection_of(ep) && connection_of(ep)->id == ep->local_id;
    }

    void close_all()
    {
        for (ends &k : all) {
            ucs_status_ptr_t x = k.client ? close_nb(k.client) : nullptr;
            ucs_status_ptr_t y = k.server ? close_nb(k.server) : nullptr;
            EXPECT_EQ(UCS_OK, finish(x));
            EXPECT_EQ(UCS_OK, finish(y));
        }
        all.clear();
        EXPECT_TRUE(until([&] { return known(c) == 0 && known(s) == 0; }));
    }

    entity c, s;
    server listening;
    std::list<ends> all;
};

} // namespace ucp_test
