// SPDX-License-Identifier: BSD-3-Clause
//
// The lanes of an endpoint, as the program sees them. UCX has this query since API 1.14, so suites
// that run on UCX 1.13 do not include it.
#pragma once

#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <iterator>
#include <string>
#include <vector>

namespace ucp_test {

// "transport/device" of each lane.
inline std::vector<std::string> transports_of(ucp_ep_h ep)
{
    ucp_transport_entry_t entries[16] = {};
    ucp_ep_attr_t attr = {};
    attr.field_mask = UCP_EP_ATTR_FIELD_TRANSPORTS;
    attr.transports = {entries, std::size(entries), sizeof(entries[0])};
    EXPECT_EQ(UCS_OK, ucp_ep_query(ep, &attr));
    std::vector<std::string> lanes;
    for (unsigned i = 0; i < attr.transports.num_entries; ++i) {
        lanes.push_back(std::string(entries[i].transport_name) + "/" + entries[i].device_name);
    }
    return lanes;
}

} // namespace ucp_test
