// SPDX-License-Identifier: BSD-3-Clause
// Tag matching by the transport: what is expected goes to its receive, what is not to the callback
// of the interface, in the order of sending.
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "uct/ofi/core/ep.h"
#include "uct/ofi/rdm/tag.h"

#include <rdma/fi_tagged.h>

namespace uct_conformance {
namespace {

constexpr uint64_t offload = UCT_IFACE_FLAG_TAG_EAGER_SHORT | UCT_IFACE_FLAG_TAG_EAGER_BCOPY |
                             UCT_IFACE_FLAG_TAG_EAGER_ZCOPY;

// A receive that records its callbacks.
struct receive {
    explicit receive(size_t size) : buffer(size, 'r')
    {
        context.tag_consumed_cb = [](uct_tag_context_t *self) { ++of(self)->consumed; };
        context.completed_cb = [](uct_tag_context_t *self, uct_tag_t stag, uint64_t imm,
                                  size_t length, void *inline_data, ucs_status_t status) {
            receive *r = of(self);
            EXPECT_FALSE(in_call) << "completion inside a posting call";
            EXPECT_EQ(r->completed, 0) << "completed twice";
            EXPECT_EQ(inline_data, nullptr);
            ++r->completed;
            r->stag = stag;
            r->imm = imm;
            r->status = status;
            r->data = r->buffer.substr(0, length);
            if (r->on_completed) {
                r->on_completed(*r);
            }
        };
        context.rndv_cb = [](uct_tag_context_t *, uct_tag_t, const void *, unsigned, ucs_status_t,
                             unsigned) { ADD_FAILURE() << "no rendezvous was sent"; };
    }
    receive(const receive &) = delete;
    receive &operator=(const receive &) = delete;

    static receive *of(uct_tag_context_t *self) { return reinterpret_cast<receive *>(self); }

    uct_tag_context_t context{}; // first: of() finds the receive by it
    std::string buffer;
    std::string data;
    int consumed = 0;
    int completed = 0;
    uct_tag_t stag = 0;
    uint64_t imm = 0;
    ucs_status_t status = UCS_OK;
    std::function<void(const receive &)> on_completed;
};

class uct_tag : public uct_test {
  protected:
    void SetUp() override
    {
        uct_test::SetUp();
        if (IsSkipped()) {
            return;
        }
        open({.tags = true});
        ep = a().connect(b());
        if (!a().has(offload)) {
            expect_absent();
            GTEST_SKIP() << "the core does not match tags";
        }
    }

    void expect_absent()
    {
        packed p{"x"};
        uct_iov_t iov{p.data.data(), 1, UCT_MEM_HANDLE_NULL, 0, 1};
        receive r(8);
        EXPECT_EQ(uct_ep_tag_eager_short(ep, 1, "x", 1), UCS_ERR_UNSUPPORTED);
        EXPECT_EQ(uct_ep_tag_eager_bcopy(ep, 1, 0, pack, &p, 0), UCS_ERR_UNSUPPORTED);
        EXPECT_EQ(uct_ep_tag_eager_zcopy(ep, 1, 0, &iov, 1, 0, nullptr), UCS_ERR_UNSUPPORTED);
        EXPECT_EQ(uct_iface_tag_recv_zcopy(a().iface, 1, ~0ul, &iov, 1, &r.context),
                  UCS_ERR_UNSUPPORTED);
        EXPECT_EQ(uct_iface_tag_recv_cancel(a().iface, &r.context, 0), UCS_ERR_UNSUPPORTED);
        EXPECT_EQ(p.calls, 0);
    }

    void TearDown() override
    {
        for (auto [md, memh] : registered_) {
            EXPECT_EQ(uct_md_mem_dereg(md, memh), UCS_OK);
        }
        uct_test::TearDown();
    }
    // A handle of memory, where the core wants one.
    uct_mem_h handle_of(entity &user, void *buffer, size_t length)
    {
        uct_mem_h memh = UCT_MEM_HANDLE_NULL;
        if (user.md_attr.cap.flags & UCT_MD_FLAG_NEED_MEMH && length > 0) {
            EXPECT_EQ(uct_md_mem_reg(user.md, buffer, length, UCT_MD_MEM_ACCESS_ALL, &memh),
                      UCS_OK);
            registered_.emplace_back(user.md, memh);
        }
        return memh;
    }

    ucs_status_t post_receive(receive &r, uct_tag_t tag, uct_tag_t mask = ~uct_tag_t(0))
    {
        uct_iov_t iov{r.buffer.data(), r.buffer.size(),
                      handle_of(b(), r.buffer.data(), r.buffer.size()), 0, 1};
        return post(
            [&] { return uct_iface_tag_recv_zcopy(b().iface, tag, mask, &iov, 1, &r.context); });
    }

