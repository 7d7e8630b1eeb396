// SPDX-License-Identifier: BSD-3-Clause
//
// What only reliable-datagram endpoints have: address vectors of every kind, user ids, sources that
// are not known, shared receives; and counters of memory regions.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/transports.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

// Calls that libfabric 2.x calls deprecated are still served.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace app;

namespace {

void in_a_process(const role &r)
{
    EXPECT_EQ(run_pair(r, [](partner &) {}), "");
}

fid_av *open_av(fabric_side &s, fi_av_type type, uint64_t flags = 0)
{
    fi_av_attr a = {};
    a.type = type;
    a.flags = flags;
    fid_av *av = nullptr;
    REQUIRE_EQ(fi_av_open(s.domain, &a, &av, nullptr), 0);
    return av;
}

TEST(prov_rdm_test, address_vectors_take_addresses_names_and_ranges)
{
    in_a_process([](partner &) {
        fabric_side s({});
        for (fi_av_type type : {FI_AV_MAP, FI_AV_TABLE}) {
            fid_av *av = open_av(s, type);
            auto expect = [&](fi_addr_t a, const char *host, uint16_t port) {
                sockaddr_in got = {};
                size_t length = sizeof(got);
                REQUIRE_EQ(fi_av_lookup(av, a, &got, &length), 0);
                REQUIRE_EQ(length, sizeof(got));
                char text[64], want[64];
                REQUIRE(inet_ntop(AF_INET, &got.sin_addr, text, sizeof(text)));
                REQUIRE(!strcmp(text, host) && ntohs(got.sin_port) == port);
                length = sizeof(text);
                REQUIRE(fi_av_straddr(av, &got, text, &length) == text);
                snprintf(want, sizeof(want), "fi_sockaddr_in://%s:%u", host, port);
                REQUIRE(!strcmp(text, want) && length == strlen(want) + 1);
            };
            sockaddr_in in[3] = {};
            for (int i = 0; i < 3; ++i) {
                in[i].sin_family = AF_INET;
                in[i].sin_port = htons(static_cast<in_port_t>(1000 + i));
                in[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            }
            fi_addr_t out[8] = {};
            REQUIRE_EQ(fi_av_insert(av, in, 3, out, 0, nullptr), 3);
            for (int i = 0; i < 3; ++i) {
                expect(out[i], "127.0.0.1", static_cast<uint16_t>(1000 + i));
            }
            REQUIRE_EQ(fi_av_insertsvc(av, "127.0.0.2", "2000", out, 0, nullptr), 1);
            expect(out[0], "127.0.0.2", 2000);
            REQUIRE_EQ(fi_av_insertsym(av, "127.0.0.7", 3, "3000", 2, out, 0, nullptr), 6);
            for (int i = 0; i < 6; ++i) {
                expect(out[i], (std::string("127.0.0.") + std::to_string(7 + i / 2)).c_str(),
                       static_cast<uint16_t>(3000 + i % 2));
            }
            // Too small a buffer: the needed length, and what fits.
            char small[4] = {};
            size_t length = sizeof(small);
            REQUIRE_EQ(fi_av_lookup(av, out[0], small, &length), 0);
            REQUIRE_EQ(length, sizeof(sockaddr_in));
            char text[8];
            length = sizeof(text);
            fi_av_straddr(av, &in[0], text, &length);
            REQUIRE_EQ(length, strlen("fi_sockaddr_in://127.0.0.1:1000") + 1);
            REQUIRE(!strcmp(text, "fi_sock"));

            REQUIRE_EQ(fi_av_remove(av, &out[1], 1, 0), 0);
            length = sizeof(in[0]);
            REQUIRE_EQ(fi_av_lookup(av, out[1], &in[0], &length), -FI_EINVAL);
            REQUIRE_EQ(fi_av_remove(av, &out[1], 1, 0), -FI_EINVAL);
            // A bad one among good ones.
            in[0] = in[1] = in[2];
            in[1].sin_port = 0;
            int errors[3] = {-1, -1, -1};
            REQUIRE_EQ(fi_av_insert(av, in, 3, out, FI_SYNC_ERR, errors), 2);
            REQUIRE(errors[0] == 0 && errors[1] == FI_EINVAL && errors[2] == 0);
            REQUIRE_EQ(out[1], FI_ADDR_NOTAVAIL);
            REQUIRE_EQ(fi_av_insertsvc(av, "no such host", "1", out, 0, nullptr), 0);
            REQUIRE_EQ(fi_av_insert(av, in, 1, out, FI_SYNC_ERR, nullptr), -FI_EINVAL);
            REQUIRE_EQ(fi_av_insert(av, in, 1, out, 1ull << 40, nullptr), -FI_EINVAL);
            REQUIRE_EQ(fi_av_insert(av, in, 1, nullptr, FI_AV_USER_ID, nullptr), -FI_EINVAL);
            REQUIRE_EQ(fi_close(&av->fid), 0);
        }
    });
}

TEST(prov_rdm_test, insertions_can_be_reported_as_events)
{
    in_a_process([](partner &) {
        options o;
        o.with_eq = true;
        fabric_side s(o);
        fid_av *av = open_av(s, FI_AV_TABLE, FI_EVENT);
        sockaddr_in in = {};
        fi_addr_t out = 0;
        REQUIRE_EQ(fi_av_insert(av, &in, 1, &out, 0, nullptr), -FI_EINVAL); // no queue yet
        REQUIRE_EQ(fi_av_bind(av, &s.eq->fid, 0), 0);
        REQUIRE_EQ(fi_av_insertsvc(av, "127.0.0.1", "5", &out, 0, &out), 0);
        uint32_t type = 0;
        fi_eq_entry e = {};
        REQUIRE_EQ(fi_eq_sread(s.eq, &type, &e, sizeof(e), patience_ms, 0),
                   static_cast<ssize_t>(sizeof(e)));
        REQUIRE_EQ(type, static_cast<uint32_t>(FI_AV_COMPLETE));
        REQUIRE(e.fid == &av->fid && e.context == &out && e.data == 1);
        REQUIRE_EQ(fi_close(&s.eq->fid), -FI_EBUSY);
        REQUIRE_EQ(fi_close(&av->fid), 0);
    });
}

// A completion tells the application's own word for its sender.
TEST(prov_rdm_test, reports_user_ids_as_sources)
{
    for (bool whole_vector : {false, true}) {
        auto server = [=](partner &p) {
            options o;
            o.caps = FI_MSG | FI_TAGGED | FI_SOURCE;
            fabric_side s(o);
            REQUIRE(s.info->domain_attr->caps & FI_AV_USER_ID);
            fid_av *av = open_av(s, FI_AV_TABLE, whole_vector ? FI_AV_USER_ID : 0);
            std::swap(av, s.av);
            s.open_active(s.info);
            sockaddr_in mine = name_of(&s.ep->fid), theirs;
            p.tell(&mine, sizeof(mine));
            p.hear(&theirs, sizeof(theirs));
            fi_addr_t id = 0xabcdef0123ull, stranger = 7;
            // Another address first, so that index and id differ.
            sockaddr_in other = mine;
            uint64_t flag = whole_vector ? 0 : FI_AV_USER_ID;
            REQUIRE_EQ(fi_av_insert(s.av, &other, 1, &stranger, flag, nullptr), 1);
            REQUIRE_EQ(fi_av_insert(s.av, &theirs, 1, &id, flag, nullptr), 1);
            REQUIRE_EQ(id, 1u); // this is what is sent to
            char buf[8];
            for (int i = 0; i < 2; ++i) {
                s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, buf); });
                fi_addr_t from = 0;
                s.complete(s.rxcq, nullptr, &from);
                REQUIRE_EQ(from, 0xabcdef0123ull);
                s.retry([&] { return fi_inject(s.ep, "ok", 3, id); });
            }
            s.barrier(p);
            s.close_active();
            std::swap(av, s.av);
            REQUIRE_EQ(fi_close(&av->fid), 0);
        };
        auto client = [](partner &p) {
            fabric_side s({});
            s.open_active(s.info);
            sockaddr_in mine = name_of(&s.ep->fid), theirs;
            p.hear(&theirs, sizeof(theirs));
            p.tell(&mine, sizeof(mine));
            REQUIRE_EQ(fi_av_insert(s.av, &theirs, 1, &s.peer, 0, nullptr), 1);
            char buf[8];
            for (int i = 0; i < 2; ++i) {
                s.retry([&] { return fi_inject(s.ep, "x", 2, s.peer); });
                s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, buf); });
                s.complete(s.rxcq);
            }
            s.barrier(p);
        };
        EXPECT_EQ(run_pair(server, client), "");
    }
}

