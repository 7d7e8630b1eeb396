// SPDX-License-Identifier: BSD-3-Clause
//
// Remote memory access through the provider between two processes: every call, data checked at both
// ends, what is refused, counters, completion levels.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/transports.h"
#include "prov/ucxlike/retired.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace app;

namespace {

constexpr uint64_t all_access = FI_REMOTE_READ | FI_REMOTE_WRITE;

struct over {
    fi_ep_type type;
    const char *transports;
    int mr_mode = 0; // FI_MR_BASIC: addresses and the provider's keys; 0: offsets and our own keys
};

class prov_rma_test : public testing::TestWithParam<over> {
  protected:
    options opt() const
    {
        options o;
        o.type = GetParam().type;
        o.caps = FI_MSG | FI_RMA;
        o.mr_mode = GetParam().mr_mode;
        return o;
    }

    // The target has a region that the initiator may touch and progresses while that one works.
    // Then it looks at the memory, given what the initiator told.
    using initiator = std::function<void(fabric_side &, partner &, const remote &)>;
    using check = std::function<void(fabric_side &, std::vector<char> &)>;

    void run(const options &o, size_t size, const initiator &act, const check &look,
             uint64_t access = all_access, const std::function<void(fabric_side &)> &prepare = {})
    {
        const char *transports = GetParam().transports;
        auto meet = [](fabric_side &s, partner &p, bool server) {
            if (s.opt.type == FI_EP_RDM) {
                s.open_rdm(p);
            } else if (server) {
                s.serve(p);
            } else {
                s.dial(p);
            }
        };
        auto target = [&](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            options mine = o;
            mine.before_enable = prepare;
            fabric_side s(mine);
            meet(s, p, true);
            std::vector<char> memory = pattern(size, 9);
            remote r = s.expose(memory.data(), size, access, 0x77);
            p.tell(&r, sizeof(r));
            s.serve_until_told(p);
            look(s, memory);
            s.barrier(p);
        };
        auto init = [&](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s(o);
            meet(s, p, false);
            remote r;
            p.hear(&r, sizeof(r));
            act(s, p, r);
            p.tell(1);
            s.barrier(p);
        };
        EXPECT_EQ(run_pair(target, init), "");
    }
};

void expect_done(fabric_side &s, void *context, uint64_t flags)
{
    fi_cq_tagged_entry e = s.complete(s.txcq);
    REQUIRE(e.op_context == context);
    REQUIRE_EQ(e.flags, flags | FI_RMA);
}

void expect_error(fabric_side &s, void *context, int error)
{
    fi_cq_err_entry e = {};
    s.complete(s.txcq, &e);
    REQUIRE(e.op_context == context);
    REQUIRE_EQ(e.err, error);
}

TEST_P(prov_rma_test, moves_any_size)
{
    static constexpr size_t sizes[] = {0, 1, 8, 1024, 8193, 65536, 1000003, 4u << 20};
    size_t total = 0;
    for (size_t n : sizes) {
        total += n + 1;
    }
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        uint64_t at = r.address;
        auto before = pattern(total, 9);
        for (size_t n : sizes) {
            std::vector<char> out = pattern(n, 3), in(n + 2, 'x');
            // What is there, then ours, then ours again.
            s.retry([&] { return fi_read(s.ep, in.data(), n, nullptr, s.peer, at, r.key, &in); });
            expect_done(s, &in, FI_READ);
            REQUIRE(memcmp(in.data(), before.data() + (at - r.address), n) == 0);
            s.retry(
                [&] { return fi_write(s.ep, out.data(), n, nullptr, s.peer, at, r.key, &out); });
            expect_done(s, &out, FI_WRITE);
            s.retry([&] { return fi_read(s.ep, in.data(), n, nullptr, s.peer, at, r.key, &in); });
            expect_done(s, &in, FI_READ);
            REQUIRE(!n || memcmp(in.data(), out.data(), n) == 0);
            REQUIRE(in[n] == 'x' && in[n + 1] == 'x');
            at += n + 1;
        }
    };
    auto look = [&](fabric_side &, std::vector<char> &memory) {
        size_t at = 0;
        auto before = pattern(total, 9);
        for (size_t n : sizes) {
            auto want = pattern(n, 3);
            REQUIRE(!n || memcmp(memory.data() + at, want.data(), n) == 0);
            REQUIRE_EQ(memory[at + n], before[at + n]); // the byte between two writes
            at += n + 1;
        }
    };
    run(opt(), total, act, look);
}

