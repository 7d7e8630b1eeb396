// SPDX-License-Identifier: BSD-3-Clause
//
// Thousands of clients of one endpoint: each says its number, and an endpoint for datagrams gives
// it back; then all leave. UCXLIKE_CLIENTS: so many.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/sanitized.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <utility>

using namespace app;

namespace {

const char *const wanted = getenv("UCXLIKE_CLIENTS");
const int processes = wanted ? 20 : 10; // each has so many descriptors alone
enum point { listening, served, left };
constexpr size_t most_senders = 4095; // of sm; the next come over tcp

uint64_t clients_of_a_process(uint64_t usual)
{
    uint64_t all = wanted ? strtoull(wanted, nullptr, 10) : sanitized ? 100 : usual;
    return all / static_cast<unsigned>(processes);
}

// What a client says: its number, and where it is.
struct greeting {
    uint64_t number;
    sockaddr_in name;
};

class prov_crowd : public testing::TestWithParam<const char *> {
  protected:
    // Each client opens the transports anew.
    explicit prov_crowd(uint64_t usual = 100) : of_a_process(clients_of_a_process(usual)) {}
    void SetUp() override
    {
        // Over tcp the server has a connection with each, and one more until that is given up. An
        // endpoint of a client takes 26.
        const rlim_t enough = std::max(clients() + 2000, 27 * of_a_process + 500);
        if (!may_open(enough)) {
            GTEST_SKIP() << "RLIMIT_NOFILE is below " << enough;
        }
        void *shared = mmap(nullptr, sizeof(sockaddr_in), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        ASSERT_NE(MAP_FAILED, shared);
        server_name = static_cast<sockaddr_in *>(shared);
    }
    void TearDown() override
    {
        if (server_name) {
            munmap(server_name, sizeof(*server_name));
        }
    }
    // Member 0 serves, the others have a share of the clients each.
    void run(const std::function<void(crew &)> &server,
             const std::function<void(crew &, uint64_t first)> &clients)
    {
        EXPECT_EQ("", run_crew(
                          processes + 1,
                          [&](int index, crew &all) {
                              setenv("FI_UCXLIKE_TLS", GetParam(), 1);
                              if (index == 0) {
                                  server(all);
                              } else {
                                  clients(all, static_cast<uint64_t>(index - 1) * of_a_process);
                              }
                          },
                          900));
    }
    template <class F>
    static void await(const crew &all, point p, int count, F &&progress)
    {
        while (all.arrived(p) < count) {
            progress();
            sched_yield();
        }
    }

    uint64_t clients() const { return static_cast<unsigned>(processes) * of_a_process; }

    const uint64_t of_a_process;
    sockaddr_in *server_name = nullptr; // the processes share it
};

// Receives of one endpoint, or of many that share a queue.
class greetings {
  public:
    void post(fabric_side &s, fid_ep *ep)
    {
        entries_.push_back({});
        post(s, ep, &entries_.back());
    }
    // The next that came, or nothing; its buffer is free until it is posted again.
    greeting *next(fabric_side &s)
    {
        fi_cq_tagged_entry e = {};
        return s.try_complete(s.rxcq, &e, 0) ? static_cast<greeting *>(e.op_context) : nullptr;
    }
    void post(fabric_side &s, fid_ep *ep, greeting *g)
    {
        s.retry([&] { return fi_recv(ep, g, sizeof(*g), nullptr, FI_ADDR_UNSPEC, g); });
    }

