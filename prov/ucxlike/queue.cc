// SPDX-License-Identifier: BSD-3-Clause
//
// The descriptor of a queue, and arming it.
#include "queue.h"

#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ucxlike {

waitable::~waitable()
{
    if (epoll_ >= 0)
        ::close(epoll_);
    if (event_ >= 0)
        ::close(event_);
}

void waitable::add_engine(engine *e)
{
    ucs::opt_guard g(engines_lock_);
    for (auto &u : engines_) {
        if (u.eng == e) {
            ++u.count;
            return;
        }
    }
    engines_.push_back({e, 1});
    if (epoll_ >= 0 && e->efd() >= 0) {
        epoll_event ev = {.events = EPOLLIN, .data = {}};
        epoll_ctl(epoll_, EPOLL_CTL_ADD, e->efd(), &ev);
    }
    notify();
}

void waitable::remove_engine(engine *e)
{
    ucs::opt_guard g(engines_lock_);
    for (size_t i = 0; i < engines_.size(); ++i) {
        if (engines_[i].eng != e)
            continue;
        if (--engines_[i].count == 0) {
            if (epoll_ >= 0 && e->efd() >= 0)
                epoll_ctl(epoll_, EPOLL_CTL_DEL, e->efd(), nullptr);
            engines_.erase(engines_.begin() + i);
        }
        return;
    }
}

int waitable::fd()
{
    ucs::opt_guard g(engines_lock_);
    if (epoll_ >= 0)
        return epoll_;
    event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (event_ < 0 || epoll_ < 0) {
        PROV_WARN(CORE, "no descriptor to wait on: %s\n", strerror(errno));
        throw failure{errno};
    }
    epoll_event ev = {.events = EPOLLIN, .data = {}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, event_, &ev);
    for (auto &u : engines_)
        if (u.eng->efd() >= 0)
            epoll_ctl(epoll_, EPOLL_CTL_ADD, u.eng->efd(), &ev);
    return epoll_;
}

void waitable::ring()
{
    if (event_ < 0 || rung_.exchange(true))
        return;
    uint64_t one = 1;
    (void)!write(event_, &one, sizeof(one));
}

void waitable::disarm()
{
    waiting_.store(false);
    if (rung_.exchange(false)) {
        uint64_t n;
        (void)!read(event_, &n, sizeof(n));
    }
}

bool waitable::arm_engines()
{
    ucs::opt_guard g(engines_lock_);
    for (auto &u : engines_) {
        // What is pending already may be nothing of ours: take it and ask again, a few times.
        for (int i = 0; !u.eng->arm(); ++i) {
            if (i == 4)
                return false;
            u.eng->progress();
        }
    }
    return true;
}

void waitable::wait_fd(int fd, int timeout)
{
    pollfd p = {.fd = fd, .events = POLLIN, .revents = 0};
    poll(&p, 1, timeout);
}

} // namespace ucxlike
