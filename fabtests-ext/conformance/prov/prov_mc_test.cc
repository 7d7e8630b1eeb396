// SPDX-License-Identifier: BSD-3-Clause
//
// Multicast groups of RDM endpoints: several processes that know of each other only the group's
// address.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/transports.h"
#include "fabtests-ext/common/two_hosts.h"

#include "prov/ucxlike/wire.h"

#include <arpa/inet.h>
#include <csignal>
#include <gtest/gtest.h>
#include <netinet/in.h>

using namespace app;

namespace {

using clock = std::chrono::steady_clock;

options group_options()
{
    options o;
    o.caps = FI_MSG | FI_TAGGED | FI_MULTICAST | FI_SOURCE;
    o.with_eq = true;
    o.cq_size = 4096;
    return o;
}

struct message {
    int from;
    int number;
};

struct member : fabric_side {
    fid_mc *mc = nullptr;
    crew &all;
    int index;
    clock::time_point end = clock::now() + 4 * patience;
    std::vector<message> got;
    static constexpr int depth = 256;
    std::vector<message> in = std::vector<message>(depth);

    member(int i, crew &c, const options &o = group_options()) : fabric_side(o), all(c), index(i)
    {
        open_active(info);
        for (message &m : in) {
            post(&m);
        }
    }
    ~member() { leave(); }

