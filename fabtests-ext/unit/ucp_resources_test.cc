// SPDX-License-Identifier: BSD-3-Clause
// The order in which transports and devices are preferred.
#include "ucp/core/resources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace {

using namespace ucp;

// Each stands before all that follow.
const std::vector<resource_rank> best_first = {
    {tl_class::self, false, 1, false},
    {tl_class::shm, false, 1, false},
    {tl_class::rdma, false, 0, false},
    {tl_class::rdma, false, 500e-9, false},
    {tl_class::net, false, 0, true},
    {tl_class::net, false, 0, false},
    {tl_class::net, false, 500e-9, true}, // near comes before the default route
    {tl_class::net, false, 1, false},
    {tl_class::net, true, 0, false}, // reaches this host alone
};

TEST(ucp_resources, better_is_class_then_reach_then_locality_then_route)
{
    for (size_t i = 0; i < best_first.size(); ++i) {
        EXPECT_FALSE(better(best_first[i], best_first[i]));
        for (size_t j = i + 1; j < best_first.size(); ++j) {
            EXPECT_TRUE(better(best_first[i], best_first[j])) << i << " " << j;
            EXPECT_FALSE(better(best_first[j], best_first[i])) << j << " " << i;
        }
    }
}

TEST(ucp_resources, rank_of_a_device)
{
    tl_resource rsc;
    rsc.cls = tl_class::net;
    rsc.desc.sys_device = UCS_SYS_DEVICE_ID_UNKNOWN;
    strcpy(rsc.desc.dev_name, "eth7");
    EXPECT_TRUE(rank_of(rsc, "eth7").default_route);
    EXPECT_FALSE(rank_of(rsc, "eth0").default_route);
    EXPECT_FALSE(rank_of(rsc, "eth0").loopback);
    strcpy(rsc.desc.dev_name, "lo");
    EXPECT_TRUE(rank_of(rsc, "eth0").loopback);
}

TEST(ucp_resources, loopback_and_what_is_not_there_reach_nobody)
{
    EXPECT_FALSE(reaches_beyond("lo"));
    EXPECT_FALSE(reaches_beyond("no-such-device"));
}

} // namespace
