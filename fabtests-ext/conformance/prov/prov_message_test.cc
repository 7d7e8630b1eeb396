// SPDX-License-Identifier: BSD-3-Clause
//
// Messages through the provider between two processes: RDM and MSG endpoints, over shared memory
// and over tcp.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/transports.h"

#include <arpa/inet.h>
#include <array>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

using namespace app;

namespace {

struct over {
    fi_ep_type type;
    const char *transports;
};

class prov_message_test : public testing::TestWithParam<over> {
  protected:
    options opt() const
    {
        options o;
        o.type = GetParam().type;
        return o;
    }

    using body = std::function<void(fabric_side &, partner &)>;

    static void meet(fabric_side &s, partner &p, bool server)
    {
        if (s.opt.type == FI_EP_RDM) {
            s.open_rdm(p);
        } else if (server) {
            s.serve(p);
        } else {
            s.dial(p);
        }
    }

    // Both roles, connected, each with its own body.
    void run(const options &o, const body &server, const body &client)
    {
        const char *transports = GetParam().transports;
        auto as = [&](const body &b, bool is_server) {
            return [&o, &b, is_server, transports](partner &p) {
                setenv("FI_UCXLIKE_TLS", transports, 1);
                fabric_side s(o);
                meet(s, p, is_server);
                b(s, p);
                s.barrier(p);
            };
        };
        EXPECT_EQ(run_pair(as(server, true), as(client, false)), "");
    }
};

TEST_P(prov_message_test, carries_any_size)
{
    const size_t sizes[] = {0, 1, 8, 127, 1024, 4096, 8193, 65536, 1000003, 6u << 20};
    auto server = [&](fabric_side &s, partner &) {
        for (size_t n : sizes) {
            std::vector<char> buf(n + 1);
            s.retry([&] { return fi_recv(s.ep, buf.data(), n, nullptr, FI_ADDR_UNSPEC, &buf); });
            fi_cq_tagged_entry e = s.complete(s.rxcq);
            REQUIRE(e.op_context == &buf);
            REQUIRE_EQ(e.len, n);
            REQUIRE_EQ(e.flags, FI_RECV | FI_MSG);
            buf.resize(n);
            REQUIRE(buf == pattern(n, 1));
            s.retry(
                [&] { return fi_trecv(s.ep, buf.data(), n, nullptr, s.peer, 0x1000 + n, 0, &s); });
            e = s.complete(s.rxcq);
            REQUIRE_EQ(e.tag, 0x1000 + n);
            REQUIRE_EQ(e.flags, FI_RECV | FI_TAGGED);
            REQUIRE(buf == pattern(n, 2));
        }
    };
    auto client = [&](fabric_side &s, partner &) {
        for (size_t n : sizes) {
            auto a = pattern(n, 1), b = pattern(n, 2);
            s.retry([&] { return fi_send(s.ep, a.data(), n, nullptr, s.peer, &a); });
            s.retry([&] { return fi_tsend(s.ep, b.data(), n, nullptr, s.peer, 0x1000 + n, &b); });
            for (int i = 0; i < 2; ++i) {
                fi_cq_tagged_entry e = s.complete(s.txcq);
                REQUIRE(e.op_context == &a || e.op_context == &b);
            }
        }
    };
    run(opt(), server, client);
}

TEST_P(prov_message_test, injects_and_carries_data_of_the_completion)
{
    auto server = [](fabric_side &s, partner &) {
        char buf[64];
        for (int i = 0; i < 4; ++i) {
            s.retry([&] {
                return i < 2 ? fi_recv(s.ep, buf, sizeof(buf), nullptr, s.peer, &s)
                             : fi_trecv(s.ep, buf, sizeof(buf), nullptr, s.peer, 7, 0, &s);
            });
            fi_cq_tagged_entry e = s.complete(s.rxcq);
            REQUIRE_EQ(e.len, 5);
            REQUIRE(memcmp(buf, "hello", 5) == 0);
            REQUIRE_EQ(e.flags & FI_REMOTE_CQ_DATA, i & 1 ? FI_REMOTE_CQ_DATA : 0);
            if (i & 1) {
                REQUIRE_EQ(e.data, 0x123456789abcdefull);
            }
        }
    };
    auto client = [](fabric_side &s, partner &) {
        char buf[] = "hello";
        auto spoil = [&] { memset(buf, 'x', 5); };
        auto restore = [&] { memcpy(buf, "hello", 5); };
        s.retry([&] { return fi_inject(s.ep, buf, 5, s.peer); });
        spoil(), restore();
        s.retry([&] { return fi_injectdata(s.ep, buf, 5, 0x123456789abcdefull, s.peer); });
        spoil(), restore();
        s.retry([&] { return fi_tinject(s.ep, buf, 5, s.peer, 7); });
        spoil(), restore();
        s.retry([&] { return fi_tinjectdata(s.ep, buf, 5, 0x123456789abcdefull, s.peer, 7); });
        spoil();
        fi_cq_tagged_entry e;
        REQUIRE(!s.try_complete(s.txcq, &e, 100));
    };
    run(opt(), server, client);
}

TEST_P(prov_message_test, gathers_and_scatters)
{
    auto server = [](fabric_side &s, partner &) {
        auto want = pattern(70000, 3);
        std::vector<char> buf(70000);
        iovec iov[3] = {{buf.data(), 1}, {buf.data() + 1, 4999}, {buf.data() + 5000, 65000}};
        s.retry([&] { return fi_recvv(s.ep, iov, nullptr, 3, s.peer, &s); });
        REQUIRE_EQ(s.complete(s.rxcq).len, 70000);
        REQUIRE(buf == want);
        std::fill(buf.begin(), buf.end(), 0);
        s.retry([&] { return fi_trecvv(s.ep, iov, nullptr, 3, s.peer, 1, 0, &s); });
        REQUIRE_EQ(s.complete(s.rxcq).len, 100);
        REQUIRE(memcmp(buf.data(), want.data(), 100) == 0);
    };
    auto client = [](fabric_side &s, partner &) {
        auto buf = pattern(70000, 3);
        iovec iov[2] = {{buf.data(), 30000}, {buf.data() + 30000, 40000}};
        s.retry([&] { return fi_sendv(s.ep, iov, nullptr, 2, s.peer, &s); });
        s.complete(s.txcq);
        iovec two[2] = {{buf.data(), 60}, {buf.data() + 60, 40}};
        s.retry([&] { return fi_tsendv(s.ep, two, nullptr, 2, s.peer, 1, &s); });
        s.complete(s.txcq);
    };
    run(opt(), server, client);
}

TEST_P(prov_message_test, keeps_order_of_many_before_they_are_received)
{
    constexpr int count = 500;
    auto server = [](fabric_side &s, partner &p) {
        p.hear();
        for (int i = 0; i < count; ++i) {
            size_t n = i % 7 == 0 ? 20000 : 8;
            std::vector<char> buf(20000);
            s.retry([&] {
                return fi_trecv(s.ep, buf.data(), buf.size(), nullptr, s.peer, 0, ~0ull, &s);
            });
            fi_cq_tagged_entry e = s.complete(s.rxcq);
            REQUIRE_EQ(e.tag, i);
            REQUIRE_EQ(e.len, n);
            int first;
            memcpy(&first, buf.data(), sizeof(first));
            REQUIRE_EQ(first, i);
        }
    };
    auto client = [](fabric_side &s, partner &p) {
        std::vector<std::vector<char>> bufs;
        for (int i = 0; i < count; ++i) {
            bufs.emplace_back(i % 7 == 0 ? 20000 : 8);
            memcpy(bufs.back().data(), &i, sizeof(i));
        }
        int posted = 0;
        for (auto &b : bufs) {
            s.retry(
                [&] { return fi_tsend(s.ep, b.data(), b.size(), nullptr, s.peer, posted, &b); });
            ++posted;
        }
        p.tell(1);
        for (int i = 0; i < count; ++i) {
            s.complete(s.txcq);
        }
    };
    run(opt(), server, client);
}

TEST_P(prov_message_test, reports_truncation)
{
    auto server = [](fabric_side &s, partner &p) {
        for (size_t n : {size_t(100), size_t(1) << 20}) {
            std::vector<char> buf(60, 'z');
            s.retry([&] { return fi_trecv(s.ep, buf.data(), 50, nullptr, s.peer, n, 0, &s); });
            fi_cq_err_entry error = {};
            s.complete(s.rxcq, &error);
            REQUIRE_EQ(error.err, FI_ETRUNC);
            REQUIRE_EQ(error.olen, n - 50);
            REQUIRE(error.op_context == &s);
            REQUIRE(buf[50] == 'z');
        }
        p.tell(1);
        char buf[8];
        s.retry([&] { return fi_trecv(s.ep, buf, 8, nullptr, s.peer, 5, 0, &s); });
        REQUIRE_EQ(s.complete(s.rxcq).len, 8);
    };
    auto client = [](fabric_side &s, partner &p) {
        for (size_t n : {size_t(100), size_t(1) << 20}) {
            auto buf = pattern(n, 9);
            s.retry([&] { return fi_tsend(s.ep, buf.data(), n, nullptr, s.peer, n, &s); });
            fi_cq_err_entry error = {};
            s.complete(s.txcq, &error); // the sender of a large one may hear of it
        }
        p.hear();
        char buf[8] = {};
        s.retry([&] { return fi_tsend(s.ep, buf, 8, nullptr, s.peer, 5, &s); });
        s.complete(s.txcq);
    };
    run(opt(), server, client);
}

TEST_P(prov_message_test, fills_a_multi_receive_buffer)
{
    options o = opt();
    o.caps |= FI_MULTI_RECV;
    auto server = [](fabric_side &s, partner &p) {
        size_t least = 64;
        REQUIRE_EQ(
            fi_setopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof(least)),
            0);
        std::vector<char> buf(1024);
        iovec iov = {buf.data(), buf.size()};
        fi_msg m = {};
        m.msg_iov = &iov;
        m.iov_count = 1;
        m.addr = FI_ADDR_UNSPEC;
        m.context = &buf;
        s.retry([&] { return fi_recvmsg(s.ep, &m, FI_MULTI_RECV | FI_COMPLETION); });
        p.tell(1);
        bool released = false;
        for (int i = 0; i < 10; ++i) {
            fi_cq_tagged_entry e = s.complete(s.rxcq);
            REQUIRE(e.op_context == &buf);
            REQUIRE(!released);
            REQUIRE_EQ(e.len, 100);
            REQUIRE(e.buf == buf.data() + i * 100);
            REQUIRE(memcmp(e.buf, pattern(100, i).data(), 100) == 0);
            released = e.flags & FI_MULTI_RECV;
        }
        if (!released) {
            REQUIRE(s.complete(s.rxcq).flags & FI_MULTI_RECV);
        }
    };
    auto client = [](fabric_side &s, partner &p) {
        p.hear();
        for (int i = 0; i < 10; ++i) {
            auto buf = pattern(100, i);
            s.retry([&] { return fi_inject(s.ep, buf.data(), 100, s.peer); });
        }
    };
    run(o, server, client);
}

