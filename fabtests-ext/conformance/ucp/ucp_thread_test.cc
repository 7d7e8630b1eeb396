// SPDX-License-Identifier: BSD-3-Clause
//
// Workers of thread mode MULTI, used by several threads at a time: communication, progress,
// connections, wake-up.
#include "fabtests-ext/common/ucp_region.h"

#include <atomic>
#include <poll.h>
#include <thread>

using namespace ucp_test;

namespace {

options multi(const char *tls)
{
    options o;
    o.tls = tls;
    o.thread_mode = UCS_THREAD_MODE_MULTI;
    o.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
    return o;
}

class ucp_threads : public testing::TestWithParam<const char *> {
  protected:
    ucp_threads() : a(multi(GetParam())), b(multi(GetParam())) {}

    // Progresses both workers, as other threads may, too.
    ucs_status_t finish(ucs_status_ptr_t p) { return wait({&a, &b}, p); }

    entity a, b;
};

TEST_P(ucp_threads, all_send_and_receive_at_once)
{
    constexpr unsigned threads = 3, rounds = 100;
    std::atomic<unsigned> good{0};
    std::mutex pairing;
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            ucp_ep_h to_b, to_a;
            {
                // The workers pair endpoints in the order they are made: one of another thread's
                // would be closed under ours.
                std::lock_guard<std::mutex> lock(pairing);
                if (create_ep(a, b.address(), &to_b) != UCS_OK ||
                    create_ep(b, a.address(), &to_a) != UCS_OK) {
                    return;
                }
            }
            for (unsigned i = 0; i < rounds; ++i) {
                size_t length = i % 10 == 9 ? 100000 : 8 + i;
                std::vector<char> out(length, static_cast<char>(i + t)), in(length);
                bool forth = i % 2;
                ucs_status_ptr_t recv = recv_nb(forth ? b : a, in.data(), length, t);
                ucs_status_ptr_t send = send_nb(forth ? to_b : to_a, out.data(), length, t);
                ucs_status_t s = finish(send), r = finish(recv);
                good += s == UCS_OK && r == UCS_OK && in == out;
            }
            ucs_status_ptr_t c1 = close_nb(to_b), c2 = close_nb(to_a);
            finish(c1);
            finish(c2);
        });
    }
    for (std::thread &t : all) {
        t.join();
    }
    EXPECT_EQ(threads * rounds, good);
}

TEST_P(ucp_threads, memory_comes_and_goes_while_others_use_theirs)
{
    ucp_ep_h to_b;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    std::atomic<bool> stop{false};
    std::thread mapping([&] {
        while (!stop) {
            region mine(a, to_b, nullptr, 4096), peers(b, to_b, nullptr, 4096);
        }
    });
    constexpr size_t length = 100000;
    std::vector<char> memory(64), in(length);
    {
        region from(a, to_b, nullptr, length), to(b, to_b, memory.data(), memory.size());
        for (unsigned i = 0; i < 100; ++i) {
            memset(from.data, static_cast<int>(i + 1), length);
            ucp_request_param_t none = {};
            ucs_status_ptr_t recv = recv_nb(b, in.data(), length, 5);
            EXPECT_EQ(UCS_OK, finish(send_nb(to_b, from.data, length, 5)));
            EXPECT_EQ(UCS_OK, finish(recv));
            EXPECT_EQ(UCS_OK,
                      finish(ucp_put_nbx(to_b, from.data, memory.size(), to.at(), to.rkey, &none)));
            EXPECT_EQ(UCS_OK, finish(flush_nb(to_b)));
            EXPECT_EQ(0, memcmp(from.data, in.data(), length));
            EXPECT_EQ(0, memcmp(from.data, memory.data(), memory.size()));
        }
    }
    stop = true;
    mapping.join();
    EXPECT_EQ(UCS_OK, finish(close_nb(to_b)));
}

