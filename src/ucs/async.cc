// SPDX-License-Identifier: BSD-3-Clause
// See async.h. A watch is found by its id in a table under the thread's mutex; while its callback
// runs the watch is marked busy, and a destroyer on another thread waits for the mark to go.
#include "ucs/async.h"

#include "ucs/error.h"

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>

namespace ucs {

struct async_watch::impl {
    int fd;
    bool is_timer;
    callback_t callback;
    void *arg;
    uint64_t id = 0;
    bool busy = false; // under the reactor's mutex: the callback is running
};

namespace {

using watch_ptr = std::shared_ptr<async_watch::impl>;

thread_local bool is_async_thread = false;

// What the thread and the reactor share; closed by the last of them to let go.
struct descriptors {
    ~descriptors()
    {
        close(epoll);
        close(wake);
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
};

timespec to_timespec(uint64_t ns)
{
    return {.tv_sec = static_cast<time_t>(ns / 1000000000u),
            .tv_nsec = static_cast<long>(ns % 1000000000u)};
}

// A delay of 0 stops it, an interval of 0 lets it end once.
void start_timer(int fd, uint64_t delay_ns, uint64_t interval_ns)
{
    itimerspec spec = {.it_interval = to_timespec(interval_ns), .it_value = to_timespec(delay_ns)};
    timerfd_settime(fd, 0, &spec, nullptr);
}

class reactor {
  public:
    static reactor &get()
    {
        // Never destroyed: watches may outlive static destruction order, and the thread ends with
        // the last one.
        static reactor *instance = new reactor();
        return *instance;
    }

    void add(const watch_ptr &watch, uint32_t events)
    {
        std::unique_lock lock(mutex_);
        after_fork();
        start();
        watch->id = ++last_id_;
        try {
            watches_.emplace(watch->id, watch);
        } catch (...) {
            stop_if_unused(lock);
            throw;
        }
        epoll_event event = {.events = events, .data = {.u64 = watch->id}};
        if (epoll_ctl(fds_->epoll, EPOLL_CTL_ADD, watch->fd, &event) != 0) {
            int saved = errno;
            watches_.erase(watch->id);
            stop_if_unused(lock);
            throw error(UCS_ERR_IO_ERROR, "cannot watch fd %d: %s", watch->fd, strerror(saved));
        }
    }

    void remove(const watch_ptr &watch)
    {
        std::unique_lock lock(mutex_);
        if (owner_pid_ != getpid() || watches_.erase(watch->id) == 0) {
            return; // a forked child: the watch is the parent's
        }
        epoll_ctl(fds_->epoll, EPOLL_CTL_DEL, watch->fd, nullptr);
        if (!on_thread()) {
            idle_.wait(lock, [&] { return !watch->busy; });
        }
        stop_if_unused(lock);
    }

    // how: EPOLL_CTL_*. False: that cannot be.
    bool change(const watch_ptr &watch, int how, uint32_t events)
    {
        std::lock_guard lock(mutex_);
        if (owner_pid_ != getpid() || !watches_.contains(watch->id)) {
            return false;
        }
        epoll_event event = {.events = events, .data = {.u64 = watch->id}};
        return epoll_ctl(fds_->epoll, how, watch->fd, &event) == 0;
    }

    // The callback sees what the caller has done before, the watch included.
    void set_timer(const watch_ptr &watch, uint64_t delay_ns, uint64_t interval_ns)
    {
        std::lock_guard lock(mutex_);
        // A forked child has its parent's timer.
        if (owner_pid_ == getpid() && watches_.contains(watch->id)) {
            start_timer(watch->fd, delay_ns, interval_ns);
        }
    }

    static bool on_thread() { return is_async_thread; }

  private:
    void after_fork()
    {
        if (owner_pid_ == getpid()) {
            return;
        }
        // The thread did not survive the fork; what the parent watches is not ours.
        if (owner_pid_ != 0) {
            if (thread_.joinable()) {
                thread_.detach();
            }
            watches_.clear();
            running_ = false;
        }
        owner_pid_ = getpid();
    }

    void start()
    {
        if (running_) {
            return;
        }
        auto fds = std::make_shared<descriptors>();
        if (fds->epoll < 0 || fds->wake < 0) {
            throw error(UCS_ERR_IO_ERROR, "cannot create the helper thread's epoll set: %s",
                        strerror(errno));
        }
        epoll_event event = {.events = EPOLLIN, .data = {.u64 = 0}};
        epoll_ctl(fds->epoll, EPOLL_CTL_ADD, fds->wake, &event);
        // Signals are for the application's threads.
        sigset_t all, old;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        try {
            thread_ = std::thread([this, fds] { run(*fds); });
        } catch (...) {
            pthread_sigmask(SIG_SETMASK, &old, nullptr);
            throw;
        }
        pthread_sigmask(SIG_SETMASK, &old, nullptr);
        fds_ = fds;
        running_ = true;
    }

