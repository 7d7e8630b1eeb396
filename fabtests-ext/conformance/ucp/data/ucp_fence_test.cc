// SPDX-License-Identifier: BSD-3-Clause
//
// Fences between puts, gets and atomics, when their buffers are whose, memory registered in several
// ways, and threads that do all this on one worker.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <atomic>
#include <thread>

namespace {

using namespace ucp_test;

class ucp_remote : public pair {
  protected:
    ucp_remote()
    {
        opts.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    }

    ucs_status_ptr_t put(const void *data, size_t n, const region &r, size_t at = 0,
                         uint32_t flags = 0, ucp_mem_h memh = nullptr)
    {
        ucp_request_param_t p = with(flags, memh);
        return ucp_put_nbx(ab, data, n, r.at(at), r.rkey, &p);
    }
    ucs_status_ptr_t get(void *data, size_t n, const region &r, size_t at = 0, uint32_t flags = 0,
                         ucp_mem_h memh = nullptr)
    {
        ucp_request_param_t p = with(flags, memh);
        return ucp_get_nbx(ab, data, n, r.at(at), r.rkey, &p);
    }
    // Fetches the old value when there is somewhere to put it.
    ucs_status_ptr_t add(const uint64_t &value, const region &r, size_t at, uint64_t *old = nullptr)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_contig(sizeof(value));
        if (old) {
            p.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
            p.reply_buffer = old;
        }
        return ucp_atomic_op_nbx(ab, UCP_ATOMIC_OP_ADD, &value, 1, r.at(at), r.rkey, &p);
    }
    void fence() { ASSERT_EQ(UCS_OK, ucp_worker_fence(a().worker)); }
    void flush() { ASSERT_EQ(UCS_OK, finish(flush_nb(ab))); }

    static constexpr size_t sizes[] = {1, 8, 100, 8192, 100000, 1000000};

  private:
    static ucp_request_param_t with(uint32_t flags, ucp_mem_h memh)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = flags | (memh ? uint32_t(UCP_OP_ATTR_FIELD_MEMH) : 0u);
        p.memh = memh;
        return p;
    }
};

// The one before a fence and the one behind it, of every kind. Nothing waits for anything else.
TEST_P(ucp_remote, b110_put_fence_put)
{
    for (size_t n : sizes) {
        std::vector<char> target(n), first = pattern(n, 1), second = pattern(n, 2);
        region r(b(), ab, target.data(), n);
        for (unsigned i = 0; i < 5; ++i) {
            fence(); // nothing before it
            ucs_status_ptr_t x = put(first.data(), n, r);
            fence();
            ucs_status_ptr_t y = put(second.data(), n, r);
            ASSERT_EQ(UCS_OK, finish(x));
            ASSERT_EQ(UCS_OK, finish(y));
            flush();
            ASSERT_EQ(second, target) << n;
        }
    }
}

TEST_P(ucp_remote, b110_put_fence_get)
{
    for (size_t n : sizes) {
        std::vector<char> target(n), seen(n);
        region r(b(), ab, target.data(), n);
        for (unsigned i = 0; i < 5; ++i) {
            std::vector<char> source = pattern(n, i);
            ucs_status_ptr_t x = put(source.data(), n, r);
            fence();
            ucs_status_ptr_t y = get(seen.data(), n, r);
            ASSERT_EQ(UCS_OK, finish(x));
            ASSERT_EQ(UCS_OK, finish(y));
            ASSERT_EQ(source, seen) << n;
        }
        flush();
    }
}

TEST_P(ucp_remote, b110_get_fence_put)
{
    for (size_t n : sizes) {
        std::vector<char> target = pattern(n, 77), seen(n);
        region r(b(), ab, target.data(), n);
        for (unsigned i = 0; i < 5; ++i) {
            std::vector<char> before = target, source = pattern(n, i);
            ucs_status_ptr_t x = get(seen.data(), n, r);
            fence();
            ucs_status_ptr_t y = put(source.data(), n, r);
            ASSERT_EQ(UCS_OK, finish(x));
            ASSERT_EQ(UCS_OK, finish(y));
            flush();
            ASSERT_EQ(before, seen) << n;
            ASSERT_EQ(source, target) << n;
        }
    }
}

// What waits for the connection is counted in its turn, not when it is posted.
TEST_P(ucp_remote, b110_get_fence_put_before_the_connection_stands)
{
    constexpr size_t n = 1000000;
    std::vector<char> target(n, 'x'), source(n, 'y');
    region r(b(), ab, target.data(), n);
    alignas(8) uint64_t old = 0;
    char seen = 0;
    ucs_status_ptr_t x = get(&seen, 1, r, 8);
    ucs_status_ptr_t y = add(0, r, 16, &old);
    fence();
    ucs_status_ptr_t z = put(source.data(), n, r);
    for (ucs_status_ptr_t p : {x, y, z}) {
        ASSERT_EQ(UCS_OK, finish(p));
    }
    flush();
    EXPECT_EQ('x', seen);
    EXPECT_EQ(0x7878787878787878u, old);
    EXPECT_EQ(source, target);
}