TEST_P(prov_rma_test, serves_every_call)
{
    constexpr size_t n = 96, slots = 7;
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        auto piece = [&](unsigned slot) { return pattern(n, 20 + slot); };
        auto at = [&](unsigned slot) { return r.address + slot * n; };
        auto halves = [&](std::vector<char> &v) {
            return std::vector<iovec>{{v.data(), 10}, {nullptr, 0}, {v.data() + 10, n - 10}};
        };
        auto w = piece(0);
        auto fill = [&](unsigned slot) {
            auto v = piece(slot);
            std::copy(v.begin(), v.end(), w.begin());
        };
        s.retry([&] { return fi_write(s.ep, w.data(), n, nullptr, s.peer, at(0), r.key, &w); });
        expect_done(s, &w, FI_WRITE);
        fill(1);
        auto iov = halves(w);
        s.retry([&] {
            return fi_writev(s.ep, iov.data(), nullptr, iov.size(), s.peer, at(1), r.key, &w);
        });
        expect_done(s, &w, FI_WRITE);
        fill(2);
        fi_rma_iov there = {at(2), n, r.key};
        fi_msg_rma m = {iov.data(), nullptr, iov.size(), s.peer, &there, 1, &w, 0x2222};
        s.retry([&] { return fi_writemsg(s.ep, &m, FI_REMOTE_CQ_DATA | FI_COMPLETION); });
        expect_done(s, &w, FI_WRITE);
        // An injected buffer is ours at once.
        fill(3);
        s.retry([&] { return fi_inject_write(s.ep, w.data(), n, s.peer, at(3), r.key); });
        fill(4);
        s.retry([&] {
            return fi_writedata(s.ep, w.data(), n, nullptr, 0x4444, s.peer, at(4), r.key, &w);
        });
        expect_done(s, &w, FI_WRITE); // and none of the injected one
        fill(5);
        s.retry(
            [&] { return fi_inject_writedata(s.ep, w.data(), n, 0x5555, s.peer, at(5), r.key); });
        fill(6);
        there.addr = at(6);
        s.retry([&] { return fi_writemsg(s.ep, &m, FI_INJECT | FI_COMPLETION); });
        std::fill(w.begin(), w.end(), 'y');
        expect_done(s, &w, FI_WRITE);

        std::vector<char> in(n);
        auto to = halves(in);
        for (unsigned slot = 0; slot < slots; ++slot) {
            std::fill(in.begin(), in.end(), 'z');
            there.addr = at(slot);
            fi_msg_rma g = {to.data(), nullptr, to.size(), s.peer, &there, 1, &in, 0};
            s.retry([&] {
                return slot % 3 == 0
                           ? fi_read(s.ep, in.data(), n, nullptr, s.peer, at(slot), r.key, &in)
                       : slot % 3 == 1 ? fi_readv(s.ep, to.data(), nullptr, to.size(), s.peer,
                                                  at(slot), r.key, &in)
                                       : fi_readmsg(s.ep, &g, FI_COMPLETION);
            });
            expect_done(s, &in, FI_READ);
            REQUIRE(in == piece(slot));
        }
        REQUIRE_EQ(fi_cq_read(s.txcq, nullptr, 0), -FI_EAGAIN);
    };
    auto look = [&](fabric_side &s, std::vector<char> &memory) {
        for (unsigned slot = 0; slot < slots; ++slot) {
            REQUIRE(memcmp(memory.data() + slot * n, pattern(n, 20 + slot).data(), n) == 0);
        }
        for (uint64_t data : {0x2222, 0x4444, 0x5555}) {
            fi_cq_tagged_entry e = s.complete(s.rxcq);
            REQUIRE_EQ(e.data, data);
            REQUIRE_EQ(e.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
            REQUIRE_EQ(e.len, n);
        }
        REQUIRE_EQ(fi_cq_read(s.rxcq, nullptr, 0), -FI_EAGAIN);
    };
    run(opt(), n * slots, act, look);
}