TEST_P(ucp_threads, connections_come_and_go)
{
    server listening(b);
    std::atomic<bool> stop{false};
    std::mutex guard; // of what the handler touches
    std::vector<std::unique_ptr<errors>> seen;
    std::thread accepting([&] {
        while (!stop) {
            b.progress();
            if (!listening.requests.empty()) {
                std::lock_guard<std::mutex> lock(guard);
                ucp_ep_h ep;
                seen.push_back(std::make_unique<errors>());
                (void)listening.accept(&ep, seen.back().get());
            }
        }
    });
    constexpr unsigned threads = 2, rounds = 10;
    std::atomic<unsigned> good{0};
    std::vector<std::thread> all;
    for (unsigned t = 0; t < threads; ++t) {
        all.emplace_back([&] {
            for (unsigned i = 0; i < rounds; ++i) {
                ucp_ep_h ep;
                errors ce;
                if (connect(a, listening.port, &ep, &ce) != UCS_OK) {
                    continue;
                }
                ucs_status_t sent = wait({&a}, send_nb(ep, "x", 1, 99));
                ucs_status_t closed = wait({&a}, close_nb(ep));
                good += sent == UCS_OK && closed == UCS_OK && ce.count == 0;
            }
        });
    }
    for (std::thread &t : all) {
        t.join();
    }
    stop = true;
    accepting.join();
    EXPECT_EQ(threads * rounds, good);
}

TEST_P(ucp_threads, one_sleeps_while_another_signals)
{
    std::atomic<bool> stop{false};
    std::atomic<unsigned> woken{0};
    std::thread sleeper([&] {
        while (!stop) {
            EXPECT_EQ(UCS_OK, ucp_worker_wait(a.worker));
            ucp_worker_progress(a.worker);
            ++woken;
        }
    });
    for (unsigned i = 0; i < 50; ++i) {
        unsigned before = woken;
        EXPECT_EQ(UCS_OK, ucp_worker_signal(a.worker));
        auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
        while (woken == before && std::chrono::steady_clock::now() < end) {
            std::this_thread::yield();
        }
        ASSERT_NE(before, woken.load());
    }
    stop = true;
    ucp_worker_signal(a.worker);
    sleeper.join();
}

// Its last work is left to progress, which the sleeper is to call.
TEST_P(ucp_threads, one_sleeps_while_another_receives)
{
    ucp_ep_h to_b;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    std::atomic<void *> desc{nullptr};
    auto on_message = [](void *arg, const void *, size_t, void *data, size_t,
                         const ucp_am_recv_param_t *) {
        *static_cast<std::atomic<void *> *>(arg) = data;
        return UCS_INPROGRESS;
    };
    ASSERT_EQ(UCS_OK, set_am_handler(b.worker, 1, on_message, &desc));
    int fd;
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(b.worker, &fd));
    std::atomic<bool> stop{false};
    std::atomic<unsigned> asleep{0}; // times
    std::thread sleeper([&] {
        while (!stop) {
            if (ucp_worker_progress(b.worker) == 0 && ucp_worker_arm(b.worker) == UCS_OK) {
                ++asleep;
                pollfd p = {fd, POLLIN, 0};
                poll(&p, 1, -1);
            }
        }
    });
    std::vector<char> out(100000, 's'), in(out.size());
    for (unsigned round = 0; round < 20; ++round) {
        desc = nullptr;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_AM_SEND_FLAG_RNDV;
        void *s = ucp_am_send_nbx(to_b, 1, nullptr, 0, out.data(), out.size(), &p);
        bool came = run_until({&a}, [&] { return desc.load() != nullptr; });
        unsigned before = asleep;
        ucp_worker_signal(b.worker);
        if (!came || !run_until({&a}, [&] { return asleep != before; })) {
            ADD_FAILURE() << "it does not sleep";
            break;
        }
        std::atomic<bool> called{false};
        auto callback = [](void *, ucs_status_t status, size_t, void *arg) {
            EXPECT_EQ(UCS_OK, status);
            *static_cast<std::atomic<bool> *>(arg) = true;
        };
        ucp_request_param_t q = called_later(callback, &called);
        void *r = ucp_am_recv_data_nbx(b.worker, desc, in.data(), in.size(), &q);
        if (!run_until({&a}, [&] { return called.load(); })) {
            ADD_FAILURE() << "it is not woken in round " << round;
            break;
        }
        EXPECT_EQ(UCS_OK, wait({&a}, r));
        EXPECT_EQ(UCS_OK, wait({&a}, s));
    }
    stop = true;
    ucp_worker_signal(b.worker);
    sleeper.join();
    EXPECT_EQ(UCS_OK, finish(close_nb(to_b)));
}

UCP_TEST_OVER(ucp_threads, "sm,self", "ofi_shm,self", "tcp,self", "all");

} // namespace
