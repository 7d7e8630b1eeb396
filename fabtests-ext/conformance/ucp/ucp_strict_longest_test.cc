// SPDX-License-Identifier: BSD-3-Clause
//
// Messages, puts and gets that are longer than any operation of the core.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

namespace {

using namespace ucp_test;

// The first answer of libfabric is kept, so this is set before it.
const bool found_by_path = use_strict_cores() && setenv("FI_STRICT_LONGEST", "5000", 1) == 0 &&
                           setenv("FI_STRICT_DESCRIPTOR", "0", 1) == 0;

class ucp_strict_longest : public testing::TestWithParam<const char *> {};

TEST_P(ucp_strict_longest, a_message_and_a_put_of_many_operations)
{
    options o;
    o.tls = GetParam();
    o.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
    entity a(o), b(o);
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    constexpr size_t length = 200'000;
    std::string out(length, 'o'), in(length, 'i');
    for (size_t i = 0; i < length; i += 997) {
        out[i] = static_cast<char>(i);
    }
    // In pieces, and by a rendezvous.
    for (size_t part : {size_t(20'000), length}) {
        in.assign(length, 'i');
        ucs_status_ptr_t recv = recv_nb(b, in.data(), part, 1);
        ucs_status_ptr_t sent = send_nb(ep, out.data(), part, 1);
        EXPECT_EQ(UCS_OK, wait({&a, &b}, recv));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, sent));
        EXPECT_TRUE(in.compare(0, part, out, 0, part) == 0) << part;
    }
    {
        region target(b, ep, nullptr, length);
        ucp_rkey_h key = target.rkey;
        ucp_request_param_t none = {};
        EXPECT_EQ(UCS_OK,
                  wait({&a, &b}, ucp_put_nbx(ep, out.data(), length, target.at(), key, &none)));
        EXPECT_EQ(UCS_OK, wait({&a, &b}, ucp_ep_flush_nbx(ep, &none)));
        EXPECT_EQ(0, memcmp(target.data, out.data(), length));
        in.assign(length, 'i');
        EXPECT_EQ(UCS_OK,
                  wait({&a, &b}, ucp_get_nbx(ep, in.data(), length, target.at(), key, &none)));
        EXPECT_TRUE(in == out);
    }
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
}

INSTANTIATE_TEST_SUITE_P(over, ucp_strict_longest,
                         testing::Values("cxi", "efa", "opx", "psm3", "worst"), transports_name);

} // namespace
