// SPDX-License-Identifier: BSD-3-Clause
// Remote memory over shm: 8-byte puts and gets of UCT to memory that uct_mem_alloc() gave the peer,
// which are stores and loads, beside fi_write and fi_read of the bare core provider to plain memory
// of the peer, each with its completion; in turns, best and median of all rounds.
//   uct_rma [rounds]
#include "uct_pair.h"

#include <chrono>

namespace uct_bench {
namespace {

constexpr int count = 1000;

// What one process tells the other of its memory.
struct remote {
    uint64_t uct_address;
    char uct_key[128];
    uint64_t bare_address;
    uint64_t bare_key;
};

// The memory of one side: of the shm domain, and plain.
class target {
  public:
    target(uct_side &ours, bare_side &bare) : component_(ours.component)
    {
        uct_mem_alloc_params_t params{};
        params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_MDS;
        params.mds = {&ours.md, 1};
        uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
        must(uct_mem_alloc(4096, &method, 1, &params, &memory_) == UCS_OK, "uct_mem_alloc");
        must(fi_mr_reg(bare.domain, plain_, sizeof(plain_), FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1,
                       0, &mr_, nullptr) == 0,
             "fi_mr_reg");
        remote mine{};
        mine.uct_address = reinterpret_cast<uint64_t>(memory_.address);
        must(uct_md_mkey_pack(ours.md, memory_.memh, mine.uct_key) == UCS_OK, "uct_md_mkey_pack");
        mine.bare_address = reinterpret_cast<uint64_t>(plain_);
        mine.bare_key = fi_mr_key(mr_);
        exchange(&mine, &peer, sizeof(mine));
        must(uct_rkey_unpack(ours.component, peer.uct_key, &key) == UCS_OK, "uct_rkey_unpack");
    }
    target(const target &) = delete;
    target &operator=(const target &) = delete;
    ~target()
    {
        uct_rkey_release(component_, &key);
        fi_close(&mr_->fid);
        uct_mem_free(&memory_);
    }

    remote peer;
    uct_rkey_bundle_t key;

  private:
    uct_component_h component_;
    uct_allocated_memory_t memory_;
    alignas(64) char plain_[4096] = {};
    fid_mr *mr_ = nullptr;
};

// Nanoseconds of one operation.
template <class Op>
double measure(Op &&op)
{
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) {
        op();
    }
    std::chrono::duration<double, std::nano> d = std::chrono::steady_clock::now() - start;
    return d.count() / count;
}

struct series {
    const char *name;
    std::vector<double> times;
};

void report(const series &ours, const series &bare)
{
    printf("%s 8 B over shm: best %.1f ns, median %.1f ns; bare %s: best %.1f ns, median %.1f ns; "
           "ratio best %.3f, median %.3f (aim: 0.2)\n",
           ours.name, best(ours.times), median(ours.times), bare.name, best(bare.times),
           median(bare.times), best(ours.times) / best(bare.times),
           median(ours.times) / median(bare.times));
}

// The side that is written to and read from only looks after its queues.
void serve(uct_side &ours, bare_side &bare)
{
    char end;
    while (recv(oob, &end, 1, MSG_DONTWAIT) != 1) {
        for (int i = 0; i < 1000; ++i) {
            ours.poll();
            bare.poll();
        }
    }
}

void run(int rounds, bool first)
{
    uct_side ours("shm");
    bare_side bare("shm", first);
    target memory(ours, bare);
    if (!first) {
        serve(ours, bare);
        return;
    }
    uint64_t value = 0;
    char plain[8] = {};
    uct_iov_t iov{&value, 8, UCT_MEM_HANDLE_NULL, 0, 1};
    const remote &to = memory.peer;
    auto done = [&](ssize_t posted) {
        must(posted == 0 || posted == -FI_EAGAIN, "the post");
        unsigned before = bare.sent;
        while (posted == 0 && bare.sent == before) {
            bare.poll();
        }
        return posted == 0;
    };
    auto write = [&] {
        while (!done(fi_write(bare.ep, plain, 8, nullptr, bare.peer, to.bare_address, to.bare_key,
                              nullptr))) {
            bare.poll();
        }
    };
    auto read = [&] {
        while (!done(fi_read(bare.ep, plain, 8, nullptr, bare.peer, to.bare_address, to.bare_key,
                             nullptr))) {
            bare.poll();
        }
    };
    series all[] = {{"uct put_short", {}}, {"uct put_zcopy", {}}, {"fi_write", {}},
                    {"uct get_short", {}}, {"uct get_zcopy", {}}, {"fi_read", {}}};
    for (int i = 0; i <= rounds; ++i) {
        double t[] = {
            measure([&] {
                ++value;
                uct_ep_put_short(ours.ep, &value, 8, to.uct_address, memory.key.rkey);
            }),
            measure([&] {
                ++value;
                uct_ep_put_zcopy(ours.ep, &iov, 1, to.uct_address, memory.key.rkey, nullptr);
            }),
            measure(write),
            measure([&] { uct_ep_get_short(ours.ep, &value, 8, to.uct_address, memory.key.rkey); }),
            measure([&] {
                uct_ep_get_zcopy(ours.ep, &iov, 1, to.uct_address, memory.key.rkey, nullptr);
            }),
            measure(read)};
        for (size_t k = 0; k < std::size(t) && i > 0; ++k) { // the first round warms up
            all[k].times.push_back(t[k]);
        }
    }
    report(all[0], all[2]);
    report(all[1], all[2]);
    report(all[3], all[5]);
    report(all[4], all[5]);
    char end = 0;
    must(::write(oob, &end, 1) == 1, "write");
}

} // namespace
} // namespace uct_bench

int main(int argc, char **argv)
{
    uct_bench::processes both;
    uct_bench::run(argc > 1 ? atoi(argv[1]) : 100, both.first());
    return 0;
}
