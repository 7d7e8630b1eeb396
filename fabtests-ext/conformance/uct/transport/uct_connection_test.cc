// SPDX-License-Identifier: BSD-3-Clause
// Connections between interfaces that both sides begin, lose and begin again. Over tcp, whose
// sockets a test can find and break.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include <algorithm>
#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <set>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace uct_conformance {
namespace {

struct tcp_socket {
    int fd;
    uint16_t local; // port
    bool listening;
};

std::vector<tcp_socket> tcp_sockets()
{
    std::vector<tcp_socket> found;
    DIR *dir = opendir("/proc/self/fd");
    while (dirent *entry = dir ? readdir(dir) : nullptr) {
        int fd = atoi(entry->d_name);
        int type = 0, accepts = 0;
        socklen_t size = sizeof(type);
        sockaddr_in name{};
        socklen_t length = sizeof(name);
        if (entry->d_name[0] == '.' || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 ||
            type != SOCK_STREAM ||
            getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &size) != 0 ||
            getsockname(fd, reinterpret_cast<sockaddr *>(&name), &length) != 0 ||
            name.sin_family != AF_INET) {
            continue;
        }
        found.push_back({fd, ntohs(name.sin_port), accepts != 0});
    }
    closedir(dir);
    return found;
}

class uct_connection : public uct_test {
  protected:
    // Breaks the sockets that were accepted, as seen by the side that accepted them.
    static void break_accepted()
    {
        std::vector<tcp_socket> sockets = tcp_sockets();
        std::set<uint16_t> ports;
        for (const tcp_socket &s : sockets) {
            if (s.listening) {
                ports.insert(s.local);
            }
        }
        int broken = 0;
        for (const tcp_socket &s : sockets) {
            if (!s.listening && ports.contains(s.local)) {
                broken += shutdown(s.fd, SHUT_RDWR) == 0;
            }
        }
        EXPECT_EQ(broken, 1);
    }

    // Progresses one side alone.
    template <class F>
    static bool only(entity &e, F &&done)
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

    void send(uct_ep_h ep, entity &to)
    {
        size_t before = to.received.size();
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        ASSERT_TRUE(until([&] { return to.received.size() == before + 1; }));
    }
};

TEST_P(uct_connection, both_sides_begin_at_once)
{
    for (int i = 0; i < 20; ++i) {
        open({});
        uct_ep_h there = a().connect(b());
        uct_ep_h back = b().connect(a());
        send(there, b());
        send(back, a());
        EXPECT_TRUE(a().errors.empty());
        EXPECT_TRUE(b().errors.empty());
    }
}

// One side accepts, loses the connection and begins another one before the first has come up for
// the side that began it. Which of them has the lower id is chance, so it is done a few times.
TEST_P(uct_connection, begun_again_before_the_first_is_up)
{
    for (int i = 0; i < 10; ++i) {
        open({});
        a().connect(b());
        for (int round = 0; round < 10; ++round) {
            uct_worker_progress(a().worker); // the request leaves
        }
        uct_ep_h lost = nullptr;
        auto accepted = [&] {
            std::vector<tcp_socket> sockets = tcp_sockets();
            return sockets.size() == 4; // two that listen, two ends
        };
        ASSERT_TRUE(only(b(), accepted));
        for (int round = 0; round < 100; ++round) {
            uct_worker_progress(b().worker); // the answer leaves
        }
        lost = b().connect(a());
        ASSERT_TRUE(only(b(), [&] { return uct_ep_am_short(lost, 1, 0, nullptr, 0) == UCS_OK; }));
        break_accepted();
        ASSERT_TRUE(only(b(), [&] { return !b().errors.empty(); }));
        b().destroy(lost);
        uct_ep_h again = b().connect(a());
        for (int round = 0; round < 10; ++round) {
            uct_worker_progress(b().worker);
        }
        ASSERT_EQ(post([&] { return uct_ep_am_short(again, 2, 0, nullptr, 0); }), UCS_OK);
        ASSERT_TRUE(until([&] { return !a().received.empty() && a().received.back().id == 2; }));
        EXPECT_EQ(b().errors.size(), 1u);
    }
}