TEST_P(prov_message_test, peeks_claims_and_discards)
{
    auto server = [](fabric_side &s, partner &p) {
        fi_context2 ctx = {};
        char buf[64] = {};
        iovec iov = {buf, sizeof(buf)};
        fi_msg_tagged m = {};
        m.addr = FI_ADDR_UNSPEC;
        m.tag = 99;
        m.context = &ctx;
        s.retry([&] { return fi_trecvmsg(s.ep, &m, FI_PEEK); });
        fi_cq_err_entry error = {};
        s.complete(s.rxcq, &error);
        REQUIRE_EQ(error.err, FI_ENOMSG);
        p.tell(1);
        auto peek = [&](uint64_t tag, uint64_t flags) {
            m.tag = tag;
            for (;;) {
                s.retry([&] { return fi_trecvmsg(s.ep, &m, FI_PEEK | flags); });
                error.err = 0;
                fi_cq_tagged_entry e = s.complete(s.rxcq, &error);
                if (!error.err) {
                    return e;
                }
                REQUIRE_EQ(error.err, FI_ENOMSG);
            }
        };
        REQUIRE_EQ(peek(1, 0).len, 10);
        REQUIRE_EQ(peek(1, 0).len, 10); // it is still there
        REQUIRE_EQ(peek(2, FI_DISCARD).len, 10);
        REQUIRE_EQ(peek(3, FI_CLAIM).len, 10);
        m.msg_iov = &iov;
        m.iov_count = 1;
        s.retry([&] { return fi_trecvmsg(s.ep, &m, FI_CLAIM); });
        REQUIRE_EQ(s.complete(s.rxcq).tag, 3);
        REQUIRE(memcmp(buf, pattern(10, 3).data(), 10) == 0);
        s.retry([&] { return fi_trecv(s.ep, buf, 64, nullptr, FI_ADDR_UNSPEC, 0, ~0ull, &s); });
        REQUIRE_EQ(s.complete(s.rxcq).tag, 1);
    };
    auto client = [](fabric_side &s, partner &p) {
        p.hear();
        for (int i = 1; i <= 3; ++i) {
            s.retry([&] { return fi_tinject(s.ep, pattern(10, i).data(), 10, s.peer, i); });
        }
    };
    run(opt(), server, client);
}

