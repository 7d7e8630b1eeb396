// SPDX-License-Identifier: BSD-3-Clause
//
// Two hosts that share nothing but wires: what UCP does over real network devices, several of
// them, and what it notices when a peer or a wire goes. Roles run in processes of their own; the
// test process judges by their exit codes.
#include "fabtests-ext/common/two_hosts.h"
#include "fabtests-ext/common/ucp_lanes.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <functional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucp_test;
using two_hosts::host;

struct received {
    unsigned long device[2];
    unsigned long sum() const { return device[0] + device[1]; }
};

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

    static void put_and_get_over(const char *rails, void (*expect)(const received &));
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

options rma_options(const char *rails)
{
    options o;
    o.tls = "all";
    o.features = UCP_FEATURE_RMA;
    o.config = {{"MAX_RMA_RAILS", rails}};
    return o;
}

// Memory of `large` bytes and a number behind them, which is put behind a fence: when the number of
// a round is here, its bytes are. The result is what came in over each device.
received serve_memory(host &self, const options &o, uint64_t rounds)
{
    entity e(o);
    ucp_ep_h ep = reach(self, e);
    std::vector<char> memory(large + sizeof(uint64_t));
    region shared(e, ep, memory.data(), memory.size());
    self.other.tell(std::to_string(shared.at()));
    self.other.tell(text(shared.packed()));
    for (uint64_t i = 1; i <= rounds; ++i) {
        uint64_t number = 0;
        EXPECT_TRUE(run_until({&e}, [&] {
            memcpy(&number, memory.data() + large, sizeof(number));
            return number == i;
        }));
        std::vector<char> expected = pattern(large, static_cast<unsigned>(i));
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), memory.begin()));
        self.other.tell("seen");
    }
    received total = {{self.received(0), self.received(1)}};
    EXPECT_EQ("read", progress_until_told(self, e));
    self.other.tell("done");
    run_for({&e}, 0.05); // the last confirmation goes out
    return total;
}

// The other host's, of serve_memory().
class served_memory {
  public:
    served_memory(host &self, const options &o) : e(o), self_(self), ep_(reach(self, e))
    {
        address_ = std::stoull(self_.other.hear());
        std::vector<char> key = bytes(self_.other.hear());
        EXPECT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep_, key.data(), &rkey_));
    }
    ~served_memory()
    {
        ucp_rkey_destroy(rkey_);
        self_.other.tell("read");
        EXPECT_EQ("done", progress_until_told(self_, e));
    }
    served_memory(const served_memory &) = delete;
    served_memory &operator=(const served_memory &) = delete;

    unsigned link_without_messages() const
    {
        std::vector<std::string> lanes = transports_of(ep_);
        EXPECT_EQ(2u, lanes.size());
        return lanes.back() == "tcp/" + self_.device(0) ? 0 : 1;
    }

    // meanwhile() is called when everything is posted.
    void put(uint64_t round, const std::function<void()> &meanwhile)
    {
        std::vector<char> data = pattern(large, static_cast<unsigned>(round));
        ucs_status_ptr_t bytes = put(data.data(), large, 0);
        EXPECT_EQ(UCS_OK, ucp_worker_fence(e.worker));
        ucs_status_ptr_t number = put(&round, sizeof(round), large);
        meanwhile();
        EXPECT_EQ(UCS_OK, wait({&e}, bytes));
        EXPECT_EQ(UCS_OK, wait({&e}, number));
        EXPECT_EQ("seen", progress_until_told(self_, e));
    }

    void flush() { EXPECT_EQ(UCS_OK, wait({&e}, flush_nb(ep_))); }

    std::vector<char> get()
    {
        std::vector<char> data(large);
        ucp_request_param_t param = {};
        EXPECT_EQ(UCS_OK,
                  wait({&e}, ucp_get_nbx(ep_, data.data(), large, address_, rkey_, &param)));
        return data;
    }

    entity e;

  private:
    ucs_status_ptr_t put(const void *data, size_t length, size_t offset)
    {
        ucp_request_param_t param = {};
        return ucp_put_nbx(ep_, data, length, address_ + offset, rkey_, &param);
    }

    host &self_;
    ucp_ep_h ep_;
    uint64_t address_ = 0;
    ucp_rkey_h rkey_ = nullptr;
};

// The result is what the gets brought over each device.
received put_and_get_large(host &self, const options &o)
{
    served_memory memory(self, o);
    for (uint64_t i = 1; i <= large_count; ++i) {
        memory.put(i, [] {});
        memory.flush(); // else the next one may go as messages, behind a number not yet confirmed
    }
    received before = {{self.received(0), self.received(1)}};
    for (unsigned i = 0; i < large_count; ++i) {
        EXPECT_EQ(pattern(large, large_count), memory.get());
    }
    return {{self.received(0) - before.device[0], self.received(1) - before.device[1]}};
}

void expect_shared(const received &got)
{
    EXPECT_GT(got.device[0], got.sum() / 4);
    EXPECT_GT(got.device[1], got.sum() / 4);
}

void expect_alone(const received &got)
{
    EXPECT_GT(got.sum(), large * large_count);
    EXPECT_LT(std::min(got.device[0], got.device[1]), got.sum() / 20);
}

// Between two hosts; what each of them receives is as expected.
void ucp_network::put_and_get_over(const char *rails, void (*expect)(const received &))
{
    run(
        2,
        [&](host &self) {
            expect(serve_memory(self, rma_options(rails), large_count));
            return verdict();
        },
        [&](host &self) {
            expect(put_and_get_large(self, rma_options(rails)));
            return verdict();
        });
}

} // namespace

TEST_F(ucp_network, large_messages_use_both_devices)
{
    run(
        2, [](host &self) { return send_large(self, tcp_options("2"), 2); },
        [](host &self) {
            expect_shared(receive_large(self, tcp_options("2")));
            return verdict();
        });
}

TEST_F(ucp_network, one_rail_uses_one_device)
{
    run(
        2, [](host &self) { return send_large(self, tcp_options("1"), 1); },
        [](host &self) {
            expect_alone(receive_large(self, tcp_options("1")));
            return verdict();
        });
}

TEST_F(ucp_network, large_puts_and_gets_use_both_devices)
{
    put_and_get_over("2", expect_shared);
}

TEST_F(ucp_network, puts_and_gets_of_one_rail_use_one_device)
{
    put_and_get_over("1", expect_alone);
}

// One device carries nothing for a while: what is behind the fence must not pass on the other.
TEST_F(ucp_network, a_fence_holds_for_puts_over_several_devices)
{
    run(
        2,
        [](host &self) {
            serve_memory(self, rma_options("2"), 2);
            return verdict();
        },
        [](host &self) {
            served_memory memory(self, rma_options("2"));
            memory.put(1, [] {});
            memory.flush(); // else the fence alone would have all go as messages
            unsigned other = memory.link_without_messages();
            self.cut(other);
            memory.put(2, [&] {
                run_for({&memory.e}, 0.3);
                self.restore(other);
            });
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
