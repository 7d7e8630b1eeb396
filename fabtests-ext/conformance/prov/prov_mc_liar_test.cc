// SPDX-License-Identifier: BSD-3-Clause
//
// Multicast notices that a stranger makes up: they neither remove a member of a group, nor move it,
// nor make others connect to a third party.
#include "fabtests-ext/common/fabric_app.h"

#include "prov/ucxlike/wire.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <thread>
#include <unistd.h>

using namespace app;

namespace {

namespace wire = ucxlike::wire;

struct member : fabric_side {
    crew &all;
    fid_mc *mc = nullptr;
    int in = 0;

    static options opts()
    {
        options o;
        o.caps = FI_MSG | FI_TAGGED | FI_MULTICAST | FI_SOURCE;
        o.with_eq = true;
        return o;
    }
    member(crew &c, uint64_t flags) : fabric_side(opts()), all(c)
    {
        open_active(info);
        sockaddr_in at = group_address();
        REQUIRE_EQ(fi_join(ep, &at, flags, &mc, nullptr), 0);
        uint32_t type = 0;
        fi_eq_entry e = {};
        REQUIRE_EQ(fi_eq_sread(eq, &type, &e, sizeof(e), patience_ms, 0),
                   static_cast<ssize_t>(sizeof(e)));
        REQUIRE_EQ(type, static_cast<uint32_t>(FI_JOIN_COMPLETE));
    }
    ~member() { REQUIRE_EQ(fi_close(&mc->fid), 0); }
    // Progresses until so many are there.
    void meet(int point, int count)
    {
        all.arrive(point);
        auto end = std::chrono::steady_clock::now() + patience;
        while (all.arrived(point) < count) {
            REQUIRE(std::chrono::steady_clock::now() < end);
            REQUIRE_EQ(fi_cq_read(rxcq, nullptr, 0), -FI_EAGAIN);
            REQUIRE_EQ(fi_cq_read(txcq, nullptr, 0), -FI_EAGAIN);
        }
    }
};

class stranger {
  public:
    stranger()
    {
        int one = 1;
        sockaddr_in group = group_address();
        REQUIRE_EQ(setsockopt(ears_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
        REQUIRE_EQ(bind(ears_, reinterpret_cast<sockaddr *>(&group), sizeof(group)), 0);
    }
    ~stranger()
    {
        close(ears_);
        close(voice_);
    }

    // The next notice of the member that receives.
    wire::notice hear(in_addr at_host)
    {
        ip_mreq join = {group_address().sin_addr, at_host};
        REQUIRE_EQ(setsockopt(ears_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof(join)), 0);
        host_.sin_family = AF_INET;
        host_.sin_addr = at_host;
        REQUIRE_EQ(bind(voice_, reinterpret_cast<sockaddr *>(&host_), sizeof(host_)), 0);
        REQUIRE_EQ(setsockopt(voice_, IPPROTO_IP, IP_MULTICAST_IF, &at_host, sizeof(at_host)), 0);
        for (;;) {
            pollfd p = {ears_, POLLIN, 0};
            REQUIRE_EQ(poll(&p, 1, patience_ms), 1);
            char bytes[sizeof(wire::notice)];
            wire::notice n;
            ssize_t length = recv(ears_, bytes, sizeof(bytes), 0);
            if (length > 0 && wire::parse(bytes, static_cast<size_t>(length), n) &&
                n.roles == wire::notice::receives) {
                return n;
            }
        }
    }
    void say(const wire::notice &n)
    {
        sockaddr_in group = group_address();
        REQUIRE_EQ(
            sendto(voice_, &n, sizeof(n), 0, reinterpret_cast<sockaddr *>(&group), sizeof(group)),
            static_cast<ssize_t>(sizeof(n)));
    }
    // As if a new process received at the address.
    void name(const wire::notice &like, const sockaddr_in &at)
    {
        wire::notice n = like;
        ucxlike::address a;
        a.in4 = at;
        n.sender = wire::make_hello(a, 4711, 99);
        say(n);
    }

  private:
    int ears_ = socket(AF_INET, SOCK_DGRAM, 0);
    int voice_ = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in host_ = {};
};

struct tcp_listener {
    explicit tcp_listener(in_addr host)
    {
        at.sin_family = AF_INET;
        at.sin_addr = host;
        socklen_t length = sizeof(at);
        auto *name = reinterpret_cast<sockaddr *>(&at);
        REQUIRE_EQ(bind(fd, name, length), 0);
        REQUIRE_EQ(listen(fd, 8), 0);
        REQUIRE_EQ(getsockname(fd, name, &length), 0);
    }
    ~tcp_listener() { close(fd); }
    bool called(int wait_ms) const
    {
        pollfd p = {fd, POLLIN, 0};
        return poll(&p, 1, wait_ms) == 1;
    }
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at = {};
};

void lie(crew &all, in_addr host)
{
    auto end = std::chrono::steady_clock::now() + patience;
    while (all.arrived(0) < 2) { // both have joined, so that the sender hears it
        REQUIRE(std::chrono::steady_clock::now() < end);
        std::this_thread::yield();
    }
    stranger s;
    wire::notice told = s.hear(host);
    wire::notice leaves = told, elsewhere = told;
    leaves.kind = wire::notice::leaves;
    elsewhere.sender.id ^= 1;
    s.say(elsewhere);
    s.say(leaves);
    in_addr other = {
        htonl(ntohl(host.s_addr) == INADDR_LOOPBACK ? INADDR_LOOPBACK + 1 : INADDR_LOOPBACK)};
    tcp_listener third(other), own(host);
    s.name(told, third.at);
    s.name(told, own.at);
    // What was said before has been looked at when that is.
    REQUIRE(own.called(patience_ms));
    REQUIRE(!third.called(0));
    all.arrive(1);
}

TEST(prov_mc_liar_test, a_member_is_what_it_says_itself)
{
    group_address(); // before the processes part
    constexpr int messages = 10;
    auto sender = [](crew &c) {
        member m(c, FI_SEND);
        m.meet(0, 2);
        m.meet(1, 3);
        for (int n = 0; n < messages; ++n) {
            iovec iov = {&n, sizeof(n)};
            fi_msg out = {&iov, nullptr, 1, fi_mc_addr(m.mc), nullptr, 0};
            m.retry(
                [&] { return fi_sendmsg(m.ep, &out, FI_MULTICAST | FI_INJECT | FI_COMPLETION); });
            m.complete(m.txcq);
        }
        m.meet(2, 2);
    };
    auto receiver = [](crew &c) {
        member m(c, FI_RECV);
        sockaddr_in name = {};
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&m.ep->fid, &name, &length), 0);
        m.meet(0, 2);
        m.meet(1, 3);
        for (int n = 0; n < messages; ++n) {
            m.retry([&] {
                return fi_recv(m.ep, &m.in, sizeof(m.in), nullptr, FI_ADDR_UNSPEC, nullptr);
            });
            m.complete(m.rxcq);
            REQUIRE_EQ(m.in, n);
        }
        m.meet(2, 2);
    };
    EXPECT_EQ(run_crew(3,
                       [&](int i, crew &c) {
                           setenv("FI_UCXLIKE_TLS", "tcp", 1);
                           if (i == 0) {
                               sender(c);
                           } else if (i == 1) {
                               receiver(c);
                           } else {
                               fabric_side looks(member::opts()); // for its address
                               looks.open_active(looks.info);
                               sockaddr_in name = {};
                               size_t length = sizeof(name);
                               REQUIRE_EQ(fi_getname(&looks.ep->fid, &name, &length), 0);
                               lie(c, name.sin_addr);
                           }
                       }),
              "");
}

} // namespace
