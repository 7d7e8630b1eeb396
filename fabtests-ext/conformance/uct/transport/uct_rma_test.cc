// SPDX-License-Identifier: BSD-3-Clause
// Put, get, and the memory they reach.
#include "fabtests-ext/conformance/common/uct_remote.h"

namespace uct_conformance {
namespace {

class uct_rma : public uct_remote {};

TEST_P(uct_rma, 202_put_short)
{
    if (!a().has(UCT_IFACE_FLAG_PUT_SHORT)) {
        GTEST_SKIP();
    }
    std::string data = pattern(std::min<size_t>(a().attr.cap.put.max_short, 1000), 1);
    ASSERT_EQ(post([&] {
                  return uct_ep_put_short(ep, data.data(), static_cast<unsigned>(data.size()),
                                          address + 77, key.rkey);
              }),
              UCS_OK);
    flush();
    EXPECT_TRUE(target.substr(77, data.size()) == data);
    EXPECT_EQ(target[76], 't');
    EXPECT_EQ(target[77 + data.size()], 't');
}

TEST_P(uct_rma, 202_put_bcopy)
{
    if (!a().has(UCT_IFACE_FLAG_PUT_BCOPY)) {
        GTEST_SKIP();
    }
    packed p{pattern(std::min<size_t>(a().attr.cap.put.max_bcopy, 8000), 1)};
    ASSERT_EQ(post([&] { return uct_ep_put_bcopy(ep, pack, &p, address + 5, key.rkey); }),
              static_cast<ssize_t>(p.data.size()));
    EXPECT_EQ(p.calls, 1);
    flush();
    EXPECT_TRUE(target.substr(5, p.data.size()) == p.data);
}

TEST_P(uct_rma, 202_put_zcopy)
{
    if (!a().has(UCT_IFACE_FLAG_PUT_ZCOPY)) {
        GTEST_SKIP();
    }
    for (size_t length : {1ul, 4096ul, size}) {
        fill(local, static_cast<unsigned>(length));
        uct_iov_t iov{local.data(), length, local_memh, 0, 1};
        run([&](uct_completion_t *c) {
            return uct_ep_put_zcopy(ep, &iov, 1, address, key.rkey, c);
        });
        flush();
        EXPECT_TRUE(target.substr(0, length) == local.substr(0, length));
    }
}

TEST_P(uct_rma, 202_get_bcopy)
{
    if (!a().has(UCT_IFACE_FLAG_GET_BCOPY)) {
        GTEST_SKIP();
    }
    fill(target, 3);
    std::string got;
    run([&](uct_completion_t *c) {
        return uct_ep_get_bcopy(
            ep,
            [](void *arg, const void *data, size_t length) {
                static_cast<std::string *>(arg)->assign(static_cast<const char *>(data), length);
            },
            &got, 8000, address + 11, key.rkey, c);
    });
    EXPECT_TRUE(got == target.substr(11, 8000));
}

TEST_P(uct_rma, 202_get_zcopy)
{
    if (!a().has(UCT_IFACE_FLAG_GET_ZCOPY)) {
        GTEST_SKIP();
    }
    for (size_t length : {1ul, 4096ul, size}) {
        fill(target, static_cast<unsigned>(length));
        uct_iov_t iov{local.data(), length, local_memh, 0, 1};
        run([&](uct_completion_t *c) {
            return uct_ep_get_zcopy(ep, &iov, 1, address, key.rkey, c);
        });
        EXPECT_TRUE(local.substr(0, length) == target.substr(0, length));
    }
}

// `later`: how much later in its page the destination begins than the source. For some of these
// offsets sm copies through a buffer (sm/copy.cc).
TEST_P(uct_rma, zcopy_moves_all_bytes_wherever_they_begin)
{
    constexpr size_t page = 4096;
    auto here = reinterpret_cast<uintptr_t>(local.data());
    for (size_t later : {0, 8, 31, 32}) {
        for (size_t length : {4095, 4096, 32769, 90001}) {
            SCOPED_TRACE(std::to_string(later) + " later, " + std::to_string(length) + " bytes");
            if (a().has(UCT_IFACE_FLAG_PUT_ZCOPY)) {
                size_t at = (here - address + later) % page;
                fill(local, static_cast<unsigned>(length + later));
                uct_iov_t iov{local.data(), length, local_memh, 0, 1};
                run([&](uct_completion_t *c) {
                    return uct_ep_put_zcopy(ep, &iov, 1, address + at, key.rkey, c);
                });
                flush();
                EXPECT_EQ(0, target.compare(at, length, local, 0, length));
            }
            if (a().has(UCT_IFACE_FLAG_GET_ZCOPY)) {
                size_t at = (address - here + later) % page;
                fill(target, static_cast<unsigned>(length + later + 1));
                uct_iov_t iov{local.data() + at, length, local_memh, 0, 1};
                run([&](uct_completion_t *c) {
                    return uct_ep_get_zcopy(ep, &iov, 1, address, key.rkey, c);
                });
                EXPECT_EQ(0, local.compare(at, length, target, 0, length));
            }
        }
    }
}

// Three blocks of 100 bytes, 256 apart, and one without a gap behind them.
TEST_P(uct_rma, zcopy_moves_the_blocks_of_an_entry_and_nothing_between_them)
{
    bool puts = a().has(UCT_IFACE_FLAG_PUT_ZCOPY) && a().attr.cap.put.max_iov >= 4;
    bool gets = a().has(UCT_IFACE_FLAG_GET_ZCOPY) && a().attr.cap.get.max_iov >= 4;
    if (!puts && !gets) {
        GTEST_SKIP() << "gathers nothing";
    }
    uct_iov_t iov[] = {{local.data(), 100, local_memh, 256, 3},
                       {local.data() + 1000, 50, local_memh, 50, 2}};
    auto blocks = [&] {
        return local.substr(0, 100) + local.substr(256, 100) + local.substr(512, 100) +
               local.substr(1000, 100);
    };
    if (puts) {
        fill(local, 5);
        run([&](uct_completion_t *c) {
            return uct_ep_put_zcopy(ep, iov, 2, address, key.rkey, c);
        });
        flush();
        EXPECT_TRUE(target.substr(0, 400) == blocks());
    }
    if (gets) {
        fill(target, 7);
        std::string before = local;
        run([&](uct_completion_t *c) {
            return uct_ep_get_zcopy(ep, iov, 2, address, key.rkey, c);
        });
        EXPECT_TRUE(blocks() == target.substr(0, 400));
        EXPECT_TRUE(local.substr(100, 156) == before.substr(100, 156)) << "the first gap";
        EXPECT_TRUE(local.substr(612, 388) == before.substr(612, 388)) << "behind the blocks";
    }
}

TEST_P(uct_rma, each_block_counts_for_max_iov)
{
    if (!a().has(UCT_IFACE_FLAG_PUT_ZCOPY) || alone()) {
        GTEST_SKIP();
    }
    uct_iov_t iov{local.data(), 8, local_memh, 16,
                  static_cast<unsigned>(a().attr.cap.put.max_iov) + 1};
    guard g;
    ucs_status_t status =
        posting([&] { return uct_ep_put_zcopy(ep, &iov, 1, address, key.rkey, &g.completion); });
    EXPECT_TRUE(status == UCS_ERR_INVALID_PARAM || status == UCS_OK) << ucs_status_string(status);
    EXPECT_EQ(g.calls, 0);
}

// Over self there is no other thread; over verbs the device answers.
TEST_P(uct_rma, reads_are_answered_though_the_target_does_nothing)
{
    if (!a().has(UCT_IFACE_FLAG_GET_ZCOPY) || alone()) {
        GTEST_SKIP();
    }
    if (std::string(GetParam()) == "tcprdm") {
        GTEST_SKIP() << "the core answers when its application progresses";
    }
    progress(); // the key was packed before
    constexpr size_t large = 100'000;
    for (unsigned round = 0; round < 200; ++round) {
        size_t length = round % 2 ? 8 : large, at = round % 2 ? large : 0;
        // What a round reads is written again two rounds later. The thread that answers has read it
        // before it sends its next answer; before it sends this one only in fact: for the thread
        // sanitizer, a call reads what it sends after the bytes have left.
        fill_pattern(target.data() + at, length, round);
        uct_iov_t iov{local.data(), length, local_memh, 0, 1};
        guard g;
        ucs_status_t status = post(
            [&] { return uct_ep_get_zcopy(ep, &iov, 1, address + at, key.rkey, &g.completion); });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS);
        auto end = std::chrono::steady_clock::now() + patience;
        while (status == UCS_INPROGRESS && g.calls == 0 && std::chrono::steady_clock::now() < end) {
            uct_worker_progress(a().worker);
        }
        ASSERT_EQ(g.calls, status == UCS_INPROGRESS);
        ASSERT_TRUE(local.compare(0, length, target, at, length) == 0);
    }
}

TEST_P(uct_rma, 202_many_puts_then_flush)
{
    if (!a().has(UCT_IFACE_FLAG_PUT_SHORT)) {
        GTEST_SKIP();
    }
    for (uint64_t i = 0; i < 2000; ++i) {
        ASSERT_EQ(post([&] { return uct_ep_put_short(ep, &i, 8, address + i * 8, key.rkey); }),
                  UCS_OK);
    }
    flush();
    for (uint64_t i = 0; i < 2000; ++i) {
        uint64_t value;
        memcpy(&value, target.data() + i * 8, 8);
        ASSERT_EQ(value, i);
    }
}

TEST_P(uct_rma, 202_get_short)
{
    if (!a().has(UCT_IFACE_FLAG_GET_SHORT)) {
        EXPECT_EQ(uct_ep_get_short(ep, local.data(), 8, address, key.rkey), UCS_ERR_UNSUPPORTED);
        return;
    }
    fill(target, 5);
    for (unsigned length : {0u, 1u, 8u, 1000u}) {
        std::string got(length + 1, 'g');
        ASSERT_EQ(
            post([&] { return uct_ep_get_short(ep, got.data(), length, address + 9, key.rkey); }),
            UCS_OK);
        EXPECT_EQ(got, target.substr(9, length) + 'g');
    }
}

TEST_P(uct_rma, 211_allocated_memory_is_mapped_by_peers)
{
    uct_component_attr_t about{};
    about.field_mask = UCT_COMPONENT_ATTR_FIELD_FLAGS;
    ASSERT_EQ(uct_component_query(a().component, &about), UCS_OK);
    if (!(about.flags & UCT_COMPONENT_FLAG_RKEY_PTR)) {
        GTEST_SKIP() << "no rkey_ptr";
    }
    uct_mem_alloc_params_t params{};
    params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_MDS;
    params.mds = {&b().md, 1};
    uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
    uct_allocated_memory_t mem;
    ASSERT_EQ(uct_mem_alloc(10000, &method, 1, &params, &mem), UCS_OK);
    memset(mem.address, 'm', mem.length);
    std::vector<char> packed_key(b().md_attr.rkey_packed_size);
    ASSERT_EQ(uct_md_mkey_pack(b().md, mem.memh, packed_key.data()), UCS_OK);
    uct_rkey_bundle_t mapped;
    ASSERT_EQ(uct_rkey_unpack(a().component, packed_key.data(), &mapped), UCS_OK);
    auto at = reinterpret_cast<uint64_t>(mem.address);
    void *here = nullptr;
    ASSERT_EQ(uct_rkey_ptr(a().component, &mapped, at + 16, &here), UCS_OK);
    EXPECT_NE(here, static_cast<char *>(mem.address) + 16);
    memcpy(here, "hello", 6);
    EXPECT_STREQ(static_cast<char *>(mem.address) + 16, "hello");
    EXPECT_EQ(uct_rkey_ptr(a().component, &mapped, at + mem.length - 1, &here), UCS_OK);
    for (uint64_t outside : {at - 1, at + mem.length}) {
        EXPECT_EQ(uct_rkey_ptr(a().component, &mapped, outside, &here), UCS_ERR_INVALID_ADDR);
    }
    EXPECT_EQ(uct_rkey_ptr(a().component, &key, address, &here), UCS_ERR_UNREACHABLE);
    uint64_t value = 42;
    ASSERT_EQ(uct_ep_put_short(ep, &value, 8, at + 64, mapped.rkey), UCS_OK);
    EXPECT_EQ(memcmp(static_cast<char *>(mem.address) + 64, &value, 8), 0);
    uint64_t got = 0;
    uct_iov_t iov{&got, 8, UCT_MEM_HANDLE_NULL, 0, 1};
    guard g;
    ASSERT_EQ(uct_ep_get_zcopy(ep, &iov, 1, at + 64, mapped.rkey, &g.completion), UCS_OK);
    EXPECT_EQ(got, 42u);
    EXPECT_EQ(g.calls, 0);
    EXPECT_EQ(uct_rkey_release(a().component, &mapped), UCS_OK);
    EXPECT_EQ(uct_mem_free(&mem), UCS_OK);
}

TEST_P(uct_rma, 211_foreign_keys_are_refused)
{
    std::vector<char> garbage(b().md_attr.rkey_packed_size, 0x77);
    uct_rkey_bundle_t bundle;
    EXPECT_EQ(uct_rkey_unpack(a().component, garbage.data(), &bundle), UCS_ERR_UNSUPPORTED);
}

TEST_P(uct_rma, 211_registration_arguments)
{
    uct_mem_h memh;
    EXPECT_EQ(uct_md_mem_reg(a().md, nullptr, 8, 0, &memh), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_md_mem_reg(a().md, local.data(), 8, 1u << 30, &memh), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_md_mem_dereg(a().md, UCT_MEM_HANDLE_NULL), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(uct_md_mkey_pack(a().md, UCT_MEM_HANDLE_NULL, &memh), UCS_ERR_INVALID_PARAM);
}

TEST_P(uct_rma, 212_allocation_methods)
{
    uct_mem_alloc_params_t params{};
    params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_MDS;
    params.mds = {&a().md, 1};
    for (uct_alloc_method_t method :
         {UCT_ALLOC_METHOD_THP, UCT_ALLOC_METHOD_MD, UCT_ALLOC_METHOD_HEAP, UCT_ALLOC_METHOD_MMAP,
          UCT_ALLOC_METHOD_HUGE}) {
        uct_allocated_memory_t mem;
        ucs_status_t status = uct_mem_alloc(4u << 20, &method, 1, &params, &mem);
        if (status != UCS_OK) {
            EXPECT_EQ(status, UCS_ERR_NO_MEMORY);
            continue;
        }
        memset(mem.address, 1, mem.length);
        EXPECT_GE(mem.length, 4u << 20);
        EXPECT_EQ(mem.method, method);
        EXPECT_EQ(uct_mem_free(&mem), UCS_OK);
    }
    uct_allocated_memory_t mem;
    ASSERT_EQ(uct_iface_mem_alloc(a().iface, 10000, UCT_MD_MEM_ACCESS_ALL, "test", &mem), UCS_OK);
    EXPECT_TRUE(mem.memh != UCT_MEM_HANDLE_NULL);
    memset(mem.address, 1, mem.length);
    uct_iface_mem_free(&mem);
}

TEST_P(uct_rma, what_has_no_length_needs_no_key)
{
    uct_iov_t iov{local.data(), 0, local_memh, 0, 1};
    for (uct_rkey_t none : {uct_rkey_t(0), UCT_INVALID_RKEY}) {
        if (a().has(UCT_IFACE_FLAG_PUT_SHORT)) {
            EXPECT_EQ(uct_ep_put_short(ep, nullptr, 0, 0, none), UCS_OK);
        }
        if (a().has(UCT_IFACE_FLAG_PUT_BCOPY)) {
            packed empty{""};
            EXPECT_EQ(uct_ep_put_bcopy(ep, pack, &empty, 0, none), 0);
        }
        if (a().has(UCT_IFACE_FLAG_PUT_ZCOPY)) {
            EXPECT_EQ(uct_ep_put_zcopy(ep, &iov, 1, 0, none, nullptr), UCS_OK);
        }
        if (a().has(UCT_IFACE_FLAG_GET_SHORT)) {
            EXPECT_EQ(uct_ep_get_short(ep, nullptr, 0, 0, none), UCS_OK);
        }
        if (a().has(UCT_IFACE_FLAG_GET_BCOPY)) {
            auto unpack = [](void *, const void *, size_t) {};
            EXPECT_EQ(uct_ep_get_bcopy(ep, unpack, nullptr, 0, 0, none, nullptr), UCS_OK);
        }
        if (a().has(UCT_IFACE_FLAG_GET_ZCOPY)) {
            EXPECT_EQ(uct_ep_get_zcopy(ep, &iov, 1, 0, none, nullptr), UCS_OK);
        }
    }
}

UCT_INSTANTIATE(uct_rma);

} // namespace
} // namespace uct_conformance