// An interface goes while others have begun to connect to it, and one that says nothing has.
TEST_P(uct_connection, handshakes_end_with_their_interface)
{
    for (int i = 0; i < 3; ++i) {
        open({});
        std::vector<tcp_socket> sockets = tcp_sockets();
        int stranger = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(sockets.back().local);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        ASSERT_EQ(connect(stranger, reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
        a().connect(b());
        b().connect(a());
        ASSERT_TRUE(until([&] { return tcp_sockets().size() > sockets.size() + 3; }));
        a_.reset();
        b_.reset();
        close(stranger);
        EXPECT_TRUE(tcp_sockets().empty());
    }
}

// Programs that connect to the port of an interface and do not ask for anything.
class uct_silence : public uct_connection {
  protected:
    ~uct_silence() override
    {
        unsetenv("UCX_TCP_PEER_TIMEOUT");
        for (int fd : {strangers_, kept_}) {
            close(fd);
        }
    }
    // The interface that strangers come to.
    void open_for(const char *peer_timeout)
    {
        setenv("UCX_TCP_PEER_TIMEOUT", peer_timeout, 1);
        open({});
        for (const tcp_socket &s : tcp_sockets()) {
            port_ = s.listening ? s.local : port_;
        }
        int both[2];
        ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, both), 0);
        strangers_ = both[0];
        kept_ = both[1];
    }
    int come(const std::string &say = "")
    {
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port_);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr *>(&to), sizeof(to)), 0);
        EXPECT_EQ(::send(fd, say.data(), say.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(say.size()));
        return fd;
    }
    // Its end of the connection is in flight between the two ends of a pair: no descriptor has it.
    void come_from_outside()
    {
        int fd = come();
        char byte = 0, room[CMSG_SPACE(sizeof(fd))] = {};
        iovec iov = {&byte, 1};
        msghdr m{};
        m.msg_iov = &iov;
        m.msg_iovlen = 1;
        m.msg_control = room;
        m.msg_controllen = sizeof(room);
        cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
        EXPECT_EQ(sendmsg(strangers_, &m, MSG_DONTWAIT), 1);
        close(fd);
    }
    size_t accepted() const
    {
        std::vector<tcp_socket> all = tcp_sockets();
        return static_cast<size_t>(
            std::count_if(all.begin(), all.end(), [this](const tcp_socket &s) {
                return !s.listening && s.local == port_;
            }));
    }
    // A kernel resets a connection that is closed with bytes unread.
    static bool has_ended(int fd)
    {
        char c;
        ssize_t n = recv(fd, &c, 1, MSG_DONTWAIT);
        return n == 0 || (n < 0 && errno == ECONNRESET);
    }

    uint16_t port_ = 0;
    int strangers_ = -1, kept_ = -1;
};

TEST_P(uct_silence, ends_and_peers_stay)
{
    open_for("1s");
    uct_ep_h there = a().connect(b()), back = b().connect(a());
    send(there, b());
    send(back, a());
    size_t before = accepted();
    int silent = come(), begun = come(std::string(1, '\3'));
    close(come());
    EXPECT_TRUE(until([&] { return has_ended(silent) && has_ended(begun); }));
    close(silent);
    close(begun);
    EXPECT_TRUE(until([&] { return accepted() == before; }));
    send(there, b());
    send(back, a());
    EXPECT_TRUE(a().errors.empty());
    EXPECT_TRUE(b().errors.empty());
}

TEST_P(uct_silence, takes_no_more_than_half_of_the_descriptors)
{
    open_for("1000s");
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 120; ++i) {
        come_from_outside();
        ASSERT_TRUE(until([&] { return accepted() == static_cast<size_t>(i) + 1; }));
    }
    int highest = dup(strangers_);
    close(highest);
    rlimit few = {static_cast<rlim_t>(highest) + 10, before.rlim_max};
    ASSERT_LT(few.rlim_cur / 2, 120u);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    EXPECT_TRUE(until([&] { return accepted() <= few.rlim_cur / 2; }));
    EXPECT_EQ(accepted(), few.rlim_cur / 2);
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

INSTANTIATE_TEST_SUITE_P(on, uct_connection, testing::Values("tcp"), name_of);
INSTANTIATE_TEST_SUITE_P(on, uct_silence, testing::Values("tcp"), name_of);

} // namespace
} // namespace uct_conformance
