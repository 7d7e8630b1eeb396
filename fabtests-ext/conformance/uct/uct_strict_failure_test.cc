// SPDX-License-Identifier: BSD-3-Clause
// What is no death of a peer, a core that takes nothing for long, and an operation that fails by
// itself; and what a core refused a few times.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

namespace uct_conformance {
namespace {

class uct_strict_failure : public testing::TestWithParam<std::string> {
  protected:
    void progress(entity &a, entity &b)
    {
        uct_worker_progress(a.worker);
        uct_worker_progress(b.worker);
    }
    template <class Condition>
    bool until(entity &a, entity &b, Condition &&holds)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        bool held = false;
        while (!(held = holds()) && std::chrono::steady_clock::now() < end) {
            progress(a, b);
        }
        return held;
    }
    static bool send(uct_ep_h ep) { return uct_ep_am_short(ep, 1, 7, nullptr, 0) == UCS_OK; }
};

// A core answers so when its queue is full, too: the time that a connection may take says nothing.
TEST_P(uct_strict_failure, a_core_that_takes_nothing_for_long_recovers)
{
    environment many("FI_STRICT_REFUSALS", "3000");
    entity a(GetParam(), {.conn_timeout = "100us"});
    entity b(GetParam(), {});
    uct_ep_h ep = a.connect(b);
    ASSERT_TRUE(until(a, b, [&] {
        ucs_status_t status = uct_ep_am_short(ep, 1, 7, nullptr, 0);
        EXPECT_TRUE(status == UCS_OK || status == UCS_ERR_NO_RESOURCE) << ucs_status_string(status);
        return status != UCS_ERR_NO_RESOURCE;
    }));
    EXPECT_TRUE(until(a, b, [&] { return !a.errors.empty() || b.received.size() == 1; }));
    EXPECT_TRUE(a.errors.empty());
}

class uct_strict_refused : public uct_strict_failure {};

// As a program does that was told that its message went, and waits for the answer elsewhere.
TEST_P(uct_strict_refused, a_message_leaves_though_its_sender_does_nothing_more)
{
    environment some("FI_STRICT_REFUSALS", "5");
    entity a(GetParam(), {});
    entity b(GetParam(), {});
    uct_ep_h ep = a.connect(b);
    std::string text(300, 'x');
    auto pack = [](void *to, void *arg) {
        auto *from = static_cast<std::string *>(arg);
        return from->copy(static_cast<char *>(to), from->size());
    };
    ASSERT_EQ(uct_ep_am_bcopy(ep, 1, pack, &text, 0), 300);
    auto end = std::chrono::steady_clock::now() + patience;
    while (b.received.empty() && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(b.worker);
    }
    ASSERT_EQ(b.received.size(), 1u);
    EXPECT_EQ(b.received[0].data, text);
}

class uct_strict_failed_operation : public uct_strict_failure {};

// The key is of memory that its owner has withdrawn.
TEST_P(uct_strict_failed_operation, is_no_death_of_its_peer)
{
    entity a(GetParam(), {});
    entity b(GetParam(), {});
    uct_ep_h used = a.connect(b);
    uct_ep_h other = a.connect(b);
    std::string source(1000, 's');
    std::string target(1000, 't');
    uct_mem_h local;
    uct_mem_h withdrawn;
    ASSERT_EQ(uct_md_mem_reg(a.md, source.data(), 1000, UCT_MD_MEM_ACCESS_ALL, &local), UCS_OK);
    ASSERT_EQ(uct_md_mem_reg(b.md, target.data(), 1000, UCT_MD_MEM_ACCESS_ALL, &withdrawn), UCS_OK);
    std::vector<char> packed(b.md_attr.rkey_packed_size);
    uct_rkey_bundle_t key;
    ASSERT_EQ(uct_md_mkey_pack(b.md, withdrawn, packed.data()), UCS_OK);
    ASSERT_EQ(uct_rkey_unpack(a.component, packed.data(), &key), UCS_OK);
    ASSERT_EQ(uct_md_mem_dereg(b.md, withdrawn), UCS_OK);

    guard done;
    uct_iov_t iov{source.data(), 1000, local, 0, 1};
    ASSERT_TRUE(until(a, b, [&] {
        return uct_ep_put_zcopy(used, &iov, 1, reinterpret_cast<uintptr_t>(target.data()), key.rkey,
                                &done.completion) == UCS_INPROGRESS;
    }));
    ASSERT_TRUE(until(a, b, [&] { return done.calls == 1; }));
    EXPECT_NE(done.completion.status, UCS_OK);
    for (uct_ep_h ep : {other, used}) {
        EXPECT_TRUE(until(a, b, [&] { return !a.errors.empty() || send(ep); }));
    }
    EXPECT_TRUE(until(a, b, [&] { return !a.errors.empty() || b.received.size() == 2; }));
    EXPECT_TRUE(a.errors.empty());
    EXPECT_EQ(target, std::string(1000, 't'));
    EXPECT_EQ(uct_rkey_release(a.component, &key), UCS_OK);
    EXPECT_EQ(uct_md_mem_dereg(a.md, local), UCS_OK);
}

INSTANTIATE_TEST_SUITE_P(over, uct_strict_failure, testing::Values("cxi", "opx", "psm3", "worst"),
                         core_name);
INSTANTIATE_TEST_SUITE_P(over, uct_strict_refused, testing::Values("cxi", "efa", "opx", "psm3"),
                         core_name);
INSTANTIATE_TEST_SUITE_P(over, uct_strict_failed_operation,
                         testing::Values("cxi", "opx", "psm3", "worst"), core_name);

} // namespace
} // namespace uct_conformance
