// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of one connection: the truth, at the same number of system calls however
// many sockets there are, also where it does not answer requests for sockets.
#include "fabtests-ext/common/emulated.h"
#include "uct/ofi/tcp/tcp_state.h"

#include <arpa/inet.h>
#include <cerrno>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace {

size_t calls = 0;
bool refused = false; // sock_diag

} // namespace

// The library's system calls come by here.
extern "C" {

int socket(int family, int type, int protocol) noexcept
{
    ++calls;
    if (family == AF_NETLINK && refused) {
        errno = EPROTONOSUPPORT;
        return -1;
    }
    return static_cast<int>(syscall(SYS_socket, family, type, protocol));
}

ssize_t send(int fd, const void *data, size_t length, int flags)
{
    ++calls;
    return syscall(SYS_sendto, fd, data, length, flags, nullptr, 0);
}

ssize_t recv(int fd, void *data, size_t length, int flags)
{
    ++calls;
    return syscall(SYS_recvfrom, fd, data, length, flags, nullptr, nullptr);
}

ssize_t read(int fd, void *data, size_t length)
{
    ++calls;
    return syscall(SYS_read, fd, data, length);
}

int close(int fd)
{
    ++calls;
    return static_cast<int>(syscall(SYS_close, fd));
}

int getsockname(int fd, sockaddr *name, socklen_t *length) noexcept
{
    ++calls;
    return static_cast<int>(syscall(SYS_getsockname, fd, name, length));
}

int getpeername(int fd, sockaddr *name, socklen_t *length) noexcept
{
    ++calls;
    return static_cast<int>(syscall(SYS_getpeername, fd, name, length));
}

int getsockopt(int fd, int level, int option, void *value, socklen_t *length) noexcept
{
    ++calls;
    return static_cast<int>(syscall(SYS_getsockopt, fd, level, option, value, length));
}

} // extern "C"

namespace {

using namespace uct::ofi;

class file {
  public:
    explicit file(int fd) : fd(fd) {}
    file(const file &) = delete;
    file &operator=(const file &) = delete;
    ~file() { close(fd); }

    const int fd;
};

// A listener at the loopback address and a connection to it.
class link_within {
  public:
    explicit link_within(int family)
        : listener(socket(family, SOCK_STREAM, 0)),
          client(std::make_unique<file>(socket(family, SOCK_STREAM, 0)))
    {
        sockaddr_storage at{};
        at.ss_family = static_cast<sa_family_t>(family);
        socklen_t length = sizeof(sockaddr_in);
        if (family == AF_INET) {
            reinterpret_cast<sockaddr_in &>(at).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        } else {
            reinterpret_cast<sockaddr_in6 &>(at).sin6_addr = in6addr_loopback;
            length = sizeof(sockaddr_in6);
        }
        auto *address = reinterpret_cast<sockaddr *>(&at);
        up = bind(listener.fd, address, length) == 0 && listen(listener.fd, 1) == 0 &&
             getsockname(listener.fd, address, &length) == 0 &&
             connect(client->fd, address, length) == 0;
        server = std::make_unique<file>(accept(listener.fd, nullptr, nullptr));
        length = sizeof(ends.local);
        getsockname(client->fd, reinterpret_cast<sockaddr *>(&ends.local), &length);
        length = sizeof(ends.remote);
        getpeername(client->fd, reinterpret_cast<sockaddr *>(&ends.remote), &length);
    }

    // The server hears nothing any more, not even what would have to be acknowledged.
    void fall_silent()
    {
        sock_filter drop{BPF_RET | BPF_K, 0, 0, 0};
        sock_fprog program{1, &drop};
        ASSERT_EQ(0,
                  setsockopt(server->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)));
        ASSERT_EQ(1, send(client->fd, "x", 1, 0));
    }

    unsigned truth() const
    {
        tcp_info info{};
        socklen_t length = sizeof(info);
        EXPECT_EQ(0, getsockopt(client->fd, IPPROTO_TCP, TCP_INFO, &info, &length));
        return info.tcpi_retransmits;
    }

    tcp_ends opposite() const { return {ends.remote, ends.local}; }

    bool up = false;
    file listener;
    std::unique_ptr<file> client, server;
    tcp_ends ends{};
};

unsigned look(const tcp_ends &of)
{
    int near = 0;
    tcp_inquiry inquiry;
    return inquiry.look(of, &near).unanswered;
}

class uct_tcp_state : public testing::TestWithParam<int> {
  protected:
    void SetUp() override
    {
        refused = false;
        link_ = std::make_unique<link_within>(GetParam());
        if (!link_->up) {
            GTEST_SKIP() << "no loopback address of the family";
        }
    }

    void TearDown() override { refused = false; }

    std::unique_ptr<link_within> link_;
};

TEST_P(uct_tcp_state, tells_how_often_bytes_were_sent_again)
{
    EXPECT_EQ(0u, look(link_->ends));
    link_->fall_silent();
    unsigned before, said, after;
    do {
        refused = !refused; // both ways tell the same
        before = link_->truth();
        said = look(link_->ends);
        after = link_->truth();
        ASSERT_LE(before, said);
        ASSERT_LE(said, after);
    } while (said < 2 || refused);
    EXPECT_EQ(0u, look(link_->opposite())) << "the other direction has nothing to send";
}

// The kernel tells of the listener instead, or nothing.
TEST_P(uct_tcp_state, a_connection_that_is_gone_has_none)
{
    link_->fall_silent();
    link_->client.reset();
    link_->server.reset();
    for (bool r : {false, true}) {
        refused = r;
        EXPECT_EQ(0u, look(link_->opposite()));
        EXPECT_EQ(0u, look({link_->ends.local, link_->ends.local}));
    }
}

TEST_P(uct_tcp_state, system_calls_do_not_grow_with_the_sockets)
{
    SKIP_IF_EMULATED("the kernel is not asked by netlink");
    int near = 0;
    auto cost = [&] {
        calls = 0;
        tcp_inquiry().look(link_->ends, &near);
        return calls;
    };
    size_t asked = 0, searched = 0;
    std::vector<std::unique_ptr<link_within>> others;
    for (size_t count : {0u, 30u, 250u}) {
        while (others.size() < count) {
            others.push_back(std::make_unique<link_within>(GetParam()));
        }
        refused = false;
        size_t with = cost();
        refused = true;
        cost(); // finds the descriptor
        size_t without = cost();
        if (count == 0) {
            asked = with;
            searched = without;
        }
        EXPECT_EQ(asked, with) << count;
        EXPECT_EQ(searched, without) << count;
    }
    EXPECT_LE(asked, 4u) << "socket, send, recv, close";
    EXPECT_LE(searched, 4u) << "socket, and three of the descriptor";
    refused = false;
    file before(dup(0));
    close(before.fd);
    look(link_->ends);
    EXPECT_EQ(before.fd, dup(0)) << "a look has left a descriptor";
}

INSTANTIATE_TEST_SUITE_P(on, uct_tcp_state, testing::Values(AF_INET, AF_INET6),
                         [](const testing::TestParamInfo<int> &info) {
                             return info.param == AF_INET ? "ipv4" : "ipv6";
                         });

} // namespace