// One operation and how it must end.
void attempt(fabric_side &s, bool write, std::vector<char> &buf, uint64_t addr, size_t length,
             uint64_t key, int error)
{
    s.retry([&] {
        return write ? fi_write(s.ep, buf.data(), length, nullptr, s.peer, addr, key, &buf)
                     : fi_read(s.ep, buf.data(), length, nullptr, s.peer, addr, key, &buf);
    });
    if (error) {
        expect_error(s, &buf, error);
    } else {
        expect_done(s, &buf, write ? FI_WRITE : FI_READ);
    }
}

TEST_P(prov_rma_test, refuses_wrong_keys_and_what_lies_outside)
{
    constexpr size_t n = 4096, large = 1 << 20;
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        std::vector<char> buf(large, 'b');
        for (bool write : {false, true}) {
            attempt(s, write, buf, r.address, 8, r.key + 1, FI_ENOKEY);
            attempt(s, write, buf, r.address, 8, ~r.key, FI_ENOKEY);
            attempt(s, write, buf, r.address, n + 1, r.key, FI_EACCES);
            attempt(s, write, buf, r.address, large, r.key, FI_EACCES);
            attempt(s, write, buf, r.address + n, 1, r.key, FI_EACCES);
            attempt(s, write, buf, r.address + n - 1, 2, r.key, FI_EACCES);
            attempt(s, write, buf, r.address - 1, 2, r.key, FI_EACCES);
            attempt(s, write, buf, ~0ull - 3, 8, r.key, FI_EACCES);
            attempt(s, write, buf, r.address + n, 0, r.key, 0); // nothing, at the very end
        }
        REQUIRE(buf == std::vector<char>(large, 'b')); // refused reads touch nothing
        attempt(s, false, buf, r.address, n, r.key, 0);
        REQUIRE(memcmp(buf.data(), pattern(n, 9).data(), n) == 0);
    };
    auto look = [](fabric_side &, std::vector<char> &memory) { REQUIRE(memory == pattern(n, 9)); };
    run(opt(), n, act, look);
}

// One that has to wait for the data of a write before it is refused all the same.
TEST_P(prov_rma_test, logs_few_lines_of_many_refusals)
{
    constexpr int n = 1000;
    const char *transports = GetParam().transports;
    options o = opt();
    auto meet = [&](fabric_side &s, partner &p, bool target) {
        o.type == FI_EP_RDM ? s.open_rdm(p) : target ? s.serve(p) : s.dial(p);
    };
    auto target = [&](partner &p) {
        setenv("FI_UCXLIKE_TLS", transports, 1);
        setenv("FI_LOG_LEVEL", "warn", 1);
        FILE *log = tmpfile();
        int screen = dup(STDERR_FILENO);
        REQUIRE(log && screen >= 0);
        dup2(fileno(log), STDERR_FILENO);
        fabric_side s(o);
        meet(s, p, true);
        s.serve_until_told(p);
        dup2(screen, STDERR_FILENO);
        rewind(log);
        int lines = 0;
        char line[1024];
        while (fgets(line, sizeof(line), log)) {
            lines += strstr(line, "is refused") != nullptr;
        }
        REQUIRE(lines >= 1 && lines <= 20);
        s.barrier(p);
    };
    auto initiator = [&](partner &p) {
        setenv("FI_UCXLIKE_TLS", transports, 1);
        fabric_side s(o);
        meet(s, p, false);
        char byte = 0;
        for (int i = 0; i < n; ++i) {
            s.retry([&] { return fi_write(s.ep, &byte, 1, nullptr, s.peer, 0, 99, nullptr); });
            fi_cq_err_entry error = {};
            s.complete(s.txcq, &error);
            REQUIRE_EQ(error.err, FI_ENOKEY);
        }
        p.tell(1);
        s.barrier(p);
    };
    EXPECT_EQ(run_pair(target, initiator), "");
}