    // Joins the thread after the last watch, so that a process without watches has no thread of
    // ours.
    void stop_if_unused(std::unique_lock<std::mutex> &lock)
    {
        if (!watches_.empty() || !running_) {
            return;
        }
        running_ = false;
        uint64_t one = 1;
        [[maybe_unused]] ssize_t n = write(fds_->wake, &one, sizeof(one));
        fds_.reset(); // the thread has them until it ends
        if (on_thread()) {
            thread_.detach(); // it sees the wake-up after this callback
            return;
        }
        std::thread ending = std::move(thread_);
        lock.unlock();
        ending.join();
        lock.lock();
    }

    void run(const descriptors &fds)
    {
        pthread_setname_np(pthread_self(), "ucxlike-async");
        is_async_thread = true;
        bool woken = false;
        while (!woken) {
            epoll_event events[16];
            int count = epoll_wait(fds.epoll, events, std::size(events), -1);
            for (int i = 0; i < count; ++i) {
                if (events[i].data.u64 == 0) {
                    woken = true;
                } else {
                    dispatch(events[i].data.u64, events[i].events);
                }
            }
        }
    }

    void dispatch(uint64_t id, uint32_t events)
    {
        watch_ptr watch;
        {
            std::lock_guard lock(mutex_);
            auto it = watches_.find(id);
            if (it == watches_.end()) {
                return; // removed after epoll_wait had returned it
            }
            watch = it->second;
            watch->busy = true;
        }
        if (!watch->is_timer) {
            watch->callback(watch->arg, events);
        } else if (uint64_t ticks; read(watch->fd, &ticks, sizeof(ticks)) == sizeof(ticks)) {
            watch->callback(watch->arg, 0); // else it was set anew since it was over
        }
        {
            std::lock_guard lock(mutex_);
            watch->busy = false;
        }
        idle_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable idle_;
    std::unordered_map<uint64_t, watch_ptr> watches_;
    std::thread thread_;
    uint64_t last_id_ = 0;
    std::shared_ptr<descriptors> fds_;
    pid_t owner_pid_ = 0;
    bool running_ = false;
};

} // namespace

async_watch async_watch::fd(int fd, uint32_t events, callback_t callback, void *arg)
{
    auto watch =
        std::make_shared<impl>(impl{.fd = fd, .is_timer = false, .callback = callback, .arg = arg});
    reactor::get().add(watch, events);
    return async_watch(std::move(watch));
}

async_watch async_watch::timer(uint64_t interval_ns, callback_t callback, void *arg)
{
    auto watch =
        std::make_shared<impl>(impl{.fd = -1, .is_timer = true, .callback = callback, .arg = arg});
    watch->fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (watch->fd < 0) {
        throw error(UCS_ERR_IO_ERROR, "timerfd_create: %s", strerror(errno));
    }
    start_timer(watch->fd, interval_ns, interval_ns);
    try {
        reactor::get().add(watch, EPOLLIN);
    } catch (...) {
        close(watch->fd);
        throw;
    }
    return async_watch(std::move(watch));
}

async_watch &async_watch::operator=(async_watch &&other) noexcept
{
    if (this != &other) {
        reset();
        impl_ = std::move(other.impl_);
    }
    return *this;
}

async_watch::~async_watch()
{
    reset();
}

void async_watch::stop()
{
    if (impl_) {
        reactor::get().remove(impl_);
    }
}

void async_watch::reset()
{
    stop();
    if (impl_ && impl_->is_timer) {
        close(impl_->fd);
    }
    impl_.reset();
}

void async_watch::set_events(uint32_t events)
{
    if (impl_) {
        reactor::get().change(impl_, EPOLL_CTL_MOD, events);
    }
}

void async_watch::pause()
{
    if (impl_) {
        reactor::get().change(impl_, EPOLL_CTL_DEL, 0);
    }
}

bool async_watch::resume(uint32_t events)
{
    return impl_ && reactor::get().change(impl_, EPOLL_CTL_ADD, events);
}

void async_watch::set_interval(uint64_t interval_ns)
{
    if (impl_) {
        reactor::get().set_timer(impl_, interval_ns, interval_ns);
    }
}

void async_watch::set_once(uint64_t delay_ns)
{
    if (impl_) {
        reactor::get().set_timer(impl_, delay_ns, 0);
    }
}

bool on_async_thread()
{
    return is_async_thread;
}

} // namespace ucs
