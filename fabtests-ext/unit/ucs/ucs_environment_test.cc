// SPDX-License-Identifier: BSD-3-Clause
// What is said about the environment: unknown variables, UCX's variables without meaning here, and
// every variable of UCX 1.13 and 1.18 with its default and with nonsense.
#include "ucs/config/environment.h"
#include "ucs/config/ucx_variables.h"
#include "ucs/error.h"

#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace ucs::config;

struct line {
    ucs::log::level level;
    std::string text;
};
std::vector<line> lines;

void keep(ucs::log::level level, const char *, int, const char *text)
{
    lines.push_back({level, text});
}

class environment : public ::testing::Test {
  protected:
    environment()
    {
        lines.clear();
        ucs::log::set_sink(keep);
        // Makes the variables of the transports known.
        uct_component_h *components = nullptr;
        unsigned count = 0;
        EXPECT_EQ(UCS_OK, uct_query_components(&components, &count));
        uct_release_component_list(components);
    }
    ~environment() override
    {
        ucs::log::set_sink(nullptr);
        ucs::log::set_level(ucs::log::level::warn);
        for (const std::string &name : names_) {
            unsetenv(name.c_str());
        }
    }
    void set(const std::string &name, const char *value)
    {
        setenv(name.c_str(), value, 1);
        names_.insert(name);
    }
    static size_t occurrences(const std::string &text)
    {
        size_t n = 0;
        for (const line &l : lines) {
            n += l.text.find(text) != std::string::npos;
        }
        return n;
    }
    static bool initializes()
    {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG;
        ucp_context_h context = nullptr;
        if (ucp_init(&params, nullptr, &context) != UCS_OK) {
            return false;
        }
        ucp_cleanup(context);
        return true;
    }

  private:
    std::set<std::string> names_;
};

// Whether the settings of an interface, of the first that a component has, can be read.
bool reads_interface(uct_component_h component)
{
    uct_md_resource_desc_t resources[64];
    uct_component_attr_t attr = {};
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    EXPECT_EQ(UCS_OK, uct_component_query(component, &attr));
    if (attr.md_resource_count == 0 || attr.md_resource_count > 64) {
        return true;
    }
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES | UCT_COMPONENT_ATTR_FIELD_NAME;
    attr.md_resources = resources;
    EXPECT_EQ(UCS_OK, uct_component_query(component, &attr));
    uct_md_config_t *md_config = nullptr;
    if (uct_md_config_read(component, nullptr, nullptr, &md_config) != UCS_OK) {
        return false;
    }
    uct_md_h md = nullptr;
    EXPECT_EQ(UCS_OK, uct_md_open(component, resources[0].md_name, md_config, &md));
    uct_config_release(md_config);
    uct_iface_config_t *config = nullptr;
    bool ok = uct_md_iface_config_read(md, attr.name, nullptr, nullptr, &config) == UCS_OK;
    if (ok) {
        uct_config_release(config);
    }
    uct_md_close(md);
    return ok;
}

bool reads_connection_manager(uct_component_h component)
{
    uct_component_attr_t attr = {};
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_FLAGS;
    EXPECT_EQ(UCS_OK, uct_component_query(component, &attr));
    uct_cm_config_t *config = nullptr;
    if (!(attr.flags & UCT_COMPONENT_FLAG_CM)) {
        return true;
    }
    if (uct_cm_config_read(component, nullptr, nullptr, &config) != UCS_OK) {
        return false;
    }
    uct_config_release(config);
    return true;
}

// Reads every setting of every layer.
bool reads_settings()
{
    ucp_config_t *config = nullptr;
    if (ucp_config_read(nullptr, nullptr, &config) != UCS_OK) {
        return false;
    }
    ucp_config_release(config);
    uct_component_h *components = nullptr;
    unsigned count = 0;
    EXPECT_EQ(UCS_OK, uct_query_components(&components, &count));
    bool ok = true;
    for (unsigned i = 0; ok && i < count; ++i) {
        ok = reads_interface(components[i]) && reads_connection_manager(components[i]);
    }
    uct_release_component_list(components);
    return ok;
}

TEST_F(environment, unknown_name_is_reported_once_with_the_nearest_known)
{
    set("UCX_TSL", "tcp");
    ASSERT_TRUE(initializes());
    ASSERT_TRUE(initializes());
    EXPECT_EQ(1u, occurrences("UCX_TSL (did you mean UCX_TLS?)"));
}