TEST_P(prov_rma_test, refuses_a_large_write_behind_one_under_way)
{
    constexpr size_t n = 4u << 20;
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        auto good = pattern(n, 1), last = pattern(n, 2);
        std::vector<char> bad(n, 'b');
        auto write = [&](std::vector<char> &from, uint64_t key) {
            s.retry([&] {
                return fi_write(s.ep, from.data(), n, nullptr, s.peer, r.address, key, &from);
            });
        };
        write(good, r.key);
        write(bad, r.key + 1);
        write(last, r.key);
        std::vector<const void *> done;
        for (int i = 0; i < 3; ++i) { // in any order
            fi_cq_err_entry error = {};
            fi_cq_tagged_entry e = s.complete(s.txcq, &error);
            REQUIRE_EQ(error.err, error.op_context == &bad ? FI_ENOKEY : 0);
            done.push_back(error.err ? error.op_context : e.op_context);
        }
        std::sort(done.begin(), done.end());
        REQUIRE(std::adjacent_find(done.begin(), done.end()) == done.end());
    };
    auto look = [](fabric_side &, std::vector<char> &memory) { REQUIRE(memory == pattern(n, 2)); };
    run(opt(), n, act, look);
}

TEST_P(prov_rma_test, refuses_what_the_rights_do_not_allow)
{
    constexpr size_t n = 4096;
    for (bool readable : {true, false}) {
        auto act = [&](fabric_side &s, partner &, const remote &r) {
            std::vector<char> buf(n, 'b');
            attempt(s, readable, buf, r.address, 8, r.key, FI_EACCES);
            attempt(s, readable, buf, r.address, n, r.key, FI_EACCES);
            attempt(s, !readable, buf, r.address, n, r.key, 0);
            REQUIRE(buf == (readable ? pattern(n, 9) : std::vector<char>(n, 'b')));
        };
        auto look = [&](fabric_side &, std::vector<char> &memory) {
            REQUIRE(memory == (readable ? pattern(n, 9) : std::vector<char>(n, 'b')));
        };
        run(opt(), n, act, look, readable ? FI_REMOTE_READ : FI_REMOTE_WRITE);
    }
}

TEST_P(prov_rma_test, ends_access_with_the_region)
{
    constexpr size_t n = 64;
    auto act = [&](fabric_side &s, partner &p, const remote &r) {
        std::vector<char> buf(n, 'b');
        attempt(s, true, buf, r.address, n, r.key, 0);
        p.tell(2);
        REQUIRE_EQ(p.hear(), 3u); // the region is gone
        attempt(s, true, buf, r.address, n, r.key, FI_ENOKEY);
        attempt(s, false, buf, r.address, n, r.key, FI_ENOKEY);
    };
    const char *transports = GetParam().transports;
    options o = opt();
    auto role_of = [&](bool target) {
        return [&, target](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s(o);
            o.type == FI_EP_RDM ? s.open_rdm(p) : target ? s.serve(p) : s.dial(p);
            std::vector<char> memory(n, 'm');
            remote r;
            if (target) {
                r = s.expose(memory.data(), n, all_access);
                p.tell(&r, sizeof(r));
                REQUIRE_EQ(s.serve_until_told(p), 2u);
                s.hide();
                memory.assign(n, 'm');
                p.tell(3);
                s.serve_until_told(p);
                REQUIRE(memory == std::vector<char>(n, 'm'));
            } else {
                p.hear(&r, sizeof(r));
                act(s, p, r);
                p.tell(1);
            }
            s.barrier(p);
        };
    };
    EXPECT_EQ(run_pair(role_of(true), role_of(false)), "");
}

