// SPDX-License-Identifier: BSD-3-Clause
// The order in which transports and devices are preferred.
#include "ucp/core/config.h"
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

tl_resource shared_memory(const char *name)
{
    tl_resource rsc;
    rsc.cls = tl_class::shm;
    strcpy(rsc.desc.tl_name, name);
    strcpy(rsc.desc.dev_name, "memory");
    return rsc;
}

selection selected(const std::vector<std::string> &tls)
{
    config config = {};
    config.tls = tls;
    return selection(config);
}

TEST(ucp_resources, a_backslash_means_that_transport_and_none_of_its_class)
{
    selection by_class = selected({"sm"});
    EXPECT_TRUE(by_class.allows(shared_memory("sm")));
    EXPECT_TRUE(by_class.allows(shared_memory("shm")));
    selection own = selected({"\\sm"});
    EXPECT_TRUE(own.allows(shared_memory("sm")));
    EXPECT_FALSE(own.allows(shared_memory("shm")));
    selection core = selected({"\\shm"});
    EXPECT_FALSE(core.allows(shared_memory("sm")));
    EXPECT_TRUE(core.allows(shared_memory("shm")));
}

TEST(ucp_resources, ofi_shm_is_the_core_provider_alone)
{
    selection only = selected({"ofi_shm"});
    EXPECT_FALSE(only.allows(shared_memory("sm")));
    EXPECT_TRUE(only.allows(shared_memory("shm")));
    selection without = selected({"^ofi_shm"});
    EXPECT_FALSE(without.allows(shared_memory("shm")));
    EXPECT_TRUE(without.allows(shared_memory("sm")));
    EXPECT_TRUE(without.unmatched().empty());
    EXPECT_TRUE(selected({"^\\sm"}).unmatched().empty());
    EXPECT_TRUE(selected({"sm", "ofi_shm"}).allows(shared_memory("shm")));
}

TEST(ucp_resources, the_core_provider_of_shared_memory_is_a_spare_unless_it_is_named)
{
    EXPECT_TRUE(selection::stands_in_for_spare(shared_memory("sm")));
    EXPECT_FALSE(selection::stands_in_for_spare(shared_memory("shm")));
    using list = std::vector<std::string>;
    for (const list &tls : {list{}, list{"all"}, list{"shm"}, list{"sm"}, list{"posix", "tcp"},
                            list{"^ofi_shm"}, list{"^tcp"}}) {
        EXPECT_TRUE(selected(tls).is_spare("shm"));
        EXPECT_FALSE(selected(tls).is_spare("sm"));
        EXPECT_FALSE(selected(tls).is_spare("tcp"));
    }
    for (const list &tls : {list{"ofi_shm"}, list{"OFI_SHM"}, list{"\\shm"}, list{"sm", "ofi_shm"},
                            list{"all", "ofi_shm"}}) {
        EXPECT_FALSE(selected(tls).is_spare("shm"));
    }
}

TEST(ucp_resources, only_some_components_have_to_be_named)
{
    EXPECT_TRUE(selected({}).component_listed("sm"));
    EXPECT_TRUE(selected({"all"}).component_listed("shm"));
    EXPECT_FALSE(selected({"all"}).component_listed("tcprdm"));
    EXPECT_TRUE(selected({"tcprdm"}).component_listed("tcprdm"));
    EXPECT_FALSE(selected({"^tcprdm"}).component_listed("tcprdm"));
}

// Whether the core providers are asked when our shared memory is there.
bool asks_cores(std::vector<std::string> tls)
{
    config config = {};
    config.tls = std::move(tls);
    selection select(config);
    (void)select.allows(shared_memory("sm"));
    return select.needs_cores();
}

TEST(ucp_resources, core_providers_are_asked_for_what_nothing_else_has)
{
    EXPECT_FALSE(asks_cores({"sm"}));
    EXPECT_FALSE(asks_cores({"posix", "\\sm"}));
    EXPECT_TRUE(asks_cores({}));
    EXPECT_TRUE(asks_cores({"all"}));
    EXPECT_TRUE(asks_cores({"^sm"}));
    EXPECT_TRUE(asks_cores({"sm", "tcp"}));
    EXPECT_TRUE(asks_cores({"ofi_shm"}));
    EXPECT_TRUE(asks_cores({"self"})) << "no resource of self was seen";
}

} // namespace
