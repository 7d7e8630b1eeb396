// SPDX-License-Identifier: BSD-3-Clause
// A configuration file that the caller names reaches the transports, too.
#include "fabtests-ext/common/emulated.h"
#include "ucp/core/context.h"
#include "ucp/core/worker.h"
#include "ucs/log.h"

#include <gtest/gtest.h>

#include <climits>
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
    for (const char *name :
         {"auto", "get_zcopy", "get_ppln", "rkey_ptr", "put_zcopy", "put_ppln", "am"}) {
        EXPECT_EQ(UCS_OK, ucp_config_modify(config, "RNDV_SCHEME", name)) << name;
    }
    EXPECT_EQ(ucp::rndv_scheme::am, config->values.scheme);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_config_modify(config, "RNDV_SCHEME", "carrier_pigeon"));
    ucp_config_release(config);
}

TEST(ucp_config, takes_the_words_of_proto_info_and_patterns)
{
    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    const std::string &value = config->values.proto_info;
    EXPECT_EQ("n", value);
    const std::pair<const char *, const char *> cases[] = {
        {"y", "y"}, {"yes", "y"}, {"1", "y"}, {"no", "n"}, {"USED", "used"}, {"*tag*", "*tag*"},
    };
    for (auto [given, meant] : cases) {
        EXPECT_EQ(UCS_OK, ucp_config_modify(config, "PROTO_INFO", given)) << given;
        EXPECT_EQ(meant, value);
    }
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_config_modify(config, "PROTO_INFO", ""));
    ucp_config_release(config);
}

TEST(ucp_config, takes_the_values_that_ucx_takes)
{
    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    const ucp::config &values = config->values;
    auto set = [&](const char *name, const char *value) {
        return ucp_config_modify(config, name, value);
    };
    EXPECT_EQ(UCS_OK, set("RNDV_THRESH", "-1"));
    EXPECT_EQ(ucp::SIZE_INF, values.rndv_thresh.intra);
    EXPECT_EQ(ucp::SIZE_INF, values.rndv_thresh.inter);
    EXPECT_EQ(UCS_OK, set("RNDV_THRESH", "intra:8k,inter:inf"));
    EXPECT_EQ(8192u, values.rndv_thresh.intra);
    EXPECT_EQ(ucp::SIZE_INF, values.rndv_thresh.inter);
    EXPECT_EQ(UCS_OK, set("RNDV_THRESH", "inter:64k"));
    EXPECT_EQ(ucp::SIZE_AUTO, values.rndv_thresh.intra);
    EXPECT_EQ(65536u, values.rndv_thresh.inter);
    for (const char *bad : {"intra:", "intra:8k,elsewhere:1", "8k,inter:1", "intra:8k,9", "-2"}) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, set("RNDV_THRESH", bad)) << bad;
    }
    EXPECT_EQ(65536u, values.rndv_thresh.inter);
    EXPECT_EQ(UCS_OK, set("ZCOPY_THRESH", "-1"));
    EXPECT_EQ(ucp::SIZE_INF, values.zcopy_thresh);
    EXPECT_EQ(UCS_OK, set("KEEPALIVE_NUM_EPS", "inf"));
    EXPECT_EQ(UINT_MAX, values.keepalive_num_eps);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, set("KEEPALIVE_NUM_EPS", "0"));
    EXPECT_EQ(UCS_OK, set("KEEPALIVE_INTERVAL", "3s"));
    EXPECT_EQ(UCS_OK, set("KEEPALIVE_INTERVAL", "auto"));
    EXPECT_EQ(20, values.keepalive_interval);
    EXPECT_EQ(UCS_OK, set("RCACHE_ENABLE", "y"));
    EXPECT_EQ(UCS_OK, set("RCACHE_ENABLE", "maybe"));
    EXPECT_EQ(ucs::config::ternary::try_, values.rcache_enable);
    EXPECT_EQ(UINT_MAX, values.keepalive_num_eps);
    ucp_config_release(config);
}

TEST(ucp_config, takes_the_address_versions_of_ucx_and_no_others)
{
    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    EXPECT_EQ(UCS_OK, ucp_config_modify(config, "ADDRESS_VERSION", "v2"));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_config_modify(config, "ADDRESS_VERSION", "bogus"));
    ucp_config_release(config);
}