    void send_short(uct_tag_t tag, const std::string &data)
    {
        ASSERT_EQ(post([&] { return uct_ep_tag_eager_short(ep, tag, data.data(), data.size()); }),
                  UCS_OK);
    }

    void expect(const receive &r, uct_tag_t tag, uint64_t imm, const std::string &data)
    {
        ASSERT_TRUE(until([&] { return r.completed == 1; }));
        EXPECT_EQ(r.status, UCS_OK);
        EXPECT_EQ(r.consumed, 1);
        EXPECT_EQ(r.stag, tag);
        EXPECT_EQ(r.imm, imm);
        EXPECT_TRUE(r.data == data);
    }

    uct_ep_h ep = nullptr;

  private:
    std::vector<std::pair<uct_md_h, uct_mem_h>> registered_;
};

TEST_P(uct_tag, 218_short_goes_to_its_receive)
{
    for (size_t size : {size_t(0), size_t(1), size_t(8), a().attr.cap.tag.eager.max_short}) {
        receive r(size + 10);
        ASSERT_EQ(post_receive(r, 0x1234567890abcdef), UCS_OK);
        std::string data = pattern(size, 1);
        send_short(0x1234567890abcdef, data);
        expect(r, 0x1234567890abcdef, 0, data);
        EXPECT_EQ(r.buffer.substr(size), std::string(10, 'r'));
    }
}

TEST_P(uct_tag, 218_bcopy_goes_to_its_receive)
{
    for (size_t size : {size_t(0), size_t(100), a().attr.cap.tag.eager.max_bcopy}) {
        receive r(size);
        ASSERT_EQ(post_receive(r, 7), UCS_OK);
        packed p{pattern(size, 2)};
        ASSERT_EQ(
            post([&] { return uct_ep_tag_eager_bcopy(ep, 7, 0xfedcba9876543210, pack, &p, 0); }),
            static_cast<ssize_t>(size));
        EXPECT_EQ(p.calls, 1);
        expect(r, 7, 0xfedcba9876543210, p.data);
    }
}

TEST_P(uct_tag, 218_zcopy_goes_to_its_receive)
{
    for (size_t size : {size_t(1), size_t(3000), a().attr.cap.tag.eager.max_zcopy}) {
        receive r(size);
        ASSERT_EQ(post_receive(r, 9), UCS_OK);
        std::string data = pattern(size, 3);
        uct_iov_t iov{data.data(), size, handle_of(a(), data.data(), size), 0, 1};
        guard g;
        ucs_status_t status =
            post([&] { return uct_ep_tag_eager_zcopy(ep, 9, 42, &iov, 1, 0, &g.completion); });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS);
        expect(r, 9, 42, data);
        EXPECT_TRUE(until([&] { return status == UCS_OK || g.calls == 1; }));
        EXPECT_EQ(g.completion.status, UCS_OK);
    }
}

TEST_P(uct_tag, 218_masked_bits_do_not_count)
{
    receive low(8);
    receive high(8);
    ASSERT_EQ(post_receive(high, 0xab00000000000000, 0xff00000000000000), UCS_OK);
    ASSERT_EQ(post_receive(low, 0x11, 0xff), UCS_OK);
    send_short(0xcd00000000000011, "to low");
    send_short(0xabcdef0000000022, "to high");
    expect(low, 0xcd00000000000011, 0, "to low");
    expect(high, 0xabcdef0000000022, 0, "to high");
}

TEST_P(uct_tag, 218_receives_of_one_tag_fill_in_order)
{
    constexpr size_t count = 100;
    std::vector<std::unique_ptr<receive>> receives;
    for (size_t i = 0; i < count; ++i) {
        receives.push_back(std::make_unique<receive>(16));
        ASSERT_EQ(post_receive(*receives.back(), 5), UCS_OK);
    }
    for (size_t i = 0; i < count; ++i) {
        send_short(5, std::to_string(i));
    }
    for (size_t i = 0; i < count; ++i) {
        expect(*receives[i], 5, 0, std::to_string(i));
    }
    EXPECT_TRUE(b().unexpected.empty());
}

TEST_P(uct_tag, 218_unexpected_goes_to_the_callback)
{
    send_short(1, "first");
    packed p{pattern(a().attr.cap.tag.eager.max_bcopy, 6)};
    ASSERT_EQ(post([&] { return uct_ep_tag_eager_bcopy(ep, 2, 77, pack, &p, 0); }),
              static_cast<ssize_t>(p.data.size()));
    ASSERT_TRUE(until([&] { return b().unexpected.size() == 2; }));
    EXPECT_EQ(b().unexpected[0].tag, 1u);
    EXPECT_EQ(b().unexpected[0].imm, 0u);
    EXPECT_EQ(b().unexpected[0].data, "first");
    EXPECT_EQ(b().unexpected[1].tag, 2u);
    EXPECT_EQ(b().unexpected[1].imm, 77u);
    EXPECT_TRUE(b().unexpected[1].data == p.data);
    receive r(8);
    ASSERT_EQ(post_receive(r, 1), UCS_OK);
    send_short(1, "second");
    expect(r, 1, 0, "second");
}

// The prefix of a message says how long it is, and the peer writes it.
TEST_P(uct_tag, message_that_claims_more_than_a_buffer_holds_is_dropped)
{
    send_short(1, "first");
    ASSERT_TRUE(until([&] { return b().unexpected.size() == 1; }));
    const auto *core = static_cast<const uct::ofi::ep *>(ep);
    for (uint32_t length : {1u << 20, 1u << 31, UINT32_MAX}) {
        uct::ofi::tag_prefix prefix{
            .kind = uct::ofi::tag_eager, .reserved = {}, .length = length, .imm = 0, .tag = 2};
        ASSERT_TRUE(until([&] {
            return fi_tinject(core->target, &prefix, sizeof(prefix), core->address, 2) == 0;
        }));
    }
    send_short(3, "last");
    ASSERT_TRUE(until([&] { return b().unexpected.size() > 1; }));
    EXPECT_EQ(b().unexpected[1].data, "last");
}

TEST_P(uct_tag, 218_unexpected_can_be_kept)
{
    open({.rx_headroom = 8, .tags = true});
    ep = a().connect(b());
    b().keep = true;
    constexpr size_t count = 50;
    for (size_t i = 0; i < count; ++i) {
        send_short(i, std::to_string(i));
    }
    ASSERT_TRUE(until([&] { return b().unexpected.size() == count; }));
    ASSERT_EQ(b().kept.size(), count);
    for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(b().unexpected[i].tag, i);
        std::string text = std::to_string(i);
        EXPECT_EQ(memcmp(static_cast<char *>(b().kept[i]) + 8, text.data(), text.size()), 0);
    }
}

