// SPDX-License-Identifier: BSD-3-Clause
// The helper thread: callbacks come, stop with the watch, and may remove their own watch; fork is
// survived.
#include "fabtests-ext/common/open_files.h"

#include "ucs/async.h"
#include "ucs/error.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

struct event_counter {
    event_counter() : fd(eventfd(0, EFD_NONBLOCK)) {}
    ~event_counter() { close(fd); }

    void signal() const
    {
        uint64_t one = 1;
        ASSERT_EQ(write(fd, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
    }

    static void count(void *arg, uint32_t)
    {
        auto *self = static_cast<event_counter *>(arg);
        uint64_t value;
        if (read(self->fd, &value, sizeof(value)) == sizeof(value)) {
            ++self->calls;
            self->calls.notify_all();
        }
    }

    int fd;
    std::atomic<int> calls{0};
};

TEST(async_watch, calls_back_on_its_thread_until_reset)
{
    event_counter counter;
    auto watch = ucs::async_watch::fd(counter.fd, EPOLLIN, event_counter::count, &counter);
    counter.signal();
    counter.calls.wait(0);
    EXPECT_EQ(counter.calls, 1);
    EXPECT_FALSE(ucs::on_async_thread());
    watch.reset();
    counter.signal();
    EXPECT_EQ(counter.calls, 1);
}

TEST(async_watch, reset_waits_for_a_running_callback)
{
    struct shared {
        event_counter events;
        std::promise<void> entered;
        std::promise<void> leave;
        std::atomic<bool> left{false};
    } s;
    auto watch = ucs::async_watch::fd(
        s.events.fd, EPOLLIN,
        [](void *arg, uint32_t) {
            auto *self = static_cast<shared *>(arg);
            uint64_t value;
            ASSERT_EQ(read(self->events.fd, &value, sizeof(value)),
                      static_cast<ssize_t>(sizeof(value)));
            self->entered.set_value();
            self->leave.get_future().wait();
            self->left = true;
        },
        &s);
    s.events.signal();
    s.entered.get_future().wait();
    auto resetting = std::async(std::launch::async, [&] {
        watch.reset();
        return s.left.load();
    });
    s.leave.set_value();
    EXPECT_TRUE(resetting.get());
}

TEST(async_watch, may_be_reset_inside_its_callback)
{
    struct shared {
        event_counter events;
        ucs::async_watch watch;
        std::promise<void> assigned;
        std::promise<bool> done;
    } s;
    s.watch = ucs::async_watch::fd(
        s.events.fd, EPOLLIN,
        [](void *arg, uint32_t) {
            auto *self = static_cast<shared *>(arg);
            self->assigned.get_future().wait();
            self->watch.reset();
            self->done.set_value(ucs::on_async_thread());
        },
        &s);
    s.assigned.set_value();
    s.events.signal();
    EXPECT_TRUE(s.done.get_future().get());
}

TEST(async_watch, timer_repeats)
{
    std::atomic<int> ticks{0};
    auto watch = ucs::async_watch::timer(
        1000000,
        [](void *arg, uint32_t events) {
            EXPECT_EQ(events, 0u);
            auto *count = static_cast<std::atomic<int> *>(arg);
            ++*count;
            count->notify_all();
        },
        &ticks);
    for (int seen = 0; seen < 3; seen = ticks) {
        ticks.wait(seen);
    }
    EXPECT_GE(ticks, 3);
}

// The first one is set to an hour: the thread waits for that, and the others are due before.
TEST(async_watch, timers_take_no_descriptor_each_and_do_not_wait_for_one_another)
{
    constexpr unsigned count = 100;
    constexpr uint64_t hour_ns = 3'600'000'000'000;
    std::atomic<unsigned> calls{0};
    auto call = [](void *arg, uint32_t) {
        auto *number = static_cast<std::atomic<unsigned> *>(arg);
        ++*number;
        number->notify_all();
    };
    auto late = ucs::async_watch::timer(hour_ns, call, &calls);
    size_t with_one = open_files();
    std::vector<ucs::async_watch> timers;
    for (unsigned i = 0; i < count; ++i) {
        timers.push_back(ucs::async_watch::timer(0, call, &calls));
        timers.back().set_once((count - i) * 100'000); // each before the one that was set last
    }
    EXPECT_EQ(with_one, open_files());
    for (unsigned seen = 0; seen < count; seen = calls) {
        calls.wait(seen);
    }
    EXPECT_EQ(count, calls);
}

// At all that is ready now: twice, as it may have begun the first look before. `other` is watched.
void let_the_thread_look(event_counter &other)
{
    for (int round = 0; round < 2; ++round) {
        int calls = other.calls;
        other.signal();
        other.calls.wait(calls);
    }
}

TEST(async_watch, paused_watch_is_silent_until_resumed)
{
    event_counter paused, other;
    auto watch = ucs::async_watch::fd(paused.fd, EPOLLIN, event_counter::count, &paused);
    auto witness = ucs::async_watch::fd(other.fd, EPOLLIN, event_counter::count, &other);
    watch.set_events(0);
    paused.signal();
    let_the_thread_look(other);
    EXPECT_EQ(paused.calls, 0);
    watch.set_events(EPOLLIN);
    paused.calls.wait(0);
    EXPECT_EQ(paused.calls, 1);
}

TEST(async_watch, paused_descriptor_may_be_closed_and_is_resumed)
{
    event_counter paused, other;
    auto watch = ucs::async_watch::fd(paused.fd, EPOLLIN, event_counter::count, &paused);
    auto witness = ucs::async_watch::fd(other.fd, EPOLLIN, event_counter::count, &other);
    EXPECT_FALSE(watch.resume(EPOLLIN)); // it is not paused
    watch.pause();
    paused.signal();
    let_the_thread_look(other);
    EXPECT_EQ(paused.calls, 0);
    EXPECT_TRUE(watch.resume(EPOLLIN));
    paused.calls.wait(0);
    watch.pause();
    int moved = dup(paused.fd);
    close(paused.fd);
    EXPECT_FALSE(watch.resume(EPOLLIN));
    paused.fd = moved;
}

struct ticker {
    std::atomic<int> ticks{0};
    static void tick(void *arg, uint32_t)
    {
        auto &t = static_cast<ticker *>(arg)->ticks;
        ++t;
        t.notify_all();
    }
    void wait_for(int more)
    {
        for (int begin = ticks, seen = begin; seen < begin + more; seen = ticks) {
            ticks.wait(seen);
        }
    }
};

TEST(async_watch, timer_starts_and_stops)
{
    ticker t;
    auto watch = ucs::async_watch::timer(0, ticker::tick, &t);
    usleep(20000);
    EXPECT_EQ(t.ticks, 0);
    watch.set_interval(1000000);
    t.ticks.wait(0);
    watch.set_interval(0);
    event_counter other;
    auto witness = ucs::async_watch::fd(other.fd, EPOLLIN, event_counter::count, &other);
    other.signal();
    other.calls.wait(0);
    other.signal();
    other.calls.wait(1); // one that had begun is over: the thread looked again since
    int seen = t.ticks;
    usleep(20000);
    EXPECT_EQ(t.ticks, seen);
}

TEST(async_watch, timer_that_is_set_once_calls_back_once)
{
    constexpr uint64_t hour = 3'600'000'000'000;
    ticker once, repeated;
    auto watch = ucs::async_watch::timer(0, ticker::tick, &once);
    watch.set_once(1000);
    once.ticks.wait(0);
    auto witness = ucs::async_watch::timer(1000, ticker::tick, &repeated);
    repeated.wait_for(5);
    EXPECT_EQ(once.ticks, 1);
    watch.set_once(hour); // the last one counts
    watch.set_once(1000);
    once.ticks.wait(1);
    watch.set_once(hour);
    watch.set_once(0);
    repeated.wait_for(5);
    EXPECT_EQ(once.ticks, 2);
}

TEST(async_watch, timer_that_is_set_in_its_callback_goes_on)
{
    struct chain {
        ucs::async_watch watch;
        std::atomic<int> left{5};
        static void tick(void *arg, uint32_t)
        {
            auto *self = static_cast<chain *>(arg);
            self->watch.set_once(--self->left > 0 ? 1000 : 0);
            self->left.notify_all();
        }
    } c;
    c.watch = ucs::async_watch::timer(0, chain::tick, &c);
    c.watch.set_once(1000);
    for (int left = c.left; left > 0; left = c.left) {
        c.left.wait(left);
    }
    c.watch.reset();
    EXPECT_EQ(c.left, 0);
}

// Each sets the other and itself, until both are stopped.
struct couple {
    std::atomic<int> calls{0};
    event_counter readable;
    ucs::async_watch timer, descriptor;
    couple()
    {
        readable.signal(); // and stays so
        timer = ucs::async_watch::timer(0, call, this);
        descriptor = ucs::async_watch::fd(readable.fd, 0, call, this);
        timer.set_once(1);
    }
    ~couple()
    {
        descriptor.stop();
        timer.stop();
    }
    static void call(void *arg, uint32_t)
    {
        auto *self = static_cast<couple *>(arg);
        self->timer.set_once(1);
        self->descriptor.pause();
        self->descriptor.resume(EPOLLIN);
        ++self->calls;
        self->calls.notify_all();
    }
};

TEST(async_watch, watches_that_use_each_other_end)
{
    for (int round = 0; round < 200; ++round) {
        couple c;
        for (int seen = c.calls; seen < round % 8; seen = c.calls) {
            c.calls.wait(seen);
        }
    }
}

TEST(async_watch, stopped_watch_stays_so)
{
    ticker stopped, other;
    auto watch = ucs::async_watch::timer(0, ticker::tick, &stopped);
    auto witness = ucs::async_watch::timer(1000, ticker::tick, &other);
    watch.stop();
    watch.set_once(1);
    watch.stop();
    other.wait_for(5);
    EXPECT_EQ(stopped.ticks, 0);
    EXPECT_TRUE(watch);
}

TEST(async_watch, fd_that_cannot_be_watched_throws)
{
    EXPECT_THROW(ucs::async_watch::fd(-1, EPOLLIN, event_counter::count, nullptr), ucs::error);
}

TEST(async_watch, works_in_a_forked_child)
{
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP()
        << "the thread sanitizer does not support threads in a child forked by a threaded process";
#endif
    event_counter outer;
    auto watch = ucs::async_watch::fd(outer.fd, EPOLLIN, event_counter::count, &outer);
    pid_t pid = fork();
    if (pid == 0) {
        event_counter inner;
        auto mine = ucs::async_watch::fd(inner.fd, EPOLLIN, event_counter::count, &inner);
        inner.signal();
        inner.calls.wait(0);
        mine.reset();
        watch.reset();
        _exit(inner.calls == 1 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    outer.signal();
    outer.calls.wait(0);
    EXPECT_EQ(outer.calls, 1);
}

TEST(async_watch, the_last_one_leaves_no_descriptor)
{
    event_counter counter;
    auto before = open_files();
    auto watch = ucs::async_watch::fd(counter.fd, EPOLLIN, event_counter::count, &counter);
    EXPECT_LT(before, open_files());
    watch.reset();
    EXPECT_EQ(before, open_files());
}

} // namespace
