// SPDX-License-Identifier: BSD-3-Clause
//
// Remote memory: registration, keys, put, get, atomic operations, flush and fence.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <cstddef>
#include <sys/mman.h>

namespace {

using namespace ucp_test;

class ucp_rma : public pair {
  protected:
    ucp_rma()
    {
        opts.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
    }

    ucs_status_ptr_t put(const void *data, size_t n, uint64_t to, ucp_rkey_h rkey)
    {
        ucp_request_param_t p = {};
        return ucp_put_nbx(ab, data, n, to, rkey, &p);
    }
    ucs_status_ptr_t get(void *data, size_t n, uint64_t from, ucp_rkey_h rkey)
    {
        ucp_request_param_t p = {};
        return ucp_get_nbx(ab, data, n, from, rkey, &p);
    }
    ucs_status_t flush_ep()
    {
        ucp_request_param_t p = {};
        return finish(ucp_ep_flush_nbx(ab, &p));
    }
    ucs_status_t flush_worker()
    {
        ucp_request_param_t p = {};
        return finish(ucp_worker_flush_nbx(a().worker, &p));
    }
    template <class T>
    ucs_status_ptr_t amo(ucp_atomic_op_t op, const T &operand, uint64_t at, ucp_rkey_h rkey,
                         T *reply = nullptr)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_contig(sizeof(T));
        if (reply) {
            p.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
            p.reply_buffer = reply;
        }
        return ucp_atomic_op_nbx(ab, op, &operand, 1, at, rkey, &p);
    }
};

const size_t sizes[] = {1, 7, 8, 64, 100, 4096, 8191, 8192, 8193, 65536, 100001, 1048576, 3000000};

TEST_P(ucp_rma, b101_put_is_at_the_peer_after_flush)
{
    for (bool whole_worker : {false, true}) {
        for (size_t n : sizes) {
            std::vector<char> target(n + 2, 'x');
            std::vector<char> source = pattern(n, static_cast<unsigned>(n));
            region r(b(), ab, target.data(), target.size());
            ASSERT_EQ(UCS_OK, finish(put(source.data(), n, r.at(1), r.rkey))) << n;
            ASSERT_EQ(UCS_OK, whole_worker ? flush_worker() : flush_ep()) << n;
            EXPECT_EQ(0, memcmp(source.data(), target.data() + 1, n)) << n;
            EXPECT_EQ('x', target[0]) << n;
            EXPECT_EQ('x', target[n + 1]) << n;
        }
    }
}

TEST_P(ucp_rma, b101_get_has_the_data_when_complete)
{
    for (size_t n : sizes) {
        std::vector<char> source = pattern(n + 2, static_cast<unsigned>(n));
        std::vector<char> target(n + 2, 'x');
        region r(b(), ab, source.data(), source.size());
        ASSERT_EQ(UCS_OK, finish(get(target.data() + 1, n, r.at(1), r.rkey))) << n;
        EXPECT_EQ(0, memcmp(source.data() + 1, target.data() + 1, n)) << n;
        EXPECT_EQ('x', target[0]) << n;
        EXPECT_EQ('x', target[n + 1]) << n;
    }
}

TEST_P(ucp_rma, memory_of_the_library_is_read_and_written)
{
    constexpr size_t n = 300000;
    region r(b(), ab, nullptr, n);
    std::vector<char> source = pattern(n), back(n);
    ASSERT_EQ(UCS_OK, finish(put(source.data(), n, r.at(), r.rkey)));
    ASSERT_EQ(UCS_OK, flush_ep());
    EXPECT_EQ(0, memcmp(source.data(), r.data, n));
    ASSERT_EQ(UCS_OK, finish(get(back.data(), n, r.at(), r.rkey)));
    EXPECT_EQ(source, back);
}

TEST_P(ucp_rma, b103_registered_local_buffer)
{
    constexpr size_t n = 200000;
    std::vector<char> source = pattern(n), target(n);
    region local(a(), ab, source.data(), n);
    region r(b(), ab, target.data(), n);
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
    p.memh = local.memh;
    ASSERT_EQ(UCS_OK, finish(ucp_put_nbx(ab, source.data(), n, r.at(), r.rkey, &p)));
    ASSERT_EQ(UCS_OK, flush_ep());
    EXPECT_EQ(source, target);
}

