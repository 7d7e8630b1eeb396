// SPDX-License-Identifier: BSD-3-Clause
//
// Connections of the provider: data with connect, accept and reject; one FI_CONNECTED and one last
// event per endpoint, whatever ends the connection.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/transports.h"

#include <arpa/inet.h>
#include <csignal>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace app;

namespace {

class prov_cm_test : public testing::TestWithParam<const char *> {
  protected:
    void run(const role &server, const role &client)
    {
        const char *transports = GetParam();
        auto with = [transports](const role &r) {
            return [&r, transports](partner &p) {
                setenv("FI_UCXLIKE_TLS", transports, 1);
                r(p);
            };
        };
        EXPECT_EQ(run_pair(with(server), with(client)), "");
    }
};

options msg()
{
    options o;
    o.type = FI_EP_MSG;
    return o;
}

TEST_P(prov_cm_test, carries_data_of_connect_accept_and_reject)
{
    const size_t sizes[] = {0, 1, 55, 257, 1024};
    auto server = [&](partner &p) {
        fabric_side s(msg());
        s.listen(p);
        size_t most = 0, length = sizeof(most);
        REQUIRE_EQ(fi_getopt(&s.pep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &most, &length), 0);
        REQUIRE_EQ(most, 1024);
        for (size_t n : sizes) {
            char param[2048];
            fi_info *request = s.await_request(param, &length);
            REQUIRE_EQ(length, n);
            REQUIRE(n == 0 || memcmp(param, pattern(n, 1).data(), n) == 0);
            REQUIRE_EQ(fi_reject(s.pep, request->handle, pattern(n, 2).data(), n), 0);
            fi_freeinfo(request);
            request = s.await_request(param, &length);
            s.open_active(request);
            fi_freeinfo(request);
            REQUIRE_EQ(fi_accept(s.ep, pattern(n, 3).data(), n), 0);
            s.expect_event(FI_CONNECTED);
            sockaddr_in name = {};
            length = sizeof(name);
            REQUIRE_EQ(fi_getpeer(s.ep, &name, &length), 0);
            REQUIRE(name.sin_port != 0);
            s.expect_event(FI_SHUTDOWN);
            REQUIRE(s.no_event(20)); // the client waits with its next request
            p.tell(1);
            s.close_active();
            p.barrier(); // the next request of the client comes after this
        }
    };
    auto client = [&](partner &p) {
        fabric_side s(msg());
        sockaddr_in name;
        p.hear(&name, sizeof(name));
        for (size_t n : sizes) {
            s.open_active(s.info);
            REQUIRE_EQ(fi_connect(s.ep, &name, pattern(n, 1).data(), n), 0);
            std::string bytes;
            REQUIRE(s.expect_error(FI_ECONNREFUSED, &bytes) == &s.ep->fid);
            REQUIRE_EQ(bytes.size(), n);
            REQUIRE(n == 0 || memcmp(bytes.data(), pattern(n, 2).data(), n) == 0);
            REQUIRE(s.no_event(20));
            s.close_active();

            s.open_active(s.info);
            REQUIRE_EQ(fi_connect(s.ep, &name, pattern(n, 1).data(), n), 0);
            REQUIRE(fi_connect(s.ep, &name, nullptr, 0) != 0); // once in its lifetime
            fi_eq_cm_entry entry = {};
            REQUIRE_EQ(s.event(&entry, &bytes, nullptr), static_cast<uint32_t>(FI_CONNECTED));
            REQUIRE(entry.fid == &s.ep->fid);
            REQUIRE_EQ(bytes.size(), n);
            REQUIRE(n == 0 || memcmp(bytes.data(), pattern(n, 3).data(), n) == 0);
            sockaddr_in peer = {};
            size_t length = sizeof(peer);
            REQUIRE_EQ(fi_getpeer(s.ep, &peer, &length), 0);
            REQUIRE(peer.sin_port == name.sin_port);
            REQUIRE_EQ(fi_shutdown(s.ep, 0), 0);
            s.expect_event(FI_SHUTDOWN);
            REQUIRE(s.no_event(20));
            p.hear();
            s.close_active();
            p.barrier();
        }
    };
    run(server, client);
}

TEST_P(prov_cm_test, refuses_where_nobody_listens)
{
    auto client = [](partner &) {
        fabric_side s(msg());
        sockaddr_in name = {};
        name.sin_family = AF_INET;
        name.sin_port = htons(1);
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        s.open_active(s.info);
        REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
        s.expect_error(FI_ECONNREFUSED);
        REQUIRE(s.no_event(50));
    };
    run([](partner &) {}, client);
}

TEST_P(prov_cm_test, flushes_receives_before_the_last_event)
{
    auto one_side = [](fabric_side &s, bool ends) {
        char buf[4][8];
        for (int i = 0; i < 4; ++i) {
            s.retry([&] {
                return i & 1 ? fi_recv(s.ep, buf[i], 8, nullptr, 0, buf[i])
                             : fi_trecv(s.ep, buf[i], 8, nullptr, 0, i, 0, buf[i]);
            });
        }
        if (ends) {
            REQUIRE_EQ(fi_shutdown(s.ep, 0), 0);
        }
        s.expect_event(FI_SHUTDOWN);
        unsigned seen = 0;
        for (int i = 0; i < 4; ++i) {
            fi_cq_err_entry error = {};
            s.complete(s.rxcq, &error);
            REQUIRE_EQ(error.err, FI_ECANCELED);
            for (int k = 0; k < 4; ++k) {
                if (error.op_context == buf[k]) {
                    seen |= 1u << k;
                }
            }
        }
        REQUIRE_EQ(seen, 15);
        char out[8] = {};
        REQUIRE(fi_inject(s.ep, out, 8, 0) < 0);
        REQUIRE(s.no_event(50));
    };
    run(
        [&](partner &p) {
            fabric_side s(msg());
            s.serve(p);
            one_side(s, false);
            p.barrier();
        },
        [&](partner &p) {
            fabric_side s(msg());
            s.dial(p);
            one_side(s, true);
            p.barrier();
        });
}

// What arrived before the end is received after it.
TEST_P(prov_cm_test, delivers_what_was_sent_before_shutdown)
{
    run(
        [](partner &p) {
            fabric_side s(msg());
            s.serve(p);
            s.expect_event(FI_SHUTDOWN);
            for (int i = 0; i < 10; ++i) {
                int v = -1;
                REQUIRE_EQ(fi_recv(s.ep, &v, sizeof(v), nullptr, 0, &v), 0);
                s.complete(s.rxcq);
                REQUIRE_EQ(v, i);
            }
        },
        [](partner &p) {
            fabric_side s(msg());
            s.dial(p);
            for (int i = 0; i < 10; ++i) {
                s.retry([&] { return fi_inject(s.ep, &i, sizeof(i), 0); });
            }
            REQUIRE_EQ(fi_close(&s.ep->fid), 0);
            s.ep = nullptr;
        });
}

// kill -9 of either side while messages fly: one FI_SHUTDOWN at the other.
void traffic(fabric_side &s, std::function<bool()> more)
{
    std::vector<char> out(100000), in(100000);
    bool receiving = false, sending = false;
    while (more()) {
        if (!receiving && fi_recv(s.ep, in.data(), in.size(), nullptr, 0, in.data()) == 0) {
            receiving = true;
        }
        if (!sending && fi_send(s.ep, out.data(), out.size(), nullptr, 0, out.data()) == 0) {
            sending = true;
        }
        fi_cq_tagged_entry e;
        fi_cq_err_entry error = {};
        for (fid_cq *q : {s.rxcq, s.txcq}) {
            ssize_t n = fi_cq_read(q, &e, 1);
            if (n == -FI_EAVAIL) {
                REQUIRE_EQ(fi_cq_readerr(q, &error, 0), 1);
            }
            if (n == 1 || n == -FI_EAVAIL) {
                (q == s.rxcq ? receiving : sending) = false;
            }
        }
    }
}

void survive(fabric_side &s, partner &p)
{
    p.tell(1);
    bool over = false;
    bool dead = false;
    std::chrono::steady_clock::time_point end;
    int events = 0;
    traffic(s, [&] {
        alignas(fi_eq_cm_entry) char buffer[2048];
        uint32_t type = 0;
        ssize_t n = fi_eq_read(s.eq, &type, buffer, sizeof(buffer), 0);
        if (n > 0) {
            REQUIRE_EQ(type, static_cast<uint32_t>(FI_SHUTDOWN));
            ++events;
            over = true;
        }
        // The peer's end of the partners' socket closes when it dies.
        if (!dead && p.told()) {
            dead = true;
            end = std::chrono::steady_clock::now() + patience;
        }
        REQUIRE(!dead || over || std::chrono::steady_clock::now() < end);
        return !over;
    });
    REQUIRE_EQ(events, 1);
    REQUIRE(s.no_event(100));
}

void perish(fabric_side &s, partner &p)
{
    p.hear();
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
    traffic(s, [&] { return std::chrono::steady_clock::now() < end; });
    kill(getpid(), SIGKILL);
}

TEST_P(prov_cm_test, survives_the_death_of_the_client)
{
    run(
        [](partner &p) {
            fabric_side s(msg());
            s.serve(p);
            survive(s, p);
        },
        [](partner &p) {
            fabric_side s(msg());
            s.dial(p);
            perish(s, p);
        });
}

TEST_P(prov_cm_test, survives_the_death_of_the_server)
{
    run(
        [](partner &p) {
            fabric_side s(msg());
            s.serve(p);
            perish(s, p);
        },
        [](partner &p) {
            fabric_side s(msg());
            s.dial(p);
            survive(s, p);
        });
}

TEST_P(prov_cm_test, an_address_may_be_chosen_before_listening)
{
    run(
        [](partner &p) {
            fabric_side s(msg());
            REQUIRE_EQ(fi_passive_ep(s.fabric, s.info, &s.pep, nullptr), 0);
            REQUIRE_EQ(fi_pep_bind(s.pep, &s.eq->fid, 0), 0);
            sockaddr_in name = {};
            name.sin_family = AF_INET;
            name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            REQUIRE_EQ(fi_setname(&s.pep->fid, &name, sizeof(name)), 0);
            char small[4];
            size_t length = sizeof(small);
            REQUIRE_EQ(fi_getname(&s.pep->fid, small, &length), -FI_ETOOSMALL);
            REQUIRE_EQ(length, sizeof(name));
            sockaddr_in before = {}, after = {};
            REQUIRE_EQ(fi_getname(&s.pep->fid, &before, &length), 0);
            REQUIRE(before.sin_port != 0);
            REQUIRE_EQ(fi_listen(s.pep), 0);
            REQUIRE_EQ(fi_getname(&s.pep->fid, &after, &length), 0);
            REQUIRE(memcmp(&before, &after, sizeof(before)) == 0);
            p.tell(&after, sizeof(after));
            fi_info *request = s.await_request();
            s.open_active(request);
            fi_freeinfo(request);
            REQUIRE_EQ(fi_accept(s.ep, nullptr, 0), 0);
            s.expect_event(FI_CONNECTED);
            s.expect_event(FI_SHUTDOWN);
        },
        [](partner &p) {
            fabric_side s(msg());
            s.dial(p);
        });
}

// An endpoint that was made from a request needs the passive one no more.
TEST_P(prov_cm_test, requests_outlive_the_passive_endpoint)
{
    run(
        [](partner &p) {
            fabric_side s(msg());
            s.listen(p);
            fi_info *first = s.await_request(), *second = s.await_request(),
                    *third = s.await_request();
            s.open_active(first);
            fid_ep *accepted = std::exchange(s.ep, nullptr);
            s.open_active(second); // closed unanswered; the third one has no endpoint
            REQUIRE_EQ(fi_close(&s.pep->fid), 0);
            s.pep = nullptr;
            s.close_active();
            s.ep = accepted;
            REQUIRE_EQ(fi_accept(s.ep, "yes", 3), 0);
            s.expect_event(FI_CONNECTED);
            s.expect_event(FI_SHUTDOWN);
            for (fi_info *i : {first, second, third}) {
                fi_freeinfo(i);
            }
            s.close_active();
        },
        [](partner &p) {
            fabric_side s(msg());
            sockaddr_in name;
            p.hear(&name, sizeof(name));
            std::vector<fid_ep *> eps;
            for (int i = 0; i < 3; ++i) {
                s.open_active(s.info);
                REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
                eps.push_back(std::exchange(s.ep, nullptr));
            }
            int connected = 0;
            for (int i = 0; i < 3; ++i) {
                fi_eq_cm_entry entry = {};
                fi_eq_err_entry error = {};
                std::string bytes;
                if (s.event(&entry, &bytes, &error) == FI_CONNECTED) {
                    REQUIRE(bytes == "yes");
                    ++connected;
                } else {
                    REQUIRE_EQ(error.err, FI_ECONNREFUSED);
                }
            }
            REQUIRE_EQ(connected, 1);
            for (fid_ep *ep : eps) {
                REQUIRE_EQ(fi_close(&ep->fid), 0);
            }
        });
}

// What is too long for the connection manager is refused: the client does not wait, though the
// passive endpoint has gone.
TEST_P(prov_cm_test, an_answer_that_does_not_fit_refuses)
{
    auto little_room = [] { setenv("UCX_TCP_CM_PRIV_DATA_LEN", "1000", 1); };
    const std::string answer(1024, 'a');
    run(
        [&](partner &p) {
            little_room();
            fabric_side s(msg());
            s.listen(p);
            fi_info *request = s.await_request();
            s.open_active(request);
            fi_freeinfo(request);
            REQUIRE_EQ(fi_close(&s.pep->fid), 0);
            s.pep = nullptr;
            REQUIRE_EQ(fi_accept(s.ep, answer.data(), answer.size()), 0);
            s.expect_error(FI_ECONNABORTED);
            s.close_active();
        },
        [&](partner &p) {
            little_room();
            fabric_side s(msg());
            sockaddr_in name;
            p.hear(&name, sizeof(name));
            s.open_active(s.info);
            REQUIRE_EQ(fi_connect(s.ep, &name, answer.data(), answer.size()), -FI_E2BIG);
            REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
            s.expect_error(FI_ECONNREFUSED);
            s.close_active();
        });
}

// A passive endpoint keeps so many requests without an answer; the next one is refused.
TEST_P(prov_cm_test, refuses_requests_over_the_backlog)
{
    constexpr int backlog = 2;
    run(
        [](partner &p) {
            fabric_side s(msg());
            REQUIRE_EQ(fi_passive_ep(s.fabric, s.info, &s.pep, nullptr), 0);
            REQUIRE_EQ(fi_pep_bind(s.pep, &s.eq->fid, 0), 0);
            int value = 0;
            REQUIRE_EQ(fi_control(&s.pep->fid, FI_BACKLOG, &value), -FI_EINVAL);
            REQUIRE_EQ(fi_control(&s.pep->fid, FI_BACKLOG, nullptr), -FI_EINVAL);
            REQUIRE_EQ(fi_control(&s.pep->fid, FI_GETWAIT, &value), -FI_ENOSYS);
            value = backlog;
            REQUIRE_EQ(fi_control(&s.pep->fid, FI_BACKLOG, &value), 0);
            REQUIRE_EQ(fi_listen(s.pep), 0);
            sockaddr_in name = {};
            size_t length = sizeof(name);
            REQUIRE_EQ(fi_getname(&s.pep->fid, &name, &length), 0);
            p.tell(&name, sizeof(name));
            fi_info *first = s.await_request(), *second = s.await_request();
            p.tell(1); // two wait
            while (!p.told()) {
                REQUIRE(s.no_event(1)); // the third one's request never comes
            }
            p.hear();
            REQUIRE_EQ(fi_reject(s.pep, first->handle, nullptr, 0), 0);
            p.tell(1); // there is room again
            fi_info *fourth = s.await_request();
            REQUIRE_EQ(fi_reject(s.pep, second->handle, nullptr, 0), 0);
            REQUIRE_EQ(fi_reject(s.pep, fourth->handle, nullptr, 0), 0);
            for (fi_info *i : {first, second, fourth}) {
                fi_freeinfo(i);
            }
            while (!p.told()) {
                s.no_event(1);
            }
            p.barrier();
        },
        [](partner &p) {
            fabric_side s(msg());
            sockaddr_in name;
            p.hear(&name, sizeof(name));
            std::vector<fid_ep *> eps;
            auto dial = [&] {
                s.open_active(s.info);
                REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
                eps.push_back(s.ep);
                s.ep = nullptr;
                return eps.back();
            };
            auto refused = [&](fid_ep *which) {
                fid_t about = s.expect_error(FI_ECONNREFUSED);
                REQUIRE(!which || about == &which->fid);
            };
            auto progress_until_told = [&] {
                while (!p.told()) {
                    REQUIRE(s.no_event(1));
                }
                p.hear();
            };
            for (int i = 0; i < backlog; ++i) {
                dial();
            }
            progress_until_told();
            refused(dial());
            p.tell(1);
            while (!p.told()) { // the first one is rejected now
                uint32_t type;
                char buffer[2048];
                fi_eq_read(s.eq, &type, buffer, sizeof(buffer), FI_PEEK);
            }
            p.hear();
            refused(nullptr);
            dial();
            refused(nullptr);
            refused(nullptr);
            for (fid_ep *ep : eps) {
                REQUIRE_EQ(fi_close(&ep->fid), 0);
            }
            p.tell(1);
            p.barrier();
        });
}

// Too small a buffer gets what fits and the length that is needed.
TEST_P(prov_cm_test, tells_names_and_how_long_they_are)
{
    auto check = [](fabric_side &s) {
        auto truncated = [](auto call) {
            char all[64] = {}, some[64] = {};
            size_t length = sizeof(all);
            REQUIRE_EQ(call(all, &length), 0);
            REQUIRE_EQ(length, sizeof(sockaddr_in));
            length = 6;
            REQUIRE_EQ(call(some, &length), -FI_ETOOSMALL);
            REQUIRE_EQ(length, sizeof(sockaddr_in));
            REQUIRE(memcmp(all, some, 6) == 0 && some[6] == 0);
            REQUIRE_EQ(call(nullptr, nullptr), -FI_EINVAL);
        };
        truncated([&](void *to, size_t *n) { return fi_getname(&s.ep->fid, to, n); });
        truncated([&](void *to, size_t *n) { return fi_getpeer(s.ep, to, n); });
        size_t value = 0, length = 2;
        REQUIRE_EQ(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &length),
                   -FI_ETOOSMALL);
        REQUIRE_EQ(length, sizeof(size_t));
        REQUIRE_EQ(fi_getopt(&s.ep->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &value, &length), 0);
        REQUIRE_EQ(value, 1024u);
        sockaddr_in any = {};
        any.sin_family = AF_INET;
        REQUIRE_EQ(fi_setname(&s.ep->fid, &any, sizeof(any)), -FI_EOPBADSTATE); // in use
    };
    run(
        [&](partner &p) {
            fabric_side s(msg());
            s.serve(p);
            check(s);
            uint32_t type;
            char small[4];
            p.tell(1);
            ssize_t n; // FI_SHUTDOWN does not fit
            while ((n = fi_eq_sread(s.eq, &type, small, sizeof(small), 1000, 0)) == -FI_EAGAIN) {
            }
            REQUIRE_EQ(n, -FI_ETOOSMALL);
            s.expect_event(FI_SHUTDOWN); // and is not lost
        },
        [&](partner &p) {
            fabric_side s(msg());
            REQUIRE_EQ(fi_endpoint(s.domain, s.info, &s.ep, nullptr), 0);
            sockaddr_in name = {};
            size_t length = sizeof(name);
            REQUIRE_EQ(fi_getpeer(s.ep, &name, &length), -FI_ENOTCONN);
            REQUIRE_EQ(fi_setname(&s.ep->fid, &length, 1), -FI_EINVAL);
            s.close_active();
            s.dial(p);
            check(s);
            p.hear();
        });
}

