// SPDX-License-Identifier: BSD-3-Clause
// Fences: nothing posted after one, through the endpoint or the interface, overtakes what was
// posted before, above all a get whose answer is still on its way.
#include "fabtests-ext/conformance/common/uct_remote.h"

#include <functional>

namespace uct_conformance {
namespace {

// Larger than what the sockets between two processes hold: the target still sends the end of it
// when the next request arrives.
constexpr size_t large = sanitized ? 12 << 20 : 24 << 20;
constexpr size_t large_emulated = 2 << 20;

class uct_fence : public uct_remote {
  protected:
    void SetUp() override
    {
        uct_remote::SetUp();
        if (IsSkipped()) {
            return;
        }
        if (!a().has(UCT_IFACE_FLAG_GET_ZCOPY | UCT_IFACE_FLAG_PUT_SHORT)) {
            GTEST_SKIP() << "no remote memory";
        }
        length_ = std::min(std::string(GetParam()) == "verbs" ? large_emulated : large,
                           a().attr.cap.get.max_zcopy);
        source_.assign(length_, 'o');
        sink_.assign(length_, '-');
        ASSERT_EQ(
            uct_md_mem_reg(b().md, source_.data(), length_, UCT_MD_MEM_ACCESS_ALL, &source_memh_),
            UCS_OK);
        ASSERT_EQ(uct_md_mem_reg(a().md, sink_.data(), length_, UCT_MD_MEM_ACCESS_ALL, &sink_memh_),
                  UCS_OK);
        std::vector<char> packed_key(b().md_attr.rkey_packed_size);
        ASSERT_EQ(uct_md_mkey_pack(b().md, source_memh_, packed_key.data()), UCS_OK);
        ASSERT_EQ(uct_rkey_unpack(a().component, packed_key.data(), &source_key_), UCS_OK);
    }

    void TearDown() override
    {
        if (source_memh_) {
            flush();
            EXPECT_EQ(uct_rkey_release(a().component, &source_key_), UCS_OK);
            EXPECT_EQ(uct_md_mem_dereg(b().md, source_memh_), UCS_OK);
            EXPECT_EQ(uct_md_mem_dereg(a().md, sink_memh_), UCS_OK);
        }
        uct_remote::TearDown();
    }

    uint64_t end_of_source() const { return reinterpret_cast<uint64_t>(&source_[length_ - 8]); }

    // The target's program changes what was read as soon as it hears of it.
    static ucs_status_t on_word(void *arg, void *, size_t, unsigned)
    {
        auto *self = static_cast<uct_fence *>(arg);
        memcpy(&self->source_[self->length_ - 8], "newnewne", 8);
        self->heard_ = true;
        return UCS_OK;
    }

    // A get, a fence, and a post that changes the last bytes of what the get reads.
    void expect_old(const std::function<ucs_status_t()> &fence,
                    const std::function<ucs_status_t()> &change, const std::function<bool()> &done)
    {
        uct_iov_t iov{sink_.data(), length_, sink_memh_, 0, 1};
        guard g;
        ucs_status_t status = post([&] {
            return uct_ep_get_zcopy(ep, &iov, 1, reinterpret_cast<uint64_t>(source_.data()),
                                    source_key_.rkey, &g.completion);
        });
        ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS);
        ASSERT_EQ(fence(), UCS_OK);
        // The target finds both before the origin takes any of the answer.
        ucs_status_t changed = change();
        for (int i = 0; i < 1000; ++i) {
            uct_worker_progress(b().worker);
        }
        ASSERT_EQ(changed == UCS_ERR_NO_RESOURCE ? post(change) : changed, UCS_OK);
        ASSERT_TRUE(until([&] { return (status == UCS_OK || g.calls == 1) && done(); }));
        EXPECT_EQ(sink_, std::string(length_, 'o'));
    }

    ucs_status_t put_new(uct_ep_h through)
    {
        return posting([&] {
            return uct_ep_put_short(through, "newnewne", 8, end_of_source(), source_key_.rkey);
        });
    }

    bool is_new() const { return memcmp(&source_[length_ - 8], "newnewne", 8) == 0; }

