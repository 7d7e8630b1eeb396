// SPDX-License-Identifier: BSD-3-Clause
//
// A machine with more devices than a context has memory domains: 20 of each fabric.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "ucp/core/context.h"

#include <set>

namespace {

using namespace ucp_test;

constexpr const char *how_many = "20";
const bool found_by_path = use_strict_cores() && setenv("FI_STRICT_DEVICES", how_many, 1) == 0 &&
                           setenv("FI_STRICT_DESCRIPTOR", "0", 1) == 0;

options with(const char *tls, std::vector<std::pair<std::string, std::string>> config = {})
{
    options o;
    o.tls = tls;
    o.config = std::move(config);
    return o;
}

// Of the resources that a worker opens.
std::set<std::string> opened(const entity &e)
{
    std::set<std::string> devices;
    for (const ucp::tl_resource &rsc : e.context->resources) {
        if (e.context->default_open(rsc)) {
            devices.insert(rsc.desc.dev_name);
        }
    }
    return devices;
}

TEST(ucp_strict_devices, a_worker_opens_as_many_as_an_operation_can_use)
{
    EXPECT_EQ((std::set<std::string>{"cxi0", "cxi1"}), opened(entity(with("cxi"))));
    EXPECT_EQ(4u, opened(entity(with("cxi", {{"MAX_RNDV_RAILS", "4"}}))).size());
    EXPECT_EQ(3u, opened(entity(with("cxi", {{"MAX_RMA_RAILS", "3"}}))).size());
    EXPECT_EQ(
        1u, opened(entity(with("cxi", {{"MAX_RNDV_RAILS", "1"}, {"MAX_RMA_RAILS", "1"}}))).size());
}

TEST(ucp_strict_devices, those_that_are_named_are_opened)
{
    const std::set<std::string> named = {"cxi11", "cxi17", "cxi3", "cxi4", "cxi5"};
    EXPECT_EQ(named, opened(entity(with("cxi", {{"NET_DEVICES", "cxi3,cxi4,cxi5,cxi11,cxi17"}}))));
}

// The first fabric has more of them than there are domains.
TEST(ucp_strict_devices, each_transport_keeps_one)
{
    options o = with("cxi,opx,psm3,tcp");
    entity a(o), b(o);
    EXPECT_EQ(ucp::MAX_MDS, a.context->mds.size());
    std::set<std::string> transports;
    for (const ucp::tl_resource &rsc : a.context->resources) {
        ASSERT_LT(rsc.md_index, a.context->mds.size());
        EXPECT_EQ(a.context->mds[rsc.md_index].cmpt_attr.name, std::string(rsc.desc.tl_name));
        transports.insert(rsc.desc.tl_name);
    }
    EXPECT_EQ((std::set<std::string>{"cxi", "opx", "psm3", "tcp"}), transports);
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ep));
    ping(a, ep, b);
}

} // namespace