// What the process has after fifty rounds is what it needs. The last connections may still be
// going.
template <class F>
void thousand_times(fabric_side &s, F &&once)
{
    size_t before = 0;
    for (int i = 0; i < 1000; ++i) {
        once();
        if (i == 50) {
            before = open_files();
        }
    }
    auto end = std::chrono::steady_clock::now() + patience;
    while (open_files() > before + 2 && std::chrono::steady_clock::now() < end) {
        fi_eq_cm_entry none;
        uint32_t event;
        REQUIRE_EQ(fi_eq_sread(s.eq, &event, &none, sizeof(none), 10, 0), -FI_EAGAIN);
    }
    REQUIRE(open_files() <= before + 2);
}

TEST_P(prov_cm_test, thousand_accepted_and_rejected_leave_no_descriptor)
{
    auto server = [&](partner &p) {
        fabric_side s(msg());
        s.listen(p);
        thousand_times(s, [&] {
            fi_info *request = s.await_request();
            s.open_active(request);
            fi_freeinfo(request);
            REQUIRE_EQ(fi_accept(s.ep, nullptr, 0), 0);
            s.expect_event(FI_CONNECTED);
            s.expect_event(FI_SHUTDOWN);
            s.close_active();
            p.barrier();
        });
        thousand_times(s, [&] {
            fi_info *request = s.await_request();
            REQUIRE_EQ(fi_reject(s.pep, request->handle, nullptr, 0), 0);
            fi_freeinfo(request);
        });
    };
    auto client = [&](partner &p) {
        fabric_side s(msg());
        sockaddr_in name;
        p.hear(&name, sizeof(name));
        thousand_times(s, [&] {
            s.open_active(s.info);
            REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
            s.expect_event(FI_CONNECTED);
            REQUIRE_EQ(fi_shutdown(s.ep, 0), 0);
            s.expect_event(FI_SHUTDOWN);
            s.close_active();
            p.barrier();
        });
        thousand_times(s, [&] {
            s.open_active(s.info);
            REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
            s.expect_error(FI_ECONNREFUSED);
            s.close_active();
        });
    };
    run(server, client);
}