TEST_P(ucp_rma, b104_zero_length_is_done_at_once)
{
    char target[8];
    region r(b(), ab, target, sizeof(target));
    EXPECT_EQ(nullptr, put(nullptr, 0, r.at(), r.rkey));
    EXPECT_EQ(nullptr, get(nullptr, 0, r.at(), r.rkey));
}

TEST_P(ucp_rma, b105_nbi_completes_by_flush)
{
    constexpr size_t count = 200, n = 3000;
    std::vector<char> target(count * n), back(count * n);
    std::vector<char> source = pattern(count * n);
    region r(b(), ab, target.data(), target.size());
    for (size_t i = 0; i < count; ++i) {
        ucs_status_t s = ucp_put_nbi(ab, source.data() + i * n, n, r.at(i * n), r.rkey);
        ASSERT_TRUE(s == UCS_OK || s == UCS_INPROGRESS) << ucs_status_string(s);
    }
    ASSERT_EQ(UCS_OK, flush_worker());
    EXPECT_EQ(source, target);
    for (size_t i = 0; i < count; ++i) {
        ucs_status_t s = ucp_get_nbi(ab, back.data() + i * n, n, r.at(i * n), r.rkey);
        ASSERT_TRUE(s == UCS_OK || s == UCS_INPROGRESS) << ucs_status_string(s);
    }
    ASSERT_EQ(UCS_OK, flush_ep());
    EXPECT_EQ(source, back);
}

TEST_P(ucp_rma, b107_overlapping_registrations)
{
    std::vector<char> target(8192, 'x');
    region whole(b(), ab, target.data(), 8192);
    region part(b(), ab, target.data() + 1000, 4000);
    std::vector<char> source = pattern(4000);
    ASSERT_EQ(UCS_OK, finish(put(source.data(), 4000, part.at(), part.rkey)));
    ASSERT_EQ(UCS_OK, flush_ep());
    std::vector<char> back(4000);
    ASSERT_EQ(UCS_OK, finish(get(back.data(), 4000, whole.at(1000), whole.rkey)));
    EXPECT_EQ(source, back);
}

TEST_P(ucp_rma, b109_fence_orders_puts)
{
    struct pair_of {
        uint64_t data, flag;
    };
    pair_of target = {0, 0};
    region r(b(), ab, &target, sizeof(target));
    for (uint64_t i = 1; i <= 200; ++i) {
        ASSERT_FALSE(UCS_STATUS_IS_ERR(
            ucp_put_nbi(ab, &i, sizeof(i), r.at(offsetof(pair_of, data)), r.rkey)));
        ASSERT_EQ(UCS_OK, ucp_worker_fence(a().worker));
        ASSERT_FALSE(UCS_STATUS_IS_ERR(
            ucp_put_nbi(ab, &i, sizeof(i), r.at(offsetof(pair_of, flag)), r.rkey)));
        // i must stay as it is until both are done.
        bool arrived = until([&] {
            auto flag = *const_cast<volatile uint64_t *>(&target.flag);
            auto data = *const_cast<volatile uint64_t *>(&target.data);
            EXPECT_GE(data, flag);
            return flag == i;
        });
        ASSERT_TRUE(arrived);
        ASSERT_EQ(UCS_OK, flush_ep());
    }
}

TEST_P(ucp_rma, b109_fence_orders_little_and_large)
{
    std::vector<char> target(20000);
    region r(b(), ab, target.data(), target.size());
    std::vector<char> large(target.size());
    std::vector<char> seen(target.size());
    for (int i = 1; i <= 100; ++i) {
        auto mark = static_cast<char>(i);
        std::vector<char> little(8, mark);
        ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(ab, little.data(), 8, r.at(100), r.rkey)));
        ASSERT_EQ(UCS_OK, ucp_worker_fence(a().worker));
        // What is read after the fence has the little one, what is written hides it.
        ASSERT_EQ(UCS_OK, finish(get(seen.data(), seen.size(), r.at(), r.rkey)));
        ASSERT_EQ(mark, seen[100]);
        ASSERT_EQ(mark, seen[107]);
        ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(ab, little.data(), 8, r.at(200), r.rkey)));
        ASSERT_EQ(UCS_OK, ucp_worker_fence(a().worker));
        std::fill(large.begin(), large.end(), static_cast<char>(-i));
        ASSERT_EQ(UCS_OK, finish(put(large.data(), large.size(), r.at(), r.rkey)));
        ASSERT_EQ(UCS_OK, flush_ep());
        ASSERT_EQ(large, target);
    }
}

