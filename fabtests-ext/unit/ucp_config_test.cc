// SPDX-License-Identifier: BSD-3-Clause
// A configuration file that the caller names reaches the transports, too.
#include "ucp/core/context.h"
#include "ucp/core/worker.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace {

TEST(ucp_config, a_file_sets_up_the_transports)
{
    char path[] = "ucp_config.XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    std::string text = "UCX_TLS=tcp\nUCX_TCP_SEG_SIZE=4321\n";
    ASSERT_EQ(static_cast<ssize_t>(text.size()), write(fd, text.data(), text.size()));
    close(fd);

    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, path, &config));
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM;
    ucp_context_h context = nullptr;
    ASSERT_EQ(UCS_OK, ucp_init(&params, config, &context));
    ucp_config_release(config);
    ucp_worker_params_t worker_params = {};
    ucp_worker_h worker = nullptr;
    ASSERT_EQ(UCS_OK, ucp_worker_create(context, &worker_params, &worker));
    unlink(path);
    ASSERT_FALSE(worker->ifaces.empty());
    EXPECT_EQ(4321u, worker->ifaces[0]->attr.cap.am.max_bcopy);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

TEST(ucp_config, takes_the_schemes_of_a_rendezvous_and_no_others)
{
    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    for (const char *name : {"auto", "get_zcopy", "put_zcopy", "am"}) {
        EXPECT_EQ(UCS_OK, ucp_config_modify(config, "RNDV_SCHEME", name)) << name;
    }
    EXPECT_EQ(ucp::rndv_scheme::am, config->values.scheme);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_config_modify(config, "RNDV_SCHEME", "carrier_pigeon"));
    ucp_config_release(config);
}

} // namespace
