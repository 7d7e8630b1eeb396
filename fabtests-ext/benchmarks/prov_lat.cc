// SPDX-License-Identifier: BSD-3-Clause
//
// What the provider costs and gains: latency, message rate and bandwidth between two processes over
// the provider, against the raw core provider below it and libfabric's own RDM on MSG. The two that
// are compared are open at once and take turns batch by batch, so that both see the machine in the
// same state. Said are the best batch of each, with their ratio (other load on the machine only
// adds), and the median ratio of two batches that came one after the other.
//
// Usage: prov_lat [rounds [part of a figure's title [part of a contender's name]]]
//        prov_lat latency|bandwidth shm|tcp SIZE MILLISECONDS
// The second form measures one size, over shared memory or tcp, against the raw core, one way of a
// ping-pong of that size or a window of such messages, and prints the best of both, ours first:
// microseconds or MB/s.
#include "fabtests-ext/common/fabric_app.h"

#include <algorithm>
#include <map>
#include <memory>

using namespace app;

namespace {

struct way {
    const char *name;
    const char *provider;
    const char *transports; // of ours
    fi_ep_type type;
    fi_threading threading = FI_THREAD_DOMAIN;
};

constexpr const char *raw_shm = "raw shm, RDM tagged";
constexpr const char *raw_tcp = "raw tcp, MSG";
constexpr const char *rxm = "tcp;ofi_rxm, RDM tagged";
constexpr const char *over_sm = "ucxlike over sm, RDM tagged";
constexpr const char *over_sm_safe = "ucxlike over sm, FI_THREAD_SAFE";
constexpr const char *over_sm_msg = "ucxlike over sm, MSG";
constexpr const char *over_shm = "ucxlike over ofi_shm, RDM tagged";
constexpr const char *over_shm_safe = "ucxlike over ofi_shm, THREAD_SAFE";
constexpr const char *over_shm_msg = "ucxlike over ofi_shm, MSG";
constexpr const char *over_tcp = "ucxlike over tcp, RDM tagged";
constexpr const char *over_tcp_msg = "ucxlike over tcp, MSG";

constexpr way ways[] = {
    {raw_shm, "shm", nullptr, FI_EP_RDM},
    {over_sm, "ucxlike", "sm,tcp", FI_EP_RDM},
    {over_sm_safe, "ucxlike", "sm,tcp", FI_EP_RDM, FI_THREAD_SAFE},
    {over_sm_msg, "ucxlike", "sm,tcp", FI_EP_MSG},
    {over_shm, "ucxlike", "ofi_shm,tcp", FI_EP_RDM},
    {over_shm_safe, "ucxlike", "ofi_shm,tcp", FI_EP_RDM, FI_THREAD_SAFE},
    {over_shm_msg, "ucxlike", "ofi_shm,tcp", FI_EP_MSG},
    {raw_tcp, "tcp", nullptr, FI_EP_MSG},
    {rxm, "tcp;ofi_rxm", nullptr, FI_EP_RDM},
    {over_tcp, "ucxlike", "tcp", FI_EP_RDM},
    {over_tcp_msg, "ucxlike", "tcp", FI_EP_MSG},
};

struct comparison {
    const char *name;
    const char *against;
    double aim;
};

// A turn is a window of messages and their answer.
struct figure {
    const char *title;
    const char *unit;
    size_t size;
    int window;
    int turns; // of a batch
    bool most; // whether more is better
    double (*of)(double microseconds, const figure &f);
    std::vector<comparison> compared;
    size_t answer = 8;
};

constexpr size_t small = 8; // is injected, and the least that has room for what a batch says

double one_way(double us, const figure &f)
{
    return us / f.turns / 2;
}

double rate(double us, const figure &f)
{
    return f.window * f.turns / us;
}

double megabytes(double us, const figure &f)
{
    return static_cast<double>(f.size) * f.window * f.turns / us;
}

const figure figures[] = {
    {"8-byte ping-pong",
     "us",
     8,
     1,
     64,
     false,
     one_way,
     {{over_sm, raw_shm, 1.3},
      {over_sm_safe, raw_shm, 1.3},
      {over_sm_msg, raw_shm, 1.3},
      {over_shm, raw_shm, 1.3},
      {over_shm_safe, raw_shm, 1.3},
      {over_shm_msg, raw_shm, 1.3},
      {over_tcp, raw_tcp, 1.3},
      {over_tcp, rxm, 1.0},
      {over_tcp_msg, raw_tcp, 1.3}}},
    {"8-byte messages",
     "M/s",
     8,
     64,
     16,
     true,
     rate,
     {{over_sm, raw_shm, 0.5}, {over_shm, raw_shm, 0.5}, {over_tcp, rxm, 2.0}}},
    {"messages of 4 KiB",
     "MB/s",
     4 << 10,
     64,
     4,
     true,
     megabytes,
     {{over_sm, raw_shm, 0.9}, {over_shm, raw_shm, 0.9}, {over_tcp, rxm, 1.0}}},
    {"messages of 16 KiB",
     "MB/s",
     16 << 10,
     64,
     2,
     true,
     megabytes,
     {{over_sm, raw_shm, 0.9}, {over_shm, raw_shm, 0.9}, {over_tcp, rxm, 1.0}}},
    {"messages of 1 MiB",
     "MB/s",
     1 << 20,
     8,
     1,
     true,
     megabytes,
     {{over_sm, raw_shm, 0.97}, {over_shm, raw_shm, 0.97}, {over_tcp, rxm, 1.0}}},
};

// One end of a measurement: `in` receives, `out` is sent.
struct end_point : fabric_side {
    std::vector<char> in, out;
    const size_t size, answer_size;