template <class T>
void apply(ucp_atomic_op_t op, T &value, T operand, T swap)
{
    switch (op) {
    case UCP_ATOMIC_OP_ADD:
        value = static_cast<T>(value + operand);
        break;
    case UCP_ATOMIC_OP_SWAP:
        value = operand;
        break;
    case UCP_ATOMIC_OP_CSWAP:
        value = value == operand ? swap : value;
        break;
    case UCP_ATOMIC_OP_AND:
        value &= operand;
        break;
    case UCP_ATOMIC_OP_OR:
        value |= operand;
        break;
    case UCP_ATOMIC_OP_XOR:
        value ^= operand;
        break;
    case UCP_ATOMIC_OP_LAST:
        break;
    }
}

// What the operations do to one number, next to a neighbour that they must not touch.
#define ATOMIC_TEST(name, T)                                                                       \
    TEST_P(ucp_rma, name)                                                                          \
    {                                                                                              \
        const T first = static_cast<T>(0x1122334455667788u), keep = static_cast<T>(0x5a5a5a5a);    \
        alignas(8) T target[2] = {first, keep};                                                    \
        region r(b(), ab, target, sizeof(target));                                                 \
        T expected = first;                                                                        \
        for (auto op :                                                                             \
             {UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_AND, UCP_ATOMIC_OP_OR, UCP_ATOMIC_OP_XOR}) {        \
            const T operand = static_cast<T>(0xf0f0f0f0f0f0f0f1u);                                 \
            ASSERT_EQ(UCS_OK, finish(amo<T>(op, operand, r.at(), r.rkey))) << op;                  \
            ASSERT_EQ(UCS_OK, flush_ep());                                                         \
            apply<T>(op, expected, operand, 0);                                                    \
            EXPECT_EQ(expected, target[0]) << op;                                                  \
        }                                                                                          \
        for (auto op : {UCP_ATOMIC_OP_ADD, UCP_ATOMIC_OP_SWAP, UCP_ATOMIC_OP_CSWAP,                \
                        UCP_ATOMIC_OP_AND, UCP_ATOMIC_OP_OR, UCP_ATOMIC_OP_XOR}) {                 \
            for (T operand : {expected, static_cast<T>(0xf0f0)}) {                                 \
                const T before = expected, swap = static_cast<T>(0x77777777);                      \
                T reply = swap;                                                                    \
                ASSERT_EQ(UCS_OK, finish(amo<T>(op, operand, r.at(), r.rkey, &reply))) << op;      \
                EXPECT_EQ(before, reply) << op;                                                    \
                apply<T>(op, expected, operand, swap);                                             \
                EXPECT_EQ(expected, target[0]) << op;                                              \
            }                                                                                      \
        }                                                                                          \
        EXPECT_EQ(keep, target[1]);                                                                \
    }

ATOMIC_TEST(b114_b115_atomic_operations_on_4_bytes, uint32_t)
ATOMIC_TEST(b114_b115_atomic_operations_on_8_bytes, uint64_t)

TEST_P(ucp_rma, b118_atomics_of_both_sides_are_mutually_atomic)
{
    if (is_self()) {
        GTEST_SKIP() << "one initiator only";
    }
    alignas(8) uint64_t target = 0;
    region from_a(b(), ab, &target, sizeof(target));
    // b's own endpoint to itself, and a key for it.
    ucp_ep_h bb = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(b(), b().address(), &bb));
    {
        region from_b(b(), bb, &target, sizeof(target));
        const uint64_t one = 1;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_contig(8);
        for (int i = 0; i < 300; ++i) {
            ucs_status_ptr_t x = amo<uint64_t>(UCP_ATOMIC_OP_ADD, one, from_a.at(), from_a.rkey);
            ucs_status_ptr_t y =
                ucp_atomic_op_nbx(bb, UCP_ATOMIC_OP_ADD, &one, 1, from_b.at(), from_b.rkey, &p);
            ASSERT_EQ(UCS_OK, finish(x));
            ASSERT_EQ(UCS_OK, finish(y));
        }
        ASSERT_EQ(UCS_OK, flush_ep());
        ucp_request_param_t none = {};
        ASSERT_EQ(UCS_OK, finish(ucp_ep_flush_nbx(bb, &none)));
        EXPECT_EQ(600u, target);
    }
    EXPECT_EQ(UCS_OK, finish(close_nb(bb)));
}