// FI_SOURCE_ERR: the name of a stranger comes with its message, fit for fi_av_insert.
TEST(prov_rdm_test, names_a_source_that_is_not_known)
{
    auto server = [](partner &p) {
        options o;
        o.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_SOURCE_ERR;
        fabric_side s(o);
        REQUIRE(s.info->caps & FI_SOURCE_ERR);
        s.open_active(s.info);
        sockaddr_in mine = name_of(&s.ep->fid), theirs;
        p.tell(&mine, sizeof(mine));
        p.hear(&theirs, sizeof(theirs));
        char buf[16] = {};
        s.retry([&] { return fi_recv(s.ep, buf, 16, nullptr, FI_ADDR_UNSPEC, buf); });
        fi_cq_err_entry e = {};
        fi_cq_tagged_entry none;
        ssize_t n;
        while ((n = fi_cq_read(s.rxcq, &none, 1)) == -FI_EAGAIN) {
        }
        REQUIRE_EQ(n, -FI_EAVAIL);
        sockaddr_in told = {};
        e.err_data = &told;
        e.err_data_size = sizeof(told);
        REQUIRE_EQ(fi_cq_readerr(s.rxcq, &e, 0), 1);
        REQUIRE_EQ(e.err, FI_EADDRNOTAVAIL);
        REQUIRE(e.op_context == buf && e.len == 6 && !strcmp(buf, "hello"));
        REQUIRE_EQ(e.err_data_size, sizeof(told));
        REQUIRE(told.sin_port == theirs.sin_port && told.sin_addr.s_addr == theirs.sin_addr.s_addr);
        REQUIRE_EQ(fi_av_insert(s.av, &told, 1, &s.peer, 0, nullptr), 1);
        s.retry([&] { return fi_recv(s.ep, buf, 16, nullptr, FI_ADDR_UNSPEC, buf); });
        p.tell(1);
        fi_addr_t from = 99;
        s.complete(s.rxcq, nullptr, &from);
        REQUIRE_EQ(from, s.peer);
        s.retry([&] { return fi_inject(s.ep, "ok", 3, s.peer); });
        s.barrier(p);
    };
    auto client = [](partner &p) {
        fabric_side s({});
        s.open_active(s.info);
        sockaddr_in mine = name_of(&s.ep->fid), theirs;
        p.hear(&theirs, sizeof(theirs));
        p.tell(&mine, sizeof(mine));
        REQUIRE_EQ(fi_av_insert(s.av, &theirs, 1, &s.peer, 0, nullptr), 1);
        s.retry([&] { return fi_inject(s.ep, "hello", 6, s.peer); });
        s.serve_until_told(p);
        s.retry([&] { return fi_inject(s.ep, "again", 6, s.peer); });
        char buf[8];
        s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, s.peer, buf); });
        s.complete(s.rxcq);
        s.barrier(p);
    };
    EXPECT_EQ(run_pair(server, client), "");
    in_a_process([](partner &) { // not without FI_SOURCE
        fi_info *h = fi_allocinfo(), *i = nullptr;
        h->caps = FI_MSG | FI_SOURCE_ERR;
        h->fabric_attr->prov_name = strdup("ucxlike");
        REQUIRE_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, h, &i), -FI_ENODATA);
        fi_freeinfo(h);
    });
}