    end_point(const options &o, const figure &f)
        : fabric_side(o), in(std::max(f.size, small)), out(in.size()), size(f.size),
          answer_size(f.answer)
    {
    }
    void post(int count)
    {
        for (int i = 0; i < count; ++i) {
            retry([&] {
                return opt.type == FI_EP_RDM
                           ? fi_trecv(ep, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, &in)
                           : fi_recv(ep, in.data(), in.size(), nullptr, FI_ADDR_UNSPEC, &in);
            });
        }
    }
    void send(int count)
    {
        for (int i = 0; i < count; ++i) {
            retry_sending(size);
        }
        if (size > small) {
            await(txcq, count);
        }
    }
    void answer()
    {
        retry_sending(answer_size);
        if (answer_size > small) {
            await(txcq, 1);
        }
    }
    void await(fid_cq *q, int count)
    {
        fi_cq_tagged_entry e[16];
        while (count > 0) {
            ssize_t n = fi_cq_read(q, e, std::min(count, 16));
            REQUIRE(n > 0 || n == -FI_EAGAIN);
            count -= n > 0 ? static_cast<int>(n) : 0;
        }
    }

  private:
    void retry_sending(size_t n)
    {
        ssize_t r;
        while ((r = post_send(n)) == -FI_EAGAIN) {
            fi_cq_read(txcq, nullptr, 0);
        }
        REQUIRE_EQ(r, 0);
    }
    ssize_t post_send(size_t n)
    {
        if (opt.type == FI_EP_RDM) {
            return n <= small ? fi_tinject(ep, out.data(), n, peer, 1)
                              : fi_tsend(ep, out.data(), n, nullptr, peer, 1, &out);
        }
        return n <= small ? fi_inject(ep, out.data(), n, peer)
                          : fi_send(ep, out.data(), n, nullptr, peer, &out);
    }
};

const way &way_of(const char *name)
{
    return *std::find_if(std::begin(ways), std::end(ways),
                         [&](const way &w) { return !strcmp(w.name, name); });
}

// A contender's end, connected, with what it receives first posted.
std::unique_ptr<end_point> open_end(const figure &f, const way &w, partner &p, bool server)
{
    options o;
    o.provider = w.provider;
    o.type = w.type;
    o.caps = w.type == FI_EP_RDM ? FI_TAGGED : FI_MSG;
    o.threading = w.threading;
    if (w.transports) {
        setenv("FI_UCXLIKE_TLS", w.transports, 1);
    }
    auto s = std::make_unique<end_point>(o, f);
    if (w.type == FI_EP_RDM) {
        s->open_rdm(p);
    } else if (server) {
        s->serve(p);
    } else {
        s->dial(p);
    }
    s->post(server ? f.window : 1);
    p.barrier();
    return s;
}

// Microseconds. The client says in its messages whether the batch is the last; both return it.
double batch(const figure &f, end_point &s, bool server, bool *last)
{
    auto start = std::chrono::steady_clock::now();
    if (!server) {
        s.out[0] = *last;
    }
    for (int i = 0; i < f.turns; ++i) {
        if (!server) {
            s.send(f.window);
        }
        s.await(s.rxcq, server ? f.window : 1);
        if (server) {
            *last = s.in[0];
        }
        s.post(server ? f.window : 1);
        if (server) {
            s.answer();
        }
    }
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
        .count();
}

struct result {
    double ours, theirs;          // the best
    std::vector<double> of_pairs; // ratios