    size_t length_ = 0;
    std::string source_; // at b
    std::string sink_;   // at a
    uct_mem_h source_memh_ = UCT_MEM_HANDLE_NULL;
    uct_mem_h sink_memh_ = UCT_MEM_HANDLE_NULL;
    uct_rkey_bundle_t source_key_{};
    bool heard_ = false;
};

TEST_P(uct_fence, put_after_get)
{
    expect_old([&] { return uct_ep_fence(ep, 0); }, [&] { return put_new(ep); },
               [&] { return is_new(); });
}

TEST_P(uct_fence, message_after_get)
{
    ASSERT_EQ(uct_iface_set_am_handler(b().iface, 7, on_word, this, 0), UCS_OK);
    expect_old([&] { return uct_ep_fence(ep, 0); },
               [&] { return posting([&] { return uct_ep_am_short(ep, 7, 0, nullptr, 0); }); },
               [&] { return heard_; });
}

TEST_P(uct_fence, of_the_interface_counts_for_all_its_endpoints)
{
    uct_ep_h other = a().connect(b());
    expect_old([&] { return uct_iface_fence(a().iface, 0); }, [&] { return put_new(other); },
               [&] { return is_new(); });
    EXPECT_TRUE(until([&] { return uct_iface_flush(a().iface, 0, nullptr) == UCS_OK; }));
}

TEST_P(uct_fence, of_the_interface_counts_for_an_endpoint_that_comes_later)
{
    uct_ep_h other = nullptr;
    expect_old(
        [&] {
            ucs_status_t status = uct_iface_fence(a().iface, 0);
            other = a().connect(b());
            return status;
        },
        [&] { return put_new(other); }, [&] { return is_new(); });
    EXPECT_TRUE(until([&] { return uct_iface_flush(a().iface, 0, nullptr) == UCS_OK; }));
}

// While a fence is closed the usual rules of a full queue hold.
TEST_P(uct_fence, requests_wait_behind_it)
{
    struct request {
        uct_pending_req_t base; // first
        std::function<ucs_status_t()> send;
        int done = 0;
    } put{{}, [this] { return put_new(ep); }};
    put.base.func = [](uct_pending_req_t *self) {
        auto *r = reinterpret_cast<request *>(self);
        ucs_status_t status = r->send();
        r->done += status == UCS_OK;
        return status;
    };
    bool waits = false;
    expect_old([&] { return uct_ep_fence(ep, 0); },
               [&] {
                   ucs_status_t status = waits ? UCS_OK : put_new(ep);
                   if (status == UCS_ERR_NO_RESOURCE) {
                       EXPECT_EQ(uct_ep_pending_add(ep, &put.base, 0), UCS_OK);
                       waits = true;
                       status = UCS_OK;
                   }
                   return status;
               },
               [&] { return is_new(); });
    EXPECT_EQ(put.done, waits);
}

// A closed fence opens with the end of its endpoint.
TEST_P(uct_fence, cancelled_behind_it)
{
    uct_ep_h other = a().connect(b());
    ASSERT_EQ(post([&] { return uct_ep_am_short(other, 1, 0, nullptr, 0); }), UCS_OK);
    uct_iov_t iov{sink_.data(), length_, sink_memh_, 0, 1};
    guard g;
    ucs_status_t status = post([&] {
        return uct_ep_get_zcopy(other, &iov, 1, reinterpret_cast<uint64_t>(source_.data()),
                                source_key_.rkey, &g.completion);
    });
    ASSERT_TRUE(status == UCS_OK || status == UCS_INPROGRESS);
    EXPECT_EQ(uct_ep_fence(other, 0), UCS_OK);
    EXPECT_EQ(uct_iface_fence(a().iface, 0), UCS_OK);
    EXPECT_EQ(uct_ep_flush(other, UCT_FLUSH_FLAG_CANCEL, nullptr), UCS_OK);
    EXPECT_EQ(g.calls, status == UCS_INPROGRESS);
    a().destroy(other);
    EXPECT_EQ(post([&] { return put_new(ep); }), UCS_OK);
    ASSERT_TRUE(until([&] { return uct_iface_flush(a().iface, 0, nullptr) == UCS_OK; }));
}

UCT_INSTANTIATE(uct_fence);

} // namespace
} // namespace uct_conformance
