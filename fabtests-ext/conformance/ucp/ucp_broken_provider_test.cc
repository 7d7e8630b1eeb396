// SPDX-License-Identifier: BSD-3-Clause
//
// A folder of FI_PROVIDER_PATH that has no library under a library's name.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/warnings.h"
#include "uct/ofi/fabric/absences.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

using namespace ucp_test;

// Set before libfabric looks there, which it does once.
struct folder {
    std::string path;

    folder()
    {
        char name[] = "/tmp/ucxlike-broken.XXXXXX";
        path = mkdtemp(name);
        std::ofstream(path + "/libbroken-fi.so") << "no library";
        setenv("FI_PROVIDER_PATH", path.c_str(), 1);
    }
    folder(const folder &) = delete;
    ~folder() { std::filesystem::remove_all(path); }
};
const folder broken;

std::string expected()
{
    return "FI_PROVIDER_PATH: a provider does not load: " + broken.path + "/libbroken-fi.so: ";
}

class ucp_broken_provider : public testing::Test {
  protected:
    kept_warnings kept;
    const std::vector<std::string> &lines = kept_warnings::lines;
};

TEST_F(ucp_broken_provider, is_named_once_and_the_others_serve)
{
    options o;
    o.tls = "tcp";
    entity a(o), b(o);
    ASSERT_EQ(1u, lines.size());
    EXPECT_TRUE(lines[0].starts_with(expected())) << lines[0];
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ping(a, ep, b);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
}

TEST_F(ucp_broken_provider, strict_mode_fails)
{
    setenv("UCX_STRICT", "y", 1);
    ucp_context_h context = nullptr;
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_init(&params, nullptr, &context));
    unsetenv("UCX_STRICT");
    ASSERT_EQ(1u, lines.size());
    EXPECT_TRUE(lines[0].starts_with("ucp_init: " + expected()) || lines[0].starts_with(expected()))
        << lines[0];
    EXPECT_TRUE(lines[0].ends_with("(UCX_STRICT)")) << lines[0];
}

TEST_F(ucp_broken_provider, is_among_what_is_not_used)
{
    const std::vector<uct::ofi::absence> &all = uct::ofi::absences();
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [](const uct::ofi::absence &a) {
        return a.provider == "libbroken-fi.so" && a.why.starts_with("it does not load: ");
    }));
}

} // namespace
