// SPDX-License-Identifier: BSD-3-Clause
//
// Completion queues, event queues and counters: formats, waiting in every way, wait and poll sets,
// which queue progresses what.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/transports.h"

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <thread>
#include <unistd.h>

// Calls that libfabric 2.x calls deprecated are still served.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

using namespace app;

namespace {

// The set that takes no more descriptors.
int full_set = -1;

// The set whose changes are counted.
int counted_set = -1;
std::atomic<int> changes = 0;

// Looks of this thread at sets of descriptors.
thread_local int looks = 0;

} // namespace

// The kernel's limit of watched descriptors is the whole system's: reached here instead.
extern "C" __attribute__((visibility("default"))) int epoll_ctl(int set, int op, int fd,
                                                                epoll_event *event) noexcept
{
    if (op == EPOLL_CTL_ADD && set == full_set) {
        errno = ENOSPC;
        return -1;
    }
    if (set == counted_set) {
        ++changes;
    }
    static auto *next = reinterpret_cast<decltype(&epoll_ctl)>(dlsym(RTLD_NEXT, "epoll_ctl"));
    return next(set, op, fd, event);
}

extern "C" __attribute__((visibility("default"))) int epoll_wait(int set, epoll_event *events,
                                                                 int count, int timeout)
{
    ++looks;
    static auto *next = reinterpret_cast<decltype(&epoll_wait)>(dlsym(RTLD_NEXT, "epoll_wait"));
    return next(set, events, count, timeout);
}

namespace {

using clock = std::chrono::steady_clock;

void in_a_process(const role &r)
{
    EXPECT_EQ(run_pair(r, [](partner &) {}), "");
}

// An endpoint whose peer is itself.
struct loop : fabric_side {
    explicit loop(const options &o) : fabric_side(o)
    {
        open_active(info);
        sockaddr_in name;
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&ep->fid, &name, &length), 0);
        REQUIRE_EQ(fi_av_insert(av, &name, 1, &peer, 0, nullptr), 1);
    }
    void receive(void *buf, size_t n, void *context)
    {
        retry([&] { return fi_trecv(ep, buf, n, nullptr, FI_ADDR_UNSPEC, 5, 0, context); });
    }
    void send(const void *buf, size_t n)
    {
        retry([&] { return fi_tinject(ep, buf, n, peer, 5); });
    }
};

void close_all(std::initializer_list<fid *> objects)
{
    for (fid *f : objects) {
        REQUIRE_EQ(fi_close(f), 0);
    }
}

options with_wait(fi_wait_obj wait)
{
    options o;
    o.wait = wait;
    return o;
}