// A region is closed while a large write moves into it.
class prov_rma_close_test : public prov_rma_test {
  protected:
    static constexpr size_t size = (sanitized ? 16 : 64) << 20;
    static constexpr char before = 'm';

    // The target acts when the write has begun; the initiator, after it was told to go on.
    using target_role =
        std::function<void(fabric_side &, partner &, std::vector<char> &, fid_mr *)>;
    void run_write(const target_role &act, bool moves_on)
    {
        const char *transports = GetParam().transports;
        options o = opt();
        auto meet = [&](fabric_side &s, partner &p, bool target) {
            o.type == FI_EP_RDM ? s.open_rdm(p) : target ? s.serve(p) : s.dial(p);
        };
        auto target = [&](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s(o);
            meet(s, p, true);
            std::vector<char> memory(size, before);
            fid_mr *mr = nullptr;
            REQUIRE_EQ(
                fi_mr_reg(s.domain, memory.data(), size, all_access, 0, 0x77, 0, &mr, nullptr), 0);
            remote r = {o.mr_mode ? reinterpret_cast<uintptr_t>(memory.data()) : 0, fi_mr_key(mr)};
            p.tell(&r, sizeof(r));
            const volatile char *first = memory.data();
            while (*first == before) {
                s.progress();
            }
            act(s, p, memory, mr);
            s.barrier(p);
        };
        auto initiator = [&](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s(o);
            meet(s, p, false);
            remote r;
            p.hear(&r, sizeof(r));
            std::vector<char> data(size, 'w');
            s.retry([&] {
                return fi_write(s.ep, data.data(), size, nullptr, s.peer, r.address, r.key,
                                nullptr);
            });
            if (!moves_on) {
                s.serve_until_told(p); // and no progress from here until it is told again
                p.tell(2);
                p.hear();
            }
            s.complete(s.txcq);
            p.tell(3);
            s.barrier(p);
        };
        EXPECT_EQ(run_pair(target, initiator), "");
    }
};

TEST_P(prov_rma_close_test, waits_for_the_access)
{
    run_write(
        [](fabric_side &s, partner &p, std::vector<char> &memory, fid_mr *mr) {
            setenv("FI_UCXLIKE_CLOSE_TIMEOUT", "60000", 1);
            REQUIRE_EQ(fi_close(&mr->fid), 0);
            std::vector<char> then = memory;
            REQUIRE_EQ(s.serve_until_told(p), 3u);
            REQUIRE(memory == then);
        },
        true);
}

// The initiator does nothing for the write to go on.
TEST_P(prov_rma_close_test, is_busy_while_an_access_hangs)
{
    run_write(
        [](fabric_side &s, partner &p, std::vector<char> &memory, fid_mr *mr) {
            p.tell(1);
            REQUIRE_EQ(p.hear(), 2u);
            bool all = memory.back() == 'w';
            int closed = fi_close(&mr->fid);
            REQUIRE_EQ(closed, all || memory.back() == 'w' ? 0 : -FI_EBUSY);
            p.tell(1);
            REQUIRE_EQ(s.serve_until_told(p), 3u);
            if (closed) {
                REQUIRE_EQ(fi_close(&mr->fid), 0);
            }
            REQUIRE(memory == std::vector<char>(size, 'w'));
        },
        false);
}