    void post(message *m)
    {
        retry([&] { return fi_recv(ep, m, sizeof(*m), nullptr, FI_ADDR_UNSPEC, m); });
    }
    void join(uint64_t flags = 0)
    {
        sockaddr_in at = group_address();
        join_at(&at, flags);
    }
    void join_at(const void *at, uint64_t flags = 0)
    {
        int context;
        REQUIRE_EQ(fi_join(ep, at, flags, &mc, &context), 0);
        uint32_t type = 0;
        fi_eq_entry e = {};
        REQUIRE_EQ(fi_eq_sread(eq, &type, &e, sizeof(e), patience_ms, 0),
                   static_cast<ssize_t>(sizeof(e)));
        REQUIRE_EQ(type, static_cast<uint32_t>(FI_JOIN_COMPLETE));
        REQUIRE(e.fid == &mc->fid && e.context == &context);
        REQUIRE(fi_mc_addr(mc) != FI_ADDR_NOTAVAIL);
    }
    void leave()
    {
        if (mc) {
            REQUIRE_EQ(fi_close(&mc->fid), 0);
        }
        mc = nullptr;
    }
    // Progresses, and takes what came.
    void turn()
    {
        REQUIRE(clock::now() < end);
        fi_cq_tagged_entry e;
        ssize_t n;
        while ((n = fi_cq_read(rxcq, &e, 1)) == 1) {
            auto *m = static_cast<message *>(e.op_context);
            REQUIRE_EQ(e.len, sizeof(*m));
            got.push_back(*m);
            post(m);
        }
        REQUIRE_EQ(n, -FI_EAGAIN);
    }
    void meet(int point, int count)
    {
        all.arrive(point);
        await(point, count);
    }
    void await(int point, int count)
    {
        while (all.arrived(point) < count) {
            turn();
        }
    }
    void say(int number)
    {
        message m = {index, number};
        iovec iov = {&m, sizeof(m)};
        fi_msg out = {&iov, nullptr, 1, fi_mc_addr(mc), &out, 0};
        ssize_t r;
        while ((r = fi_sendmsg(ep, &out, FI_MULTICAST | FI_INJECT | FI_COMPLETION)) == -FI_EAGAIN) {
            turn();
        }
        REQUIRE_EQ(r, 0);
        fi_cq_tagged_entry e;
        while ((r = fi_cq_read(txcq, &e, 1)) == -FI_EAGAIN) {
            turn();
        }
        REQUIRE_EQ(r, 1);
        REQUIRE(e.op_context == &out);
    }
    void await_messages(size_t count)
    {
        while (got.size() < count) {
            turn();
        }
    }
    // From this member came first, first + 1, ..., count of them.
    void expect_from(int who, int first, int count)
    {
        int next = first;
        for (const message &m : got) {
            if (m.from != who) {
                continue;
            }
            REQUIRE_EQ(m.number, next);
            ++next;
        }
        REQUIRE_EQ(next, first + count);
    }
};

class prov_mc_test : public testing::TestWithParam<const char *> {
  protected:
    void run(int count, const crew_role &each)
    {
        group_address(); // before the processes part
        const char *transports = GetParam();
        EXPECT_EQ(run_crew(count,
                           [&](int i, crew &c) {
                               setenv("FI_UCXLIKE_TLS", transports, 1);
                               each(i, c);
                           }),
                  "");
    }
};

TEST_P(prov_mc_test, everybody_hears_everybody_in_order)
{
    constexpr int members = 4, each = 100;
    run(members, [](int i, crew &c) {
        member m(i, c);
        m.join();
        m.meet(0, members);
        for (int n = 0; n < each; ++n) {
            m.say(n);
        }
        m.await_messages((members - 1) * each);
        for (int k = 0; k < members; ++k) {
            m.expect_from(k, 0, k == i ? 0 : each); // not one's own
        }
        m.meet(1, members);
        REQUIRE_EQ(m.got.size(), static_cast<size_t>((members - 1) * each));
    });
}

TEST_P(prov_mc_test, who_joins_to_send_hears_nothing_and_the_reverse)
{
    run(4, [](int i, crew &c) {
        bool sender = i < 2;
        member m(i, c);
        m.join(sender ? FI_SEND : FI_RECV);
        m.meet(0, 4);
        if (sender) {
            for (int n = 0; n < 50; ++n) {
                m.say(n);
            }
        } else {
            message out = {};
            iovec iov = {&out, sizeof(out)};
            fi_msg msg = {&iov, nullptr, 1, fi_mc_addr(m.mc), nullptr, 0};
            REQUIRE_EQ(fi_sendmsg(m.ep, &msg, FI_MULTICAST), -FI_EOPBADSTATE);
            m.await_messages(100);
            m.expect_from(0, 0, 50);
            m.expect_from(1, 0, 50);
        }
        m.meet(1, 4);
        REQUIRE_EQ(m.got.size(), sender ? 0u : 100u);
    });
}

TEST_P(prov_mc_test, who_leaves_hears_no_more_and_may_come_back)
{
    run(3, [](int i, crew &c) {
        member m(i, c);
        m.join();
        m.meet(0, 3);
        if (i == 0) {
            for (int n = 0; n < 10; ++n) {
                m.say(n);
            }
        } else {
            m.await_messages(10);
        }
        m.meet(1, 3);
        if (i == 2) {
            m.leave();
        }
        m.meet(2, 3);
        if (i == 0) {
            for (int n = 10; n < 20; ++n) {
                m.say(n);
            }
        }
        if (i == 1) {
            m.await_messages(20);
        }
        m.meet(3, 3);
        if (i == 2) {
            REQUIRE_EQ(m.got.size(), 10u);
            m.got.clear();
            m.join();
        }
        m.meet(4, 3);
        if (i == 0) {
            for (int n = 20; n < 30; ++n) {
                m.say(n);
            }
        }
        if (i == 1) {
            m.await_messages(30), m.expect_from(0, 0, 30);
        }
        if (i == 2) {
            m.await_messages(10), m.expect_from(0, 20, 10);
        }
        m.meet(5, 3);
    });
}

TEST_P(prov_mc_test, a_dead_member_does_not_stop_the_others)
{
    run(4, [](int i, crew &c) {
        options o = group_options();
        o.tx_op_flags = 0;
        member m(i, c, o);
        m.join();
        m.meet(0, 4);
        if (i == 3) {
            m.await_messages(3);
            kill(getpid(), SIGKILL);
        }
        for (int n = 0; n < 200; ++n) {
            m.say(n);
        }
        m.await_messages(400);
        for (int k = 0; k < 3; ++k) {
            m.expect_from(k, 0, k == i ? 0 : 200);
        }
        m.meet(1, 3);
    });
}

// Large messages, a gathered one, CQ data, FI_DELIVERY_COMPLETE, op_flags FI_MULTICAST.
TEST_P(prov_mc_test, carries_what_other_messages_carry)
{
    constexpr size_t n = 300000;
    run(3, [](int i, crew &c) {
        options o = group_options();
        if (i == 0) {
            o.tx_op_flags = FI_MULTICAST | FI_DELIVERY_COMPLETE;
        }
        fabric_side s(o);
        s.open_active(s.info);
        sockaddr_in at = group_address();
        fid_mc *mc = nullptr;
        REQUIRE_EQ(fi_join(s.ep, &at, i ? FI_RECV : FI_SEND, &mc, nullptr), 0);
        uint32_t type = 0;
        fi_eq_entry e = {};
        REQUIRE_EQ(fi_eq_sread(s.eq, &type, &e, sizeof(e), patience_ms, 0),
                   static_cast<ssize_t>(sizeof(e)));
        auto meet = [&](int point) {
            c.arrive(point);
            while (c.arrived(point) < 3) {
                s.progress();
            }
        };
        if (i) {
            std::vector<char> large(n), small(64);
            s.retry(
                [&] { return fi_recv(s.ep, large.data(), n, nullptr, FI_ADDR_UNSPEC, &large); });
            s.retry([&] {
                return fi_trecv(s.ep, small.data(), 64, nullptr, FI_ADDR_UNSPEC, 0x17, 0, &small);
            });
            meet(0);
            bool seen_large = false, seen_small = false;
            while (!seen_large || !seen_small) {
                fi_cq_tagged_entry done = s.complete(s.rxcq);
                if (done.op_context == &large) {
                    REQUIRE_EQ(done.len, n);
                    REQUIRE_EQ(done.data, 0xfeedu);
                    seen_large = true;
                } else {
                    REQUIRE_EQ(done.tag, 0x17u);
                    REQUIRE_EQ(done.len, 20u);
                    seen_small = true;
                }
            }
            REQUIRE(large == pattern(n, 4));
            REQUIRE(memcmp(small.data(), pattern(20, 5).data(), 20) == 0);
        } else {
            meet(0);
            auto large = pattern(n, 4), small = pattern(20, 5);
            s.retry([&] {
                return fi_senddata(s.ep, large.data(), n, nullptr, 0xfeed, fi_mc_addr(mc), &large);
            });
            REQUIRE(s.complete(s.txcq).op_context == &large);
            iovec iov[2] = {{small.data(), 7}, {small.data() + 7, 13}};
            s.retry([&] { return fi_tsendv(s.ep, iov, nullptr, 2, fi_mc_addr(mc), 0x17, &small); });
            REQUIRE(s.complete(s.txcq).op_context == &small);
        }
        meet(1);
        REQUIRE_EQ(fi_cq_read(s.txcq, nullptr, 0), -FI_EAGAIN); // one completion for all
        REQUIRE_EQ(fi_close(&s.ep->fid), -FI_EBUSY);
        REQUIRE_EQ(fi_close(&mc->fid), 0);
    });
}

TEST_P(prov_mc_test, refuses_what_is_no_group)
{
    run(1, [](int, crew &) {
        sockaddr_in at = group_address(), wrong = at;
        fid_mc *mc = nullptr;
        auto with_eq = [](options o, bool eq) {
            o.with_eq = eq;
            return o;
        };
        fabric_side s(group_options());
        REQUIRE_EQ(fi_endpoint(s.domain, s.info, &s.ep, nullptr), 0);
        REQUIRE_EQ(fi_join(s.ep, &at, 0, &mc, nullptr), -FI_EOPBADSTATE); // not enabled
        s.bind_and_enable();
        REQUIRE_EQ(fi_join(s.ep, nullptr, 0, &mc, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_join(s.ep, &at, 0, nullptr, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_join(s.ep, &at, FI_READ, &mc, nullptr), -FI_EINVAL);
        wrong.sin_port = 0;
        REQUIRE_EQ(fi_join(s.ep, &wrong, 0, &mc, nullptr), -FI_EINVAL);
        wrong = at;
        wrong.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        REQUIRE_EQ(fi_join(s.ep, &wrong, 0, &mc, nullptr), -FI_EINVAL);
        message out = {};
        iovec iov = {&out, sizeof(out)};
        fi_msg msg = {&iov, nullptr, 1, 0, nullptr, 0};
        REQUIRE_EQ(fi_sendmsg(s.ep, &msg, FI_MULTICAST), -FI_EINVAL); // no group's address
        // Before the join is complete nothing can be sent; alone, all members that are there get
        // it.
        REQUIRE_EQ(fi_join(s.ep, &at, 0, &mc, nullptr), 0);
        msg.addr = fi_mc_addr(mc);
        REQUIRE_EQ(fi_sendmsg(s.ep, &msg, FI_MULTICAST), -FI_EOPBADSTATE);
        REQUIRE_EQ(fi_sendmsg(s.ep, &msg, 0), -FI_EINVAL);
        uint32_t type;
        fi_eq_entry e;
        REQUIRE_EQ(fi_eq_sread(s.eq, &type, &e, sizeof(e), patience_ms, 0),
                   static_cast<ssize_t>(sizeof(e)));
        REQUIRE_EQ(fi_sendmsg(s.ep, &msg, FI_MULTICAST | FI_COMPLETION), 0);
        s.complete(s.txcq);
        REQUIRE_EQ(fi_close(&mc->fid), 0);

        fabric_side no_queue(with_eq(group_options(), false));
        no_queue.open_active(no_queue.info);
        REQUIRE_EQ(fi_join(no_queue.ep, &at, 0, &mc, nullptr), -FI_ENOEQ);
        options plain = group_options();
        plain.caps = FI_MSG;
        fabric_side no_cap(plain);
        no_cap.open_active(no_cap.info);
        REQUIRE_EQ(fi_join(no_cap.ep, &at, 0, &mc, nullptr), -FI_EOPNOTSUPP);
        options one_way = group_options();
        one_way.caps = FI_MSG | FI_MULTICAST | FI_SEND;
        fabric_side sender(one_way);
        sender.open_active(sender.info);
        REQUIRE_EQ(fi_join(sender.ep, &at, FI_RECV, &mc, nullptr), -FI_EINVAL);
    });
}

// A member that has heard of another, but does not count it yet, would not send to it.
TEST_P(prov_mc_test, a_join_waits_until_the_others_know_of_it)
{
    namespace wire = ucxlike::wire;
    run(1, [](int, crew &) {
        sockaddr_in at = group_address();
        int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        int reuse = 1;
        REQUIRE_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)), 0);
        ip_mreq loopback = {at.sin_addr, {htonl(INADDR_LOOPBACK)}};
        REQUIRE_EQ(bind(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)), 0);
        REQUIRE_EQ(setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &loopback, sizeof(loopback)), 0);
        REQUIRE_EQ(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback.imr_interface,
                              sizeof(loopback.imr_interface)),
                   0);
        sockaddr_in name = {};
        name.sin_family = AF_INET;
        name.sin_port = htons(1);
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        wire::notice mine = {};
        mine.magic = wire::notice::right_magic;
        mine.kind = wire::notice::here;
        mine.roles = wire::notice::sends; // no member connects to it
        mine.sender = wire::make_hello(
            ucxlike::address::from(reinterpret_cast<sockaddr *>(&name), sizeof(name)), 1, 1);
        auto say = [&](uint16_t members) {
            mine.members = members;
            REQUIRE_EQ(
                sendto(fd, &mine, sizeof(mine), 0, reinterpret_cast<sockaddr *>(&at), sizeof(at)),
                static_cast<ssize_t>(sizeof(mine)));
        };
        fabric_side s(group_options());
        s.open_active(s.info);
        fid_mc *mc = nullptr;
        auto begun = clock::now();
        REQUIRE_EQ(fi_join(s.ep, &at, 0, &mc, nullptr), 0);
        wire::notice heard = {};
        do {
            say(1);
            REQUIRE(recv(fd, &heard, sizeof(heard), 0) > 0);
        } while (heard.sender.incarnation == mine.sender.incarnation || heard.members < 2);
        uint32_t type = 0;
        fi_eq_entry e = {};
        while (clock::now() < begun + std::chrono::milliseconds(700)) {
            REQUIRE(fi_eq_read(s.eq, &type, &e, sizeof(e), 0) == -FI_EAGAIN ||
                    clock::now() > begun + std::chrono::seconds(1)); // it waits for two
        }
        say(2);
        if (type == 0) {
            REQUIRE_EQ(fi_eq_sread(s.eq, &type, &e, sizeof(e), patience_ms, 0),
                       static_cast<ssize_t>(sizeof(e)));
        }
        REQUIRE_EQ(type, static_cast<uint32_t>(FI_JOIN_COMPLETE));
        REQUIRE_EQ(fi_close(&mc->fid), 0);
        close(fd);
    });
}