TEST_P(prov_message_test, cancels_a_receive)
{
    auto server = [](fabric_side &s, partner &p) {
        char buf[8];
        int a, b;
        s.retry([&] { return fi_trecv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, &a); });
        s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, &b); });
        for (void *c : {static_cast<void *>(&a), static_cast<void *>(&b)}) {
            REQUIRE_EQ(fi_cancel(&s.ep->fid, c), 0);
            fi_cq_err_entry error = {};
            s.complete(s.rxcq, &error);
            REQUIRE_EQ(error.err, FI_ECANCELED);
            REQUIRE(error.op_context == c);
        }
        REQUIRE(fi_cancel(&s.ep->fid, &a) != 0);
        p.tell(1);
    };
    run(opt(), server, [](fabric_side &, partner &p) { p.hear(); });
}

// The data is the caller's until the completion.
void post_tagged(fabric_side &s, const std::vector<char> &data, void *context, uint64_t flags)
{
    iovec iov = {const_cast<char *>(data.data()), data.size()};
    fi_msg_tagged m = {};
    m.msg_iov = &iov;
    m.iov_count = 1;
    m.addr = s.peer;
    m.tag = 1;
    m.context = context;
    s.retry([&] { return fi_tsendmsg(s.ep, &m, flags); });
}

TEST_P(prov_message_test, completes_when_delivered)
{
    auto server = [](fabric_side &s, partner &p) {
        p.hear();
        usleep(100000);
        char buf[8];
        s.retry([&] { return fi_trecv(s.ep, buf, 8, nullptr, s.peer, 1, 0, &s); });
        s.complete(s.rxcq);
        p.hear(); // the application does nothing any more: the sender was told before
    };
    auto client = [](fabric_side &s, partner &p) {
        std::vector<char> buf(8);
        post_tagged(s, buf, &s, FI_DELIVERY_COMPLETE);
        fi_cq_tagged_entry e;
        REQUIRE(!s.try_complete(s.txcq, &e, 50)); // it was not asked for yet
        p.tell(1);
        REQUIRE(s.complete(s.txcq).op_context == &s);
        p.tell(1);
    };
    run(opt(), server, client);
}