  private:
    std::deque<greeting> entries_;
};

// A client's endpoint with a queue of its own, since reading a queue progresses all its endpoints.
class client {
  public:
    client(fabric_side &s, uint64_t number) : number_(number)
    {
        fi_cq_attr a = {};
        a.format = FI_CQ_FORMAT_TAGGED;
        REQUIRE_EQ(fi_cq_open(s.domain, &a, &queue_, nullptr), 0);
        REQUIRE_EQ(fi_endpoint(s.domain, s.info, &ep_, nullptr), 0);
        REQUIRE_EQ(fi_ep_bind(ep_, &queue_->fid, FI_TRANSMIT | FI_RECV), 0);
        REQUIRE_EQ(fi_ep_bind(ep_, s.av ? &s.av->fid : &s.eq->fid, 0), 0);
        REQUIRE_EQ(fi_enable(ep_), 0);
        REQUIRE_EQ(fi_recv(ep_, &answer_, sizeof(answer_), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
    }
    ~client()
    {
        REQUIRE_EQ(fi_close(&ep_->fid), 0);
        REQUIRE_EQ(fi_close(&queue_->fid), 0);
    }
    void greet(fabric_side &s)
    {
        greeting g = {number_, name_of(&ep_->fid)};
        s.retry([&] {
            ssize_t r = fi_inject(ep_, &g, sizeof(g), s.peer);
            if (r == -FI_EAGAIN) {
                progress();
            }
            return r;
        });
    }
    void progress() { fi_cq_read(queue_, nullptr, 0); }
    void await_answer(fabric_side &s)
    {
        s.complete(queue_);
        REQUIRE_EQ(answer_, number_);
    }
    fid_ep *ep() const { return ep_; }

  private:
    const uint64_t number_;
    uint64_t answer_ = UINT64_MAX;
    fid_cq *queue_ = nullptr;
    fid_ep *ep_ = nullptr;
};

TEST_P(prov_crowd, of_a_datagram_endpoint_is_answered)
{
    options o;
    o.caps = FI_MSG;
    auto serve = [&](crew &all) {
        fabric_side s(o);
        s.open_active(s.info);
        *server_name = name_of(&s.ep->fid);
        const size_t alone = open_files();
        all.arrive(listening);
        greetings in;
        for (int i = 0; i < 256; ++i) {
            in.post(s, s.ep);
        }
        std::set<uint64_t> heard;
        while (heard.size() < clients()) {
            greeting *g = in.next(s);
            if (!g) {
                sched_yield();
                continue;
            }
            REQUIRE(heard.insert(g->number).second);
            fi_addr_t from = FI_ADDR_UNSPEC;
            REQUIRE_EQ(fi_av_insert(s.av, &g->name, 1, &from, 0, nullptr), 1);
            s.retry([&] { return fi_inject(s.ep, &g->number, sizeof(g->number), from); });
            in.post(s, s.ep, g);
        }
        await(all, served, processes, [&] { s.progress(); });
        // A socket of each over tcp, on the node a watch over each process; and what comes once.
        const bool over_tcp = std::string_view(GetParam()) == "tcp";
        const uint64_t sockets =
            over_tcp ? heard.size() : heard.size() - std::min(heard.size(), most_senders);
        const size_t most = alone + sockets + static_cast<unsigned>(processes) + 20;
        const auto end = std::chrono::steady_clock::now() + patience;
        while (open_files() > most && std::chrono::steady_clock::now() < end) {
            s.progress();
        }
        printf("%zu clients over %s, %zu descriptors\n", heard.size(), GetParam(), open_files());
        REQUIRE(open_files() <= most);
        all.arrive(served);
        await(all, left, processes, [&] { s.progress(); });
    };
    auto come = [&](crew &all, uint64_t first) {
        fabric_side s(o);
        await(all, listening, 1, [] {});
        REQUIRE_EQ(fi_av_insert(s.av, server_name, 1, &s.peer, 0, nullptr), 1);
        std::vector<std::unique_ptr<client>> clients;
        for (uint64_t i = 0; i < of_a_process; ++i) {
            clients.push_back(std::make_unique<client>(s, first + i));
            clients.back()->greet(s);
            clients.back()->await_answer(s);
        }
        all.arrive(served);
        await(all, served, processes + 1, [&] {
            for (auto &c : clients) {
                c->progress();
            }
        });
        clients.clear();
        all.arrive(left);
    };
    run(serve, come);
}

INSTANTIATE_TEST_SUITE_P(over, prov_crowd, testing::Values("tcp", "sm,tcp"), [](const auto &p) {
    return std::string(p.param) == "tcp" ? "tcp" : "sm_tcp";
});

class prov_listener_crowd : public prov_crowd {
  protected:
    // The fabric has opened them for all.
    prov_listener_crowd() : prov_crowd(2000) {}
    // Of any endpoint.
    static void expect_event(fabric_side &s, uint32_t type)
    {
        fi_eq_cm_entry entry = {};
        REQUIRE_EQ(s.event(&entry, nullptr, nullptr), type);
    }
};

TEST_P(prov_listener_crowd, gets_a_connection_each)
{
    options o;
    o.caps = FI_MSG;
    o.type = FI_EP_MSG;
    auto serve = [&](crew &all) {
        fabric_side s(o);
        *server_name = s.listen();
        all.arrive(listening);
        greetings in;
        std::vector<fid_ep *> eps;
        size_t connected = 0, ended = 0;
        std::set<uint64_t> heard;
        while (ended < clients()) {
            fi_eq_cm_entry entry = {};
            uint32_t event = 0;
            ssize_t got;
            while ((got = fi_eq_read(s.eq, &event, &entry, sizeof(entry), 0)) > 0) {
                if (event == FI_CONNREQ) {
                    s.open_active(entry.info);
                    fi_freeinfo(entry.info);
                    in.post(s, s.ep);
                    REQUIRE_EQ(fi_accept(s.ep, nullptr, 0), 0);
                    eps.push_back(std::exchange(s.ep, nullptr));
                } else {
                    REQUIRE(event == FI_CONNECTED || event == FI_SHUTDOWN);
                    (event == FI_CONNECTED ? connected : ended) += 1;
                }
            }
            REQUIRE_EQ(got, -FI_EAGAIN);
            while (greeting *g = in.next(s)) {
                REQUIRE(heard.insert(g->number).second);
            }
            if (heard.size() == clients() && all.arrived(served) == processes) {
                printf("%zu clients of a listener, %zu descriptors\n", heard.size(), open_files());
                all.arrive(served);
            }
            sched_yield();
        }
        for (fid_ep *ep : eps) {
            REQUIRE_EQ(fi_close(&ep->fid), 0);
        }
        REQUIRE_EQ(connected, ended);
        REQUIRE_EQ(heard.size(), ended);
    };
    auto come = [&](crew &all, uint64_t first) {
        fabric_side s(o);
        await(all, listening, 1, [] {});
        std::vector<std::unique_ptr<client>> clients;
        for (uint64_t i = 0; i < of_a_process; ++i) {
            clients.push_back(std::make_unique<client>(s, first + i));
            REQUIRE_EQ(fi_connect(clients.back()->ep(), server_name, nullptr, 0), 0);
            expect_event(s, FI_CONNECTED);
            clients.back()->greet(s);
        }
        all.arrive(served);
        await(all, served, processes + 1, [&] { clients.back()->progress(); });
        for (auto &c : clients) {
            REQUIRE_EQ(fi_shutdown(c->ep(), 0), 0);
        }
        for (size_t i = 0; i < clients.size(); ++i) {
            expect_event(s, FI_SHUTDOWN);
        }
        clients.clear();
    };
    run(serve, come);
}

INSTANTIATE_TEST_SUITE_P(over, prov_listener_crowd, testing::Values("tcp"),
                         [](const auto &p) { return std::string(p.param); });

} // namespace