TEST_P(prov_rma_test, counts)
{
    constexpr size_t n = 100000;
    constexpr int times = 20;
    fid_cntr *writes = nullptr, *reads = nullptr;
    options o = opt();
    o.before_enable = [&](fabric_side &s) {
        writes = s.counter_of(FI_WRITE);
        reads = s.counter_of(FI_READ);
    };
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        std::vector<char> buf(n, 'c');
        for (int i = 0; i < times; ++i) {
            // Large and small ones, with and without a completion.
            size_t length = i & 1 ? n : 8;
            s.retry([&] {
                return fi_write(s.ep, buf.data(), length, nullptr, s.peer, r.address, r.key, &buf);
            });
            s.retry([&] { return fi_inject_write(s.ep, buf.data(), 8, s.peer, r.address, r.key); });
            s.retry([&] {
                return fi_read(s.ep, buf.data(), length, nullptr, s.peer, r.address, r.key, &buf);
            });
        }
        REQUIRE_EQ(fi_cntr_wait(writes, 2 * times, patience_ms), 0);
        REQUIRE_EQ(fi_cntr_wait(reads, times, patience_ms), 0);
        REQUIRE_EQ(fi_cntr_read(writes), 2u * times);
        REQUIRE_EQ(fi_cntr_read(reads), 1u * times);
        REQUIRE_EQ(fi_cntr_wait(reads, times + 1, 20), -FI_ETIMEDOUT);
        s.retry([&] {
            return fi_read(s.ep, buf.data(), n, nullptr, s.peer, r.address, r.key + 1, nullptr);
        });
        REQUIRE_EQ(fi_cntr_wait(reads, times + 1, patience_ms), -FI_EAVAIL);
        REQUIRE_EQ(fi_cntr_readerr(reads), 1u);
        REQUIRE_EQ(fi_cntr_readerr(writes), 0u);
        REQUIRE_EQ(fi_cntr_read(reads), 1u * times);
    };
    fid_cntr *written = nullptr, *fetched = nullptr;
    auto prepare = [&](fabric_side &s) {
        written = s.counter_of(FI_REMOTE_WRITE);
        fetched = s.counter_of(FI_REMOTE_READ);
    };
    auto look = [&](fabric_side &, std::vector<char> &) {
        REQUIRE_EQ(fi_cntr_read(written), 2u * times);
        REQUIRE_EQ(fi_cntr_read(fetched), 1u * times);
        REQUIRE_EQ(fi_cntr_readerr(fetched), 0u);
    };
    run(o, n, act, look, all_access, prepare);
}

// When a write with FI_DELIVERY_COMPLETE is complete, the data is there, whatever the target does.
TEST_P(prov_rma_test, a_completed_write_has_landed)
{
    constexpr size_t n = 300000;
    options o = opt();
    o.tx_op_flags = FI_DELIVERY_COMPLETE;
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        auto large = pattern(n, 1), small = pattern(16, 2);
        s.retry([&] {
            return fi_write(s.ep, large.data(), n, nullptr, s.peer, r.address, r.key, &large);
        });
        s.retry([&] {
            return fi_write(s.ep, small.data(), 16, nullptr, s.peer, r.address + n, r.key, &small);
        });
        expect_done(s, &large, FI_WRITE);
        expect_done(s, &small, FI_WRITE);
    };
    auto look = [&](fabric_side &, std::vector<char> &memory) {
        REQUIRE(memcmp(memory.data(), pattern(n, 1).data(), n) == 0);
        REQUIRE(memcmp(memory.data() + n, pattern(16, 2).data(), 16) == 0);
    };
    run(o, n + 16, act, look);
}