std::string logged;

void keep(ucs::log::level, const char *, int, const char *text)
{
    logged += std::string(text) + "\n";
}

// Makes a context with one setting changed, and returns what was logged.
std::string log_of_init(const char *name, const char *value, bool strict, ucs_status_t expected)
{
    ucp_config_t *config = nullptr;
    EXPECT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    EXPECT_EQ(UCS_OK, ucp_config_modify(config, name, value));
    EXPECT_EQ(UCS_OK, ucp_config_modify(config, "STRICT", strict ? "y" : "n"));
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_AMO64;
    ucp_context_h context = nullptr;
    logged.clear();
    ucs::log::set_sink(keep);
    EXPECT_EQ(expected, ucp_init(&params, config, &context));
    ucs::log::set_sink(nullptr);
    ucp_config_release(config);
    if (context) {
        ucp_cleanup(context);
    }
    return logged;
}

void expect_in(const std::string &text, const char *part)
{
    EXPECT_NE(std::string::npos, text.find(part)) << "'" << part << "' is not in: " << text;
}

TEST(ucp_config, names_transports_that_are_not_here_and_those_that_are)
{
    std::string text = log_of_init("TLS", "tcp,cuda_copy,dc_x,nosuch", false, UCS_OK);
    expect_in(text, "TLS of ucp_config_modify(): no such transport here: cuda_copy, dc_x, nosuch");
    expect_in(text, "what exists: ");
    expect_in(text, "self");
    expect_in(log_of_init("TLS", "tcp,cuda_copy", true, UCS_ERR_NO_DEVICE), "cuda_copy");
    EXPECT_EQ("", log_of_init("TLS", "tcp,self", true, UCS_OK));
    EXPECT_EQ("", log_of_init("TLS", "^cuda_copy,dc_x", true, UCS_OK));
    expect_in(log_of_init("TLS", "^nosuch", false, UCS_OK), "nosuch");
}

TEST(ucp_config, names_devices_that_are_not_here_and_those_that_are)
{
    std::string text = log_of_init("NET_DEVICES", "lo,eth99", false, UCS_OK);
    expect_in(text, "NET_DEVICES of ucp_config_modify(): no such device here: eth99");
    expect_in(text, "what exists: ");
    expect_in(log_of_init("NET_DEVICES", "lo,eth99", true, UCS_ERR_NO_DEVICE), "eth99");
    EXPECT_EQ("", log_of_init("NET_DEVICES", "lo", true, UCS_OK));
}

TEST(ucp_config, says_that_no_device_executes_atomic_operations)
{
    EXPECT_EQ("", log_of_init("ATOMIC_MODE", "cpu", true, UCS_OK));
    EXPECT_EQ("", log_of_init("ATOMIC_MODE", "guess", true, UCS_OK));
    const char *text = "UCX_ATOMIC_MODE=device: processors execute atomic operations";
    expect_in(log_of_init("ATOMIC_MODE", "device", false, UCS_OK), text);
    expect_in(log_of_init("ATOMIC_MODE", "device", true, UCS_ERR_UNSUPPORTED), text);
}

TEST(ucp_config, names_the_variable_of_the_environment)
{
    setenv("UCX_TLS", "rc,tcp", 1);
    std::string text = log_of_init("MAX_RNDV_RAILS", "2", false, UCS_OK);
    unsetenv("UCX_TLS");
    expect_in(text, "UCX_TLS: no such transport here: rc");
}

// Discovery happens once in a process, so the test has one of its own.
TEST(ucp_config, names_the_core_of_tcp_that_is_not_here)
{
    SKIP_IF_EMULATED("no program is executed");
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            setenv("UCX_TCP_CORE", "nosuch", 1);
            std::string text = log_of_init("MAX_RNDV_RAILS", "2", false, UCS_OK);
            expect_in(text, "UCX_TCP_CORE: no such provider with connected endpoints here: nosuch");
            expect_in(text, "what exists: ");
            expect_in(log_of_init("MAX_RNDV_RAILS", "2", true, UCS_ERR_INVALID_PARAM),
                      "UCX_TCP_CORE");
            exit(testing::Test::HasFailure() ? 1 : 0);
        },
        testing::ExitedWithCode(0), "");
}

} // namespace
