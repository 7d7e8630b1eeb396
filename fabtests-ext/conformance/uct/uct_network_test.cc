// SPDX-License-Identifier: BSD-3-Clause
// What an interface has to do with the network: opened with keepalive_interval it finds out that a
// peer has gone though nothing is sent, it tells the figures of its device, and it paces only what
// leaves the host. The peers are processes of their own; the test process judges by their exit
// codes.
#include "fabtests-ext/common/two_hosts.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <arpa/inet.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <set>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace uct_conformance {
namespace {

using two_hosts::channel;
using two_hosts::host;

constexpr ucs_time_t interval = 50'000'000; // ns

int verdict()
{
    return testing::Test::HasFailure() ? 1 : 0;
}

// What goes through a channel: the length of the device address, both addresses.
std::string text(const entity &e)
{
    std::string all(1, static_cast<char>(e.device_address.size()));
    all.append(e.device_address.begin(), e.device_address.end());
    return all.append(e.iface_address.begin(), e.iface_address.end());
}

entity::address address(const std::string &said)
{
    auto middle = said.begin() + 1 + said[0];
    return {{said.begin() + 1, middle}, {middle, said.end()}};
}

template <class F>
bool progress_until(entity &e, F &&done)
{
    auto end = std::chrono::steady_clock::now() + patience;
    while (!done()) {
        uct_worker_progress(e.worker);
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
    }
    return true;
}

// Sleeps on the interface's descriptor whenever it may.
template <class F>
bool sleep_until(entity &e, F &&done)
{
    int fd = -1;
    EXPECT_EQ(UCS_OK, uct_iface_event_fd_get(e.iface, &fd));
    auto end = std::chrono::steady_clock::now() + patience;
    while (!done()) {
        // Where a check takes longer than the interval, there is always something to progress.
        if (uct_worker_progress(e.worker) == 0 && !done() &&
            uct_iface_event_arm(e.iface, UCT_EVENT_RECV | UCT_EVENT_SEND_COMP) == UCS_OK) {
            pollfd readable{fd, POLLIN, 0};
            poll(&readable, 1, patience_ms);
        }
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
    }
    return true;
}

// A connection in both directions, used once.
uct_ep_h reach(entity &e, channel &other)
{
    other.tell(text(e));
    uct_ep_h ep = e.connect(address(other.hear()));
    EXPECT_TRUE(progress_until(e, [&] {
        ucs_status_t status = posting([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); });
        EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_NO_RESOURCE);
        return status == UCS_OK;
    }));
    EXPECT_TRUE(progress_until(e, [&] { return !e.received.empty(); }));
    // What either side sent has arrived at both before either dies.
    other.tell("reached");
    std::string said;
    EXPECT_TRUE(progress_until(e, [&] { return other.hear_now(&said); }));
    EXPECT_EQ("reached", said);
    return ep;
}

enum class how { polling, sleeping };

// The survivor: it sends nothing after the peer was told to go.
int expect_loss(channel &other, const std::string &transport, const entity::options &o, how way)
{
    entity e(transport, o);
    uct_ep_h ep = reach(e, other);
    uct_ep_h second = e.connect(address(other.hear())); // it fails with the first
    other.tell("go");
    auto lost = [&] { return e.errors.size() == 2; };
    EXPECT_TRUE(way == how::sleeping ? sleep_until(e, lost) : progress_until(e, lost));
    std::map<uct_ep_h, int> told;
    for (auto &[which, status] : e.errors) {
        EXPECT_NE(UCS_OK, status);
        ++told[which];
    }
    EXPECT_EQ(1, told[ep]);
    EXPECT_EQ(1, told[second]);
    EXPECT_EQ(1u, e.received.size()) << "a check was taken for a message";
    return verdict();
}

// The peer until it is told to go.
void live(entity &e, channel &other)
{
    reach(e, other);
    other.tell(text(e));
    std::string said;
    EXPECT_TRUE(progress_until(e, [&] { return other.hear_now(&said); }));
    EXPECT_EQ("go", said);
}

// A child that is killed with its parent, so that nothing outlives the test.
template <class Role>
pid_t child(Role &&role)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            _exit(1);
        }
        int result = role();
        fflush(nullptr);
        _exit(result);
    }
    return pid;
}

// ---- Processes of one host

