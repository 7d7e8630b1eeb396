// SPDX-License-Identifier: BSD-3-Clause
// Whether a peer of sm is there: one sender looks, and the others believe it for a while.
#include "uct/sm/peer.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace uct::sm {
namespace {

// As another process would: the inbox is not in the table of this one.
iface_address address_of(const inbox &in, const bell &b)
{
    iface_address to = {};
    to.version = address_version;
    to.kind = 'i';
    to.pid = static_cast<uint32_t>(getpid());
    to.nonce = in.nonce();
    to.inbox_fd = static_cast<uint32_t>(in.fd());
    to.bell_fd = static_cast<uint32_t>(b.fd());
    to.bell_inode = b.inode();
    return to;
}

TEST(uct_sm_peer, a_look_counts_for_all_senders_for_a_while)
{
    constexpr uint64_t now = 1000 * look_validity;
    inbox in;
    bell b;
    peer one(address_of(in, b), getpid(), 1), two(address_of(in, b), getpid(), 1);
    EXPECT_FALSE(two.seen_lately(now));
    EXPECT_TRUE(one.look(now));
    EXPECT_TRUE(two.seen_lately(now));
    EXPECT_TRUE(two.seen_lately(now + look_validity - 1));
    EXPECT_FALSE(two.seen_lately(now + look_validity));
    EXPECT_FALSE(two.seen_lately(now - 1)) << "a time that has not come yet";
}

TEST(uct_sm_peer, a_look_that_finds_nothing_does_not_count)
{
    constexpr uint64_t now = 1000 * look_validity;
    inbox in;
    bell b;
    peer one(address_of(in, b), getpid(), 1), two(address_of(in, b), getpid(), 1);
    EXPECT_TRUE(one.look(now));
    in.close();
    constexpr uint64_t later = now + look_validity;
    EXPECT_FALSE(one.look(later));
    EXPECT_FALSE(two.seen_lately(later));
    EXPECT_FALSE(two.look(later));
}

} // namespace
} // namespace uct::sm
