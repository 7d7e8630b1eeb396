// SPDX-License-Identifier: BSD-3-Clause
//
// A fabric that has no room for another worker or region.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/warnings.h"

namespace {

using namespace ucp_test;

class ucp_strict_room : public testing::Test {
  protected:
    environment quick{"FI_STRICT_DESCRIPTOR", "0"};
    kept_warnings kept;

    static options over(const char *tls)
    {
        options o;
        o.tls = tls;
        return o;
    }
};

TEST_F(ucp_strict_room, the_next_transport_serves_with_a_warning)
{
    environment none("FI_STRICT_EPS", "0");
    options o = over("psm3,tcp");
    entity a(o), b(o);
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ping(a, ep, b);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
    const std::vector<std::string> &warnings = kept_warnings::lines;
    EXPECT_EQ(2u, std::count(warnings.begin(), warnings.end(),
                             "ucp_worker_create: psm3/psm3_0 does not open: Out of memory"));
}

// What ucp_worker_create says over these transports.
ucs_status_t status_of_worker(const char *tls, const char *strict)
{
    ucp_config_t *config = nullptr;
    ucp_context_h context = nullptr;
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    EXPECT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    EXPECT_EQ(UCS_OK, ucp_config_modify(config, "TLS", tls));
    EXPECT_EQ(UCS_OK, ucp_config_modify(config, "STRICT", strict));
    EXPECT_EQ(UCS_OK, ucp_init(&params, config, &context));
    ucp_config_release(config);
    ucp_worker_params_t none_asked = {};
    ucp_worker_h worker = nullptr;
    ucs_status_t status = ucp_worker_create(context, &none_asked, &worker);
    if (status == UCS_OK) {
        ucp_worker_destroy(worker);
    }
    ucp_cleanup(context);
    return status;
}

TEST_F(ucp_strict_room, without_another_transport_there_is_no_worker)
{
    environment none("FI_STRICT_EPS", "0");
    EXPECT_EQ(UCS_ERR_NO_DEVICE, status_of_worker("psm3", "n"));
}

TEST_F(ucp_strict_room, strict_mode_has_no_next_transport)
{
    {
        environment none("FI_STRICT_EPS", "0");
        EXPECT_EQ(UCS_OK, status_of_worker("psm3,tcp", "n"));
        EXPECT_EQ(UCS_ERR_NO_MEMORY, status_of_worker("psm3,tcp", "y"));
        ASSERT_FALSE(kept_warnings::lines.empty());
        EXPECT_EQ("ucp_worker_create: psm3/psm3_0 does not open: Out of memory (UCX_STRICT)",
                  kept_warnings::lines.back());
    }
    EXPECT_EQ(UCS_OK, status_of_worker("psm3,tcp", "y"));
}

// More buffers than regions: what the cache keeps unused is given back.
TEST_F(ucp_strict_room, regions_that_are_not_in_use_make_room)
{
    environment few("FI_STRICT_REGIONS", "12");
    entity a(over("efa")), b(over("efa"));
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    constexpr size_t length = 256 << 10;
    std::vector<std::string> out(20, std::string(length, 'o')), in(20, std::string(length, 'i'));
    for (size_t i = 0; i < out.size(); ++i) {
        ucs_status_ptr_t recv = recv_nb(b, in[i].data(), length, i);
        ucs_status_ptr_t sent = send_nb(ep, out[i].data(), length, i);
        ASSERT_EQ(UCS_OK, wait({&a, &b}, recv)) << i;
        ASSERT_EQ(UCS_OK, wait({&a, &b}, sent)) << i;
        EXPECT_TRUE(in[i] == out[i]) << i;
    }
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
}

} // namespace