    result(bool most) : ours(most ? 0 : 1e18), theirs(ours) {}
    void add(bool most, double our, double their)
    {
        ours = most ? std::max(ours, our) : std::min(ours, our);
        theirs = most ? std::max(theirs, their) : std::min(theirs, their);
        of_pairs.push_back(our / their);
    }
    double median()
    {
        auto middle = of_pairs.begin() + static_cast<ptrdiff_t>(of_pairs.size() / 2);
        std::nth_element(of_pairs.begin(), middle, of_pairs.end());
        return *middle;
    }
};

void measure(const figure &f, const comparison &c, partner &p, bool server, int milliseconds,
             result &r)
{
    auto ours = open_end(f, way_of(c.name), p, server);
    auto theirs = open_end(f, way_of(c.against), p, server);
    bool last = false;
    batch(f, *ours, server, &last); // connects, and warms up
    batch(f, *theirs, server, &last);
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    for (bool ours_first = false; !last; ours_first = !ours_first) {
        bool no = false;
        double first = batch(f, ours_first ? *ours : *theirs, server, &no);
        if (!server) {
            last = std::chrono::steady_clock::now() > end;
        }
        double second = batch(f, ours_first ? *theirs : *ours, server, &last);
        r.add(f.most, f.of(ours_first ? first : second, f), f.of(ours_first ? second : first, f));
    }
    p.barrier();
}

using results = std::map<const comparison *, result>;

void show(const figure &f, results &of)
{
    printf("\n%s, %s\n", f.title, f.unit);
    printf("%-34s %9s   %-25s %9s %6s %6s %6s\n", "", "best", "against", "best", "ratio", "pairs",
           "aim");
    for (const comparison &c : f.compared) {
        auto r = of.find(&c);
        if (r != of.end()) {
            printf("%-34s %9.3f   %-25s %9.3f %6.2f %6.2f  %s%.2f\n", c.name, r->second.ours,
                   c.against, r->second.theirs, r->second.ours / r->second.theirs,
                   r->second.median(), f.most ? ">=" : "<=", c.aim);
        }
    }
}

void run(partner &p, bool server, int rounds, const char *title, const char *name)
{
    results all;
    for (int round = 0; round < rounds; ++round) {
        for (const figure &f : figures) {
            for (const comparison &c : f.compared) {
                if (!strstr(f.title, title) || !strstr(c.name, name)) {
                    continue;
                }
                measure(f, c, p, server, 300, all.try_emplace(&c, f.most).first->second);
            }
        }
    }
    if (server) {
        return;
    }
    for (const figure &f : figures) {
        if (std::any_of(f.compared.begin(), f.compared.end(),
                        [&](const comparison &c) { return all.count(&c); })) {
            show(f, all);
        }
    }
}

// Batches of about the same number of bytes; at 8 bytes these are those of the figures above.
figure figure_of(bool latency, bool memory, size_t size)
{
    const comparison c =
        memory ? comparison{over_sm, raw_shm, 0} : comparison{over_tcp, raw_tcp, 0};
    const size_t bytes = 8 << 20;
    const size_t window = latency ? 1 : std::clamp<size_t>(bytes / size, 1, 64);
    const size_t turns = std::clamp<size_t>(bytes / 8 / (size * window), 1, latency ? 64 : 16);
    return {"one size",
            latency ? "us" : "MB/s",
            size,
            static_cast<int>(window),
            static_cast<int>(turns),
            !latency,
            latency ? one_way : megabytes,
            {c},
            latency ? size : small};
}

int measure_one(bool latency, bool memory, size_t size, int milliseconds)
{
    const figure f = figure_of(latency, memory, size);
    auto role = [&](partner &p, bool server) {
        result r(f.most);
        measure(f, f.compared[0], p, server, milliseconds, r);
        if (!server) {
            printf("%.4f %.4f\n", r.ours, r.theirs);
        }
    };
    std::string failed =
        run_pair([&](partner &p) { role(p, true); }, [&](partner &p) { role(p, false); }, 60);
    if (!failed.empty()) {
        fprintf(stderr, "%s\n", failed.c_str());
    }
    return failed.empty() ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 5 && (!strcmp(argv[1], "latency") || !strcmp(argv[1], "bandwidth"))) {
        return measure_one(!strcmp(argv[1], "latency"), !strcmp(argv[2], "shm"),
                           std::max(strtoul(argv[3], nullptr, 10), 1UL), atoi(argv[4]));
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    const char *title = argc > 2 ? argv[2] : "";
    const char *name = argc > 3 ? argv[3] : "";
    std::string failed = run_pair([&](partner &p) { run(p, true, rounds, title, name); },
                                  [&](partner &p) { run(p, false, rounds, title, name); }, 600);
    if (!failed.empty()) {
        fprintf(stderr, "%s\n", failed.c_str());
    }
    return failed.empty() ? 0 : 1;
}
