// SPDX-License-Identifier: BSD-3-Clause
// Addresses and hellos of another version (docs/wire.md): nothing connects, and the log has both
// versions.
#include "fabtests-ext/common/relay.h"
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/msg/connection.h"

namespace uct_conformance {
namespace {

using namespace relay_test;

class uct_versions : public uct_test {};

TEST_P(uct_versions, an_address_of_another_version_is_refused)
{
    open({});
    entity::address other = b().where();
    int version = other.iface[0]++;
    EXPECT_FALSE(uct_iface_is_reachable(
        a().iface, reinterpret_cast<const uct_device_addr_t *>(other.device.data()),
        reinterpret_cast<const uct_iface_addr_t *>(other.iface.data())));
    error_lines errors;
    ucs_status_t status = UCS_OK;
    EXPECT_EQ(nullptr, a().try_connect(other, &status));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, status);
    EXPECT_TRUE(errors.has("version " + std::to_string(version + 1)));
    EXPECT_TRUE(errors.has("version " + std::to_string(version)));

    other = b().where();
    ++other.device[0];
    EXPECT_FALSE(uct_iface_is_reachable(
        a().iface, reinterpret_cast<const uct_device_addr_t *>(other.device.data()),
        reinterpret_cast<const uct_iface_addr_t *>(other.iface.data())));
}

INSTANTIATE_TEST_SUITE_P(, uct_versions, testing::Values("sm", "shm", "tcp"));

class uct_hello_versions : public testing::TestWithParam<says> {};

// The peer's address leads to a relay, which changes the hello of one side.
TEST_P(uct_hello_versions, a_hello_of_another_version_ends_the_endpoint)
{
    for (bool changed : {false, true}) {
        entity a("tcp", {}), b("tcp", {});
        entity::address to = b.where();
        uct::ofi::msg_address about;
        memcpy(&about, to.iface.data(), sizeof(about));
        relay between(about.port, {GetParam(), changed ? uct::ofi::hello_protocol.magic : 0,
                                   offsetof(uct::ofi::hello, version)});
        about.port = between.port;
        memcpy(to.iface.data(), &about, sizeof(about));
        error_lines lines;
        uct_ep_h ep = a.connect(to);
        ASSERT_NE(nullptr, ep);
        auto end = std::chrono::steady_clock::now() + patience;
        while (a.errors.empty() && b.received.empty() && std::chrono::steady_clock::now() < end) {
            posting([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); });
            uct_worker_progress(a.worker);
            uct_worker_progress(b.worker);
        }
        EXPECT_EQ(changed, b.received.empty());
        ASSERT_EQ(changed ? 1u : 0u, a.errors.size());
        if (changed) {
            EXPECT_EQ(UCS_ERR_UNSUPPORTED, a.errors[0].second);
            EXPECT_TRUE(lines.has("speaks version " +
                                  std::to_string(uct::ofi::hello_protocol.version + 1) +
                                  " of the hello of connections, this library version " +
                                  std::to_string(uct::ofi::hello_protocol.version)));
        }
    }
}

INSTANTIATE_TEST_SUITE_P(, uct_hello_versions, testing::Values(says::client, says::server),
                         [](const auto &info) {
                             return info.param == says::client ? "of_the_client" : "of_the_server";
                         });

} // namespace
} // namespace uct_conformance