// The message is at the receiver then and needs the sender no more, matched or not.
TEST_P(prov_message_test, completes_when_transmitted)
{
    for (size_t size : {size_t(8), size_t(1000)}) {
        auto server = [size](fabric_side &s, partner &p) {
            fi_cq_tagged_entry e;
            p.barrier();
            p.hear(); // nothing is progressed here from the one to the other
            do {
                REQUIRE(!s.try_complete(s.rxcq, &e, 10)); // it was not asked for
            } while (!p.told());
            p.hear();
            std::vector<char> buf(size);
            s.retry([&] { return fi_trecv(s.ep, buf.data(), size, nullptr, s.peer, 1, 0, &s); });
            REQUIRE_EQ(s.complete(s.rxcq).len, size);
            REQUIRE(buf == std::vector<char>(size, 'x'));
            p.tell(1);
        };
        auto client = [size](fabric_side &s, partner &p) {
            std::vector<char> buf(size, 'x');
            p.barrier();
            post_tagged(s, buf, &s, FI_TRANSMIT_COMPLETE);
            fi_cq_tagged_entry e;
            REQUIRE(!s.try_complete(s.txcq, &e, 50)); // it cannot have arrived
            p.tell(1);
            REQUIRE(s.complete(s.txcq).op_context == &s);
            p.tell(1);
            p.hear(); // without any progress here
        };
        run(opt(), server, client);
    }
}

