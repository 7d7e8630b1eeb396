// SPDX-License-Identifier: BSD-3-Clause
// A queue is left unread only while its descriptor shows nothing and its last reads had nothing,
// and not for more rounds than an eighth of its connections.
#include "uct/ofi/tcp/quiet_queue.h"

#include <gtest/gtest.h>

#include <sys/eventfd.h>
#include <unistd.h>

namespace {

using uct::ofi::quiet_queue;

constexpr size_t connections = 800;
constexpr size_t most_left = connections / 8;

class uct_quiet_queue : public testing::Test {
  protected:
    void SetUp() override
    {
        ASSERT_GE(fd_, 0);
        queue_.watch(fd_);
        queue_.was_read(0);
        queue_.was_read(0);
    }
    void TearDown() override { close(fd_); }
    // It is read in the next two rounds, which have nothing, and then left.
    void expect_two_reads()
    {
        EXPECT_FALSE(queue_.is_quiet(connections));
        queue_.was_read(0);
        EXPECT_FALSE(queue_.is_quiet(connections));
        queue_.was_read(0);
        EXPECT_TRUE(queue_.is_quiet(connections));
    }
    void signal() { ASSERT_EQ(eventfd_write(fd_, 1), 0); }

    const int fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    quiet_queue queue_;
};

TEST_F(uct_quiet_queue, is_left_until_something_came)
{
    EXPECT_TRUE(queue_.is_quiet(connections));
    signal();
    EXPECT_FALSE(queue_.is_quiet(connections));
}

TEST_F(uct_quiet_queue, is_read_twice_after_a_completion)
{
    queue_.was_read(1);
    expect_two_reads();
}

TEST_F(uct_quiet_queue, is_read_twice_after_the_core_was_moved)
{
    queue_.disturb();
    expect_two_reads();
}

TEST_F(uct_quiet_queue, is_read_once_in_so_many_rounds)
{
    for (int turn = 0; turn < 2; ++turn) {
        for (size_t left = 0; left < most_left; ++left) {
            ASSERT_TRUE(queue_.is_quiet(connections)) << left;
        }
        EXPECT_FALSE(queue_.is_quiet(connections));
        queue_.was_read(0);
    }
}

TEST_F(uct_quiet_queue, without_a_descriptor_is_read_always)
{
    queue_.watch(-1);
    EXPECT_FALSE(queue_.is_quiet(connections));
}

} // namespace
