// SPDX-License-Identifier: BSD-3-Clause
// Keys of parts of a fabric, over cores that demand one (FI_STRICT_AUTH_KEY of
// fabtests-ext/strict).
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/refused.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

#include "uct/base/auth_key.h"

namespace uct_conformance {
namespace {

// Service 5, VNI 234, as libfabric's struct cxi_auth_key has them in this machine's byte order.
std::string slingshot_digits(uint32_t service, uint16_t vni)
{
    std::string digits;
    char two[3];
    for (uint8_t byte : uct::slingshot_key(service, vni)) {
        snprintf(two, sizeof(two), "%02x", byte);
        digits += two;
    }
    return digits;
}

constexpr const char *uuid = "00112233-4455-6677-8899-aabbccddeeff";
constexpr const char *uuid_digits = "00112233445566778899aabbccddeeff";

// Opens the memory domain of the transport and closes it again; errors holds what was logged.
ucs_status_t try_open(const std::string &transport)
{
    uct_component_h *components = nullptr;
    unsigned count = 0;
    EXPECT_EQ(uct_query_components(&components, &count), UCS_OK);
    ucs_status_t status = UCS_ERR_NO_ELEM;
    refused::errors.clear();
    refused::keep_errors();
    for (unsigned i = 0; i < count; ++i) {
        uct_md_resource_desc_t domain;
        uct_component_attr_t attr{};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = &domain;
        uct_md_config_t *config = nullptr;
        uct_md_h md = nullptr;
        uct_component_attr_t named{};
        named.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
        if (uct_component_query(components[i], &named) != UCS_OK || named.name != transport ||
            uct_component_query(components[i], &attr) != UCS_OK) {
            continue;
        }
        status = uct_md_config_read(components[i], nullptr, nullptr, &config);
        if (status == UCS_OK) {
            status = uct_md_open(components[i], domain.md_name, config, &md);
            uct_config_release(config);
        }
        if (status == UCS_OK) {
            uct_md_close(md);
        }
    }
    refused::let_errors_go();
    uct_release_component_list(components);
    return status;
}

std::string logged()
{
    return refused::errors.empty() ? "" : refused::errors.front();
}

void expect_a_message(const std::string &transport)
{
    entity a(transport, {}), b(transport, {});
    uct_ep_h ep = a.connect(b);
    auto end = std::chrono::steady_clock::now() + patience;
    auto go_on = [&] {
        uct_worker_progress(a.worker);
        uct_worker_progress(b.worker);
        return std::chrono::steady_clock::now() < end;
    };
    while (uct_ep_am_short(ep, 1, 7, nullptr, 0) != UCS_OK && go_on()) {
    }
    while (b.received.empty() && go_on()) {
    }
    EXPECT_EQ(b.received.size(), 1u);
}

} // namespace

TEST(uct_strict_key, a_service_and_a_vni_open_slingshot)
{
    environment demanded("FI_STRICT_AUTH_KEY", slingshot_digits(5, 234).c_str());
    environment key("UCX_CXI_AUTH_KEY", "5:234");
    expect_a_message("cxi");
}

TEST(uct_strict_key, a_uuid_opens_psm3)
{
    environment demanded("FI_STRICT_AUTH_KEY", uuid_digits);
    environment key("UCX_PSM3_AUTH_KEY", uuid);
    expect_a_message("psm3");
}

TEST(uct_strict_key, a_device_has_its_own)
{
    environment demanded("FI_STRICT_AUTH_KEY", slingshot_digits(5, 234).c_str());
    {
        environment key("UCX_CXI_AUTH_KEY", "7:1,cxi0=5:234,cxi1=6:234");
        EXPECT_EQ(try_open("cxi"), UCS_OK) << logged();
    }
    environment key("UCX_CXI_AUTH_KEY", "cxi1=5:234");
    EXPECT_NE(try_open("cxi"), UCS_OK);
}

// The core reads them.
TEST(uct_strict_key, the_variables_of_the_launcher_are_enough)
{
    environment demanded("FI_STRICT_AUTH_KEY", slingshot_digits(5, 234).c_str());
    environment vni("SLINGSHOT_VNIS", "234,17");
    environment device("SLINGSHOT_DEVICES", "cxi0");
    environment service("SLINGSHOT_SVC_IDS", "5");
    expect_a_message("cxi");
}

TEST(uct_strict_key, a_refusal_names_the_service)
{
    environment demanded("FI_STRICT_AUTH_KEY", slingshot_digits(5, 234).c_str());
    EXPECT_NE(try_open("cxi"), UCS_OK);
    EXPECT_EQ(logged(), "fi_domain of cxi0, with no service of the job: SLINGSHOT_VNIS is not set: "
                        "Invalid argument");
    environment vni("SLINGSHOT_VNIS", "235,17");
    environment service("SLINGSHOT_SVC_IDS", "5,6");
    environment device("SLINGSHOT_DEVICES", "cxi1,cxi0");
    EXPECT_NE(try_open("cxi"), UCS_OK);
    EXPECT_EQ(logged(), "fi_domain of cxi0, with service 6, VNI 235 of SLINGSHOT_SVC_IDS and "
                        "SLINGSHOT_VNIS: Invalid argument");
    environment key("UCX_CXI_AUTH_KEY", "5:33");
    EXPECT_NE(try_open("cxi"), UCS_OK);
    EXPECT_EQ(logged(), "fi_domain of cxi0, with service 5, VNI 33 of UCX_CXI_AUTH_KEY: Invalid "
                        "argument");
}

TEST(uct_strict_key, a_refusal_names_where_the_key_of_the_job_comes_from)
{
    environment demanded("FI_STRICT_AUTH_KEY", uuid_digits);
    EXPECT_NE(try_open("psm3"), UCS_OK);
    EXPECT_EQ(logged(), "fi_domain of psm3_0, with no job's key: FI_PSM3_UUID is not set: Invalid "
                        "argument");
    environment key("FI_PSM3_UUID", uuid);
    EXPECT_NE(try_open("psm3"), UCS_OK);
    EXPECT_EQ(logged(),
              "fi_domain of psm3_0, with the job's key of FI_PSM3_UUID: Invalid argument");
}

TEST(uct_strict_key, a_core_without_such_keys_says_so)
{
    environment key("UCX_OPX_AUTH_KEY", uuid);
    EXPECT_EQ(try_open("opx"), UCS_ERR_REJECTED);
    EXPECT_EQ(logged(), "hfi1_0 of provider opx does not take the key of 16 bytes of "
                        "UCX_OPX_AUTH_KEY; its own variable is FI_OPX_UUID");
}

TEST(uct_strict_key, what_is_no_key_is_refused)
{
    for (const char *text : {"5:", ":234", "5:65536", "4294967296:1", "0", "0011223", "xyz",
                             "cxi0=", "=5:234", "5:234,", ",5:234", "5:234:6"}) {
        environment key("UCX_CXI_AUTH_KEY", text);
        EXPECT_EQ(try_open("cxi"), UCS_ERR_INVALID_PARAM) << text;
        EXPECT_NE(logged().find("UCX_CXI_AUTH_KEY"), std::string::npos) << logged();
    }
}

} // namespace uct_conformance