TEST_P(ucp_rma, b116_old_forms_of_atomic_operations)
{
    alignas(8) uint64_t target = 10;
    region r(b(), ab, &target, sizeof(target));
    ucs_status_t s = ucp_atomic_post(ab, UCP_ATOMIC_POST_OP_ADD, 5, 8, r.at(), r.rkey);
    ASSERT_TRUE(s == UCS_OK || s == UCS_INPROGRESS);
    ASSERT_EQ(UCS_OK, flush_ep());
    EXPECT_EQ(15u, target);

    uint64_t result = 0;
    ASSERT_EQ(UCS_OK, finish(ucp_atomic_fetch_nb(ab, UCP_ATOMIC_FETCH_OP_FADD, 1, &result, 8,
                                                 r.at(), r.rkey, [](void *, ucs_status_t) {})));
    EXPECT_EQ(15u, result);
    result = 99;
    ASSERT_EQ(UCS_OK, finish(ucp_atomic_fetch_nb(ab, UCP_ATOMIC_FETCH_OP_CSWAP, 16, &result, 8,
                                                 r.at(), r.rkey, [](void *, ucs_status_t) {})));
    EXPECT_EQ(16u, result);
    EXPECT_EQ(99u, target);
}

TEST_P(ucp_rma, b131_flush_of_an_idle_endpoint)
{
    EXPECT_EQ(UCS_OK, flush_ep());
    EXPECT_EQ(UCS_OK, flush_worker());
}

TEST_P(ucp_rma, b133_several_flushes_at_a_time)
{
    std::vector<char> target(100000), source = pattern(100000);
    region r(b(), ab, target.data(), target.size());
    ASSERT_FALSE(UCS_STATUS_IS_ERR(ucp_put_nbi(ab, source.data(), source.size(), r.at(), r.rkey)));
    ucp_request_param_t p = {};
    std::vector<ucs_status_ptr_t> flushes;
    for (int i = 0; i < 10; ++i) {
        flushes.push_back(i % 2 ? ucp_ep_flush_nbx(ab, &p) : ucp_worker_flush_nbx(a().worker, &p));
    }
    for (ucs_status_ptr_t f : flushes) {
        EXPECT_EQ(UCS_OK, finish(f));
    }
    EXPECT_EQ(source, target);
}

TEST_P(ucp_rma, b120_registration_by_address_and_length)
{
    for (size_t n : {size_t(1), size_t(4095), size_t(100000)}) {
        std::vector<char> memory(n + 3);
        region r(b(), ab, memory.data() + 3, n);
        ucp_mem_attr_t attr = {};
        attr.field_mask =
            UCP_MEM_ATTR_FIELD_ADDRESS | UCP_MEM_ATTR_FIELD_LENGTH | UCP_MEM_ATTR_FIELD_MEM_TYPE;
        ASSERT_EQ(UCS_OK, ucp_mem_query(r.memh, &attr));
        auto *first = static_cast<char *>(attr.address);
        EXPECT_LE(first, memory.data() + 3);
        EXPECT_GE(first + attr.length, memory.data() + 3 + n);
        EXPECT_EQ(UCS_MEMORY_TYPE_HOST, attr.mem_type);
    }
}

TEST_P(ucp_rma, b122_registration_of_nothing)
{
    region r(b(), ab, nullptr, 0);
    EXPECT_NE(nullptr, r.rkey);
}

TEST_P(ucp_rma, b124_allocation_at_an_address)
{
    constexpr size_t n = 1 << 20;
    void *hole = mmap(nullptr, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, hole); // what a program has set aside gives way
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.address = hole;
    params.length = n;
    params.flags = UCP_MEM_MAP_ALLOCATE | UCP_MEM_MAP_FIXED;
    ucp_mem_h memh;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a().context, &params, &memh));
    ucp_mem_attr_t attr = {};
    attr.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS;
    ASSERT_EQ(UCS_OK, ucp_mem_query(memh, &attr));
    EXPECT_EQ(hole, attr.address);
    memset(hole, 1, n);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a().context, memh));
}

