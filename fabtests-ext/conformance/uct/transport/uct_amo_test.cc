// SPDX-License-Identifier: BSD-3-Clause
// Atomic operations: every operation of the capability masks, of both widths, on registered memory
// and on memory that the domain allocated, and what the masks leave out.
#include "fabtests-ext/conformance/common/uct_remote.h"

namespace uct_conformance {
namespace {

template <class T>
T expected(unsigned op, T before, T value)
{
    switch (op) {
    case UCT_ATOMIC_OP_ADD:
        return static_cast<T>(before + value);
    case UCT_ATOMIC_OP_AND:
        return before & value;
    case UCT_ATOMIC_OP_OR:
        return before | value;
    case UCT_ATOMIC_OP_XOR:
        return before ^ value;
    default:
        return value;
    }
}

class uct_amo : public uct_remote {
  protected:
    struct place {
        uint64_t address; // at b
        uct_rkey_t key;   // at a
    };

    template <class T>
    ucs_status_t atomic_post(unsigned op, T value, place at)
    {
        if constexpr (sizeof(T) == 4) {
            return uct_ep_atomic32_post(ep, static_cast<uct_atomic_op_t>(op), value, at.address,
                                        at.key);
        } else {
            return uct_ep_atomic64_post(ep, static_cast<uct_atomic_op_t>(op), value, at.address,
                                        at.key);
        }
    }

    template <class T>
    ucs_status_t atomic_fetch(unsigned op, T value, T *result, place at, uct_completion_t *c)
    {
        if constexpr (sizeof(T) == 4) {
            return uct_ep_atomic32_fetch(ep, static_cast<uct_atomic_op_t>(op), value, result,
                                         at.address, at.key, c);
        } else {
            return uct_ep_atomic64_fetch(ep, static_cast<uct_atomic_op_t>(op), value, result,
                                         at.address, at.key, c);
        }
    }

    template <class T>
    ucs_status_t cswap(T compare, T swap, T *result, place at, uct_completion_t *c)
    {
        if constexpr (sizeof(T) == 4) {
            return uct_ep_atomic_cswap32(ep, compare, swap, at.address, at.key, result, c);
        } else {
            return uct_ep_atomic_cswap64(ep, compare, swap, at.address, at.key, result, c);
        }
    }

    template <class T>
    void expect_posts(uint64_t ops, place at)
    {
        auto *cell = reinterpret_cast<T *>(at.address);
        const T value = static_cast<T>(0x0f0f0f0f0f0f0f05);
        for (unsigned op = 0; op < UCT_ATOMIC_OP_LAST; ++op) {
            T before = static_cast<T>(0xf0a5a5a5ff000001);
            *cell = before;
            ucs_status_t status = post([&] { return atomic_post<T>(op, value, at); });
            if (ops & UCS_BIT(op)) {
                ASSERT_EQ(status, UCS_OK) << op;
                flush();
                EXPECT_EQ(*cell, expected(op, before, value)) << op;
            } else {
                EXPECT_EQ(status, UCS_ERR_UNSUPPORTED) << op;
                EXPECT_EQ(*cell, before) << op;
            }
        }
    }

    template <class T>
    void expect_fetches(uint64_t ops, place at)
    {
        auto *cell = reinterpret_cast<T *>(at.address);
        const T value = static_cast<T>(0x00ff00ff12345671);
        for (unsigned op = 0; op < UCT_ATOMIC_OP_CSWAP; ++op) {
            T before = static_cast<T>(0xf0a5a5a5ff0000f1);
            T result = 0;
            *cell = before;
            if (ops & UCS_BIT(op)) {
                run([&](uct_completion_t *c) {
                    return atomic_fetch<T>(op, value, &result, at, c);
                });
                EXPECT_EQ(result, before) << op;
                EXPECT_EQ(*cell, expected(op, before, value)) << op;
            } else {
                EXPECT_EQ(atomic_fetch<T>(op, value, &result, at, nullptr), UCS_ERR_UNSUPPORTED);
            }
        }
    }

    template <class T>
    void expect_cswap(uint64_t ops, place at)
    {
        auto *cell = reinterpret_cast<T *>(at.address);
        T result = 0;
        *cell = 7;
        if (!(ops & UCS_BIT(UCT_ATOMIC_OP_CSWAP))) {
            EXPECT_EQ(cswap<T>(7, 9, &result, at, nullptr), UCS_ERR_UNSUPPORTED);
            return;
        }
        run([&](uct_completion_t *c) { return cswap<T>(7, 9, &result, at, c); });
        EXPECT_EQ(result, 7u);
        EXPECT_EQ(*cell, 9u);
        run([&](uct_completion_t *c) { return cswap<T>(7, 11, &result, at, c); });
        EXPECT_EQ(result, 9u);
        EXPECT_EQ(*cell, 9u) << "swapped though the comparison failed";
    }

    void expect_all(place at)
    {
        const auto &cap = a().attr.cap;
        expect_posts<uint32_t>(cap.atomic32.op_flags, at);
        expect_posts<uint64_t>(cap.atomic64.op_flags, at);
        expect_fetches<uint32_t>(cap.atomic32.fop_flags, at);
        expect_fetches<uint64_t>(cap.atomic64.fop_flags, at);
        expect_cswap<uint32_t>(cap.atomic32.fop_flags, at);
        expect_cswap<uint64_t>(cap.atomic64.fop_flags, at);
    }