// A receiver that has read its last message may stop: all senders have been told by then, whatever
// the transport had no room for meanwhile.
TEST_P(prov_message_test, many_complete_when_delivered)
{
    constexpr size_t count = 1000;
    auto server = [](fabric_side &s, partner &p) {
        std::vector<std::array<char, 64>> bufs(count);
        for (auto &b : bufs) {
            s.retry([&] { return fi_recv(s.ep, &b, sizeof(b), nullptr, FI_ADDR_UNSPEC, &b); });
        }
        p.tell(1);
        for (auto &b : bufs) {
            REQUIRE(s.complete(s.rxcq).op_context == &b);
        }
        p.hear();
    };
    auto client = [](fabric_side &s, partner &p) {
        char buf[64] = {};
        iovec iov = {buf, sizeof(buf)};
        fi_msg m = {&iov, nullptr, 1, s.peer, &m, 0};
        p.hear();
        for (size_t i = 0; i < count; ++i) {
            s.retry([&] { return fi_sendmsg(s.ep, &m, FI_DELIVERY_COMPLETE); });
        }
        for (size_t i = 0; i < count; ++i) {
            REQUIRE(s.complete(s.txcq).op_context == &m);
        }
        p.tell(1);
    };
    run(opt(), server, client);
}

TEST_P(prov_message_test, completes_selectively)
{
    options o = opt();
    o.tx_bind |= FI_SELECTIVE_COMPLETION;
    auto server = [](fabric_side &s, partner &) {
        char buf[8];
        for (int i = 0; i < 2; ++i) {
            s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, &s); });
            s.complete(s.rxcq);
        }
    };
    auto client = [](fabric_side &s, partner &) {
        char buf[8] = {};
        s.retry([&] { return fi_send(s.ep, buf, 8, nullptr, s.peer, &s); });
        fi_cq_tagged_entry e;
        REQUIRE(!s.try_complete(s.txcq, &e, 50));
        iovec iov = {buf, 8};
        fi_msg m = {};
        m.msg_iov = &iov;
        m.iov_count = 1;
        m.addr = s.peer;
        m.context = &m;
        s.retry([&] { return fi_sendmsg(s.ep, &m, FI_COMPLETION); });
        REQUIRE(s.complete(s.txcq).op_context == &m);
    };
    run(o, server, client);
}

TEST_P(prov_message_test, wakes_who_sleeps)
{
    options o = opt();
    o.wait = FI_WAIT_FD;
    auto server = [](fabric_side &s, partner &p) {
        char buf[8];
        fi_cq_tagged_entry e = {};
        for (int i = 0; i < 20; ++i) { // fi_cq_sread
            s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, &s); });
            p.tell(1);
            REQUIRE_EQ(fi_cq_sread(s.rxcq, &e, 1, nullptr, patience_ms), 1);
        }
        int fd = -1;
        REQUIRE_EQ(fi_control(&s.rxcq->fid, FI_GETWAIT, &fd), 0);
        for (int i = 0; i < 20; ++i) { // fi_trywait and poll
            s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, &s); });
            p.tell(1);
            for (;;) {
                fid *fids[] = {&s.rxcq->fid};
                int r = fi_trywait(s.fabric, fids, 1);
                if (r == 0) {
                    pollfd pfd = {fd, POLLIN, 0};
                    REQUIRE_EQ(poll(&pfd, 1, patience_ms), 1);
                } else {
                    REQUIRE_EQ(r, -FI_EAGAIN);
                }
                ssize_t n = fi_cq_read(s.rxcq, &e, 1);
                if (n == 1) {
                    break;
                }
                REQUIRE_EQ(n, -FI_EAGAIN);
            }
        }
        REQUIRE_EQ(fi_cq_sread(s.rxcq, &e, 1, nullptr, 50), -FI_EAGAIN);
        REQUIRE_EQ(fi_cq_signal(s.rxcq), 0);
        REQUIRE_EQ(fi_cq_sread(s.rxcq, &e, 1, nullptr, -1), -FI_EAGAIN);
        p.tell(1);
    };
    auto client = [](fabric_side &s, partner &p) {
        char buf[8] = {};
        for (int i = 0; i < 40; ++i) {
            s.serve_until_told(p);
            if (i % 4) {
                usleep(2000);
            }
            s.retry([&] { return fi_inject(s.ep, buf, 8, s.peer); });
        }
        s.serve_until_told(p);
    };
    run(o, server, client);
}

INSTANTIATE_TEST_SUITE_P(, prov_message_test,
                         testing::ValuesIn(prov_test::endpoints_over<over>({FI_EP_RDM, FI_EP_MSG})),
                         [](const auto &i) {
                             std::string n = i.param.type == FI_EP_RDM ? "rdm_" : "msg_";
                             return n + prov_test::first_transport(i.param.transports);
                         });

