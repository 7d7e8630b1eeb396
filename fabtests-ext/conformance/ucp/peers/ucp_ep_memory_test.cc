// SPDX-License-Identifier: BSD-3-Clause
//
// What a connected endpoint that does nothing takes of the heap, without what libfabric and the
// kernel take: counted, so it is the same on any machine with 64-bit pointers.
#include "fabtests-ext/common/sanitized.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <malloc.h>

using namespace ucp_test;

namespace {

class ucp_ep_memory : public pair {
  protected:
    static constexpr size_t count = 256;

    void TearDown() override
    {
        for (ucp_ep_h ep : eps_) {
            EXPECT_EQ(UCS_OK, finish(close_nb(ep)));
        }
        pair::TearDown();
    }

    // Each has sent a message, which was received: both sides have an endpoint then.
    void connect_more()
    {
        std::vector<char> address = b().address();
        ucp_request_param_t param = {};
        for (size_t i = 0; i < count; ++i) {
            ucp_ep_h ep = nullptr;
            ASSERT_EQ(UCS_OK, create_ep(a(), address, &ep));
            eps_.push_back(ep);
            uint64_t out = i, in = ~out;
            ucs_status_ptr_t sent = ucp_tag_send_nbx(ep, &out, sizeof(out), i, &param);
            ucs_status_ptr_t received =
                ucp_tag_recv_nbx(b().worker, &in, sizeof(in), i, ~0ull, &param);
            ASSERT_EQ(UCS_OK, finish(received));
            ASSERT_EQ(UCS_OK, finish(sent));
            ASSERT_EQ(out, in);
        }
    }

    static size_t heap()
    {
        struct mallinfo2 info = mallinfo2();
        return info.uordblks + info.hblkhd;
    }

  private:
    std::vector<ucp_ep_h> eps_;
};

TEST_P(ucp_ep_memory, of_an_endpoint_by_address_is_at_most_1_KiB)
{
    if (sanitized) {
        GTEST_SKIP() << "the sanitizer's heap is not malloc's";
    }
    ASSERT_NO_FATAL_FAILURE(connect_more()); // pools and tables have grown then
    size_t before = heap();
    ASSERT_NO_FATAL_FAILURE(connect_more());
    size_t each = (heap() - before) / (2 * count);
    // It keeps the peer's address, which has the name of the host and is longer where that is long.
    constexpr size_t usual_address = 160;
    size_t address = b().address().size();
    EXPECT_LE(each, 1024 + (address > usual_address ? address - usual_address : 0));
    EXPECT_GE(each, 256u); // else they are not counted
}

INSTANTIATE_TEST_SUITE_P(over, ucp_ep_memory, testing::Values("tcp", "sm"), transports_name);

} // namespace
