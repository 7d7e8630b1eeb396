// SPDX-License-Identifier: BSD-3-Clause
// The hand-over between the two threads. A thread that stops polling must have found nothing left
// to do, or leave it to a descriptor that is readable.
#include "uct/ofi/cm/driver.h"

#include "ucs/error.h"
#include "ucs/sys.h"
#include "uct/base/worker.h"
#include "uct/ofi/cm/engine.h"

#include <cerrno>
#include <cstring>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace uct::ofi {

namespace {

constexpr uint64_t hot_ns = 5'000'000;
constexpr uint64_t guard_ns = 2'000'000;
// A program that polled so recently is expected to go on: no need to wake the helper thread.
constexpr uint64_t recent_ns = 20'000'000;
// So many turns in vain without a longer pause than this between them, and the thread rests.
constexpr unsigned vain_turns = 64;
constexpr uint64_t vain_ns = 50'000'000;
constexpr uint64_t rest_ns = 10'000'000;

} // namespace

cm_driver::cm_driver(cm_engine &engine)
    : engine_(engine), set_(epoll_create1(EPOLL_CLOEXEC)),
      wakeup_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
{
    if (set_ < 0 || wakeup_ < 0 || !watch(wakeup_)) {
        int error = errno;
        close(set_);
        close(wakeup_);
        throw ucs::error(UCS_ERR_IO_ERROR, "uct_cm_open: epoll_create1, eventfd or epoll_ctl: %s",
                         strerror(error));
    }
}

cm_driver::~cm_driver()
{
    stop();
    close(set_);
    close(wakeup_);
}

void cm_driver::start(worker *poller)
{
    cm_engine::lock held(engine_.mutex()); // what the first calls back waits until both are there
    worker_ = poller;
    events_ = ucs::async_watch::fd(set_, EPOLLIN, on_event, &engine_);
    guard_ = ucs::async_watch::timer(0, on_guard, &engine_);
}

void cm_driver::stop()
{
    ucs::async_watch events, guard;
    {
        cm_engine::lock held(engine_.mutex()); // their callbacks set both
        forget_worker();
        events = std::move(events_);
        guard = std::move(guard_);
    }
}

void cm_driver::forget_worker()
{
    if (registration_) {
        worker_->unregister_safe(registration_);
        registration_ = 0;
    }
    worker_ = nullptr;
    if (polling_) {
        leave();
        wake();
    }
}

bool cm_driver::watch(int fd)
{
    epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    return epoll_ctl(set_, EPOLL_CTL_ADD, fd, &event) == 0 || errno == EEXIST;
}

void cm_driver::add(int fd)
{
    queues_.push_back(fd);
    if (!polling_ && !watch(fd)) {
        queues_.pop_back();
        throw ucs::error(UCS_ERR_IO_ERROR, "epoll_ctl: %s", strerror(errno));
    }
}

void cm_driver::ask_to_poll()
{
    if (worker_ && registration_ == 0) {
        // Without memory the helper thread goes on alone.
        (void)ucs::guard_quietly(
            [&] { registration_ = worker_->register_safe(on_poll, &engine_, 0); });
    }
}

void cm_driver::stir()
{
    hot_until_ = ucs::monotonic_ns() + hot_ns;
    ask_to_poll();
}

void cm_driver::wake()
{
    stir();
    if (polling_) {
        return;
    }
    end_rest();
    uint64_t now = hot_until_ - hot_ns;
    if (worker_ && now < last_poll_ + recent_ns) {
        enter(now);
    } else if (!woken_) {
        woken_ = true;
        uint64_t one = 1;
        [[maybe_unused]] ssize_t ret = write(wakeup_, &one, sizeof(one));
    }
}

void cm_driver::found_nothing()
{
    uint64_t now = ucs::monotonic_ns();
    in_vain_ = now < last_in_vain_ + vain_ns ? in_vain_ + 1 : 1;
    last_in_vain_ = now;
    if (in_vain_ >= vain_turns && !polling_ && !resting_) {
        resting_ = true;
        events_.set_events(0);
        guard_.set_interval(rest_ns);
    }
}

void cm_driver::end_rest()
{
    if (resting_) {
        resting_ = false;
        guard_.set_interval(deaf_ ? guard_ns : 0);
        events_.set_events(EPOLLIN);
    }
}

void cm_driver::used_up()
{
    if (woken_) {
        woken_ = false;
        uint64_t count;
        [[maybe_unused]] ssize_t ret = read(wakeup_, &count, sizeof(count));
    }
}

void cm_driver::enter(uint64_t now)
{
    polling_ = true;
    resting_ = false;
    polled_ = true;
    last_poll_ = now;
    events_.set_events(0);
    // A set that is in another one costs each socket that joins, leaves or has news twice as much.
    for (int fd : queues_) {
        epoll_ctl(set_, EPOLL_CTL_DEL, fd, nullptr);
    }
    guard_.set_interval(guard_ns);
}

void cm_driver::leave()
{
    polling_ = false;
    deaf_ = false;
    for (int fd : queues_) {
        deaf_ |= !watch(fd);
    }
    guard_.set_interval(deaf_ ? guard_ns : 0);
    events_.set_events(EPOLLIN);
}

void cm_driver::begin_poll()
{
    last_poll_ = ucs::monotonic_ns();
    polled_ = true;
    if (!polling_) {
        enter(last_poll_);
    }
}

void cm_driver::end_poll(bool did_something)
{
    if (did_something) {
        hot_until_ = last_poll_ + hot_ns;
    } else if (polling_ && last_poll_ > hot_until_ && engine_.may_sleep()) {
        leave();
        worker_->unregister_safe(registration_);
        registration_ = 0;
    }
}

unsigned cm_driver::on_poll(void *arg)
{
    return static_cast<cm_engine *>(arg)->poll();
}

void cm_driver::on_event(void *arg, uint32_t)
{
    // Gone when its last owner waits for this callback to return.
    if (auto engine = static_cast<cm_engine *>(arg)->weak_from_this().lock()) {
        engine->progress();
    }
}

void cm_driver::on_guard(void *arg, uint32_t)
{
    auto engine = static_cast<cm_engine *>(arg)->weak_from_this().lock();
    if (!engine) {
        return;
    }
    cm_driver &self = engine->driver();
    if (self.polled_.exchange(false)) {
        return; // the polling thread has the mutex most of the time, and must not wait for this one
    }
    {
        cm_engine::lock held(engine->mutex());
        if (self.polling_ ? self.polled_.exchange(false) : !self.deaf_ && !self.resting_) {
            return;
        }
        if (self.polling_) {
            self.leave();
        }
        self.end_rest();
    }
    engine->progress();
}

} // namespace uct::ofi