// Whether a message meets a receive or the callback is a question of time; that one of a tag does
// not overtake another is not.
TEST_P(uct_tag, 218_messages_of_a_tag_keep_their_order)
{
    std::vector<std::unique_ptr<receive>> receives;
    std::vector<uint64_t> seen;
    size_t reported = 0;
    auto see_unexpected = [&] {
        for (; reported < b().unexpected.size(); ++reported) {
            seen.push_back(std::stoul(b().unexpected[reported].data));
        }
    };
    // One round of progress may call both callbacks.
    auto see = [&](const receive &r) {
        see_unexpected();
        if (r.status == UCS_OK) {
            seen.push_back(std::stoul(r.data));
        }
    };
    auto look = [&] {
        progress();
        see_unexpected();
    };
    constexpr uint64_t count = 500;
    for (uint64_t i = 0; i < count; ++i) {
        send_short(3, std::to_string(i));
        if (i % 3 == 0) {
            receives.push_back(std::make_unique<receive>(16));
            receive &r = *receives.back();
            r.on_completed = see;
            uct_iov_t iov{r.buffer.data(), 16, handle_of(b(), r.buffer.data(), 16), 0, 1};
            if (posting([&] {
                    return uct_iface_tag_recv_zcopy(b().iface, 3, ~0ul, &iov, 1, &r.context);
                }) != UCS_OK) {
                receives.pop_back();
            }
        }
        for (uint64_t n = 0; n < i % 100; ++n) {
            look();
        }
    }
    ASSERT_TRUE(until([&] {
        look();
        return seen.size() == count;
    })) << seen.size();
    EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
    for (auto &r : receives) {
        if (!r->completed) {
            EXPECT_EQ(uct_iface_tag_recv_cancel(b().iface, &r->context, 1), UCS_OK);
        }
    }
    for (int i = 0; i < 100; ++i) {
        progress();
    }
}

