// SPDX-License-Identifier: BSD-3-Clause
//
// Two hosts that share nothing but wires: what UCP does over real network devices, several of
// them, and what it notices when a peer or a wire goes. Roles run in processes of their own; the
// test process judges by their exit codes.
#include "fabtests-ext/common/two_hosts.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucp_test;
using two_hosts::host;

class ucp_network : public testing::Test {
  protected:
    void SetUp() override
    {
        std::string why = two_hosts::obstacle();
        if (!why.empty()) {
            GTEST_SKIP() << why;
        }
    }

    static void run(unsigned links, const two_hosts::role &first, const two_hosts::role &second)
    {
        two_hosts::outcome got = two_hosts::run(links, first, second);
        EXPECT_EQ(0, got.first);
        EXPECT_EQ(0, got.second);
    }
};

int verdict()
{
    return testing::Test::HasFailure() ? 1 : 0;
}

std::string text(const std::vector<char> &bytes)
{
    return {bytes.begin(), bytes.end()};
}

std::vector<char> bytes(const std::string &text)
{
    return {text.begin(), text.end()};
}

// An endpoint to the other host's worker, whose address comes from there.
ucp_ep_h reach(host &self, entity &e, errors *seen = nullptr)
{
    self.other.tell(text(e.address()));
    ucp_ep_h ep = nullptr;
    EXPECT_EQ(UCS_OK, create_ep(e, bytes(self.other.hear()), &ep, seen));
    return ep;
}

// Until the other host says something; progresses meanwhile.
std::string progress_until_told(host &self, entity &e)
{
    std::string said;
    EXPECT_TRUE(run_until({&e}, [&] { return self.other.hear_now(&said); }));
    return said;
}

std::vector<std::string> transports_of(ucp_ep_h ep)
{
    ucp_transport_entry_t entries[8] = {};
    ucp_ep_attr_t attr = {};
    attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attr.transports.entries = entries;
    attr.transports.num_entries = 8;
    attr.transports.entry_size = sizeof(entries[0]);
    EXPECT_EQ(UCS_OK, ucp_ep_query(ep, &attr));
    std::vector<std::string> names;
    for (unsigned i = 0; i < attr.transports.num_entries; ++i) {
        names.push_back(std::string(entries[i].transport_name) + "/" + entries[i].device_name);
    }
    return names;
}

constexpr size_t large = 4 << 20;
constexpr unsigned large_count = 8;

int send_large(host &self, const options &o, size_t expected_lanes)
{
    entity e(o);
    ucp_ep_h ep = reach(self, e);
    std::vector<std::string> lanes = transports_of(ep);
    EXPECT_EQ(expected_lanes, lanes.size());
    for (const std::string &name : lanes) {
        EXPECT_EQ(0u, name.find("tcp/a")) << name;
    }
    for (unsigned i = 0; i < large_count; ++i) {
        std::vector<char> data = pattern(large, i);
        EXPECT_EQ(UCS_OK, wait({&e}, send_nb(ep, data.data(), data.size(), i)));
    }
    EXPECT_EQ("received", progress_until_told(self, e));
    return verdict();
}

struct received {
    unsigned long device[2];
    unsigned long sum() const { return device[0] + device[1]; }
};

received receive_large(host &self, const options &o)
{
    entity e(o);
    ucp_ep_h ep = reach(self, e);
    EXPECT_NE(nullptr, ep);
    for (unsigned i = 0; i < large_count; ++i) {
        std::vector<char> data(large);
        EXPECT_EQ(UCS_OK, wait({&e}, recv_nb(e, data.data(), data.size(), i)));
        EXPECT_EQ(pattern(large, i), data);
    }
    // A wire goes with either of its ends: the other host is told after the reading.
    received total = {{self.received(0), self.received(1)}};
    self.other.tell("received");
    run_for({&e}, 0.05); // the last confirmation goes out
    return total;
}

options tcp_options(const char *rails)
{
    options o;
    o.tls = "all";
    o.config = {{"MAX_RNDV_RAILS", rails}};
    return o;
}

// Both hosts wait for each other, so that neither leaves while the other still needs it.
int leave_together(host &self, entity &e)
{
    self.other.tell("done");
    EXPECT_EQ("done", progress_until_told(self, e));
    return verdict();
}

int ping_both_ways(host &self, entity &e, ucp_ep_h ep)
{
    for (size_t length : {size_t(1), size_t(1000), size_t(20000), size_t(300000)}) {
        std::vector<char> out = pattern(length, static_cast<unsigned>(self.number));
        std::vector<char> in(length);
        ucs_status_ptr_t receiving = recv_nb(e, in.data(), length, 5);
        EXPECT_EQ(UCS_OK, wait({&e}, send_nb(ep, out.data(), length, 5)));
        EXPECT_EQ(UCS_OK, wait({&e}, receiving));
        EXPECT_EQ(pattern(length, static_cast<unsigned>(1 - self.number)), in);
    }
    return leave_together(self, e);
}

sockaddr_in address_of(int number, uint16_t port)
{
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    inet_pton(AF_INET, host::address(number, 0).c_str(), &a.sin_addr);
    return a;
}