// Memory that the library allocated may be reached with loads and stores, which wait for nothing.
TEST_P(ucp_remote, b110_put_fence_put_where_that_is_mapped_before_the_connection_stands)
{
    constexpr size_t n = 100000;
    std::vector<char> target(n), source = pattern(n, 1);
    region data(b(), ab, target.data(), n), flag(b(), ab, nullptr, 8);
    memset(flag.data, 0, 8);
    ucs_status_ptr_t x = put(source.data(), n, data);
    fence();
    ucs_status_ptr_t y = put("F", 1, flag);
    ASSERT_TRUE(until([&] {
        if (*static_cast<volatile char *>(flag.data) == 0) {
            return false;
        }
        EXPECT_TRUE(source == target);
        return true;
    }));
    ASSERT_EQ(UCS_OK, finish(x));
    ASSERT_EQ(UCS_OK, finish(y));
    flush();
}

// The target does not progress: what is a message does not arrive.
TEST_P(ucp_remote, b110_message_fence_what_is_mapped)
{
    alignas(8) uint64_t word = 0;
    region data(b(), ab, &word, 8), flags(b(), ab, nullptr, 64);
    flush(); // connected
    for (uint64_t i = 1; i <= 20; ++i) {
        memset(flags.data, 0, 64);
        auto flag = [&](size_t at) { return *reinterpret_cast<volatile char *>(flags.data + at); };
        char seen = 'x';
        uint64_t old = 0;
        const uint64_t one = 1;
        ucs_status_ptr_t x = add(one, data, 0);
        fence();
        ucs_status_ptr_t y = put("F", 1, flags), z = add(one, flags, 8, &old),
                         w = get(&seen, 1, flags, 16);
        EXPECT_TRUE(word == i || (flag(0) == 0 && flag(8) == 0));
        for (ucs_status_ptr_t p : {x, y, z, w}) {
            ASSERT_EQ(UCS_OK, finish(p));
        }
        EXPECT_EQ(0u, old);
        EXPECT_EQ(0, seen);
        flush();
        EXPECT_EQ(i, word);
        EXPECT_EQ('F', flag(0));
        EXPECT_EQ(1, flag(8));
    }
}

// The little one is quick enough to overtake the end of the large one.
TEST_P(ucp_remote, b110_large_get_fence_little_put)
{
    constexpr size_t n = 4000000;
    std::vector<char> target = pattern(n, 8), seen(n);
    region r(b(), ab, target.data(), n);
    for (unsigned i = 0; i < 10; ++i) {
        std::vector<char> before = target, source = pattern(8, i);
        ucs_status_ptr_t x = get(seen.data(), n, r);
        fence();
        ucs_status_ptr_t y = put(source.data(), 8, r, n - 8);
        ASSERT_EQ(UCS_OK, finish(x));
        ASSERT_EQ(UCS_OK, finish(y));
        flush();
        ASSERT_TRUE(before == seen) << "round " << i;
        ASSERT_EQ(0, memcmp(source.data(), target.data() + n - 8, 8));
    }
}

// The first flush confirms the put alone; the second must not end before the get.
TEST_P(ucp_remote, b105_b110_flush_covers_a_get_behind_a_fence)
{
    constexpr size_t n = 1000000;
    std::vector<char> target(n, 'x'), seen(n), source = pattern(8, 3);
    region r(b(), ab, target.data(), n);
    flush();
    ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(ab, source.data(), 8, r.at(), r.rkey)));
    ucs_status_ptr_t first = flush_nb(ab);
    fence();
    ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_get_nbi(ab, seen.data(), n, r.at(), r.rkey)));
    ASSERT_EQ(UCS_OK, finish(first));
    flush();
    EXPECT_TRUE(target == seen);
}

TEST_P(ucp_remote, b110_atomic_fence_get_and_put_fence_atomic)
{
    alignas(8) uint64_t target[1000] = {};
    region r(b(), ab, target, sizeof(target));
    const uint64_t one = 1;
    for (uint64_t i = 0; i < 50; ++i) {
        std::vector<uint64_t> seen(1000), source(1000, 10 * i);
        ucs_status_ptr_t x = put(source.data(), sizeof(target), r);
        fence();
        ucs_status_ptr_t y = add(one, r, 8 * 500);
        fence();
        ucs_status_ptr_t z = get(seen.data(), sizeof(target), r);
        fence();
        uint64_t old = 0;
        ucs_status_ptr_t w = add(one, r, 8 * 500, &old);
        for (ucs_status_ptr_t p : {x, y, z, w}) {
            ASSERT_EQ(UCS_OK, finish(p));
        }
        source[500] += 1;
        ASSERT_EQ(source, seen);
        ASSERT_EQ(10 * i + 1, old);
        flush();
    }
}