TEST_F(environment, unknown_name_is_not_reported_where_the_user_does_not_want_it)
{
    set("UCX_NET_DEVCES", "lo");
    set("UCX_WARN_UNUSED_ENV_VARS", "n");
    ASSERT_TRUE(initializes());
    EXPECT_EQ(0u, occurrences("UCX_NET_DEVCES"));
    set("UCX_STRICT", "y");
    EXPECT_TRUE(initializes());
}

TEST_F(environment, strict_makes_an_unknown_name_an_error_that_names_it)
{
    set("UCX_RNDV_TRESH", "1k");
    set("UCX_STRICT", "y");
    EXPECT_FALSE(initializes());
    EXPECT_EQ(1u, occurrences("UCX_RNDV_TRESH (did you mean UCX_RNDV_THRESH?)"));
}

TEST_F(environment, variable_of_an_absent_or_unused_transport_is_known)
{
    set("UCX_CXI_SEG_SIZE", "4k");
    set("UCX_SHM_SEG_SIZE", "4k");
    set("UCX_TLS", "tcp");
    ASSERT_TRUE(initializes());
    EXPECT_EQ(0u, occurrences("SEG_SIZE"));
}

TEST_F(environment, what_misleads_is_a_warning_and_the_rest_information)
{
    set("UCX_TCP_NODELAY", "n");
    set("UCX_BUILTIN_MEMCPY_MAX", "1k");
    ucs::log::set_level(ucs::log::level::info);
    report_environment(false);
    ASSERT_EQ(1u, occurrences("UCX_TCP_NODELAY=n has no effect: "));
    ASSERT_EQ(1u, occurrences("UCX_BUILTIN_MEMCPY_MAX=1k has no effect: "));
    for (const line &l : lines) {
        bool misleading = l.text.find("TCP_NODELAY") != std::string::npos;
        EXPECT_EQ(misleading ? ucs::log::level::warn : ucs::log::level::info, l.level) << l.text;
    }
    set("UCX_STRICT", "y");
    EXPECT_FALSE(initializes());
    set("UCX_TCP_NODELAY", "y");
    EXPECT_TRUE(initializes());
}

TEST_F(environment, every_reason_has_a_text_and_every_name_stands_once)
{
    std::set<std::string> seen;
    for_each_ucx_variable([&](const ucx_variable &v) {
        EXPECT_TRUE(seen.insert(v.name).second) << v.name;
        EXPECT_NE('\0', *text_of(v.why)) << v.name;
        EXPECT_EQ(v.means == standing::honoured, v.why == reason::served) << v.name;
    });
    EXPECT_EQ(472u, ucx_variables.size());
    EXPECT_EQ(80u, newer_ucx_variables.size());
}

TEST_F(environment, what_is_honoured_is_in_a_table)
{
    for_each_ucx_variable([&](const ucx_variable &v) {
        if (v.means == standing::honoured) {
            EXPECT_TRUE(is_known(std::string("UCX_") + v.name)) << v.name;
        }
    });
}

TEST_F(environment, default_of_every_variable_is_taken_in_silence)
{
    for_each_ucx_variable([&](const ucx_variable &v) {
        std::string name = std::string("UCX_") + v.name;
        set(name, v.deflt);
        EXPECT_TRUE(!is_known(name) || reads_settings()) << name << "=" << v.deflt;
        for (const finding &f : check_environment()) {
            ADD_FAILURE() << f.text;
        }
        unsetenv(name.c_str());
    });
}

TEST_F(environment, nonsense_in_any_variable_is_refused_or_reported)
{
    // Free text, a pattern, and lists of names that ucp_init compares with what is here.
    const std::set<std::string> texts = {"UCX_TLS", "UCX_NET_DEVICES", "UCX_LOG_FILE",
                                         "UCX_LOG_FILE_FILTER", "UCX_PROTO_INFO"};
    for_each_ucx_variable([&](const ucx_variable &v) {
        std::string name = std::string("UCX_") + v.name;
        set(name, "nonsense");
        bool reported = false;
        for (const finding &f : check_environment()) {
            reported = reported || f.text.find(name + "=nonsense") == 0;
        }
        if (v.means != standing::honoured) {
            EXPECT_TRUE(reported) << name;
        } else if (!texts.count(name)) {
            EXPECT_TRUE(reported || !reads_settings()) << name;
        }
        unsetenv(name.c_str());
    });
}

} // namespace
