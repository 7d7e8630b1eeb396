// SPDX-License-Identifier: BSD-3-Clause
// What a worker's address says of shared memory counts only when it came from this host.
#include "fabtests-ext/common/ucp_entity.h"
#include "ucp/connect/address.h"
#include "ucp/connect/locality.h"
#include "ucp/connect/wireup.h"
#include "ucs/sockaddr.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

namespace {

using namespace ucp_test;

sockaddr_storage at(const char *text)
{
    sockaddr_storage out = {};
    auto *four = reinterpret_cast<sockaddr_in *>(&out);
    auto *six = reinterpret_cast<sockaddr_in6 *>(&out);
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
    } else {
        EXPECT_EQ(inet_pton(AF_INET6, text, &six->sin6_addr), 1);
        six->sin6_family = AF_INET6;
    }
    return out;
}

bool own(const char *text)
{
    sockaddr_storage address = at(text);
    return ucp::is_own_address(reinterpret_cast<const sockaddr *>(&address));
}

TEST(ucp_locality, addresses_of_this_host_are_told_from_others)
{
    EXPECT_TRUE(own("127.0.0.1"));
    EXPECT_TRUE(own("::1"));
    EXPECT_TRUE(own("::ffff:127.0.0.1"));
    EXPECT_FALSE(own("192.0.2.1"));
    EXPECT_FALSE(own("2001:db8::1"));
    EXPECT_FALSE(own("::ffff:192.0.2.1"));
    sockaddr_storage none = {};
    EXPECT_FALSE(ucp::is_own_address(reinterpret_cast<const sockaddr *>(&none)));
}

TEST(ucp_locality, what_the_interfaces_have_is_of_this_host)
{
    ifaddrs *list = nullptr;
    ASSERT_EQ(0, getifaddrs(&list));
    for (const ifaddrs *i = list; i; i = i->ifa_next) {
        if ((i->ifa_flags & IFF_UP) && i->ifa_addr && ucs::sockaddr_length(i->ifa_addr) != 0) {
            EXPECT_TRUE(ucp::is_own_address(i->ifa_addr)) << ucs::sockaddr_string(i->ifa_addr);
        }
    }
    freeifaddrs(list);
    for (const char *none : {"0.0.0.0", "255.255.255.255", "224.0.0.1", "::", "ff02::1"}) {
        EXPECT_FALSE(own(none)) << none;
    }
}

class ucp_memory_locality : public testing::TestWithParam<const char *> {};

TEST_P(ucp_memory_locality, shared_memory_is_not_taken_on_the_word_of_another_host)
{
    options o;
    o.tls = GetParam();
    entity mine(o);
    entity theirs(o);
    std::vector<char> blob = theirs.address();
    ucp::unpacked_address peer;
    ASSERT_EQ(UCS_OK, ucp::unpack_address(blob.data(), blob.size(), &peer));
    for (const char *from : {"192.0.2.1", "127.0.0.1"}) {
        sockaddr_storage connection = at(from);
        ucp::note_origin(reinterpret_cast<const sockaddr *>(&connection), &peer);
        uct_ep_h lane = nullptr;
        size_t room = 0;
        ucs_status_t status = ucp::connect_lane(mine.worker, peer, &lane, &room);
        EXPECT_EQ(peer.from_here ? UCS_OK : UCS_ERR_UNREACHABLE, status) << from;
        if (lane) {
            EXPECT_LE(ucp::LEAST_MAX_MESSAGE, room);
            uct_ep_destroy(lane);
        }
    }
}

UCP_TEST_OVER(ucp_memory_locality, "sm", "ofi_shm");

} // namespace