sockaddr_in6 group_address6()
{
    sockaddr_in6 a = {};
    a.sin6_family = AF_INET6;
    a.sin6_port = group_address().sin_port;
    inet_pton(AF_INET6, "ff15::4709", &a.sin6_addr);
    return a;
}

// One member on each of two hosts. They meet by what joins the roles, which is no network.
void between_hosts(two_hosts::host &self, bool ipv6)
{
    use_build_tree();
    setenv("FI_UCXLIKE_TLS", "tcp", 1);
    options o = group_options();
    o.node = ipv6 ? self.address6(self.number, 0) : self.address(self.number, 0);
    std::atomic<int> arrived[crew::points] = {};
    crew alone(arrived);
    member m(self.number, alone, o);
    auto meet = [&] {
        self.other.tell("here");
        std::string answer;
        while (!self.other.hear_now(&answer)) {
            m.turn();
        }
    };
    auto join = [&] {
        sockaddr_in at = group_address();
        sockaddr_in6 at6 = group_address6();
        m.join_at(ipv6 ? static_cast<void *>(&at6) : &at);
        meet();
    };
    constexpr int count = 50;
    int other = 1 - self.number;
    join();
    for (int n = 0; n < count; ++n) {
        m.say(n);
    }
    m.await_messages(count);
    m.expect_from(other, 0, count);
    m.expect_from(self.number, 0, 0);
    meet();
    if (self.number == 1) {
        m.leave();
    }
    meet();
    if (self.number == 0) {
        m.say(count); // not heard
    }
    meet();
    if (self.number == 1) {
        REQUIRE_EQ(m.got.size(), static_cast<size_t>(count));
        m.got.clear();
        join();
        m.await_messages(1);
        m.expect_from(0, count + 1, 1);
    } else {
        meet();
        m.say(count + 1);
    }
    meet();
}

