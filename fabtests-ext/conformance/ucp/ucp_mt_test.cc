// SPDX-License-Identifier: BSD-3-Clause
//
// Threads on one worker of thread mode MULTI: tag and active messages, each message counted.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <atomic>
#include <thread>

namespace {

using namespace ucp_test;

class ucp_mt : public pair {
  protected:
    static constexpr int threads = 4;

    ucp_mt() { opts.thread_mode = UCS_THREAD_MODE_MULTI; }

    // A request's end, seen by a thread that progresses both workers.
    ucs_status_t settle(void *ptr)
    {
        if (!UCS_PTR_IS_PTR(ptr)) {
            return UCS_PTR_STATUS(ptr);
        }
        auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(2 * patience);
        ucs_status_t status;
        while ((status = ucp_request_check_status(ptr)) == UCS_INPROGRESS) {
            if (std::chrono::steady_clock::now() > end) {
                return UCS_ERR_TIMED_OUT;
            }
            progress();
        }
        ucp_request_free(ptr);
        return status;
    }

    template <class F>
    void run(F f)
    {
        std::vector<std::thread> all;
        for (int t = 0; t < threads; ++t) {
            all.emplace_back(f, t);
        }
        for (std::thread &t : all) {
            t.join();
        }
    }
};

TEST_P(ucp_mt, b026_threads_send_and_receive_on_the_same_workers)
{
    for (size_t n : {size_t(8), size_t(5000), size_t(300000)}) {
        std::atomic<int> good{0};
        int rounds = n > 100000 ? 5 : 50;
        run([&](int t) {
            for (int i = 0; i < rounds; ++i) {
                auto out = pattern(n, static_cast<unsigned>(t * 100 + i)),
                     in = std::vector<char>(n);
                ucp_request_param_t p = {};
                void *r = ucp_tag_recv_nbx(b().worker, in.data(), n, static_cast<ucp_tag_t>(t),
                                           ~ucp_tag_t(0), &p);
                void *s = ucp_tag_send_nbx(ab, out.data(), n, static_cast<ucp_tag_t>(t), &p);
                if (settle(r) == UCS_OK && settle(s) == UCS_OK && in == out) {
                    ++good;
                }
            }
        });
        EXPECT_EQ(threads * rounds, good.load()) << n;
    }
}

TEST_P(ucp_mt, threads_send_active_messages)
{
    struct sink {
        std::atomic<size_t> bytes{0};
        static ucs_status_t cb(void *arg, const void *, size_t, void *, size_t length,
                               const ucp_am_recv_param_t *)
        {
            static_cast<sink *>(arg)->bytes += length;
            return UCS_OK;
        }
    } got;
    ASSERT_EQ(UCS_OK, set_am_handler(b().worker, 1, sink::cb, &got));
    const size_t lens[] = {8, 3000, 20000};
    std::atomic<int> good{0};
    run([&](int t) {
        for (int i = 0; i < 30; ++i) {
            auto out = pattern(lens[(t + i) % 3]);
            ucp_request_param_t p = {};
            p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            p.flags = UCP_AM_SEND_FLAG_EAGER;
            good += settle(ucp_am_send_nbx(ab, 1, "h", 1, out.data(), out.size(), &p)) == UCS_OK;
        }
    });
    EXPECT_EQ(threads * 30, good.load());
    EXPECT_TRUE(until([&] { return got.bytes == size_t(threads) * 10 * (8 + 3000 + 20000); }));
}

class ucp_unmap : public ucp_mt {
  protected:
    ucp_unmap() { opts.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA; }
};

// Of two pieces: what comes to the target as a message.
TEST_P(ucp_unmap, nothing_is_written_afterwards)
{
    constexpr size_t half = 4000;
    std::vector<char> memory(2 * half), out(2 * half, 'p');
    ucp_dt_iov_t pieces[] = {{out.data(), half}, {out.data() + half, half}};
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    p.datatype = ucp_dt_make_iov();
    for (int round = 0; round < 200; ++round) {
        std::fill(memory.begin(), memory.end(), 0);
        region r(b(), ab, memory.data(), memory.size());
        std::atomic<bool> stop{false};
        std::atomic<int> puts{0};
        std::thread writes([&] {
            while (!stop) {
                EXPECT_EQ(UCS_OK, settle(ucp_put_nbx(ab, pieces, 2, r.at(), r.rkey, &p)));
                progress();
                ++puts;
            }
            EXPECT_EQ(UCS_OK, settle(flush_nb(ab)));
        });
        while (puts < 2) {
            std::this_thread::yield();
        }
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(b().context, r.memh));
        std::fill(memory.begin(), memory.end(), 0);
        stop = true;
        writes.join();
        r.memh = nullptr;
        ASSERT_EQ(memory, std::vector<char>(2 * half)) << round;
    }
}

UCP_TEST_OVER_ALL(ucp_mt);
UCP_TEST_OVER_ALL(ucp_unmap);

} // namespace
