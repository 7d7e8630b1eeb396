// SPDX-License-Identifier: BSD-3-Clause
// A connected pair with memory of b that a has the key of: what the tests of remote memory start
// from.
#pragma once

#include "fabtests-ext/conformance/common/uct_entity.h"

namespace uct_conformance {

class uct_remote : public uct_test {
  protected:
    void SetUp() override
    {
        uct_test::SetUp();
        if (IsSkipped()) {
            return;
        }
        // A round of messages: connections are up.
        ep = a().connect(b());
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }), UCS_OK);
        ASSERT_TRUE(until([&] { return !b().received.empty(); }));
        target.assign(size, 't');
        ASSERT_EQ(uct_md_mem_reg(b().md, target.data(), size, UCT_MD_MEM_ACCESS_ALL, &target_memh),
                  UCS_OK);
        local.assign(size, 'l');
        ASSERT_EQ(uct_md_mem_reg(a().md, local.data(), size, UCT_MD_MEM_ACCESS_ALL, &local_memh),
                  UCS_OK);
        std::vector<char> packed_key(b().md_attr.rkey_packed_size);
        ASSERT_EQ(uct_md_mkey_pack(b().md, target_memh, packed_key.data()), UCS_OK);
        ASSERT_EQ(uct_rkey_unpack(a().component, packed_key.data(), &key), UCS_OK);
        address = reinterpret_cast<uint64_t>(target.data());
    }

    void TearDown() override
    {
        if (target_memh) {
            flush();
            EXPECT_EQ(uct_rkey_release(a().component, &key), UCS_OK);
            EXPECT_EQ(uct_md_mem_dereg(b().md, target_memh), UCS_OK);
            EXPECT_EQ(uct_md_mem_dereg(a().md, local_memh), UCS_OK);
        }
        uct_test::TearDown();
    }

    // In place: the memory is registered.
    static void fill(std::string &s, unsigned seed) { fill_pattern(s.data(), s.size(), seed); }

    void flush()
    {
        guard g;
        ucs_status_t status = post([&] { return uct_ep_flush(ep, 0, &g.completion); });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS);
        ASSERT_TRUE(until([&] { return status == UCS_OK || g.calls == 1; }));
    }

    // A post with a completion; waits for it.
    template <class Post>
    void run(Post &&call)
    {
        guard g;
        ucs_status_t status = post([&] { return call(&g.completion); });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS) << ucs_status_string(status);
        ASSERT_TRUE(until([&] { return status == UCS_OK || g.calls == 1; }));
        EXPECT_EQ(g.completion.status, UCS_OK);
        EXPECT_EQ(g.calls, status == UCS_INPROGRESS);
    }

    static constexpr size_t size = 1 << 20;
    uct_ep_h ep = nullptr;
    std::string target;
    std::string local;
    uct_mem_h target_memh = UCT_MEM_HANDLE_NULL;
    uct_mem_h local_memh = UCT_MEM_HANDLE_NULL;
    uct_rkey_bundle_t key{};
    uint64_t address = 0;
};

} // namespace uct_conformance
