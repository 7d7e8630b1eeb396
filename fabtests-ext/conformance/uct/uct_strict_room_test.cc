// SPDX-License-Identifier: BSD-3-Clause
// What a fabric has little of: room for endpoints and queues.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/refused.h"
#include "fabtests-ext/conformance/common/uct_entity.h"

namespace uct_conformance {
namespace {

// Opens one more interface of the entity's domain and closes it again; refused::errors holds what
// was logged.
ucs_status_t try_another(const entity &home)
{
    uct_iface_h iface = nullptr;
    refused::errors.clear();
    refused::keep_errors();
    ucs_status_t status = open_another(home, home.worker, &iface);
    refused::let_errors_go();
    if (status == UCS_OK) {
        uct_iface_close(iface);
    }
    return status;
}

class uct_strict_room : public testing::TestWithParam<std::string> {
  protected:
    // Of regions, an endpoint and a queue.
    bool has_carrier() const { return GetParam() == "cxi" || GetParam() == "worst"; }
};

TEST_P(uct_strict_room, an_interface_without_room_for_its_endpoint_says_so)
{
    environment few("FI_STRICT_EPS", has_carrier() ? "3" : "2");
    entity a(GetParam(), {});
    EXPECT_EQ(try_another(a), UCS_OK);
    EXPECT_EQ(try_another(a), UCS_OK); // what was closed has room again
    one_more_interface second(a, a.worker);
    EXPECT_EQ(try_another(a), UCS_ERR_NO_MEMORY);
    ASSERT_EQ(refused::errors.size(), 1u);
    EXPECT_EQ(refused::errors[0], "fi_endpoint: No space left on device"); // whatever its key is
}

TEST_P(uct_strict_room, an_interface_without_room_for_its_queue_says_so)
{
    environment few("FI_STRICT_QUEUES", has_carrier() ? "2" : "1");
    entity a(GetParam(), {});
    EXPECT_EQ(try_another(a), UCS_ERR_NO_MEMORY);
    ASSERT_EQ(refused::errors.size(), 1u);
    EXPECT_TRUE(refused::errors[0].starts_with("fi_cq_open")) << refused::errors[0];
    EXPECT_TRUE(refused::errors[0].ends_with(": No space left on device")) << refused::errors[0];
}

INSTANTIATE_TEST_SUITE_P(over, uct_strict_room,
                         testing::Values("cxi", "efa", "opx", "psm3", "worst"), core_name);

} // namespace
} // namespace uct_conformance