// What one side ends as soon as it is connected, the other one sees end, and it sees it connected
// before: also when the first drives nothing from then on, and the two have never met.
TEST_P(prov_cm_test, ended_at_once_is_seen_by_the_other_side)
{
    constexpr int rounds = 40;
    auto end_or_see = [](fabric_side &s, partner &p, bool first) {
        s.expect_event(FI_CONNECTED);
        if (!first) {
            s.expect_event(FI_SHUTDOWN);
        }
        s.close_active();
        p.barrier();
    };
    run(
        [&](partner &p) {
            for (int i = 0; i < rounds; ++i) {
                fabric_side s(msg());
                s.listen(p);
                fi_info *request = s.await_request();
                s.open_active(request);
                fi_freeinfo(request);
                REQUIRE_EQ(fi_accept(s.ep, nullptr, 0), 0);
                end_or_see(s, p, i % 2 == 0);
            }
        },
        [&](partner &p) {
            for (int i = 0; i < rounds; ++i) {
                fabric_side s(msg());
                sockaddr_in name;
                p.hear(&name, sizeof(name));
                s.open_active(s.info);
                REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
                end_or_see(s, p, i % 2 == 1);
            }
        });
}

// The two processes have a connection already. The second one asks to share its lane, and ends
// while that request is in flight.
TEST_P(prov_cm_test, second_one_ended_at_once_is_seen_by_the_other_side)
{
    constexpr int rounds = 4;
    auto keep_first = [](fabric_side &s, partner &p) {
        s.expect_event(FI_CONNECTED);
        p.barrier();
        return std::exchange(s.ep, nullptr);
    };
    auto server = [&](partner &p) {
        fabric_side s(msg());
        s.listen(p);
        fid_ep *first = nullptr;
        for (int i = 0; i < rounds; ++i) {
            fi_info *request = s.await_request();
            s.open_active(request);
            fi_freeinfo(request);
            REQUIRE_EQ(fi_accept(s.ep, nullptr, 0), 0);
            if (!first) {
                first = keep_first(s, p);
                continue;
            }
            s.expect_event(FI_CONNECTED);
            s.expect_event(FI_SHUTDOWN);
            s.close_active();
            p.barrier();
        }
        REQUIRE_EQ(fi_close(&first->fid), 0);
    };
    auto client = [&](partner &p) {
        fabric_side s(msg());
        sockaddr_in name;
        p.hear(&name, sizeof(name));
        fid_ep *first = nullptr;
        for (int i = 0; i < rounds; ++i) {
            s.open_active(s.info);
            REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
            if (!first) {
                first = keep_first(s, p);
                continue;
            }
            s.expect_event(FI_CONNECTED);
            if (i % 2) {
                REQUIRE_EQ(fi_shutdown(s.ep, 0), 0);
                s.expect_event(FI_SHUTDOWN);
            }
            s.close_active();
            p.barrier(); // without progress
        }
        REQUIRE_EQ(fi_close(&first->fid), 0);
    };
    run(server, client);
}

