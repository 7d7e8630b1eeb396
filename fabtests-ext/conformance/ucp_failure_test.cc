// SPDX-License-Identifier: BSD-3-Clause
//
// Peers that die: destroyed workers in this process, killed processes elsewhere. Every endpoint's
// handler runs once, within two seconds, and every request ends.
#include "fabtests-ext/common/ucp_entity.h"

#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

using namespace ucp_test;

namespace {

class ucp_failure : public testing::TestWithParam<const char *> {
  protected:
    static options with_tls()
    {
        options o;
        o.tls = GetParam();
        return o;
    }
};

// A child process that serves until it is killed. It writes its address or port first.
class child {
  public:
    explicit child(const std::function<std::vector<char>(entity &, server *&)> &start)
    {
        int fds[2];
        if (pipe(fds) != 0) {
            return;
        }
        pid = fork();
        if (pid == 0) {
            close(fds[0]);
            options o;
            o.tls = ucp_failure::GetParam();
            entity e(o);
            server *listening = nullptr;
            std::vector<char> hello = start(e, listening);
            auto length = static_cast<uint32_t>(hello.size());
            if (write(fds[1], &length, sizeof(length)) != sizeof(length) ||
                write(fds[1], hello.data(), length) != static_cast<ssize_t>(length)) {
                _exit(1);
            }
            std::vector<std::unique_ptr<errors>> seen;
            alarm(60);
            for (;;) {
                e.progress();
                if (listening && !listening->requests.empty()) {
                    ucp_ep_h ep;
                    seen.push_back(std::make_unique<errors>());
                    listening->accept(&ep, seen.back().get());
                }
            }
        }
        close(fds[1]);
        uint32_t length = 0;
        if (read(fds[0], &length, sizeof(length)) == sizeof(length)) {
            hello.resize(length);
            size_t got = 0;
            while (got < length) {
                ssize_t n = read(fds[0], hello.data() + got, length - got);
                if (n <= 0) {
                    break;
                }
                got += static_cast<size_t>(n);
            }
        }
        close(fds[0]);
    }
    ~child() { kill_now(); }

    void kill_now()
    {
        if (pid > 0) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
            pid = -1;
        }
    }

    pid_t pid = -1;
    std::vector<char> hello;
};

child serving_by_address()
{
    return child([](entity &e, server *&) { return e.address(); });
}

child listening_child()
{
    return child([](entity &e, server *&listening) {
        listening = new server(e);
        std::vector<char> port(sizeof(uint16_t));
        memcpy(port.data(), &listening->port, sizeof(uint16_t));
        return port;
    });
}

double seconds_until(entity &e, const std::function<bool()> &done)
{
    auto start = std::chrono::steady_clock::now();
    run_until({&e}, done, 5);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_P(ucp_failure, b191_killed_peer_by_address)
{
    child peer = serving_by_address();
    ASSERT_FALSE(peer.hello.empty());
    entity e(with_tls());
    ucp_ep_h ep;
    errors seen;
    ASSERT_EQ(UCS_OK, create_ep(e, peer.hello, &ep, &seen));
    ASSERT_EQ(UCS_OK, wait({&e}, send_nb(ep, "x", 1, 1)));
    ASSERT_EQ(UCS_OK, wait({&e}, flush_nb(ep)));
    peer.kill_now();
    EXPECT_LT(seconds_until(e, [&] { return seen.count > 0; }), 2.0);
    EXPECT_TRUE(seen.status == UCS_ERR_CONNECTION_RESET || seen.status == UCS_ERR_ENDPOINT_TIMEOUT)
        << ucs_status_string(seen.status);
    EXPECT_TRUE(UCS_PTR_IS_ERR(send_nb(ep, "x", 1, 1))); // b188
    run_for({&e}, 0.3);
    EXPECT_EQ(1, seen.count);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep)));
}