// A message behind a write is received when the write can be seen; a read behind a write sees it.
TEST_P(prov_rma_test, keeps_the_order_of_writes_reads_and_messages)
{
    constexpr size_t n = 200000;
    constexpr unsigned rounds = 10;
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        for (unsigned i = 0; i < rounds; ++i) {
            auto out = pattern(n, 50 + i);
            std::vector<char> in(n);
            s.retry([&] {
                return fi_write(s.ep, out.data(), n, nullptr, s.peer, r.address, r.key, &out);
            });
            s.retry([&] {
                return fi_read(s.ep, in.data(), n, nullptr, s.peer, r.address, r.key, &in);
            });
            s.retry([&] { return fi_inject(s.ep, &i, sizeof(i), s.peer); });
            expect_done(s, &out, FI_WRITE);
            expect_done(s, &in, FI_READ);
            REQUIRE(in == out);
            char go;
            s.retry([&] { return fi_recv(s.ep, &go, 1, nullptr, s.peer, &go); });
            s.complete(s.rxcq);
        }
    };
    const char *transports = GetParam().transports;
    options o = opt();
    auto role_of = [&](bool target) {
        return [&, target](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s(o);
            o.type == FI_EP_RDM ? s.open_rdm(p) : target ? s.serve(p) : s.dial(p);
            std::vector<char> memory(n);
            remote r;
            if (target) {
                r = s.expose(memory.data(), n, all_access);
                p.tell(&r, sizeof(r));
                for (unsigned i = 0; i < rounds; ++i) {
                    unsigned got = ~0u;
                    s.retry([&] { return fi_recv(s.ep, &got, sizeof(got), nullptr, 0, &got); });
                    s.complete(s.rxcq);
                    REQUIRE_EQ(got, i);
                    REQUIRE(memory == pattern(n, 50 + i));
                    s.retry([&] { return fi_inject(s.ep, "", 1, s.peer); });
                }
                s.serve_until_told(p);
            } else {
                p.hear(&r, sizeof(r));
                act(s, p, r);
                p.tell(1);
            }
            s.barrier(p);
        };
    };
    EXPECT_EQ(run_pair(role_of(true), role_of(false)), "");
}

TEST_P(prov_rma_test, completes_selectively)
{
    options o = opt();
    o.tx_bind = FI_TRANSMIT | FI_SELECTIVE_COMPLETION;
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        char buf[8] = "1234567";
        s.retry([&] { return fi_write(s.ep, buf, 8, nullptr, s.peer, r.address, r.key, &s); });
        s.retry([&] { return fi_read(s.ep, buf, 8, nullptr, s.peer, r.address, r.key, &s); });
        iovec iov = {buf, 8};
        fi_rma_iov there = {r.address, 8, r.key};
        fi_msg_rma m = {&iov, nullptr, 1, s.peer, &there, 1, buf, 0};
        s.retry([&] { return fi_writemsg(s.ep, &m, 0); });
        s.retry([&] { return fi_writemsg(s.ep, &m, FI_COMPLETION); });
        expect_done(s, buf, FI_WRITE);
        // One that fails is reported unasked.
        s.retry([&] { return fi_write(s.ep, buf, 8, nullptr, s.peer, r.address, r.key + 1, &o); });
        expect_error(s, &o, FI_ENOKEY);
        REQUIRE_EQ(fi_cq_read(s.txcq, nullptr, 0), -FI_EAGAIN);
    };
    run(o, 8, act, [](fabric_side &, std::vector<char> &memory) {
        REQUIRE(memcmp(memory.data(), "1234567", 8) == 0);
    });
}