int serve(host &self)
{
    entity e({});
    server listening(e, false, address_of(0, 0));
    self.other.tell(std::to_string(listening.port));
    EXPECT_TRUE(run_until({&e}, [&] { return !listening.requests.empty(); }));
    if (listening.requests.empty()) {
        return 1;
    }
    errors seen;
    ucp_ep_h ep = nullptr;
    EXPECT_EQ(UCS_OK, listening.accept(&ep, &seen));
    ping_both_ways(self, e, ep);
    return verdict();
}

int call(host &self)
{
    entity e({});
    auto port = static_cast<uint16_t>(std::stoi(self.other.hear()));
    errors seen;
    ucp_ep_h ep = nullptr;
    EXPECT_EQ(UCS_OK, connect(e, address_of(0, port), &ep, &seen));
    return ping_both_ways(self, e, ep);
}

options watched()
{
    options o;
    o.config = {{"KEEPALIVE_INTERVAL", "100ms"}};
    return o;
}

// An idle endpoint gets its error; it is told once, and closing works.
int expect_loss(host &self, const char *cue)
{
    entity e(watched());
    errors seen;
    ucp_ep_h ep = reach(self, e, &seen);
    EXPECT_EQ("ready", progress_until_told(self, e));
    uint64_t word = 1;
    EXPECT_EQ(UCS_OK, wait({&e}, send_nb(ep, &word, sizeof(word), 1)));
    EXPECT_EQ("received", progress_until_told(self, e));
    EXPECT_EQ(0, seen.count);
    self.other.tell(cue);
    EXPECT_TRUE(run_until({&e}, [&] { return seen.count > 0; }));
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, seen.count ? seen.status : UCS_OK);
    run_for({&e}, 0.2);
    EXPECT_EQ(1, seen.count);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
    return verdict();
}

void answer_once(host &self, entity &e)
{
    errors seen;
    ucp_ep_h ep = reach(self, e, &seen);
    EXPECT_NE(nullptr, ep);
    uint64_t word = 0;
    ucs_status_ptr_t receiving = recv_nb(e, &word, sizeof(word), 1);
    self.other.tell("ready");
    EXPECT_EQ(UCS_OK, wait({&e}, receiving));
    self.other.tell("received");
}

} // namespace

TEST_F(ucp_network, large_messages_use_both_devices)
{
    run(
        2, [](host &self) { return send_large(self, tcp_options("2"), 2); },
        [](host &self) {
            received got = receive_large(self, tcp_options("2"));
            EXPECT_GT(got.device[0], got.sum() / 4);
            EXPECT_GT(got.device[1], got.sum() / 4);
            return verdict();
        });
}

TEST_F(ucp_network, one_rail_uses_one_device)
{
    run(
        2, [](host &self) { return send_large(self, tcp_options("1"), 1); },
        [](host &self) {
            received got = receive_large(self, tcp_options("1"));
            EXPECT_GT(got.sum(), large * large_count);
            EXPECT_LT(std::min(got.device[0], got.device[1]), got.sum() / 20);
            return verdict();
        });
}

TEST_F(ucp_network, named_device_is_used_alone)
{
    run(
        2,
        [](host &self) {
            options o = tcp_options("2");
            o.config.push_back({"NET_DEVICES", "a1"});
            return send_large(self, o, 1);
        },
        [](host &self) {
            received got = receive_large(self, tcp_options("2"));
            EXPECT_LT(got.device[0], got.sum() / 20);
            return verdict();
        });
}

TEST_F(ucp_network, endpoints_by_address_use_no_shared_memory)
{
    auto side = [](host &self) {
        entity e({});
        ucp_ep_h ep = reach(self, e);
        for (const std::string &name : transports_of(ep)) {
            EXPECT_EQ(0u, name.find("tcp/")) << name;
        }
        return ping_both_ways(self, e, ep);
    };
    run(1, side, side);
}

TEST_F(ucp_network, client_and_server_connect)
{
    run(1, serve, call);
}

TEST_F(ucp_network, cut_link_is_found_while_idle)
{
    run(
        1, [](host &self) { return expect_loss(self, "cut"); },
        [](host &self) {
            entity e({});
            answer_once(self, e);
            EXPECT_EQ("cut", progress_until_told(self, e));
            self.cut(0);
            // Silence is the whole point; the other side ends this one's run by leaving.
            while (!self.other.gone()) {
                e.progress();
            }
            return verdict();
        });
}

TEST_F(ucp_network, killed_peer_is_noticed)
{
    run(
        1,
        [](host &self) {
            entity e({});
            errors seen;
            ucp_ep_h ep = reach(self, e, &seen);
            EXPECT_EQ("ready", progress_until_told(self, e));
            uint64_t word = 1;
            EXPECT_EQ(UCS_OK, wait({&e}, send_nb(ep, &word, sizeof(word), 1)));
            EXPECT_EQ("received", progress_until_told(self, e));
            self.other.tell("die");
            EXPECT_TRUE(run_until({&e}, [&] { return seen.count > 0; }));
            EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
            return verdict();
        },
        [](host &self) {
            // The first process of a pid namespace cannot be killed from inside; its child can.
            pid_t peer = fork();
            if (peer == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                entity e({});
                answer_once(self, e);
                EXPECT_EQ("die", progress_until_told(self, e));
                raise(SIGKILL);
            }
            int status = 0;
            waitpid(peer, &status, 0);
            EXPECT_TRUE(WIFSIGNALED(status));
            EXPECT_EQ(SIGKILL, WTERMSIG(status));
            return verdict();
        });
}
