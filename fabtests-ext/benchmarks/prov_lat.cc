// SPDX-License-Identifier: BSD-3-Clause
//
// What the provider costs: 8-byte ping-pong between two processes over the provider and over the
// raw core provider below it, both in every round of one run. The figure is the best short batch:
// other load on the machine only adds.
#include "fabtests-ext/common/fabric_app.h"

#include <algorithm>
#include <map>

using namespace app;

namespace {

struct way {
    const char *name;
    const char *provider;
    const char *transports; // of ours
    fi_ep_type type;
    const char *against;
    double aim;
};

constexpr way ways[] = {
    {"raw shm, RDM tagged", "shm", nullptr, FI_EP_RDM, nullptr, 0},
    {"ucxlike over shm, RDM tagged", "ucxlike", "shm,tcp", FI_EP_RDM, "raw shm, RDM tagged", 2.0},
    {"ucxlike over shm, MSG", "ucxlike", "shm,tcp", FI_EP_MSG, "raw shm, RDM tagged", 2.0},
    {"raw tcp, MSG", "tcp", nullptr, FI_EP_MSG, nullptr, 0},
    {"ucxlike over tcp, RDM tagged", "ucxlike", "tcp", FI_EP_RDM, "raw tcp, MSG", 1.3},
    {"ucxlike over tcp, MSG", "ucxlike", "tcp", FI_EP_MSG, "raw tcp, MSG", 1.3},
};

constexpr int batch = 64;

void send(fabric_side &s, const void *buf)
{
    ssize_t r;
    do {
        r = s.opt.type == FI_EP_RDM ? fi_tinject(s.ep, buf, 8, s.peer, 1)
                                    : fi_inject(s.ep, buf, 8, s.peer);
        if (r == -FI_EAGAIN)
            fi_cq_read(s.txcq, nullptr, 0);
    } while (r == -FI_EAGAIN);
    REQUIRE_EQ(r, 0);
}

void post(fabric_side &s, void *buf)
{
    ssize_t r = s.opt.type == FI_EP_RDM ? fi_trecv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, 1, 0, buf)
                                        : fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, buf);
    REQUIRE_EQ(r, 0);
}

void await(fabric_side &s)
{
    fi_cq_tagged_entry e;
    ssize_t n;
    while ((n = fi_cq_read(s.rxcq, &e, 1)) == -FI_EAGAIN) {
    }
    REQUIRE_EQ(n, 1);
}

// Microseconds one way, of the best batch.
double ping_pong(const way &w, partner &p, bool server, int milliseconds)
{
    options o;
    o.provider = w.provider;
    o.type = w.type;
    o.caps = w.type == FI_EP_RDM ? FI_TAGGED : FI_MSG;
    o.threading = FI_THREAD_DOMAIN;
    setenv("FI_UCXLIKE_TLS", w.transports ? w.transports : "", 1);
    if (!w.transports)
        unsetenv("FI_UCXLIKE_TLS");
    fabric_side s(o);
    if (w.type == FI_EP_RDM)
        s.open_rdm(p);
    else if (server)
        s.serve(p);
    else
        s.dial(p);
    alignas(64) char in[8] = {}, out[8] = {};
    post(s, in);
    p.barrier();
    using clock = std::chrono::steady_clock;
    double best = 1e9;
    bool stop = false;
    auto end = clock::now() + std::chrono::milliseconds(milliseconds);
    for (bool last = false; !last;) {
        auto start = clock::now();
        last = !server && start > end;
        out[0] = last; // the client says when it is enough
        for (int i = 0; i < batch; ++i) {
            if (!server)
                send(s, out);
            await(s);
            stop = in[0];
            post(s, in);
            if (server)
                send(s, out);
        }
        if (server)
            last = stop;
        std::chrono::duration<double, std::micro> took = clock::now() - start;
        best = std::min(best, took.count() / batch / 2);
    }
    p.barrier();
    return best;
}

void run(partner &p, bool server, int rounds, const char *only)
{
    std::map<std::string, double> best;
    for (int r = 0; r < rounds; ++r) {
        for (const way &w : ways) {
            if (!strstr(w.name, only))
                continue;
            double us = ping_pong(w, p, server, 300);
            auto it = best.emplace(w.name, us).first;
            it->second = std::min(it->second, us);
        }
    }
    if (server)
        return;
    printf("8-byte ping-pong, us one way, best batch of %d in %d rounds\n", batch, rounds);
    printf("%-32s %8s %8s %6s\n", "", "us", "ratio", "aim");
    for (const way &w : ways) {
        if (!best.count(w.name))
            continue;
        printf("%-32s %8.3f", w.name, best[w.name]);
        if (w.against && best.count(w.against))
            printf(" %8.2f %6.1f", best[w.name] / best[w.against], w.aim);
        printf("\n");
    }
}

} // namespace

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    const char *only = argc > 2 ? argv[2] : ""; // part of a name
    std::string failed = run_pair([&](partner &p) { run(p, true, rounds, only); },
                                  [&](partner &p) { run(p, false, rounds, only); }, 300);
    if (!failed.empty())
        fprintf(stderr, "%s\n", failed.c_str());
    return failed.empty() ? 0 : 1;
}