// FI_RMA_EVENT: a counter of a region counts what peers do to it, and to no other.
TEST(prov_rdm_test, counts_accesses_to_a_region)
{
    auto options_of = [] {
        options o;
        o.caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
        return o;
    };
    auto server = [=](partner &p) {
        fabric_side s(options_of());
        REQUIRE(s.info->caps & FI_RMA_EVENT);
        s.open_rdm(p);
        alignas(16) static char memory[2][200000];
        fid_cntr *reads = s.counter(), *writes = s.counter();
        fid_mr *mr[2];
        for (int i = 0; i < 2; ++i) {
            REQUIRE_EQ(fi_mr_reg(s.domain, memory[i], sizeof(memory[i]),
                                 FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 40 + i, FI_RMA_EVENT, &mr[i],
                                 nullptr),
                       0);
        }
        REQUIRE_EQ(fi_mr_bind(mr[0], &writes->fid, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_mr_bind(mr[0], &s.domain->fid, FI_REMOTE_WRITE), -FI_EINVAL);
        REQUIRE_EQ(fi_mr_bind(mr[0], &writes->fid, FI_REMOTE_WRITE), 0);
        REQUIRE_EQ(fi_mr_bind(mr[0], &reads->fid, FI_REMOTE_READ), 0);
        REQUIRE_EQ(fi_mr_bind(mr[0], &reads->fid, FI_REMOTE_READ), -FI_EINVAL);
        REQUIRE_EQ(fi_mr_enable(mr[0]), 0);
        uint64_t keys[2] = {fi_mr_key(mr[0]), fi_mr_key(mr[1])};
        p.tell(keys, sizeof(keys));
        // A thread that waits for such a counter reads nothing else.
        REQUIRE_EQ(fi_cntr_wait(writes, 3, patience_ms), 0);
        REQUIRE_EQ(fi_cntr_wait(reads, 2, patience_ms), 0);
        s.serve_until_told(p);
        REQUIRE_EQ(fi_cntr_read(writes), 3u);
        REQUIRE_EQ(fi_cntr_read(reads), 2u);
        REQUIRE_EQ(fi_close(&writes->fid), -FI_EBUSY);
        for (fid_mr *m : mr) {
            REQUIRE_EQ(fi_close(&m->fid), 0);
        }
        s.barrier(p);
    };
    auto client = [=](partner &p) {
        fabric_side s(options_of());
        s.open_rdm(p);
        uint64_t keys[2];
        p.hear(keys, sizeof(keys));
        std::vector<char> buf(200000);
        uint64_t one = 1;
        for (uint64_t key : keys) {
            for (size_t n : {size_t(8), buf.size()}) {
                s.retry([&] { return fi_write(s.ep, buf.data(), n, nullptr, s.peer, 0, key, &s); });
                s.complete(s.txcq);
                s.retry([&] { return fi_read(s.ep, buf.data(), n, nullptr, s.peer, 0, key, &s); });
                s.complete(s.txcq);
            }
            s.retry([&] {
                return fi_atomic(s.ep, &one, 1, nullptr, s.peer, 0, key, FI_UINT64, FI_SUM, &s);
            });
            s.complete(s.txcq);
        }
        p.tell(1);
        s.barrier(p);
    };
    EXPECT_EQ(run_pair(server, client), "");
}

// Two endpoints, one queue of receives; the completion goes to the endpoint that was sent to.
TEST(prov_rdm_test, endpoints_share_receives)
{
    for (const char *transports : prov_test::transports()) {
        constexpr int each = 200;
        constexpr size_t n = 20000;
        auto server = [=](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s({});
            REQUIRE(s.info->domain_attr->max_ep_srx_ctx > 0);
            fid_ep *srx = nullptr, *eps[2];
            REQUIRE_EQ(fi_srx_context(s.domain, nullptr, &srx, nullptr), 0);
            fi_cq_attr a = {};
            a.format = FI_CQ_FORMAT_TAGGED;
            fid_cq *cqs[2];
            std::vector<std::vector<char>> in(2 * each, std::vector<char>(n));
            for (auto &b : in) { // before there is an endpoint
                REQUIRE_EQ(fi_recv(srx, b.data(), n, nullptr, FI_ADDR_UNSPEC, &b), 0);
            }
            for (int i = 0; i < 2; ++i) {
                REQUIRE_EQ(fi_cq_open(s.domain, &a, &cqs[i], nullptr), 0);
                REQUIRE_EQ(fi_endpoint(s.domain, s.info, &eps[i], nullptr), 0);
                REQUIRE_EQ(fi_ep_bind(eps[i], &cqs[i]->fid, FI_TRANSMIT | FI_RECV), 0);
                REQUIRE_EQ(fi_ep_bind(eps[i], &s.av->fid, 0), 0);
                REQUIRE_EQ(fi_ep_bind(eps[i], &srx->fid, 0), 0);
                REQUIRE_EQ(fi_enable(eps[i]), 0);
                sockaddr_in name = name_of(&eps[i]->fid);
                p.tell(&name, sizeof(name));
            }
            REQUIRE_EQ(fi_close(&srx->fid), -FI_EBUSY);
            int got[2] = {};
            auto end = std::chrono::steady_clock::now() + 4 * patience;
            while (got[0] + got[1] < 2 * each) {
                REQUIRE(std::chrono::steady_clock::now() < end);
                for (int i = 0; i < 2; ++i) {
                    fi_cq_tagged_entry e;
                    ssize_t r = fi_cq_read(cqs[i], &e, 1);
                    if (r == -FI_EAGAIN) {
                        continue;
                    }
                    REQUIRE_EQ(r, 1);
                    auto &b = *static_cast<std::vector<char> *>(e.op_context);
                    auto want = pattern(e.len, static_cast<unsigned>(got[i] * 2 + i));
                    REQUIRE(memcmp(b.data(), want.data(), e.len) == 0); // in order, per endpoint
                    ++got[i];
                }
            }
            REQUIRE_EQ(got[0], each);
            // One endpoint goes; the other still receives.
            REQUIRE_EQ(fi_close(&eps[0]->fid), 0);
            REQUIRE_EQ(fi_recv(srx, in[0].data(), n, nullptr, FI_ADDR_UNSPEC, &in[0]), 0);
            p.tell(1);
            fi_cq_tagged_entry e;
            while (fi_cq_read(cqs[1], &e, 1) != 1) {
                REQUIRE(std::chrono::steady_clock::now() < end);
            }
            s.barrier(p);
            REQUIRE_EQ(fi_close(&eps[1]->fid), 0);
            REQUIRE_EQ(fi_close(&srx->fid), 0);
            for (fid_cq *q : cqs) {
                REQUIRE_EQ(fi_close(&q->fid), 0);
            }
        };
        auto client = [=](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s({});
            s.open_active(s.info);
            fi_addr_t to[2];
            for (fi_addr_t &a : to) {
                sockaddr_in name;
                p.hear(&name, sizeof(name));
                REQUIRE_EQ(fi_av_insert(s.av, &name, 1, &a, 0, nullptr), 1);
            }
            for (int k = 0; k < each; ++k) {
                for (int i = 0; i < 2; ++i) {
                    auto out = pattern(k % 4 ? static_cast<size_t>(k) : n,
                                       static_cast<unsigned>(k * 2 + i));
                    s.retry([&] {
                        return fi_send(s.ep, out.data(), out.size(), nullptr, to[i], &out);
                    });
                    s.complete(s.txcq);
                }
            }
            s.serve_until_told(p);
            s.retry([&] { return fi_send(s.ep, "x", 1, nullptr, to[1], nullptr); });
            s.complete(s.txcq);
            s.barrier(p);
        };
        EXPECT_EQ(run_pair(server, client), "") << transports;
    }
}

// Its request names the peer, so the server does not end the connection as that of a stranger. The
// peer computes between its first message and the next call.
TEST(prov_rdm_test, a_peer_that_makes_no_progress_after_its_first_message_is_heard_later)
{
    constexpr unsigned timeout_ms = 10;
    auto server = [](partner &p) {
        setenv("FI_UCXLIKE_PEER_TIMEOUT", std::to_string(timeout_ms).c_str(), 1);
        fabric_side s({});
        s.open_rdm(p);
        uint64_t word = 0;
        REQUIRE_EQ(fi_recv(s.ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
        p.hear(); // it has sent
        auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50 * timeout_ms);
        while (std::chrono::steady_clock::now() < end) {
            s.progress();
        }
        p.tell(1);
        s.complete(s.rxcq);
        REQUIRE_EQ(word, 42);
        s.barrier(p);
    };
    auto client = [](partner &p) {
        fabric_side s({});
        s.open_rdm(p);
        uint64_t word = 42;
        s.retry([&] { return fi_send(s.ep, &word, sizeof(word), nullptr, s.peer, nullptr); });
        p.barrier();
        s.complete(s.txcq);
        s.barrier(p);
    };
    EXPECT_EQ(run_pair(server, client), "");
}

} // namespace
