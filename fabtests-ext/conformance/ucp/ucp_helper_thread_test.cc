// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that the library starts: one for the process at most, and none where none is needed.
#include "fabtests-ext/common/threads.h"
#include "fabtests-ext/common/ucp_region.h"

using namespace ucp_test;

namespace {

options over(const char *tls)
{
    options o;
    o.tls = tls;
    o.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA;
    return o;
}

// What the helper thread does for an interface begins with the first memory that peers may read, or
// with messages that come faster than one by one.
void send_a_burst(entity &a, ucp_ep_h to_b, entity &b)
{
    constexpr size_t count = 100;
    std::vector<uint64_t> out(count, 1), in(count);
    std::vector<ucs_status_ptr_t> all;
    for (size_t i = 0; i < count; ++i) {
        all.push_back(recv_nb(b, &in[i], sizeof(in[i]), 5));
        all.push_back(send_nb(to_b, &out[i], sizeof(out[i]), 5));
    }
    for (ucs_status_ptr_t request : all) {
        EXPECT_EQ(UCS_OK, wait({&a, &b}, request));
    }
    EXPECT_EQ(out, in);
}

TEST(ucp_helper_thread, one_is_there_for_all_interfaces_of_all_workers)
{
    size_t before = threads_now();
    {
        options o = over("tcp,self");
        entity a(o), b(o);
        a.second_worker(o);
        b.second_worker(o);
        ucp_ep_h to_b = nullptr, to_a = nullptr;
        ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
        ASSERT_EQ(UCS_OK, create_ep(b, a.address(), &to_a));
        region of_b(b, to_b, nullptr, 4096), of_a(a, to_a, nullptr, 4096);
        send_a_burst(a, to_b, b);
        send_a_burst(b, to_a, a);
        uint64_t value = 7;
        ucp_request_param_t param = {};
        EXPECT_EQ(UCS_OK, wait({&a, &b}, ucp_get_nbx(to_b, &value, sizeof(value), of_b.at(),
                                                     of_b.rkey, &param)));
        EXPECT_EQ(threads_now(), before + 1);
        EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(to_b)));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(to_a)));
    }
    EXPECT_EQ(threads_down_to(before), before);
}

TEST(ucp_helper_thread, there_is_none_where_nobody_needs_it)
{
    size_t before = threads_now();
    options o = over("tcp,self");
    entity a(o), b(o);
    ucp_ep_h to_b = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &to_b));
    uint64_t out = 7, in = 0;
    ucs_status_ptr_t received = recv_nb(b, &in, sizeof(in), 5);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, send_nb(to_b, &out, sizeof(out), 5)));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, received));
    EXPECT_EQ(out, in);
    EXPECT_EQ(threads_now(), before);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(to_b)));
}

} // namespace