class prov_mc_hosts_test : public testing::TestWithParam<bool> {};

TEST_P(prov_mc_hosts_test, members_on_two_hosts_find_each_other)
{
    std::string why = two_hosts::obstacle();
    if (!why.empty()) {
        GTEST_SKIP() << why;
    }
    group_address(); // before the processes part
    auto act = [](two_hosts::host &self) {
        between_hosts(self, GetParam());
        return 0;
    };
    two_hosts::outcome got = two_hosts::run(1, act, act);
    EXPECT_EQ(got.first, 0);
    EXPECT_EQ(got.second, 0);
}

INSTANTIATE_TEST_SUITE_P(, prov_mc_hosts_test, testing::Bool(),
                         [](const auto &i) { return i.param ? "ipv6" : "ipv4"; });

// The loopback interface carries no IPv6 multicast: a join says so, instead of being alone.
TEST_P(prov_mc_test, a_group_that_cannot_be_reached_is_not_joined)
{
    run(1, [](int, crew &) {
        int probe = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        sockaddr_in6 loopback = {};
        loopback.sin6_family = AF_INET6;
        loopback.sin6_addr = in6addr_loopback;
        bool has_ipv6 = probe >= 0 &&
                        bind(probe, reinterpret_cast<sockaddr *>(&loopback), sizeof(loopback)) == 0;
        if (probe >= 0) {
            close(probe);
        }
        if (!has_ipv6) {
            return;
        }
        options o = group_options();
        o.node = "::1";
        fabric_side s(o);
        s.open_active(s.info);
        sockaddr_in6 at = group_address6();
        fid_mc *mc = nullptr;
        REQUIRE_EQ(fi_join(s.ep, &at, 0, &mc, nullptr), -ENETUNREACH);
        sockaddr_in other_family = group_address();
        REQUIRE_EQ(fi_join(s.ep, &other_family, 0, &mc, nullptr), -FI_EINVAL);
    });
}

INSTANTIATE_TEST_SUITE_P(, prov_mc_test, testing::ValuesIn(prov_test::transports()),
                         [](const auto &i) { return prov_test::first_transport(i.param); });

} // namespace
