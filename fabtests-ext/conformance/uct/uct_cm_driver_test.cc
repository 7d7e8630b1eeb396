// SPDX-License-Identifier: BSD-3-Clause
// Which thread takes the turns of a connection manager, seen from its descriptors: the sets of its
// queues are watched while the helper thread sleeps on them, and in no other set while a worker is
// polled.
#include "fabtests-ext/common/epoll_members.h"
#include "fabtests-ext/conformance/common/uct_cm_peer.h"

#include <cerrno>
#include <dlfcn.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace {

// No set can be put into another one.
std::atomic<bool> refuse = false;
std::atomic<int> refused = 0;

// No descriptor is left for a connection that arrives.
std::atomic<bool> exhausted = false;
std::atomic<int> not_accepted = 0;

bool is_set(int fd)
{
    char path[64], kind[64] = "";
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return readlink(path, kind, sizeof(kind) - 1) > 0 &&
           strcmp(kind, "anon_inode:[eventpoll]") == 0;
}

} // namespace

extern "C" __attribute__((visibility("default"))) int epoll_ctl(int set, int op, int fd,
                                                                epoll_event *event) noexcept
{
    if (refuse && op == EPOLL_CTL_ADD && is_set(fd)) {
        ++refused;
        errno = ENOSPC;
        return -1;
    }
    static auto *next = reinterpret_cast<decltype(&epoll_ctl)>(dlsym(RTLD_NEXT, "epoll_ctl"));
    return next(set, op, fd, event);
}

extern "C" __attribute__((visibility("default"))) int accept(int s, sockaddr *from,
                                                             socklen_t *length)
{
    if (exhausted) {
        ++not_accepted;
        errno = EMFILE;
        return -1;
    }
    static auto *next = reinterpret_cast<decltype(&accept)>(dlsym(RTLD_NEXT, "accept"));
    return next(s, from, length);
}

namespace {

using namespace cm_test;

// How many sets are in other ones, in this process.
int sets_in_sets()
{
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) {
        if (!is_set(fd)) {
            continue;
        }
        for (int member : epoll_members(fd)) {
            count += is_set(member);
        }
    }
    return count;
}

// How many of those are not looked at, although they are in a set.
int muted_sets()
{
    int count = 0;
    for (int fd = 0; fd < 256; ++fd) {
        if (!is_set(fd)) {
            continue;
        }
        for (auto [member, events] : epoll_masks(fd)) {
            count += is_set(member) && !(events & EPOLLIN);
        }
    }
    return count;
}

// The queues of tcp are sets of its sockets.
class uct_cm_driver_test : public ::testing::Test {
  protected:
    uct_cm_driver_test() : server_("tcp"), client_("tcp")
    {
        acceptor_ = std::make_unique<acceptor>(server_, test_address("tcp"),
                                               acceptor::policy::accept_at_once);
    }

    template <class F>
    bool poll(F &&done)
    {
        return wait([&] {
            for (int i = 0; i < 100 && !done(); ++i) {
                server_.progress();
                client_.progress();
            }
            return done();
        });
    }

    std::unique_ptr<peer> begin()
    {
        acceptor_->drop_accepted();
        auto c = std::make_unique<peer>(client_);
        c->private_data = client_data;
        EXPECT_EQ(UCS_OK, c->connect(acceptor_->address()));
        return c;
    }

    bool connected(const peer &c)
    {
        return c.answered == 1 && acceptor_->accepted_count() == 1 &&
               acceptor_->accepted(0).notified == 1;
    }

    entity server_, client_;
    std::unique_ptr<acceptor> acceptor_;
};

TEST_F(uct_cm_driver_test, polled_queues_are_in_no_set)
{
    auto first = begin();
    EXPECT_TRUE(wait([&] { return connected(*first); }));
    // Both sides have an event queue and a completion queue, which the helper thread sleeps on.
    int asleep = sets_in_sets();
    EXPECT_TRUE(wait([&] { return (asleep = std::max(asleep, sets_in_sets())) >= 6; }));
    bool seen = false;
    EXPECT_TRUE(wait([&] {
        auto c = begin();
        EXPECT_TRUE(poll([&] {
            seen = seen || sets_in_sets() <= asleep - 2; // of one side at least
            return connected(*c);
        }));
        return seen;
    }));
    // No thread polls any more.
    EXPECT_TRUE(wait([&] { return sets_in_sets() == asleep; }));
}

// The listener's socket stays readable then.
TEST_F(uct_cm_driver_test, rests_while_no_descriptor_is_left_for_clients)
{
    exhausted = true;
    auto c = begin();
    EXPECT_TRUE(wait([&] { return not_accepted > 0; }));
    // No thread polls: the helper does not go on trying without a pause.
    EXPECT_TRUE(wait([&] { return muted_sets() == 1; }, 5));
    // And it comes back from every pause.
    int tried = not_accepted;
    EXPECT_TRUE(wait([&] { return not_accepted > tried; }));
    EXPECT_EQ(0, c->answered);
    exhausted = false;
    EXPECT_TRUE(wait([&] { return connected(*c); }));
    EXPECT_EQ(UCS_OK, c->status);
    EXPECT_TRUE(wait([&] { return muted_sets() == 0; }));
}

TEST_F(uct_cm_driver_test, connects_when_the_kernel_watches_no_more)
{
    auto first = begin();
    EXPECT_TRUE(wait([&] { return connected(*first); }));
    refuse = true;
    EXPECT_TRUE(wait([&] {
        auto c = begin();
        EXPECT_TRUE(poll([&] { return connected(*c); }));
        // No thread polls any more. If the worker had taken a turn, the queues are to be watched
        // again.
        return wait([&] { return refused > 0; }, 1);
    }));
    for (int i = 0; i < 3; ++i) {
        auto c = begin();
        EXPECT_TRUE(wait([&] { return connected(*c); }));
        EXPECT_EQ(UCS_OK, c->status);
    }
    refuse = false;
}

} // namespace
