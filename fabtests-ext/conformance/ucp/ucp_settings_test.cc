// SPDX-License-Identifier: BSD-3-Clause
//
// Settings that change what a worker asks of the system or of its peers: where it listens, how many
// requests wait at a listener, how many peers are checked at a time.
#include "fabtests-ext/common/ucp_entity.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/endpoint/keepalive.h"

#include <netinet/tcp.h>
#include <set>

namespace {

using namespace ucp_test;

options with(const char *tls, const char *name, const char *value)
{
    options o;
    o.tls = tls;
    o.config = {{name, value}};
    return o;
}

struct listening_socket {
    int fd;
    std::string host;
    uint16_t port;
};

// Those of this process, of IPv4.
std::vector<listening_socket> listening()
{
    std::vector<listening_socket> found;
    for (int fd = 0; fd < 1024; ++fd) {
        sockaddr_in name = {};
        socklen_t length = sizeof(name), size = sizeof(int);
        int listens = 0;
        if (getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
            name.sin_family == AF_INET &&
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens) {
            char host[INET_ADDRSTRLEN] = "";
            inet_ntop(AF_INET, &name.sin_addr, host, sizeof(host));
            found.push_back({fd, host, ntohs(name.sin_port)});
        }
    }
    return found;
}

TEST(ucp_settings, a_worker_without_a_listener_listens_on_the_devices_that_were_named_alone)
{
    std::set<int> inherited;
    for (const listening_socket &s : listening()) {
        inherited.insert(s.fd);
    }
    {
        entity own(with("sm,self", "NET_DEVICES", "all"));
        EXPECT_EQ(inherited.size(), listening().size());
    }
    entity local(with("tcp", "NET_DEVICES", "lo"));
    std::set<std::string> hosts;
    for (const listening_socket &s : listening()) {
        if (!inherited.count(s.fd)) {
            hosts.insert(s.host);
        }
    }
    EXPECT_EQ(std::set<std::string>{"127.0.0.1"}, hosts);
}

TEST(ucp_settings, as_many_requests_wait_at_a_listener_as_the_setting_says)
{
    for (unsigned expected : {7u, 9u}) {
        entity e(with("tcp", "LISTENER_BACKLOG", std::to_string(expected).c_str()));
        server s(e);
        std::vector<unsigned> backlogs;
        for (const listening_socket &found : listening()) {
            tcp_info info = {};
            socklen_t length = sizeof(info);
            if (found.port == s.port &&
                getsockopt(found.fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0) {
                backlogs.push_back(info.tcpi_sacked); // means this where a socket listens
            }
        }
        EXPECT_EQ(std::vector<unsigned>{expected}, backlogs);
    }
}

unsigned checks;

TEST(ucp_settings, as_many_peers_are_checked_at_a_time_as_the_setting_says)
{
    options o = with("self", "KEEPALIVE_NUM_EPS", "10");
    o.config.emplace_back("KEEPALIVE_INTERVAL", "1h");
    entity e(o);
    std::vector<char> address = e.address();
    std::vector<ucp_ep_h> eps(25);
    errors seen;
    for (ucp_ep_h &ep : eps) {
        ASSERT_EQ(UCS_OK, create_ep(e, address, &ep, &seen));
    }
    ASSERT_TRUE(e.worker->keepalive);
    uct_iface_ops_t &ops = eps[0]->lanes[0].ep->iface->ops;
    uct_ep_check_func_t original = ops.ep_check;
    ops.ep_check = [](uct_ep_h, unsigned, uct_completion_t *) {
        ++checks;
        return UCS_OK;
    };
    for (unsigned expected : {10u, 10u, 5u, 10u}) {
        checks = 0;
        e.worker->keepalive->run_round();
        EXPECT_EQ(expected, checks);
    }
    ops.ep_check = original;
    for (ucp_ep_h ep : eps) {
        EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
    }
    EXPECT_EQ(0, seen.count);
}

} // namespace