TEST_P(ucp_rma, b125_advice)
{
    std::vector<char> memory(100000);
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_FLAGS;
    params.address = memory.data();
    params.length = memory.size();
    params.flags = UCP_MEM_MAP_NONBLOCK;
    ucp_mem_h memh;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a().context, &params, &memh));
    ucp_mem_advise_params_t advise = {};
    advise.field_mask = UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS | UCP_MEM_ADVISE_PARAM_FIELD_LENGTH |
                        UCP_MEM_ADVISE_PARAM_FIELD_ADVICE;
    advise.address = memory.data();
    advise.length = memory.size();
    advise.advice = UCP_MADV_WILLNEED;
    EXPECT_EQ(UCS_OK, ucp_mem_advise(a().context, memh, &advise));
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a().context, memh));
}

TEST_P(ucp_rma, b127_rkey_ptr_is_the_memory_or_says_no)
{
    region r(b(), ab, nullptr, 8192);
    memcpy(r.data + 100, "right here", 11);
    ASSERT_EQ(UCS_OK, flush_ep()); // the endpoint is wired up
    void *local = nullptr;
    ucs_status_t status = ucp_rkey_ptr(r.rkey, r.at(100), &local);
    if (status == UCS_OK) {
        EXPECT_STREQ("right here", static_cast<char *>(local));
    } else {
        EXPECT_EQ(UCS_ERR_UNREACHABLE, status);
    }
}

#if UCP_API_VERSION >= UCP_VERSION(1, 16)
TEST_P(ucp_rma, b128_keys_have_an_order)
{
    char memory[2][64];
    region x(b(), ab, memory[0], 64), y(b(), ab, memory[1], 64);
    ucp_rkey_compare_params_t p = {};
    int xx, xy, yx;
    ASSERT_EQ(UCS_OK, ucp_rkey_compare(a().worker, x.rkey, x.rkey, &p, &xx));
    ASSERT_EQ(UCS_OK, ucp_rkey_compare(a().worker, x.rkey, y.rkey, &p, &xy));
    ASSERT_EQ(UCS_OK, ucp_rkey_compare(a().worker, y.rkey, x.rkey, &p, &yx));
    EXPECT_EQ(0, xx);
    EXPECT_TRUE((xy < 0 && yx > 0) || (xy > 0 && yx < 0) || (xy == 0 && yx == 0));
}
#endif

TEST_P(ucp_rma, b136_fetch_sees_an_add_before_a_fence)
{
    alignas(8) uint64_t target = 0;
    region r(b(), ab, &target, sizeof(target));
    for (uint64_t i = 0; i < 200; ++i) {
        const uint64_t one = 1;
        ucs_status_ptr_t add = amo<uint64_t>(UCP_ATOMIC_OP_ADD, one, r.at(), r.rkey);
        ASSERT_EQ(UCS_OK, ucp_worker_fence(a().worker));
        uint64_t before = 0;
        ASSERT_EQ(UCS_OK, finish(amo<uint64_t>(UCP_ATOMIC_OP_ADD, one, r.at(), r.rkey, &before)));
        ASSERT_EQ(UCS_OK, finish(add));
        ASSERT_EQ(2 * i + 1, before);
    }
}

TEST_P(ucp_rma, callback_of_a_flush_may_destroy_keys)
{
    std::vector<char> target(50000), source = pattern(50000);
    auto r = std::make_unique<region>(b(), ab, target.data(), target.size());
    ASSERT_FALSE(
        UCS_STATUS_IS_ERR(ucp_put_nbi(ab, source.data(), source.size(), r->at(), r->rkey)));
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.send = [](void *, ucs_status_t status, void *arg) {
        EXPECT_EQ(UCS_OK, status);
        static_cast<std::unique_ptr<region> *>(arg)->reset();
    };
    p.user_data = &r;
    ucs_status_ptr_t flush = ucp_ep_flush_nbx(ab, &p);
    bool called = UCS_PTR_IS_PTR(flush);
    EXPECT_EQ(UCS_OK, finish(flush));
    EXPECT_EQ(called, r == nullptr);
    EXPECT_EQ(source, target);
}

UCP_TEST_OVER_ALL(ucp_rma);

} // namespace