class uct_killed_peer : public testing::TestWithParam<const char *> {
  protected:
    // Both sides are children: a fork copies none of libfabric's state.
    static void run(how way)
    {
        std::string transport = GetParam();
        int ends[2];
        ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
        entity::options o;
        o.keepalive = interval;
        if (transport == "tcprdm") {
            o.conn_timeout = "3s"; // how long it may try to connect anew
        }
        pid_t dies = child([&] {
            close(ends[0]);
            channel other(ends[1]);
            return with_transport(transport, [&] {
                entity e(transport, o);
                live(e, other);
                raise(SIGKILL);
                return 1;
            });
        });
        pid_t survives = child([&] {
            close(ends[1]);
            channel other(ends[0]);
            return with_transport(transport, [&] { return expect_loss(other, transport, o, way); });
        });
        close(ends[0]);
        close(ends[1]);
        int killed = 0, judged = 0;
        ASSERT_EQ(dies, waitpid(dies, &killed, 0));
        ASSERT_EQ(survives, waitpid(survives, &judged, 0));
        if (WIFEXITED(judged) && WEXITSTATUS(judged) == absent) {
            GTEST_SKIP() << transport << " is not here";
        }
        EXPECT_TRUE(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL) << killed;
        EXPECT_TRUE(WIFEXITED(judged));
        EXPECT_EQ(0, WEXITSTATUS(judged));
    }

    static constexpr int absent = 77;

    template <class F>
    static int with_transport(const std::string &transport, F &&role)
    {
        try {
            return role();
        } catch (const std::exception &e) {
            fprintf(stderr, "%s: %s\n", transport.c_str(), e.what());
            return absent;
        }
    }
};

TEST_P(uct_killed_peer, found_while_idle)
{
    run(how::polling);
}

TEST_P(uct_killed_peer, wakes_a_sleeper)
{
    // Asked of the version: a process that has opened an interface cannot fork its peers any more.
    if (std::string(GetParam()) == "tcprdm" && FI_VERSION_GE(fi_version(), FI_VERSION(1, 18))) {
        GTEST_SKIP() << "no event descriptor";
    }
    run(how::sleeping);
}

INSTANTIATE_TEST_SUITE_P(on, uct_killed_peer,
                         testing::Values("sm", "shm", "tcp", "tcprdm", "verbs"), name_of);

// ---- Two hosts

class uct_network : public testing::Test {
  protected:
    void SetUp() override
    {
        std::string why = two_hosts::obstacle();
        if (!why.empty()) {
            GTEST_SKIP() << why;
        }
    }

    static entity::options on(const std::string &device)
    {
        entity::options o;
        o.device = device.c_str();
        o.keepalive = interval;
        return o;
    }
};

class uct_cut_link : public uct_network, public testing::WithParamInterface<how> {};

// No event says that the peer has gone: only what is not acknowledged shows it.
TEST_P(uct_cut_link, found_while_idle)
{
    how way = GetParam();
    two_hosts::outcome got = two_hosts::run(
        1,
        [&](host &self) {
            std::string device = self.device(0);
            return expect_loss(self.other, "tcp", on(device), way);
        },
        [&](host &self) {
            std::string device = self.device(0);
            entity e("tcp", on(device));
            live(e, self.other);
            self.cut(0);
            while (!self.other.gone()) {
                uct_worker_progress(e.worker);
            }
            return verdict();
        });
    EXPECT_EQ(0, got.first);
    EXPECT_EQ(0, got.second);
}

// Checks cost a peer nothing that it would notice.
TEST_P(uct_cut_link, not_found_where_there_is_none)
{
    how way = GetParam();
    two_hosts::outcome got = two_hosts::run(
        1,
        [&](host &self) {
            std::string device = self.device(0);
            entity e("tcp", on(device));
            reach(e, self.other);
            std::string said;
            auto told = [&] { return !said.empty() || self.other.hear_now(&said); };
            EXPECT_TRUE(way == how::sleeping ? sleep_until(e, told) : progress_until(e, told));
            EXPECT_EQ("enough", said);
            EXPECT_TRUE(e.errors.empty());
            EXPECT_EQ(1u, e.received.size());
            // The peer has looked for errors before this end of the connection goes.
            self.other.tell("so it is");
            EXPECT_EQ("seen", self.other.hear());
            return verdict();
        },
        [&](host &self) {
            std::string device = self.device(0);
            entity e("tcp", on(device));
            reach(e, self.other);
            // Several checks of either side: what they send shows on the wire.
            unsigned long before = self.received(0);
            EXPECT_TRUE(progress_until(e, [&] { return self.received(0) > before + 1000; }));
            self.other.tell("enough");
            std::string said;
            EXPECT_TRUE(progress_until(e, [&] { return self.other.hear_now(&said); }));
            EXPECT_TRUE(e.errors.empty());
            EXPECT_EQ(1u, e.received.size());
            self.other.tell("seen");
            return verdict();
        });
    EXPECT_EQ(0, got.first);
    EXPECT_EQ(0, got.second);
}