TEST_P(prov_cm_test, idle_connection_takes_one_descriptor)
{
    constexpr size_t count = 50;
    auto close_all = [](std::vector<fid_ep *> &eps) {
        for (fid_ep *ep : eps) {
            REQUIRE_EQ(fi_close(&ep->fid), 0);
        }
    };
    auto server = [&](partner &p) {
        fabric_side s(msg());
        s.listen(p);
        std::vector<fid_ep *> eps;
        size_t before = 0;
        for (size_t i = 0; i <= count; ++i) {
            fi_info *request = s.await_request();
            s.open_active(request);
            fi_freeinfo(request);
            REQUIRE_EQ(fi_accept(s.ep, nullptr, 0), 0);
            s.expect_event(FI_CONNECTED);
            eps.push_back(std::exchange(s.ep, nullptr));
            p.barrier();
            if (i == 0) {
                before = open_files(); // with queues and lanes
            }
        }
        REQUIRE(open_files() <= before + count);
        p.barrier();
        close_all(eps);
    };
    auto client = [&](partner &p) {
        fabric_side s(msg());
        sockaddr_in name;
        p.hear(&name, sizeof(name));
        std::vector<fid_ep *> eps;
        for (size_t i = 0; i <= count; ++i) {
            s.open_active(s.info);
            REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
            s.expect_event(FI_CONNECTED);
            eps.push_back(std::exchange(s.ep, nullptr));
            p.barrier();
        }
        p.barrier();
        close_all(eps);
    };
    run(server, client);
}

INSTANTIATE_TEST_SUITE_P(, prov_cm_test, testing::ValuesIn(prov_test::transports()),
                         [](const auto &i) { return prov_test::first_transport(i.param); });

} // namespace