TEST(prov_queue_test, every_format_tells_its_fields)
{
    in_a_process([](partner &) {
        for (fi_cq_format f : {FI_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG,
                               FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED}) {
            options o;
            o.format = f;
            loop s(o);
            char in[2][16];
            for (char *b : in) {
                s.receive(b, 16, b);
            }
            for (int i = 0; i < 2; ++i) {
                s.retry(
                    [&] { return fi_tinjectdata(s.ep, "0123456789", 10, 0xd0d0 + i, s.peer, 5); });
            }
            static const size_t sizes[] = {sizeof(fi_cq_entry), sizeof(fi_cq_entry),
                                           sizeof(fi_cq_msg_entry), sizeof(fi_cq_data_entry),
                                           sizeof(fi_cq_tagged_entry)};
            // Two entries side by side, and nothing behind them.
            char raw[3 * sizeof(fi_cq_tagged_entry)];
            memset(raw, 0x5a, sizeof(raw));
            size_t size = sizes[f], got = 0;
            auto end = clock::now() + patience;
            while (got < 2) {
                ssize_t n = fi_cq_read(s.rxcq, raw + got * size, 2 - got);
                REQUIRE(n > 0 || n == -FI_EAGAIN);
                got += n > 0 ? static_cast<size_t>(n) : 0;
                REQUIRE(clock::now() < end);
            }
            for (int i = 0; i < 2; ++i) {
                fi_cq_tagged_entry e = {};
                memcpy(&e, raw + i * size, size);
                REQUIRE(e.op_context == in[i]);
                if (f >= FI_CQ_FORMAT_MSG) {
                    REQUIRE_EQ(e.len, 10u);
                    REQUIRE_EQ(e.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
                }
                if (f >= FI_CQ_FORMAT_DATA) {
                    REQUIRE(e.buf == in[i]);
                    REQUIRE_EQ(e.data, 0xd0d0u + i);
                }
                if (f >= FI_CQ_FORMAT_TAGGED) {
                    REQUIRE_EQ(e.tag, 5u);
                }
            }
            for (size_t i = 2 * size; i < sizeof(raw); ++i) {
                REQUIRE_EQ(raw[i], 0x5a);
            }
        }
    });
}

TEST(prov_queue_test, loses_nothing_when_read_too_slowly)
{
    in_a_process([](partner &) {
        options o;
        o.cq_size = 4;
        loop s(o);
        constexpr int n = 300;
        int values[n];
        for (int i = 0; i < n; ++i) {
            s.receive(&values[i], sizeof(int), &values[i]);
        }
        for (int i = 0; i < n; ++i) {
            s.send(&i, sizeof(i));
        }
        for (int i = 0; i < n; ++i) {
            REQUIRE(s.complete(s.rxcq).op_context == &values[i]);
            REQUIRE_EQ(values[i], i);
        }
    });
}

TEST(prov_queue_test, offers_the_wait_objects_it_names)
{
    in_a_process([](partner &) {
        for (fi_wait_obj w : {FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD}) {
            loop s(with_wait(w));
            fid_cntr *c = s.counter(w);
            fid_eq *eq = nullptr;
            fi_eq_attr ea = {};
            ea.wait_obj = w;
            REQUIRE_EQ(fi_eq_open(s.fabric, &ea, &eq, nullptr), 0);
            bool has_fd = w == FI_WAIT_FD || w == FI_WAIT_UNSPEC;
            for (fid *f : {&s.rxcq->fid, &c->fid, &eq->fid}) {
                int fd = -1;
                REQUIRE_EQ(fi_control(f, FI_GETWAIT, &fd), has_fd ? 0 : -FI_ENODATA);
                REQUIRE_EQ(fcntl(fd, F_GETFD) >= 0, has_fd);
                fi_wait_obj kind;
                REQUIRE_EQ(fi_control(f, FI_GETWAITOBJ, &kind), 0);
                REQUIRE_EQ(kind, w == FI_WAIT_UNSPEC ? FI_WAIT_FD : w);
                REQUIRE_EQ(fi_control(f, FI_GETWAIT, nullptr), -FI_EINVAL);
                REQUIRE_EQ(fi_control(f, 9999, &kind), -FI_ENOSYS);
            }
            char buf[8];
            fi_cq_tagged_entry e;
            uint32_t type;
            if (w == FI_WAIT_NONE) {
                REQUIRE_EQ(fi_cq_sread(s.rxcq, &e, 1, nullptr, 0), -FI_EINVAL);
                REQUIRE_EQ(fi_cq_signal(s.rxcq), -FI_EINVAL);
                REQUIRE_EQ(fi_eq_sread(eq, &type, buf, 8, 0, 0), -FI_EINVAL);
            } else {
                s.receive(buf, 8, buf);
                s.send("abcdefg", 8);
                REQUIRE_EQ(fi_cq_sread(s.rxcq, &e, 1, nullptr, patience_ms), 1);
                REQUIRE(e.op_context == buf && !strcmp(buf, "abcdefg"));
                REQUIRE_EQ(fi_eq_sread(eq, &type, buf, 8, 10, 0), -FI_EAGAIN);
            }
            REQUIRE_EQ(fi_close(&eq->fid), 0);
        }
        fabric_side s({});
        fi_cq_attr ca = {};
        fi_eq_attr ea = {};
        fi_cntr_attr na = {};
        fid_cq *cq;
        fid_eq *eq;
        fid_cntr *c;
        for (fi_wait_obj w : {FI_WAIT_MUTEX_COND, FI_WAIT_POLLFD}) {
            ca.wait_obj = ea.wait_obj = na.wait_obj = w;
            REQUIRE_EQ(fi_cq_open(s.domain, &ca, &cq, nullptr), -FI_ENOSYS);
            REQUIRE_EQ(fi_eq_open(s.fabric, &ea, &eq, nullptr), -FI_ENOSYS);
            REQUIRE_EQ(fi_cntr_open(s.domain, &na, &c, nullptr), -FI_ENOSYS);
        }
        ca.wait_obj = ea.wait_obj = na.wait_obj = FI_WAIT_SET; // which set?
        REQUIRE_EQ(fi_cq_open(s.domain, &ca, &cq, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_eq_open(s.fabric, &ea, &eq, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_cntr_open(s.domain, &na, &c, nullptr), -FI_EINVAL);
        REQUIRE_EQ(fi_trywait(s.fabric, nullptr, 1), -FI_EINVAL);
        fid *wrong[] = {&s.domain->fid};
        REQUIRE_EQ(fi_trywait(s.fabric, wrong, 1), -FI_EINVAL);
    });
}

// sread's condition, its time limit (never early), and fi_cq_signal from another thread.
TEST(prov_queue_test, sleeps_until_enough_or_time_or_signal)
{
    in_a_process([](partner &) {
        options o = with_wait(FI_WAIT_UNSPEC);
        loop s(o);
        fi_cq_tagged_entry e[8];
        auto start = clock::now();
        REQUIRE_EQ(fi_cq_sread(s.rxcq, e, 8, nullptr, 60), -FI_EAGAIN);
        REQUIRE(clock::now() - start >= std::chrono::milliseconds(60));
        REQUIRE_EQ(fi_cq_sread(s.rxcq, e, 8, nullptr, 0), -FI_EAGAIN);

        std::atomic<bool> awake{false};
        std::thread sleeper([&] {
            REQUIRE_EQ(fi_cq_sread(s.rxcq, e, 8, nullptr, -1), -FI_EAGAIN);
            awake = true;
        });
        while (!awake) { // it may not sleep yet: a signal before that ends the sleep as well
            REQUIRE_EQ(fi_cq_signal(s.rxcq), 0);
            usleep(1000);
        }
        sleeper.join();
        while (fi_cq_sread(s.rxcq, e, 1, nullptr, 0) != -FI_EAGAIN) {
        }
    });
}

// A sleeper would miss what the queue cannot watch.
TEST(prov_queue_test, nobody_sleeps_when_the_kernel_refuses_a_descriptor)
{
    in_a_process([](partner &) {
        options o = with_wait(FI_WAIT_FD);
        o.before_enable = [](fabric_side &s) {
            REQUIRE_EQ(fi_control(&s.rxcq->fid, FI_GETWAIT, &full_set), 0);
        };
        loop s(o);
        full_set = -1;
        fid_t waited[] = {&s.rxcq->fid};
        REQUIRE_EQ(fi_trywait(s.fabric, waited, 1), -FI_ENOSPC);
        fi_cq_tagged_entry e;
        REQUIRE_EQ(fi_cq_sread(s.rxcq, &e, 1, nullptr, -1), -FI_ENOSPC);

        char in[8], out[8] = "still";
        s.receive(in, 8, in);
        s.send(out, 8);
        ssize_t n;
        while ((n = fi_cq_read(s.rxcq, &e, 1)) == -FI_EAGAIN) {
        }
        REQUIRE_EQ(n, 1);
        REQUIRE_EQ(memcmp(in, out, 8), 0);
    });
}

// Connections come and go; what drives them stays.
TEST(prov_queue_test, connections_do_not_touch_the_descriptor)
{
    in_a_process([](partner &) {
        options o = with_wait(FI_WAIT_FD);
        o.type = FI_EP_MSG;
        fabric_side s(o);
        s.open_active(s.info);
        s.close_active();
        REQUIRE_EQ(fi_control(&s.rxcq->fid, FI_GETWAIT, &counted_set), 0);
        for (int i = 0; i < 10; ++i) {
            s.open_active(s.info);
            s.close_active();
        }
        counted_set = -1;
        REQUIRE_EQ(changes.load(), 0);
    });
}

TEST(prov_queue_test, an_event_that_is_there_is_read_without_a_look_at_the_network)
{
    auto reader = [](partner &p) {
        setenv("FI_UCXLIKE_TLS", "tcp", 1);
        options o;
        o.type = FI_EP_MSG;
        fabric_side s(o);
        s.listen(p);
        sockaddr_in name;
        size_t length = sizeof(name);
        REQUIRE_EQ(fi_getname(&s.pep->fid, &name, &length), 0);
        s.open_active(s.info);
        REQUIRE_EQ(fi_connect(s.ep, &name, nullptr, 0), 0);
        fi_eq_cm_entry entry;
        uint32_t type;
        looks = 0;
        auto end = clock::now() + patience;
        while (fi_eq_read(s.eq, &type, &entry, sizeof(entry), FI_PEEK) == -FI_EAGAIN) {
            REQUIRE(clock::now() < end);
        }
        REQUIRE(looks > 0);
        looks = 0;
        REQUIRE(fi_eq_read(s.eq, &type, &entry, sizeof(entry), 0) > 0);
        REQUIRE_EQ(looks, 0);
        REQUIRE_EQ(type, static_cast<uint32_t>(FI_CONNREQ));
        fi_info *request = entry.info;
        REQUIRE_EQ(fi_reject(s.pep, request->handle, nullptr, 0), 0);
        fi_freeinfo(request);
        s.close_active();
    };
    sockaddr_in name;
    EXPECT_EQ(run_pair(reader, [&](partner &p) { p.hear(&name, sizeof(name)); }), "");
}

TEST(prov_queue_test, a_threshold_waits_for_that_many)
{
    in_a_process([](partner &) {
        options o;
        fid_cq *many = nullptr;
        o.rx_bind = FI_RECV;
        fabric_side s(o);
        fi_cq_attr a = {};
        a.format = FI_CQ_FORMAT_TAGGED;
        a.wait_obj = FI_WAIT_FD;
        a.wait_cond = FI_CQ_COND_THRESHOLD;
        REQUIRE_EQ(fi_cq_open(s.domain, &a, &many, nullptr), 0);
        std::swap(many, s.rxcq);
        s.open_active(s.info);
        sockaddr_in name;
        size_t length = sizeof(name), want = 5;
        REQUIRE_EQ(fi_getname(&s.ep->fid, &name, &length), 0);
        REQUIRE_EQ(fi_av_insert(s.av, &name, 1, &s.peer, 0, nullptr), 1);
        char buf[8];
        for (int i = 0; i < 5; ++i) {
            s.retry([&] { return fi_trecv(s.ep, buf, 8, nullptr, s.peer, 5, 0, &s); });
        }
        std::thread sender([&] {
            for (int i = 0; i < 5; ++i) {
                usleep(3000);
                while (fi_tinject(s.ep, "x", 1, s.peer, 5) == -FI_EAGAIN) {
                    fi_cq_read(s.txcq, nullptr, 0);
                }
            }
        });
        fi_cq_tagged_entry e[8];
        REQUIRE_EQ(fi_cq_sread(s.rxcq, e, 8, &want, patience_ms), 5);
        sender.join();
        s.close_active();
        std::swap(many, s.rxcq);
        REQUIRE_EQ(fi_close(&many->fid), 0);
    });
}

TEST(prov_queue_test, orders_errors_among_completions)
{
    in_a_process([](partner &) {
        loop s(options{});
        char small[4], large[16], other[16];
        s.receive(large, 16, large);
        s.receive(small, 4, small);
        s.receive(other, 16, other);
        for (int i = 0; i < 3; ++i) {
            s.send("0123456789", 10);
        }
        REQUIRE(s.complete(s.rxcq).op_context == large);
        fi_cq_err_entry err = {};
        REQUIRE_EQ(fi_cq_readerr(s.rxcq, nullptr, 0), -FI_EINVAL);
        s.complete(s.rxcq, &err);
        REQUIRE(err.op_context == small);
        REQUIRE_EQ(err.err, FI_ETRUNC);
        REQUIRE_EQ(err.len, 4u);
        REQUIRE_EQ(err.olen, 6u);
        REQUIRE_EQ(err.tag, 5u);
        REQUIRE_EQ(err.err_data_size, 0u);
        REQUIRE(fi_cq_strerror(s.rxcq, err.prov_errno, nullptr, nullptr, 0));
        REQUIRE(s.complete(s.rxcq).op_context == other);
        REQUIRE_EQ(fi_cq_readerr(s.rxcq, &err, 0), -FI_EAGAIN);
    });
}

TEST(prov_queue_test, an_event_queue_keeps_the_applications_events)
{
    in_a_process([](partner &) {
        fabric_side s({});
        fi_eq_attr a = {};
        a.wait_obj = FI_WAIT_FD;
        a.flags = FI_WRITE;
        fid_eq *eq = nullptr;
        REQUIRE_EQ(fi_eq_open(s.fabric, &a, &eq, nullptr), 0);
        fi_eq_entry e = {};
        uint32_t type = 0;
        for (uint32_t i = 0; i < 5; ++i) {
            e.data = i;
            REQUIRE_EQ(fi_eq_write(eq, FI_NOTIFY + i, &e, sizeof(e), 0),
                       static_cast<ssize_t>(sizeof(e)));
        }
        for (uint32_t i = 0; i < 5; ++i) {
            fi_eq_entry got = {};
            for (uint64_t flags : {FI_PEEK, 0ull}) {
                REQUIRE_EQ(fi_eq_read(eq, &type, &got, sizeof(got), flags),
                           static_cast<ssize_t>(sizeof(got)));
                REQUIRE_EQ(type, FI_NOTIFY + i);
                REQUIRE_EQ(got.data, i);
            }
        }
        REQUIRE_EQ(fi_eq_read(eq, &type, &e, sizeof(e), 0), -FI_EAGAIN);
        fi_eq_err_entry err = {};
        REQUIRE_EQ(fi_eq_readerr(eq, &err, 0), -FI_EAGAIN);
        auto start = clock::now();
        REQUIRE_EQ(fi_eq_sread(eq, &type, &e, sizeof(e), 60, 0), -FI_EAGAIN);
        REQUIRE(clock::now() - start >= std::chrono::milliseconds(60));
        std::thread writer([&] {
            usleep(5000);
            REQUIRE_EQ(fi_eq_write(eq, 77, &e, sizeof(e), 0), static_cast<ssize_t>(sizeof(e)));
        });
        REQUIRE_EQ(fi_eq_sread(eq, &type, &e, sizeof(e), patience_ms, 0),
                   static_cast<ssize_t>(sizeof(e)));
        REQUIRE_EQ(type, 77u);
        writer.join();
        REQUIRE_EQ(fi_eq_read(eq, nullptr, &e, sizeof(e), 0), -FI_EINVAL);
        REQUIRE_EQ(fi_close(&eq->fid), 0);
        a.flags = 0;
        REQUIRE_EQ(fi_eq_open(s.fabric, &a, &eq, nullptr), 0);
        REQUIRE_EQ(fi_eq_write(eq, 77, &e, sizeof(e), 0), -FI_EINVAL);
        REQUIRE_EQ(fi_close(&eq->fid), 0);
    });
}

TEST(prov_queue_test, a_counter_can_be_set_and_waited_for)
{
    in_a_process([](partner &) {
        fabric_side s({});
        fid_cntr *c = s.counter();
        REQUIRE_EQ(fi_cntr_read(c), 0u);
        REQUIRE_EQ(fi_cntr_set(c, 5), 0);
        REQUIRE_EQ(fi_cntr_add(c, 2), 0);
        REQUIRE_EQ(fi_cntr_read(c), 7u);
        REQUIRE_EQ(fi_cntr_wait(c, 7, 0), 0);
        auto start = clock::now();
        REQUIRE_EQ(fi_cntr_wait(c, 8, 60), -FI_ETIMEDOUT);
        REQUIRE(clock::now() - start >= std::chrono::milliseconds(60));
        std::thread other([&] {
            usleep(5000);
            REQUIRE_EQ(fi_cntr_add(c, 1), 0);
        });
        REQUIRE_EQ(fi_cntr_wait(c, 8, -1), 0);
        other.join();
        std::atomic<bool> awake{false};
        uint64_t errors = 0;
        other = std::thread([&] {
            for (; !awake; ++errors) { // one from before the call does not end it
                REQUIRE_EQ(fi_cntr_adderr(c, 1), 0);
                usleep(5000);
            }
        });
        REQUIRE_EQ(fi_cntr_wait(c, 9, -1), -FI_EAVAIL);
        awake = true;
        other.join();
        REQUIRE_EQ(fi_cntr_readerr(c), errors);
        REQUIRE_EQ(fi_cntr_seterr(c, 9), 0);
        REQUIRE_EQ(fi_cntr_readerr(c), 9u);
        fid_cntr *none = s.counter(FI_WAIT_NONE);
        REQUIRE_EQ(fi_cntr_wait(none, 1, 10), -FI_ETIMEDOUT);
        fi_cntr_attr bad = {};
        bad.events = static_cast<fi_cntr_events>(9);
        REQUIRE_EQ(fi_cntr_open(s.domain, &bad, &none, nullptr), -FI_EINVAL);
    });
}

// fi_trywait and poll of queue and counter together: no arrival is slept through.
TEST(prov_queue_test, native_waiting_misses_nothing)
{
    for (const char *transports : prov_test::transports()) {
        auto server = [=](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            options o = with_wait(FI_WAIT_FD);
            fid_cntr *c = nullptr;
            o.before_enable = [&](fabric_side &s) { c = s.counter_of(FI_RECV, FI_WAIT_FD); };
            fabric_side s(o);
            s.open_rdm(p);
            int fds[2];
            REQUIRE_EQ(fi_control(&s.rxcq->fid, FI_GETWAIT, &fds[0]), 0);
            REQUIRE_EQ(fi_control(&c->fid, FI_GETWAIT, &fds[1]), 0);
            char buf[8];
            for (unsigned i = 0; i < 100; ++i) {
                s.retry([&] { return fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, &s); });
                p.tell(1);
                fi_cq_tagged_entry e;
                ssize_t n;
                while ((n = fi_cq_read(s.rxcq, &e, 1)) == -FI_EAGAIN) {
                    fid *fids[] = {&s.rxcq->fid, &c->fid};
                    int r = fi_trywait(s.fabric, fids, 2);
                    if (r == -FI_EAGAIN) {
                        continue;
                    }
                    REQUIRE_EQ(r, 0);
                    pollfd pfd[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
                    REQUIRE(poll(pfd, 2, patience_ms) > 0);
                }
                REQUIRE_EQ(n, 1);
                REQUIRE_EQ(fi_cntr_read(c), i + 1);
            }
            s.barrier(p);
        };
        auto client = [=](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s({});
            s.open_rdm(p);
            for (unsigned i = 0; i < 100; ++i) {
                s.serve_until_told(p);
                if (i % 4) {
                    usleep(1000 * (i % 3));
                }
                s.retry([&] { return fi_inject(s.ep, "x", 1, s.peer); });
            }
            s.barrier(p);
        };
        EXPECT_EQ(run_pair(server, client), "") << transports;
    }
}

// ---- wait sets and poll sets ----

TEST(prov_queue_test, a_wait_set_wakes_for_each_of_its_members)
{
    in_a_process([](partner &) {
        for (fi_wait_obj w : {FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD}) {
            fabric_side s({});
            fi_wait_attr wa = {};
            wa.wait_obj = w;
            fid_wait *set = nullptr;
            REQUIRE_EQ(fi_wait_open(s.fabric, &wa, &set), 0);
            fi_cq_attr ca = {};
            ca.format = FI_CQ_FORMAT_TAGGED;
            ca.wait_obj = FI_WAIT_SET;
            ca.wait_set = set;
            fid_cq *cq = nullptr;
            REQUIRE_EQ(fi_cq_open(s.domain, &ca, &cq, nullptr), 0);
            fi_cntr_attr na = {};
            na.wait_obj = FI_WAIT_SET;
            na.wait_set = set;
            fid_cntr *c = nullptr;
            REQUIRE_EQ(fi_cntr_open(s.domain, &na, &c, nullptr), 0);
            fi_eq_attr ea = {};
            ea.wait_obj = FI_WAIT_SET;
            ea.wait_set = set;
            ea.flags = FI_WRITE;
            fid_eq *eq = nullptr;
            REQUIRE_EQ(fi_eq_open(s.fabric, &ea, &eq, nullptr), 0);
            REQUIRE_EQ(fi_close(&set->fid), -FI_EBUSY);
            std::swap(cq, s.rxcq);
            s.open_active(s.info);
            sockaddr_in name;
            size_t length = sizeof(name);
            REQUIRE_EQ(fi_getname(&s.ep->fid, &name, &length), 0);
            REQUIRE_EQ(fi_av_insert(s.av, &name, 1, &s.peer, 0, nullptr), 1);

            fi_cq_tagged_entry e;
            uint32_t type;
            fi_eq_entry event = {};
            REQUIRE_EQ(fi_cq_sread(s.rxcq, &e, 1, nullptr, 0), -FI_EINVAL); // wait on the set
            // The counter tells a change once.
            while (fi_wait(set, 20) == 0) {
            }
            REQUIRE_EQ(fi_wait(set, 20), -FI_ETIMEDOUT);
            char buf[8];
            uint64_t counted = 0;
            for (int i = 0; i < 30; ++i) {
                s.retry([&] { return fi_trecv(s.ep, buf, 8, nullptr, s.peer, 5, 0, buf); });
                std::thread waker([&, i] {
                    usleep(1000 * (i % 4));
                    if (i % 3 == 0) {
                        while (fi_tinject(s.ep, "x", 1, s.peer, 5) == -FI_EAGAIN) {
                            fi_cq_read(s.txcq, nullptr, 0);
                        }
                    } else if (i % 3 == 1) {
                        fi_cntr_add(c, 1);
                    } else {
                        fi_eq_write(eq, 9, &event, sizeof(event), 0);
                    }
                });
                auto end = clock::now() + patience;
                auto arrived = [&] {
                    if (i % 3 == 0) {
                        return fi_cq_read(s.rxcq, &e, 1) == 1;
                    }
                    if (i % 3 == 1) {
                        return fi_cntr_read(c) == counted + 1;
                    }
                    return fi_eq_read(eq, &type, &event, sizeof(event), 0) > 0;
                };
                do {
                    REQUIRE_EQ(fi_wait(set, patience_ms), 0);
                    REQUIRE(clock::now() < end);
                } while (!arrived());
                waker.join();
                counted += i % 3 == 1;
                if (i % 3) {
                    fi_cq_err_entry err = {};
                    REQUIRE_EQ(fi_cancel(&s.ep->fid, buf), 0);
                    s.complete(s.rxcq, &err);
                    REQUIRE_EQ(err.err, FI_ECANCELED);
                }
            }
            s.close_active();
            std::swap(cq, s.rxcq);
            close_all({&cq->fid, &c->fid, &eq->fid, &set->fid});
        }
        fabric_side s({});
        fi_wait_attr wa = {};
        fid_wait *set = nullptr;
        REQUIRE_EQ(fi_wait_open(s.fabric, &wa, nullptr), -FI_EINVAL);
        wa.flags = 1;
        wa.wait_obj = FI_WAIT_FD;
        REQUIRE_EQ(fi_wait_open(s.fabric, &wa, &set), -FI_EINVAL);
        wa.flags = 0;
        wa.wait_obj = FI_WAIT_NONE;
        REQUIRE_EQ(fi_wait_open(s.fabric, &wa, &set), -FI_EINVAL);
        wa.wait_obj = FI_WAIT_MUTEX_COND;
        REQUIRE_EQ(fi_wait_open(s.fabric, &wa, &set), -FI_ENOSYS);
    });
}

TEST(prov_queue_test, a_wait_set_has_a_descriptor)
{
    in_a_process([](partner &) {
        fabric_side s({});
        fi_wait_attr wa = {};
        wa.wait_obj = FI_WAIT_FD;
        fid_wait *set = nullptr;
        REQUIRE_EQ(fi_wait_open(s.fabric, &wa, &set), 0);
        fi_cntr_attr na = {};
        na.wait_obj = FI_WAIT_SET;
        na.wait_set = set;
        fid_cntr *c = nullptr;
        REQUIRE_EQ(fi_cntr_open(s.domain, &na, &c, nullptr), 0);
        int fd = -1;
        fi_wait_obj kind;
        REQUIRE_EQ(fi_control(&set->fid, FI_GETWAIT, &fd), 0);
        REQUIRE_EQ(fi_control(&set->fid, FI_GETWAITOBJ, &kind), 0);
        REQUIRE_EQ(kind, FI_WAIT_FD);
        fid *fids[] = {&set->fid};
        int r;
        while ((r = fi_trywait(s.fabric, fids, 1)) == -FI_EAGAIN) {
        }
        REQUIRE_EQ(r, 0);
        pollfd p = {fd, POLLIN, 0};
        REQUIRE_EQ(poll(&p, 1, 0), 0);
        REQUIRE_EQ(fi_cntr_add(c, 1), 0);
        REQUIRE_EQ(poll(&p, 1, patience_ms), 1);
        REQUIRE_EQ(fi_trywait(s.fabric, fids, 1), -FI_EAGAIN);
        close_all({&c->fid, &set->fid});
    });
}

TEST(prov_queue_test, a_poll_set_names_what_has_something)
{
    in_a_process([](partner &) {
        loop s(options{});
        fid_cntr *c = s.counter();
        c->fid.context = c;
        s.rxcq->fid.context = s.rxcq;
        s.txcq->fid.context = s.txcq;
        fi_poll_attr pa = {};
        fid_poll *set = nullptr;
        REQUIRE_EQ(fi_poll_open(s.domain, &pa, &set), 0);
        REQUIRE_EQ(fi_poll_add(set, &s.rxcq->fid, 0), 0);
        REQUIRE_EQ(fi_poll_add(set, &s.txcq->fid, 0), 0);
        REQUIRE_EQ(fi_poll_add(set, &c->fid, 0), 0);
        REQUIRE_EQ(fi_poll_add(set, &s.rxcq->fid, 0), -FI_EALREADY);
        REQUIRE_EQ(fi_poll_add(set, &s.domain->fid, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_poll_add(set, &c->fid, 1), -FI_EINVAL);
        void *found[4] = {};
        REQUIRE_EQ(fi_poll(set, found, 4), 0);
        REQUIRE_EQ(fi_cntr_add(c, 3), 0);
        REQUIRE_EQ(fi_poll(set, found, 4), 0); // fi_cntr_add tells the application nothing new
        char buf[8];
        s.receive(buf, 8, buf);
        s.send("x", 1);
        auto end = clock::now() + patience;
        int n;
        while ((n = fi_poll(set, found, 4)) == 0) {
            REQUIRE(clock::now() < end);
        }
        REQUIRE_EQ(n, 1);
        REQUIRE(found[0] == s.rxcq);
        REQUIRE_EQ(fi_poll(set, found, 4), 1); // it is not read yet
        s.complete(s.rxcq);
        REQUIRE_EQ(fi_poll(set, found, 4), 0);
        // No more contexts than there is room for.
        s.receive(buf, 8, buf);
        s.retry([&] { return fi_tsend(s.ep, "x", 1, nullptr, s.peer, 5, nullptr); });
        while ((n = fi_poll(set, found, 4)) < 2) {
            REQUIRE(clock::now() < end);
        }
        REQUIRE_EQ(fi_poll(set, found, 1), 1);
        REQUIRE_EQ(fi_poll(set, nullptr, 1), -FI_EINVAL);
        REQUIRE_EQ(fi_close(&set->fid), -FI_EBUSY);
        REQUIRE_EQ(fi_close(&c->fid), -FI_EBUSY);
        REQUIRE_EQ(fi_poll_del(set, &s.rxcq->fid, 0), 0);
        REQUIRE_EQ(fi_poll_del(set, &s.rxcq->fid, 0), -FI_EINVAL);
        REQUIRE_EQ(fi_poll_del(set, &s.txcq->fid, 0), 0);
        REQUIRE_EQ(fi_poll(set, found, 4), 0);
        REQUIRE_EQ(fi_poll_del(set, &c->fid, 0), 0);
        REQUIRE_EQ(fi_close(&set->fid), 0);
        s.complete(s.rxcq);
    });
}

TEST(prov_queue_test, a_poll_set_sees_a_counter_change)
{
    in_a_process([](partner &) {
        options o;
        fid_cntr *c = nullptr;
        o.before_enable = [&](fabric_side &s) {
            c = s.counter_of(FI_RECV);
            c->fid.context = c;
        };
        loop s(o);
        fi_poll_attr pa = {};
        fid_poll *set = nullptr;
        REQUIRE_EQ(fi_poll_open(s.domain, &pa, &set), 0);
        REQUIRE_EQ(fi_poll_add(set, &c->fid, 0), 0);
        void *found = nullptr;
        char buf[8];
        s.receive(buf, 8, buf);
        s.send("x", 1);
        auto end = clock::now() + patience;
        while (fi_poll(set, &found, 1) != 1) {
            REQUIRE(clock::now() < end);
        }
        REQUIRE(found == c);
        REQUIRE_EQ(fi_cntr_read(c), 1u);
        REQUIRE_EQ(fi_poll(set, &found, 1), 0);
        REQUIRE_EQ(fi_poll_del(set, &c->fid, 0), 0);
        REQUIRE_EQ(fi_close(&set->fid), 0);
    });
}

// ---- progress and threads ----

// With FI_PROGRESS_AUTO a target that does nothing is written to, and receives.
TEST(prov_queue_test, auto_progress_serves_who_does_nothing)
{
    for (const char *transports : prov_test::transports()) {
        auto options_of = [](bool target) {
            options o;
            o.caps = FI_MSG | FI_TAGGED | FI_RMA;
            o.progress = target ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
            return o;
        };
        constexpr size_t n = 100000;
        auto server = [=](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s(options_of(true));
            REQUIRE_EQ(s.info->domain_attr->data_progress, FI_PROGRESS_AUTO);
            s.open_rdm(p);
            std::vector<char> memory(n), in(n);
            remote r = s.expose(memory.data(), n, FI_REMOTE_WRITE);
            REQUIRE_EQ(fi_recv(s.ep, in.data(), n, nullptr, FI_ADDR_UNSPEC, &in), 0);
            p.tell(&r, sizeof(r));
            p.hear(); // asleep: nothing of libfabric is called until the client's sends are
                      // delivered
            s.complete(s.rxcq);
            REQUIRE(memory == pattern(n, 1));
            REQUIRE(in == pattern(n, 2));
            p.barrier();
        };
        auto client = [=](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            options o = options_of(false);
            o.tx_op_flags = FI_DELIVERY_COMPLETE;
            fabric_side s(o);
            s.open_rdm(p);
            remote r;
            p.hear(&r, sizeof(r));
            auto a = pattern(n, 1), b = pattern(n, 2);
            s.retry(
                [&] { return fi_write(s.ep, a.data(), n, nullptr, s.peer, r.address, r.key, &a); });
            REQUIRE(s.complete(s.txcq).op_context == &a);
            s.retry([&] { return fi_send(s.ep, b.data(), n, nullptr, s.peer, &b); });
            REQUIRE(s.complete(s.txcq).op_context == &b);
            p.tell(1);
            p.barrier();
        };
        EXPECT_EQ(run_pair(server, client), "") << transports;
    }
}

// It does so as well after it has polled: it may have taken what the helper thread waited for.
TEST(prov_queue_test, auto_progress_goes_on_when_polling_ends)
{
    for (const char *transports : prov_test::transports()) {
        constexpr int turns = 5, rounds = 50;
        auto role_of = [=](bool target) {
            return [=](partner &p) {
                setenv("FI_UCXLIKE_TLS", transports, 1);
                options o;
                o.caps = FI_MSG | FI_TAGGED | FI_RMA;
                o.progress = target ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
                o.tx_op_flags = target ? 0 : FI_DELIVERY_COMPLETE;
                fabric_side s(o);
                s.open_rdm(p);
                char buf[8] = {};
                auto send = [&] {
                    s.retry([&] { return fi_send(s.ep, buf, 8, nullptr, s.peer, nullptr); });
                    s.complete(s.txcq);
                };
                auto receive = [&] {
                    REQUIRE_EQ(fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
                    s.complete(s.rxcq);
                };
                for (int turn = 0; turn < turns; ++turn) {
                    for (int i = 0; i < rounds; ++i) {
                        target ? receive() : send();
                        target ? send() : receive();
                    }
                    if (target) {
                        REQUIRE_EQ(fi_recv(s.ep, buf, 8, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
                        p.tell(1);
                        p.hear(); // nothing of libfabric is called until the message is delivered
                        s.complete(s.rxcq);
                    } else {
                        p.hear();
                        send();
                        p.tell(1);
                    }
                }
                p.barrier();
            };
        };
        EXPECT_EQ(run_pair(role_of(true), role_of(false)), "") << transports;
    }
}

// FI_THREAD_SAFE: threads that send, receive and read queues of one endpoint, all at once.
TEST(prov_queue_test, one_endpoint_serves_many_threads)
{
    constexpr int threads = 4, each = 300;
    for (fi_ep_type type : {FI_EP_RDM, FI_EP_MSG}) {
        auto role_of = [=](bool server) {
            return [=](partner &p) {
                options o;
                o.type = type;
                fabric_side s(o);
                type == FI_EP_RDM ? s.open_rdm(p) : server ? s.serve(p) : s.dial(p);
                std::atomic<int> received{0}, sent{0};
                auto end = clock::now() + 4 * patience;
                auto body = [&](int id) {
                    std::vector<char> in(5000);
                    for (int i = 0; i < each; ++i) {
                        size_t n = static_cast<size_t>(i % 5 ? i % 64 : 4000 + i);
                        auto out = pattern(n, static_cast<unsigned>(i));
                        uint64_t tag = static_cast<uint64_t>(id) << 32 | static_cast<unsigned>(i);
                        std::atomic<int> pending{2};
                        ssize_t r;
                        fi_cq_tagged_entry e;
                        auto reap = [&] {
                            for (fid_cq *q : {s.txcq, s.rxcq}) {
                                if (fi_cq_read(q, &e, 1) == 1) {
                                    --*static_cast<std::atomic<int> *>(e.op_context);
                                }
                            }
                            REQUIRE(clock::now() < end);
                            sched_yield();
                        };
                        while ((r = fi_trecv(s.ep, in.data(), in.size(), nullptr, s.peer, tag, 0,
                                             &pending)) == -FI_EAGAIN) {
                            reap();
                        }
                        REQUIRE_EQ(r, 0);
                        while ((r = fi_tsend(s.ep, out.data(), n, nullptr, s.peer, tag,
                                             &pending)) == -FI_EAGAIN) {
                            reap();
                        }
                        REQUIRE_EQ(r, 0);
                        while (pending > 0) {
                            reap();
                        }
                        REQUIRE(!n || memcmp(in.data(), out.data(), n) == 0);
                        ++received, ++sent;
                    }
                };
                std::vector<std::thread> all;
                for (int i = 0; i < threads; ++i) {
                    all.emplace_back(body, i);
                }
                for (auto &t : all) {
                    t.join();
                }
                REQUIRE_EQ(received.load(), threads * each);
                p.tell(1);
                s.serve_until_told(p);
                s.barrier(p);
            };
        };
        EXPECT_EQ(run_pair(role_of(true), role_of(false)), "");
    }
}

} // namespace