TEST_P(ucp_remote, b106_a_get_ends_with_the_data_and_a_put_with_the_buffer_free)
{
    for (size_t n : sizes) {
        std::vector<char> target(n), source = pattern(n, 3), back(n);
        region r(b(), ab, target.data(), n);
        ASSERT_EQ(UCS_OK, finish(put(source.data(), n, r)));
        std::fill(source.begin(), source.end(), 'x'); // not flushed yet
        flush();
        ASSERT_EQ(pattern(n, 3), target) << n;
        ASSERT_EQ(UCS_OK, finish(get(back.data(), n, r)));
        std::fill(target.begin(), target.end(), 'y');
        ASSERT_EQ(pattern(n, 3), back) << n;
    }
}

TEST_P(ucp_remote, b112_get_that_must_end_at_once_does_or_is_refused)
{
    std::vector<char> target = pattern(5000, 4), back(5000, 'x');
    region r(b(), ab, target.data(), target.size());
    flush();
    ucs_status_ptr_t p = get(back.data(), back.size(), r, 0, UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
    if (p == nullptr) {
        EXPECT_EQ(target, back);
    } else {
        EXPECT_EQ(UCS_ERR_NO_RESOURCE, UCS_PTR_STATUS(p));
        progress_for(0.05);
        EXPECT_EQ(std::vector<char>(5000, 'x'), back);
    }
}

TEST_P(ucp_remote, b108_every_way_of_registering)
{
    for (size_t n : {size_t(100000), size_t(1), size_t(4096)}) {
        for (unsigned remote_flags : {0u, unsigned(UCP_MEM_MAP_NONBLOCK)}) {
            for (int local = 0; local < 3; ++local) { // not at all, plain, without blocking
                std::vector<char> target(n), source = pattern(n, 5), back(n);
                region r(b(), ab, target.data(), n, remote_flags);
                unsigned local_flags = local == 2 ? unsigned(UCP_MEM_MAP_NONBLOCK) : 0u;
                region from(a(), ab, source.data(), n, local_flags);
                region to(a(), ab, back.data(), n, local_flags);
                ASSERT_EQ(UCS_OK,
                          finish(put(source.data(), n, r, 0, 0, local ? from.memh : nullptr)));
                flush();
                ASSERT_EQ(source, target);
                ASSERT_EQ(UCS_OK, finish(get(back.data(), n, r, 0, 0, local ? to.memh : nullptr)));
                ASSERT_EQ(source, back) << n << " " << remote_flags << " " << local;
            }
        }
    }
}

TEST_P(ucp_remote, b121_one_memory_mapped_several_times_for_several_uses)
{
    constexpr size_t n = 64 * 1024;
    alignas(64) static char shared[n];
    memset(shared, 0, n);
    for (unsigned round = 0; round < 3; ++round) {
        region for_tag(b(), ab, shared, n), for_rma(b(), ab, shared, n),
            for_amo(b(), ab, shared, n);
        std::vector<char> source = pattern(n, round);
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
        p.memh = for_tag.memh;
        ucs_status_ptr_t receiving = ucp_tag_recv_nbx(b().worker, shared, n, 9, ~ucp_tag_t(0), &p);
        ASSERT_EQ(UCS_OK, finish(send_nb(ab, source.data(), n, 9)));
        ASSERT_EQ(UCS_OK, finish(receiving));
        ASSERT_EQ(0, memcmp(source.data(), shared, n));
        source = pattern(n, round + 10);
        ASSERT_EQ(UCS_OK, finish(put(source.data(), n, for_rma)));
        flush();
        ASSERT_EQ(0, memcmp(source.data(), shared, n));
        uint64_t before, old = 0;
        memcpy(&before, shared + 4096, sizeof(before));
        ASSERT_EQ(UCS_OK, finish(add(3, for_amo, 4096, &old)));
        ASSERT_EQ(before, old);
        memcpy(&before, shared + 4096, sizeof(before));
        ASSERT_EQ(old + 3, before);
    }
}

TEST_P(ucp_remote, b132_the_target_only_progresses)
{
    if (is_self()) {
        GTEST_SKIP() << "the initiator is the target";
    }
    constexpr size_t n = 200000;
    std::vector<char> target(n), source = pattern(n, 6), back(n);
    alignas(8) uint64_t word = 5;
    region r(b(), ab, target.data(), n), w(b(), ab, &word, sizeof(word));
    flush(); // wired up
    std::atomic<bool> stop{false};
    std::thread target_side([&] {
        while (!stop) {
            b().progress();
        }
    });
    auto alone = [&](ucs_status_ptr_t p) { return wait({&a()}, p, 20); };
    EXPECT_EQ(UCS_OK, alone(put(source.data(), n, r)));
    EXPECT_EQ(UCS_OK, alone(flush_nb(ab)));
    EXPECT_EQ(UCS_OK, alone(get(back.data(), n, r)));
    EXPECT_EQ(source, back);
    uint64_t old = 0;
    EXPECT_EQ(UCS_OK, alone(add(2, w, 0, &old)));
    EXPECT_EQ(5u, old);
    EXPECT_EQ(UCS_OK, alone(flush_nb(ab)));
    stop = true;
    target_side.join();
    EXPECT_EQ(source, target);
    EXPECT_EQ(7u, word);
}

TEST_P(ucp_remote, b130_types_of_memory)
{
    std::vector<char> target(3000), source = pattern(3000, 7);
    for (auto type : {UCS_MEMORY_TYPE_HOST, UCS_MEMORY_TYPE_UNKNOWN}) {
        ucp_mem_map_params_t map = {};
        map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                         UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
        map.address = target.data();
        map.length = target.size();
        map.memory_type = type;
        ucp_mem_h memh = nullptr;
        ASSERT_EQ(UCS_OK, ucp_mem_map(b().context, &map, &memh)) << type;
        ucp_mem_attr_t attr = {};
        attr.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
        EXPECT_EQ(UCS_OK, ucp_mem_query(memh, &attr));
        EXPECT_EQ(UCS_MEMORY_TYPE_HOST, attr.mem_type) << "found out";
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(b().context, memh));
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE;
        p.memory_type = type;
        std::fill(target.begin(), target.end(), '\0');
        ucs_status_ptr_t receiving =
            ucp_tag_recv_nbx(b().worker, target.data(), target.size(), 1, ~ucp_tag_t(0), &p);
        EXPECT_EQ(UCS_OK, finish(ucp_tag_send_nbx(ab, source.data(), source.size(), 1, &p)));
        EXPECT_EQ(UCS_OK, finish(receiving));
        EXPECT_EQ(source, target);
    }
}

