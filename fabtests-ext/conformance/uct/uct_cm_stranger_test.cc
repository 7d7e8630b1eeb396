// SPDX-License-Identifier: BSD-3-Clause
// Programs that connect to the port of a connection manager over tcp and do not speak its protocol.
#include "fabtests-ext/conformance/common/uct_cm_peer.h"

#include <sys/socket.h>
#include <vector>

namespace {

using namespace cm_test;

// The other side has ended the connection, and nothing was said on it.
bool has_ended(int fd)
{
    char c;
    return recv(fd, &c, 1, MSG_DONTWAIT) == 0;
}

class uct_cm_stranger : public ::testing::Test {
  protected:
    void open(const char *peer_timeout)
    {
        server_ = std::make_unique<entity>("tcp", nullptr, nullptr, peer_timeout);
        client_ = std::make_unique<entity>("tcp");
        acceptor_ = std::make_unique<acceptor>(*server_, test_address("tcp"),
                                               acceptor::policy::accept_at_once);
    }
    void TearDown() override
    {
        for (int fd : strangers_) {
            close(fd);
        }
    }
    int come(const std::string &say = "")
    {
        int fd = stranger(acceptor_->address());
        EXPECT_GE(fd, 0);
        strangers_.push_back(fd);
        EXPECT_EQ(send(fd, say.data(), say.size(), MSG_NOSIGNAL), static_cast<ssize_t>(say.size()));
        return fd;
    }
    std::unique_ptr<peer> connect()
    {
        auto c = std::make_unique<peer>(*client_);
        c->private_data = client_data;
        size_t before = acceptor_->accepted_count();
        EXPECT_EQ(UCS_OK, c->connect(acceptor_->address()));
        EXPECT_TRUE(wait([&] {
            return c->answered == 1 && acceptor_->accepted_count() > before &&
                   acceptor_->accepted(before).notified == 1;
        }));
        return c;
    }

    std::unique_ptr<entity> server_, client_;
    std::unique_ptr<acceptor> acceptor_;
    std::vector<int> strangers_;
};

TEST_F(uct_cm_stranger, one_that_asks_for_nothing_is_sent_away)
{
    open("1s");
    std::unique_ptr<peer> known = connect();
    int silent = come(), begun = come(std::string(1, '\3'));
    EXPECT_TRUE(wait([&] { return has_ended(silent) && has_ended(begun); }));
    // The client that has connected says nothing either, and stays.
    EXPECT_EQ(0, known->disconnected.load());
    std::unique_ptr<peer> another = connect();
}

TEST_F(uct_cm_stranger, one_that_may_take_its_time_stays)
{
    open("inf");
    int silent = come();
    std::unique_ptr<peer> known = connect(); // behind it
    EXPECT_FALSE(has_ended(silent));
}

} // namespace
