// SPDX-License-Identifier: BSD-3-Clause
// See async.h. A watch is found by its id in a table under the thread's mutex; while its callback
// runs the watch is marked busy, and a destroyer on another thread waits for the mark to go. One
// timer of the kernel serves all timers, and wakes the thread when it is to end.
#include "ucs/async.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "ucs/timeline.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <thread>
#include <unistd.h>
#include <unordered_map>

namespace ucs {

struct async_watch::impl {
    static constexpr int no_fd = INT_MIN; // of a timer

    impl(int watched, callback_t call, void *call_arg) : fd(watched), callback(call), arg(call_arg)
    {
    }

    bool is_timer() const { return fd == no_fd; }

    const int fd;
    const callback_t callback;
    void *const arg;
    uint64_t id = 0;
    // Under the reactor's mutex.
    bool busy = false;        // the callback is running
    uint64_t due_ns = 0;      // a timer that is set
    uint64_t interval_ns = 0; // 0: it ends once
    list_node by_time;
};

namespace {

using watch_ptr = std::shared_ptr<async_watch::impl>;

thread_local bool is_async_thread = false;

// What the thread and the reactor share; closed by the last of them to let go.
struct descriptors {
    ~descriptors()
    {
        close(epoll);
        close(timer);
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    std::atomic<bool> over = false; // the thread is to end
};

// The kernel's timer ends at that time of ucs::monotonic_ns(), or at once when that is past.
void set_alarm(int fd, uint64_t at_ns)
{
    itimerspec spec = {};
    spec.it_value = {.tv_sec = static_cast<time_t>(at_ns / 1000000000u),
                     .tv_nsec = static_cast<long>(at_ns % 1000000000u)};
    timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, nullptr);
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
        if (!watch->is_timer() && epoll_ctl(fds_->epoll, EPOLL_CTL_ADD, watch->fd, &event) != 0) {
            int saved = errno;
            watches_.erase(watch->id);
            stop_if_unused(lock);
            throw error(UCS_ERR_IO_ERROR, "cannot watch fd %d: %s", watch->fd, strerror(saved));
        }
    }

    void remove(const watch_ptr &watch)
    {
        std::unique_lock lock(mutex_);
        timers::remove(watch.get());
        if (owner_pid_ != getpid() || watches_.erase(watch->id) == 0) {
            return; // a forked child: the watch is the parent's
        }
        if (!watch->is_timer()) {
            epoll_ctl(fds_->epoll, EPOLL_CTL_DEL, watch->fd, nullptr);
        }
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

    // The callback sees what the caller has done before, the watch included. A delay of 0 stops it.
    void set_timer(const watch_ptr &watch, uint64_t delay_ns, uint64_t interval_ns)
    {
        std::lock_guard lock(mutex_);
        if (owner_pid_ != getpid() || !watches_.contains(watch->id)) {
            return; // a forked child has its parent's timer
        }
        timers::remove(watch.get());
        watch->interval_ns = interval_ns;
        if (delay_ns > 0) {
            watch->due_ns = monotonic_ns() + delay_ns;
            timers_.add(watch.get());
            arm();
        }
    }

    static bool on_thread() { return is_async_thread; }

  private:
    using timers =
        timeline<async_watch::impl, &async_watch::impl::by_time, &async_watch::impl::due_ns>;

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
            while (async_watch::impl *timer = timers_.first()) {
                timers::remove(timer);
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
        epoll_event event = {.events = EPOLLIN, .data = {.u64 = 0}};
        if (fds->epoll < 0 || fds->timer < 0 ||
            epoll_ctl(fds->epoll, EPOLL_CTL_ADD, fds->timer, &event) != 0) {
            throw error(UCS_ERR_IO_ERROR, "cannot create the helper thread's epoll set: %s",
                        strerror(errno));
        }
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
        alarm_ns_ = UINT64_MAX;
        running_ = true;
    }

    // An alarm that comes too early, of a timer that was stopped, costs less than to set it anew.
    void arm()
    {
        async_watch::impl *first = timers_.first();
        if (first && first->due_ns < alarm_ns_) {
            alarm_ns_ = first->due_ns;
            set_alarm(fds_->timer, alarm_ns_);
        }
    }

    // Joins the thread after the last watch, so that a process without watches has no thread of
    // ours.
    void stop_if_unused(std::unique_lock<std::mutex> &lock)
    {
        if (!watches_.empty() || !running_) {
            return;
        }
        running_ = false;
        fds_->over = true;
        set_alarm(fds_->timer, 1);
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
        while (!fds.over) {
            epoll_event events[16];
            int count = epoll_wait(fds.epoll, events, std::size(events), -1);
            for (int i = 0; i < count; ++i) {
                if (events[i].data.u64 == 0) {
                    call_timers(fds);
                } else {
                    dispatch(events[i].data.u64, events[i].events);
                }
            }
        }
    }

    // Each timer that is over, once.
    void call_timers(const descriptors &fds)
    {
        uint64_t ticks;
        [[maybe_unused]] ssize_t n = read(fds.timer, &ticks, sizeof(ticks));
        std::unique_lock lock(mutex_);
        const uint64_t now = monotonic_ns();
        for (async_watch::impl *timer; !fds.over && (timer = timers_.due(now));) {
            timers::remove(timer);
            if (timer->interval_ns > 0) {
                timer->due_ns =
                    std::max(timer->due_ns, now - timer->interval_ns) + timer->interval_ns;
                timers_.add(timer);
            }
            call(lock, watches_.find(timer->id)->second, 0);
        }
        if (!fds.over) {
            alarm_ns_ = UINT64_MAX;
            arm();
        }
    }

    void dispatch(uint64_t id, uint32_t events)
    {
        std::unique_lock lock(mutex_);
        auto it = watches_.find(id);
        if (it != watches_.end()) { // else it was removed after epoll_wait had returned it
            call(lock, it->second, events);
        }
    }

    void call(std::unique_lock<std::mutex> &lock, watch_ptr watch, uint32_t events)
    {
        watch->busy = true;
        lock.unlock();
        watch->callback(watch->arg, events);
        lock.lock();
        watch->busy = false;
        idle_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable idle_;
    std::unordered_map<uint64_t, watch_ptr> watches_;
    std::thread thread_;
    uint64_t last_id_ = 0;
    std::shared_ptr<descriptors> fds_;
    timers timers_;
    uint64_t alarm_ns_ = UINT64_MAX; // when the kernel's timer ends; UINT64_MAX: it has ended
    pid_t owner_pid_ = 0;
    bool running_ = false;
};

} // namespace

async_watch async_watch::fd(int fd, uint32_t events, callback_t callback, void *arg)
{
    auto watch = std::make_shared<impl>(fd, callback, arg);
    reactor::get().add(watch, events);
    return async_watch(std::move(watch));
}

async_watch async_watch::timer(uint64_t interval_ns, callback_t callback, void *arg)
{
    auto watch = std::make_shared<impl>(impl::no_fd, callback, arg);
    reactor::get().add(watch, 0);
    reactor::get().set_timer(watch, interval_ns, interval_ns);
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