// ---- RDM only ----

TEST(prov_rdm_test, tells_sources_and_receives_from_one)
{
    options o;
    o.caps |= FI_DIRECTED_RECV | FI_SOURCE;
    auto role_of = [&](bool server) {
        return [&o, server](partner &p) {
            fabric_side s(o);
            s.open_rdm(p);
            char buf[8] = {};
            fi_addr_t other = 0;
            sockaddr_in nobody = {};
            nobody.sin_family = AF_INET;
            nobody.sin_port = 1;
            nobody.sin_addr.s_addr = 0x0100007f;
            REQUIRE_EQ(fi_av_insert(s.av, &nobody, 1, &other, 0, nullptr), 1);
            if (server) {
                int a, b;
                REQUIRE_EQ(fi_trecv(s.ep, buf, 8, nullptr, other, 1, 0, &a), 0);
                REQUIRE_EQ(fi_trecv(s.ep, buf, 8, nullptr, s.peer, 1, 0, &b), 0);
                p.tell(1);
                fi_addr_t source = 12345;
                REQUIRE(s.complete(s.rxcq, nullptr, &source).op_context == &b);
                REQUIRE_EQ(source, s.peer);
            } else {
                p.hear();
                s.retry([&] { return fi_tinject(s.ep, buf, 8, s.peer, 1); });
            }
            s.barrier(p);
        };
    };
    EXPECT_EQ(run_pair(role_of(true), role_of(false)), "");
}

TEST(prov_rdm_test, finds_an_address_again_that_was_removed)
{
    auto role_of = [](bool server) {
        return [server](partner &p) {
            fabric_side s({});
            s.open_rdm(p);
            char buf[8] = {};
            char name[64];
            for (int i = 0; i < 3; ++i) {
                if (server) {
                    REQUIRE_EQ(fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, &s), 0);
                    s.complete(s.rxcq);
                } else {
                    s.retry([&] { return fi_inject(s.ep, buf, 8, s.peer); });
                }
                s.barrier(p);
                size_t length = sizeof(name);
                REQUIRE_EQ(fi_av_lookup(s.av, s.peer, name, &length), 0);
                REQUIRE_EQ(fi_av_remove(s.av, &s.peer, 1, 0), 0);
                REQUIRE_EQ(fi_send(s.ep, buf, 8, nullptr, s.peer, &s), -FI_EINVAL);
                REQUIRE_EQ(fi_av_insert(s.av, name, 1, &s.peer, 0, nullptr), 1);
            }
        };
    };
    EXPECT_EQ(run_pair(role_of(true), role_of(false)), "");
}

TEST(prov_rdm_test, sends_to_itself)
{
    auto alone = [](partner &) {
        fabric_side s({});
        s.open_active(s.info);
        char name[64], in[8] = {}, out[8] = "self";
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&s.ep->fid, name, &length), 0);
        REQUIRE_EQ(fi_av_insert(s.av, name, 1, &s.peer, 0, nullptr), 1);
        REQUIRE_EQ(fi_recv(s.ep, in, 8, nullptr, FI_ADDR_UNSPEC, &s), 0);
        s.retry([&] { return fi_send(s.ep, out, 8, nullptr, s.peer, &s); });
        s.complete(s.rxcq);
        s.complete(s.txcq);
        REQUIRE(memcmp(in, out, 8) == 0);
    };
    EXPECT_EQ(run_pair(alone, [](partner &) {}), "");
}

TEST(prov_rdm_test, errors_when_nobody_is_there)
{
    auto alone = [](partner &) {
        fabric_side s({});
        s.open_active(s.info);
        sockaddr_in nobody = {};
        nobody.sin_family = AF_INET;
        nobody.sin_port = htons(1);
        nobody.sin_addr.s_addr = 0x0100007f;
        REQUIRE_EQ(fi_av_insert(s.av, &nobody, 1, &s.peer, 0, nullptr), 1);
        char buf[8] = {};
        for (int i = 0; i < 3; ++i) {
            REQUIRE_EQ(fi_send(s.ep, buf, 8, nullptr, s.peer, &s), 0);
            fi_cq_err_entry error = {};
            s.complete(s.txcq, &error);
            REQUIRE(error.err != 0);
            REQUIRE(error.op_context == &s);
        }
    };
    EXPECT_EQ(run_pair(alone, [](partner &) {}), "");
}

} // namespace
