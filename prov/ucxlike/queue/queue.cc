// SPDX-License-Identifier: BSD-3-Clause
//
// The descriptor of a queue, and arming it.
#include "prov/ucxlike/queue/queue.h"

#include "prov/ucxlike/queue/waitset.h"

#include <cerrno>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace ucxlike {

waitable::waitable(bool locked, fi_wait_obj wait_obj, fid_wait *set)
    : wait_obj_(wait_obj), engines_lock_(locked)
{
    try {
        if (wait_obj_ != FI_WAIT_NONE) {
            fd();
        }
        if (wait_obj_ == FI_WAIT_SET) {
            auto *to = from_fid<wait_set>(set);
            to->add(this);
            set_ = to;
        }
    } catch (...) {
        close_fds();
        throw;
    }
}

waitable::~waitable()
{
    if (set_) {
        set_->remove(this, epoll_);
    }
    close_fds();
}

void waitable::close_fds()
{
    if (epoll_ >= 0) {
        ::close(epoll_);
    }
    if (event_ >= 0) {
        ::close(event_);
    }
}

int waitable::check(const char *call, fi_wait_obj wait_obj, const fid_wait *set)
{
    switch (wait_obj) {
    case FI_WAIT_NONE:
    case FI_WAIT_UNSPEC:
    case FI_WAIT_FD:
    case FI_WAIT_YIELD:
        return 0;
    case FI_WAIT_SET:
        PROV_CHECK_ARG(CORE, set && set->fid.fclass == FI_CLASS_WAIT,
                       "%s: FI_WAIT_SET needs attr->wait_set\n", call);
        return 0;
    case FI_WAIT_MUTEX_COND:
    case FI_WAIT_POLLFD:
        PROV_WARN(CORE, "%s: attr->wait_obj %d is not supported\n", call, wait_obj);
        return -FI_ENOSYS;
    }
    PROV_CHECK_ARG(CORE, false, "%s: attr->wait_obj %d is unknown\n", call, wait_obj);
}

bool waitable::in_use() const
{
    if (users_ == 0) {
        return false;
    }
    PROV_WARN(CORE, "fi_close: the object is bound to %d others\n", users_.load());
    return true;
}

int waitable::trywait()
{
    progress();
    if (news()) {
        told();
        return -FI_EAGAIN;
    }
    return guard([&] {
        fd();
        return arm([this] { return news(); }) ? 0 : -FI_EAGAIN;
    });
}

int waitable::control(int command, void *arg)
{
    switch (command) {
    case FI_GETWAIT:
        PROV_CHECK_ARG(CORE, arg, "fi_control: arg of FI_GETWAIT must not be NULL\n");
        if (wait_obj_ != FI_WAIT_FD && wait_obj_ != FI_WAIT_UNSPEC) {
            return -FI_ENODATA;
        }
        return guard([&] {
            *static_cast<int *>(arg) = fd();
            return 0;
        });
    case FI_GETWAITOBJ:
        PROV_CHECK_ARG(CORE, arg, "fi_control: arg of FI_GETWAITOBJ must not be NULL\n");
        *static_cast<fi_wait_obj *>(arg) = wait_obj_ == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait_obj_;
        return 0;
    default:
        return -FI_ENOSYS;
    }
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
        watch(e->efd());
    }
    notify();
}

void waitable::remove_engine(engine *e)
{
    ucs::opt_guard g(engines_lock_);
    for (size_t i = 0; i < engines_.size(); ++i) {
        if (engines_[i].eng != e) {
            continue;
        }
        // One that lasts stays: endpoints come and go, and each time it is two system calls.
        if (--engines_[i].count == 0 && !e->lasting) {
            if (epoll_ >= 0 && e->efd() >= 0) {
                epoll_ctl(epoll_, EPOLL_CTL_DEL, e->efd(), nullptr); // not there if it was refused
            }
            engines_.erase(engines_.begin() + i);
        }
        return;
    }
}

void waitable::watch(int fd)
{
    epoll_event ev = {.events = EPOLLIN, .data = {}};
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &ev) == 0 || errno == EEXIST) {
        return;
    }
    unwatched_ = errno;
    PROV_WARN(CORE, "descriptor %d cannot be waited on: %s\n", fd, strerror(errno));
}

void waitable::make_fd()
{
    if (event_ < 0) {
        event_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    if (event_ >= 0) {
        epoll_ = epoll_create1(EPOLL_CLOEXEC);
    }
    if (epoll_ < 0) {
        PROV_WARN(CORE, "no descriptor to wait on: %s\n", strerror(errno));
        throw failure{errno};
    }
    watch(event_);
    for (auto &u : engines_) {
        if (u.eng->efd() >= 0) {
            watch(u.eng->efd());
        }
    }
}

int waitable::fd()
{
    ucs::opt_guard g(engines_lock_);
    if (epoll_ < 0) {
        make_fd();
    }
    if (unwatched_) {
        throw failure{unwatched_};
    }
    return epoll_;
}

void waitable::ring()
{
    if (event_ < 0 || rung_.exchange(true)) {
        return;
    }
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
            if (i == 4) {
                return false;
            }
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
