// SPDX-License-Identifier: BSD-3-Clause
// The doorbell of processes that sleep over shared memory, rung from another process's point of
// view: through the address alone.
#include "uct/ofi/shm/doorbell.h"

#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>

namespace {

using uct::ofi::doorbell;
using uct::ofi::remote_bell;

bool is_ringing(const doorbell &bell)
{
    pollfd p = {bell.fd(), POLLIN, 0};
    return poll(&p, 1, 0) == 1;
}

TEST(uct_doorbell, rings_once_for_each_arming)
{
    doorbell bell;
    remote_bell peer(bell.address());
    peer.wake();
    EXPECT_FALSE(is_ringing(bell)); // it does not sleep
    bell.arm();
    EXPECT_FALSE(is_ringing(bell));
    peer.wake();
    EXPECT_TRUE(is_ringing(bell));
    EXPECT_FALSE(peer.is_set());
    bell.arm();
    EXPECT_FALSE(is_ringing(bell));
    bell.disarm();
    peer.wake();
    EXPECT_FALSE(is_ringing(bell));
}

// A process that is killed asleep leaves its word set: the next message to it rings.
TEST(uct_doorbell, whoever_rings_for_the_dead_survives)
{
    static volatile sig_atomic_t signals;
    signals = 0;
    auto before = signal(SIGPIPE, [](int) { signals = signals + 1; });
    auto bell = std::make_unique<doorbell>();
    remote_bell peer(bell->address());
    bell->arm();
    bell.reset();
    EXPECT_TRUE(peer.is_set());
    peer.wake();
    EXPECT_EQ(0, signals);
    signal(SIGPIPE, before);
}

} // namespace
