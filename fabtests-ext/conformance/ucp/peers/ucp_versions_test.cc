// SPDX-License-Identifier: BSD-3-Clause
//
// A peer of another version (docs/wire.md): what it says is refused at once, and the log has both
// versions.
#include "fabtests-ext/common/relay.h"
#include "fabtests-ext/common/ucp_entity.h"
#include "uct/ofi/cm/wire.h"

using namespace ucp_test;
using namespace relay_test;

namespace {

options over_tcp()
{
    options o;
    o.tls = "tcp";
    o.features |= UCP_FEATURE_RMA;
    return o;
}

TEST(ucp_versions, an_address_of_another_version_is_refused)
{
    entity a(over_tcp()), b(over_tcp());
    std::vector<char> address = b.address();
    int version = address[2]++;
    error_lines errors;
    ucp_ep_h ep = nullptr;
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, create_ep(a, address, &ep));
    EXPECT_TRUE(errors.has("address has version " + std::to_string(version + 1) +
                           ", this library reads version " + std::to_string(version)));
}

TEST(ucp_versions, a_key_of_another_version_is_refused)
{
    entity a(over_tcp()), b(over_tcp());
    ucp_ep_h ep = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    char memory[64] = {};
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = memory;
    params.length = sizeof(memory);
    ucp_mem_h memh = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(b.context, &params, &memh));
    void *packed = nullptr;
    size_t size = 0;
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(b.context, memh, &packed, &size));
    ucp_rkey_h rkey = nullptr;
    EXPECT_EQ(UCS_OK, ucp_ep_rkey_unpack(ep, packed, &rkey));
    ucp_rkey_destroy(rkey);
    int version = static_cast<char *>(packed)[1]++;
    error_lines errors;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_ep_rkey_unpack(ep, packed, &rkey));
    EXPECT_TRUE(errors.has("key has version " + std::to_string(version + 1) +
                           ", this library reads version " + std::to_string(version)));
    ucp_rkey_buffer_release(packed);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(b.context, memh));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, close_nb(ep)));
}

struct meeting {
    const char *name;
    change what;
    ucs_status_t client; // what the client sees
    const char *error;   // that is logged; nullptr: they understand each other
};

constexpr uint32_t cm = uct::ofi::cm_wire::protocol.magic;
constexpr size_t hello = uct::ofi::cm_wire::header_size; // of UCP: the private data begins with it

const meeting meetings[] = {
    {"equal_versions", {says::client, 0, 0}, UCS_OK, nullptr},
    {"connection_manager_of_the_client",
     {says::client, cm, 4},
     UCS_ERR_REJECTED,
     "speaks version 2 of the connection manager's protocol, this library version 1"},
    {"connection_manager_of_the_server",
     {says::server, cm, 4},
     UCS_ERR_UNSUPPORTED,
     "speaks version 2 of the connection manager's protocol, this library version 1"},
    {"hello_of_the_client",
     {says::client, cm, hello},
     UCS_ERR_REJECTED,
     "the peer speaks version 4 of the connection protocol, this library version 3"},
    {"hello_of_the_server",
     {says::server, cm, hello},
     UCS_ERR_UNSUPPORTED,
     "the peer speaks version 4 of the connection protocol, this library version 3"},
};

class ucp_versions_met : public testing::TestWithParam<meeting> {};

TEST_P(ucp_versions_met, client_and_server_interoperate_or_refuse)
{
    const meeting &m = GetParam();
    entity c(over_tcp()), s(over_tcp());
    server listening(s);
    relay between(listening.port, m.what);
    error_lines lines;
    errors at_client, at_server;
    ucp_ep_h client = nullptr, accepted = nullptr;
    ASSERT_EQ(UCS_OK, connect(c, between.port, &client, &at_client));
    bool comes = !m.error || m.what.side == says::server; // otherwise the server has no request
    ASSERT_TRUE(
        run_until({&c, &s}, [&] { return at_client.count > 0 || !listening.requests.empty(); }));
    ASSERT_EQ(comes, !listening.requests.empty());
    if (comes) {
        ASSERT_EQ(UCS_OK, listening.accept(&accepted, &at_server));
    }
    if (m.error) {
        ASSERT_TRUE(run_until({&c, &s}, [&] { return at_client.count > 0; }));
        EXPECT_EQ(m.client, at_client.status) << ucs_status_string(at_client.status);
        EXPECT_TRUE(lines.has(m.error));
    } else {
        ping(c, client, s);
    }
    ucs_status_ptr_t closing = accepted ? close_nb(accepted, true) : nullptr;
    EXPECT_EQ(UCS_OK, wait({&c, &s}, close_nb(client, true)));
    EXPECT_EQ(UCS_OK, wait({&c, &s}, closing));
}

INSTANTIATE_TEST_SUITE_P(, ucp_versions_met, testing::ValuesIn(meetings),
                         [](const auto &info) { return info.param.name; });

} // namespace