    bool has_add() const { return a_->attr.cap.atomic64.op_flags & UCS_BIT(UCT_ATOMIC_OP_ADD); }
};

TEST_P(uct_amo, 204_all_operations_of_the_masks)
{
    expect_all({address + 64, key.rkey});
}

TEST_P(uct_amo, 204_flags_tell_of_atomics)
{
    const auto &cap = a().attr.cap;
    bool any = (cap.atomic32.op_flags | cap.atomic32.fop_flags | cap.atomic64.op_flags |
                cap.atomic64.fop_flags) != 0;
    EXPECT_EQ((cap.flags & (UCT_IFACE_FLAG_ATOMIC_CPU | UCT_IFACE_FLAG_ATOMIC_DEVICE)) != 0, any);
}

TEST_P(uct_amo, 204_on_memory_of_the_domain)
{
    if (!(b().md_attr.cap.flags & UCT_MD_FLAG_ALLOC)) {
        GTEST_SKIP() << "the domain does not allocate";
    }
    uct_mem_alloc_params_t params{};
    params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_MDS;
    params.mds = {&b().md, 1};
    uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
    uct_allocated_memory_t mem;
    ASSERT_EQ(uct_mem_alloc(4096, &method, 1, &params, &mem), UCS_OK);
    std::vector<char> packed_key(b().md_attr.rkey_packed_size);
    ASSERT_EQ(uct_md_mkey_pack(b().md, mem.memh, packed_key.data()), UCS_OK);
    uct_rkey_bundle_t mapped;
    ASSERT_EQ(uct_rkey_unpack(a().component, packed_key.data(), &mapped), UCS_OK);
    expect_all({reinterpret_cast<uint64_t>(mem.address) + 128, mapped.rkey});
    EXPECT_EQ(uct_rkey_release(a().component, &mapped), UCS_OK);
    EXPECT_EQ(uct_mem_free(&mem), UCS_OK);
}

TEST_P(uct_amo, 204_fence_orders_what_follows_an_atomic)
{
    if (!has_add()) {
        GTEST_SKIP() << "no atomics";
    }
    place at{address, key.rkey};
    auto *cell = reinterpret_cast<uint64_t *>(address);
    for (uint64_t i = 0; i < 200; ++i) {
        *cell = 0;
        ASSERT_EQ(post([&] { return atomic_post<uint64_t>(UCT_ATOMIC_OP_ADD, 5, at); }), UCS_OK);
        ASSERT_EQ(uct_ep_fence(ep, 0), UCS_OK);
        uint64_t last = 1000 + i;
        ASSERT_EQ(post([&] { return uct_ep_put_short(ep, &last, 8, address, key.rkey); }), UCS_OK);
        flush();
        ASSERT_EQ(*cell, last);
    }
}

TEST_P(uct_amo, 204_many_adds_are_all_done_after_a_flush)
{
    if (!has_add()) {
        GTEST_SKIP() << "no atomics";
    }
    place at{address, key.rkey};
    auto *cell = reinterpret_cast<uint64_t *>(address);
    *cell = 0;
    for (uint64_t i = 1; i <= 3000; ++i) {
        ASSERT_EQ(post([&] { return atomic_post<uint64_t>(UCT_ATOMIC_OP_ADD, i, at); }), UCS_OK);
    }
    flush();
    EXPECT_EQ(*cell, 3000u * 3001u / 2);
}

TEST_P(uct_amo, 204_unaligned_addresses_are_refused)
{
    if (!has_add()) {
        GTEST_SKIP() << "no atomics";
    }
    EXPECT_EQ(atomic_post<uint64_t>(UCT_ATOMIC_OP_ADD, 1, {address + 4, key.rkey}),
              UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(atomic_post<uint32_t>(UCT_ATOMIC_OP_ADD, 1, {address + 2, key.rkey}),
              UCS_ERR_INVALID_PARAM);
    uint64_t result;
    EXPECT_EQ(cswap<uint64_t>(1, 2, &result, {address + 1, key.rkey}, nullptr),
              UCS_ERR_INVALID_PARAM);
}

TEST_P(uct_amo, 204_completion_counts_once_when_the_endpoint_is_cancelled)
{
    if (!has_add()) {
        GTEST_SKIP() << "no atomics";
    }
    uint64_t result = 0;
    guard g;
    ucs_status_t status = post([&] {
        return atomic_fetch<uint64_t>(UCT_ATOMIC_OP_ADD, 1, &result, {address, key.rkey},
                                      &g.completion);
    });
    ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS);
    EXPECT_EQ(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, nullptr), UCS_OK);
    for (int i = 0; i < 1000; ++i) {
        progress();
    }
    EXPECT_EQ(g.calls, status == UCS_INPROGRESS);
    a().destroy(ep);
    ep = a().connect(b());
}

UCT_INSTANTIATE(uct_amo);

} // namespace
} // namespace uct_conformance