TEST_P(prov_rma_test, wrong_arguments_are_invalid)
{
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        std::vector<char> large(1 << 20);
        iovec iov[9] = {};
        fi_rma_iov there[2] = {{r.address, 0, r.key}, {r.address, 0, r.key}};
        fi_msg_rma m = {iov, nullptr, 1, s.peer, there, 2, nullptr, 0};
        REQUIRE_EQ(fi_writev(s.ep, iov, nullptr, 9, s.peer, r.address, r.key, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_readv(s.ep, nullptr, nullptr, 1, s.peer, r.address, r.key, nullptr),
                   -FI_EINVAL);
        REQUIRE_EQ(fi_inject_write(s.ep, large.data(), large.size(), s.peer, r.address, r.key),
                   -FI_EINVAL);
        REQUIRE_EQ(fi_writemsg(s.ep, nullptr, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_writemsg(s.ep, &m, 0), -FI_EINVAL);
        m.rma_iov_count = 1;
        iov[0] = {large.data(), large.size()};
        REQUIRE_EQ(fi_writemsg(s.ep, &m, FI_INJECT), -FI_EINVAL);
        if (s.opt.type == FI_EP_RDM) {
            REQUIRE_EQ(fi_read(s.ep, large.data(), 1, nullptr, 99, r.address, r.key, nullptr),
                       -FI_EINVAL);
        }
        REQUIRE_EQ(fi_cq_read(s.txcq, nullptr, 0), -FI_EAGAIN);
    };
    run(opt(), 8, act,
        [](fabric_side &, std::vector<char> &memory) { REQUIRE(memory == pattern(8, 9)); });
}

// What registration itself refuses.
TEST_P(prov_rma_test, registers_one_buffer_under_a_key_of_its_own)
{
    options o = opt();
    auto alone = [&](partner &) {
        fabric_side s(o);
        char buf[2][64];
        fid_mr *a = nullptr, *b = nullptr;
        REQUIRE_EQ(fi_mr_reg(s.domain, buf[0], 64, all_access, 0, 7, 0, &a, nullptr), 0);
        int second = fi_mr_reg(s.domain, buf[1], 64, all_access, 0, 7, 0, &b, nullptr);
        if (s.info->domain_attr->mr_mode ==
            ucxlike::retired::mr_basic) { // the provider chooses keys
            REQUIRE_EQ(second, 0);
            // A peer with one key does not find the other by counting.
            uint64_t apart = fi_mr_key(a) - fi_mr_key(b);
            REQUIRE(std::min(apart, -apart) > 1u << 20);
            REQUIRE_EQ(fi_close(&b->fid), 0);
        } else {
            REQUIRE_EQ(second, -FI_ENOKEY);
            REQUIRE_EQ(fi_mr_key(a), 7u);
        }
        iovec two[2] = {{buf[0], 64}, {buf[1], 64}};
        REQUIRE_EQ(fi_mr_regv(s.domain, two, 2, all_access, 0, 8, 0, &b, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_mr_regv(s.domain, two, 1, all_access, 0, 8, 0, &b, nullptr), 0);
        REQUIRE_EQ(fi_close(&s.domain->fid), -FI_EBUSY);
        REQUIRE_EQ(fi_close(&a->fid), 0);
        REQUIRE_EQ(fi_close(&b->fid), 0);
        REQUIRE_EQ(fi_mr_regattr(s.domain, nullptr, 0, &b), -FI_EINVAL);
        REQUIRE_EQ(fi_mr_reg(s.domain, buf, 64, all_access, 0, 9, 0, nullptr, nullptr), -FI_EINVAL);
    };
    EXPECT_EQ(run_pair(alone, [](partner &) {}), "");
}

std::string name_of(const testing::TestParamInfo<over> &i)
{
    return std::string(i.param.type == FI_EP_RDM ? "rdm_" : "msg_") +
           prov_test::first_transport(i.param.transports) + "_" +
           (i.param.mr_mode ? "address" : "offset");
}

// Every other one with the provider's keys.
std::vector<over> fabrics()
{
    auto all = prov_test::endpoints_over<over>({FI_EP_RDM, FI_EP_MSG});
    for (size_t i = 0; i < all.size(); i += 2) {
        all[i].mr_mode = ucxlike::retired::mr_basic;
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(, prov_rma_test, testing::ValuesIn(fabrics()), name_of);
INSTANTIATE_TEST_SUITE_P(, prov_rma_close_test, testing::ValuesIn(fabrics()), name_of);

} // namespace