UCP_TEST_OVER_ALL(ucp_remote);

// ---- threads on one worker

class ucp_remote_mt : public ucp_remote {
  protected:
    static constexpr unsigned threads = 4;

    ucp_remote_mt() { opts.thread_mode = UCS_THREAD_MODE_MULTI; }

    template <class F>
    void run(F f)
    {
        std::vector<std::thread> all;
        for (unsigned t = 0; t < threads; ++t) {
            all.emplace_back(f, t);
        }
        for (std::thread &t : all) {
            t.join();
        }
    }
};

TEST_P(ucp_remote_mt, b111_threads_put_and_get)
{
    for (size_t n : {size_t(8), size_t(5000), size_t(200000)}) {
        std::vector<char> target(n * threads);
        region r(b(), ab, target.data(), target.size());
        std::atomic<unsigned> good{0};
        constexpr unsigned rounds = 10;
        run([&](unsigned t) {
            for (unsigned i = 0; i < rounds; ++i) {
                std::vector<char> source = pattern(n, 10 * t + i), back(n);
                bool fine = finish(put(source.data(), n, r, n * t)) == UCS_OK;
                fine = finish(flush_nb(ab)) == UCS_OK && fine;
                fine = finish(get(back.data(), n, r, n * t)) == UCS_OK && fine;
                good += fine && source == back;
            }
        });
        EXPECT_EQ(threads * rounds, good.load()) << n;
    }
}

TEST_P(ucp_remote_mt, b138_threads_with_fences)
{
    alignas(8) uint64_t target[threads * 2] = {};
    region r(b(), ab, target, sizeof(target));
    std::atomic<unsigned> good{0};
    constexpr uint64_t rounds = 100;
    run([&](unsigned t) {
        for (uint64_t i = 1; i <= rounds; ++i) {
            const uint64_t value = i;
            uint64_t seen = 0;
            size_t at = 16 * t;
            ucs_status_t x = ucp_put_nbi(ab, &value, 8, r.at(at), r.rkey);
            ucs_status_t f = ucp_worker_fence(a().worker);
            ucs_status_t y = ucp_get_nbi(ab, &seen, 8, r.at(at), r.rkey);
            ucs_status_t end = finish(flush_nb(ab));
            good += !UCS_STATUS_IS_ERR(x) && f == UCS_OK && !UCS_STATUS_IS_ERR(y) &&
                    end == UCS_OK && seen == i;
        }
    });
    EXPECT_EQ(threads * rounds, good.load());
}

UCP_TEST_OVER_ALL(ucp_remote_mt);

} // namespace