TEST_P(ucp_failure, killed_server)
{
    child peer = listening_child();
    ASSERT_EQ(sizeof(uint16_t), peer.hello.size());
    uint16_t port;
    memcpy(&port, peer.hello.data(), sizeof(port));
    entity e(with_tls());
    constexpr unsigned count = 3;
    ucp_ep_h eps[count];
    errors seen[count];
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, connect(e, port, &eps[i], &seen[i]));
    }
    for (ucp_ep_h ep : eps) {
        ASSERT_EQ(UCS_OK, wait({&e}, send_nb(ep, "x", 1, 1)));
    }
    std::vector<char> big(4 << 20, 'b');
    ucs_status_ptr_t stuck = send_nb(eps[0], big.data(), big.size(), 9); // nobody receives it
    run_for({&e}, 0.05);
    peer.kill_now();
    EXPECT_LT(seconds_until(e, [&] { return seen[0].count && seen[1].count && seen[2].count; }),
              2.0);
    EXPECT_NE(UCS_OK, wait({&e}, stuck));
    run_for({&e}, 0.3);
    for (unsigned i = 0; i < count; ++i) {
        EXPECT_EQ(1, seen[i].count);
        EXPECT_EQ(UCS_OK, wait({&e}, close_nb(eps[i], true)));
    }
}

TEST_P(ucp_failure, killed_while_connecting)
{
    child peer = listening_child();
    uint16_t port;
    ASSERT_EQ(sizeof(uint16_t), peer.hello.size());
    memcpy(&port, peer.hello.data(), sizeof(port));
    kill(peer.pid, SIGSTOP);
    entity e(with_tls());
    ucp_ep_h ep;
    errors seen;
    ASSERT_EQ(UCS_OK, connect(e, port, &ep, &seen));
    ucs_status_ptr_t send = send_nb(ep, "x", 1, 1);
    run_for({&e}, 0.1);
    peer.kill_now();
    EXPECT_LT(seconds_until(e, [&] { return seen.count > 0; }), 2.0);
    EXPECT_NE(UCS_OK, wait({&e}, send));
    EXPECT_EQ(1, seen.count);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
}

TEST_P(ucp_failure, b187_destroyed_peer)
{
    entity e(with_tls()), stable(with_tls());
    auto doomed = std::make_unique<entity>(with_tls());
    ucp_ep_h ep, good;
    errors seen, none;
    ASSERT_EQ(UCS_OK, create_ep(e, doomed->address(), &ep, &seen));
    ASSERT_EQ(UCS_OK, create_ep(e, stable.address(), &good, &none));
    ping(e, ep, *doomed);
    ping(e, good, stable);
    doomed.reset();
    EXPECT_LT(seconds_until(e, [&] { return seen.count > 0; }), 2.0);
    EXPECT_EQ(1, seen.count);
    ping(e, good, stable, 10000); // b189
    EXPECT_EQ(0, none.count);
    EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
    EXPECT_EQ(UCS_OK, wait({&e, &stable}, close_nb(good)));
}

TEST_P(ucp_failure, b190_force_close_ends_every_request)
{
    entity a(with_tls()), b(with_tls());
    ucp_ep_h ep;
    errors seen;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep, &seen));
    ping(a, ep, b);
    std::vector<char> data(16000, 'f');
    std::vector<ucs_status_ptr_t> sends;
    for (unsigned i = 0; i < 1000; ++i) {
        sends.push_back(send_nb(ep, data.data(), data.size(), 1000 + i));
    }
    EXPECT_EQ(UCS_OK, wait({&a}, close_nb(ep, true)));
    for (ucs_status_ptr_t s : sends) {
        EXPECT_NE(UCS_INPROGRESS, wait({&a}, s, 2));
    }
    run_for({&a, &b}, 0.05);
    EXPECT_EQ(0, seen.count);
}

INSTANTIATE_TEST_SUITE_P(transports, ucp_failure, testing::Values("shm,self", "tcp,self", "all"),
                         [](const auto &info) {
                             std::string name = info.param;
                             return name.substr(0, name.find(','));
                         });

} // namespace