INSTANTIATE_TEST_SUITE_P(on, uct_cut_link, testing::Values(how::polling, how::sleeping),
                         [](const testing::TestParamInfo<how> &info) {
                             return info.param == how::polling ? "polling" : "sleeping";
                         });

// ---- What is said of a link

// A veth pair says that it has 10 Gbit/s and frames of 1500 bytes.
TEST_F(uct_network, figures_are_those_of_the_device)
{
    auto look = [](host &self) {
        std::string device = self.device(0);
        entity e("tcp", on(device));
        EXPECT_NEAR(e.attr.bandwidth.shared, 1.25e9 * 1460 / 1538, 1e6);
        EXPECT_EQ(e.attr.bandwidth.dedicated, 0);
        EXPECT_NEAR(e.attr.latency.c, 5.2e-6 + 576 / 10e9, 1e-9);
        // The wire goes with the first process that leaves.
        self.other.tell("seen");
        EXPECT_EQ("seen", self.other.hear());
        return verdict();
    };
    two_hosts::outcome got = two_hosts::run(1, look, look);
    EXPECT_EQ(0, got.first);
    EXPECT_EQ(0, got.second);
}

// ---- Pacing

// The congestion control of each connection of this process to a host: its name, or "" for none.
std::multiset<std::string> controls(const std::string &address)
{
    std::multiset<std::string> found;
    for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        int fd = atoi(entry.path().filename().c_str());
        sockaddr_in peer{};
        socklen_t length = sizeof(peer);
        char name[16] = {};
        socklen_t size = sizeof(name);
        if (getpeername(fd, reinterpret_cast<sockaddr *>(&peer), &length) == 0 &&
            peer.sin_family == AF_INET && inet_ntoa(peer.sin_addr) == address &&
            getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) == 0) {
            found.insert(name);
        }
    }
    return found;
}

// Makes BBR the congestion control of this network namespace.
bool use_bbr()
{
    std::ofstream file("/proc/sys/net/ipv4/tcp_congestion_control");
    return static_cast<bool>(file << "bbr" << std::flush);
}

constexpr int no_bbr = 3;

int judge_pacing(host &self, const char *local_pacing, const std::multiset<std::string> &within)
{
    if (!use_bbr()) {
        return no_bbr;
    }
    setenv("UCX_TCP_LOCAL_PACING", local_pacing, 1);
    std::string device = self.device(0);
    entity::options o;
    o.device = device.c_str();
    entity e("tcp", o), neighbour("tcp", o);
    reach(e, self.other);
    uct_ep_h ep = e.connect(neighbour);
    EXPECT_TRUE(progress_until(e, [&] {
        uct_worker_progress(neighbour.worker);
        uct_ep_am_short(ep, 1, 0, nullptr, 0);
        return !neighbour.received.empty();
    }));
    EXPECT_EQ(within, controls(host::address(self.number, 0)));
    EXPECT_EQ((std::multiset<std::string>{"bbr"}), controls(host::address(1 - self.number, 0)));
    // The wire goes with the first process that leaves.
    self.other.tell("seen");
    EXPECT_EQ("seen", self.other.hear());
    return verdict();
}

class uct_pacing : public uct_network {
  protected:
    static void judge(const char *local_pacing, const std::multiset<std::string> &within)
    {
        auto role = [&](host &self) { return judge_pacing(self, local_pacing, within); };
        two_hosts::outcome got = two_hosts::run(1, role, role);
        if (got.first == no_bbr && got.second == no_bbr) {
            GTEST_SKIP() << "no BBR in this kernel, or it may not be chosen";
        }
        EXPECT_EQ(0, got.first);
        EXPECT_EQ(0, got.second);
    }
};

TEST_F(uct_pacing, ends_within_the_host_and_stays_beyond)
{
    judge("n", {"reno", "reno"});
}

TEST_F(uct_pacing, stays_where_it_is_wanted)
{
    judge("y", {"bbr", "bbr"});
}

} // namespace
} // namespace uct_conformance