TEST_P(uct_tag, 218_cancelled_receives_complete_once_or_by_force_never)
{
    receive gentle(8);
    receive forced(8);
    ASSERT_EQ(post_receive(gentle, 1), UCS_OK);
    ASSERT_EQ(post_receive(forced, 2), UCS_OK);
    ASSERT_EQ(posting([&] { return uct_iface_tag_recv_cancel(b().iface, &gentle.context, 0); }),
              UCS_OK);
    ASSERT_EQ(posting([&] { return uct_iface_tag_recv_cancel(b().iface, &forced.context, 1); }),
              UCS_OK);
    ASSERT_TRUE(until([&] { return gentle.completed == 1; }));
    EXPECT_EQ(gentle.status, UCS_ERR_CANCELED);
    EXPECT_EQ(gentle.consumed, 0);
    send_short(1, "one");
    send_short(2, "two");
    ASSERT_TRUE(until([&] { return b().unexpected.size() == 2; }));
    EXPECT_EQ(forced.completed, 0);
    EXPECT_EQ(uct_iface_tag_recv_cancel(b().iface, &gentle.context, 0), UCS_ERR_INVALID_PARAM);
}

TEST_P(uct_tag, 218_too_short_a_buffer_is_an_error)
{
    receive r(4);
    ASSERT_EQ(post_receive(r, 1), UCS_OK);
    send_short(1, "more than four");
    ASSERT_TRUE(until([&] { return r.completed == 1; }));
    EXPECT_EQ(r.status, UCS_ERR_MESSAGE_TRUNCATED);
    EXPECT_EQ(r.buffer, "more");
    receive next(16);
    ASSERT_EQ(post_receive(next, 1), UCS_OK);
    send_short(1, "whole");
    expect(next, 1, 0, "whole");
}

TEST_P(uct_tag, 218_limits)
{
    const auto &tag = a().attr.cap.tag;
    std::string data(tag.eager.max_zcopy + tag.eager.max_short + 1, 'x');
    EXPECT_EQ(uct_ep_tag_eager_short(ep, 1, data.data(), tag.eager.max_short + 1),
              UCS_ERR_INVALID_PARAM);
    uct_iov_t iov{data.data(), tag.eager.max_zcopy + 1, UCT_MEM_HANDLE_NULL, 0, 1};
    EXPECT_EQ(uct_ep_tag_eager_zcopy(ep, 1, 0, &iov, 1, 0, nullptr), UCS_ERR_INVALID_PARAM);
    iov.length = 1;
    std::vector<uct_iov_t> many(std::max(tag.eager.max_iov, tag.recv.max_iov) + 1, iov);
    EXPECT_EQ(uct_ep_tag_eager_zcopy(ep, 1, 0, many.data(), many.size(), 0, nullptr),
              UCS_ERR_INVALID_PARAM);
    receive r(8);
    EXPECT_EQ(uct_iface_tag_recv_zcopy(b().iface, 1, ~0ul, many.data(), many.size(), &r.context),
              UCS_ERR_INVALID_PARAM);
    std::vector<std::unique_ptr<receive>> receives;
    for (size_t i = 0; i < tag.recv.max_outstanding; ++i) {
        receives.push_back(std::make_unique<receive>(8));
        ASSERT_EQ(post_receive(*receives.back(), i), UCS_OK) << i;
    }
    EXPECT_EQ(post_receive(r, 1), UCS_ERR_EXCEEDS_LIMIT);
    for (auto &posted : receives) {
        EXPECT_EQ(uct_iface_tag_recv_cancel(b().iface, &posted->context, 0), UCS_OK);
    }
    EXPECT_TRUE(until([&] {
        return std::all_of(receives.begin(), receives.end(),
                           [](const auto &posted) { return posted->completed == 1; });
    }));
}

TEST_P(uct_tag, 218_rendezvous_is_absent)
{
    EXPECT_FALSE(a().has(UCT_IFACE_FLAG_TAG_RNDV_ZCOPY));
    uct_iov_t iov{nullptr, 0, UCT_MEM_HANDLE_NULL, 0, 1};
    guard g;
    EXPECT_EQ(UCS_PTR_STATUS(uct_ep_tag_rndv_zcopy(ep, 1, "h", 1, &iov, 1, 0, &g.completion)),
              UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_ep_tag_rndv_request(ep, 1, "h", 1, 0), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_ep_tag_rndv_cancel(ep, &g), UCS_ERR_UNSUPPORTED);
}

TEST_P(uct_tag, 218_active_messages_are_not_matched)
{
    receive r(16);
    ASSERT_EQ(post_receive(r, 0, 0), UCS_OK); // any tag
    for (uint64_t i = 0; i < 100; ++i) {
        ASSERT_EQ(post([&] { return uct_ep_am_short(ep, 1, i, nullptr, 0); }), UCS_OK);
    }
    ASSERT_TRUE(until([&] { return b().received.size() == 100; }));
    EXPECT_EQ(r.completed, 0);
    send_short(4, "tagged");
    expect(r, 4, 0, "tagged");
    EXPECT_TRUE(b().unexpected.empty());
}

UCT_INSTANTIATE(uct_tag);

} // namespace
} // namespace uct_conformance
