// SPDX-License-Identifier: BSD-3-Clause
// The helper thread of the process: it sleeps in epoll_wait until a watched descriptor is ready or
// a timer is over, and then calls back. It carries connection events (event queues of the core
// providers), peer watching (pidfd), and the progress of what the program leaves alone, never data
// of a program that polls, so that a data path does not pay for it. It starts with the first watch
// and ends with the last. Callbacks run one after the other: one that has much to do does a part of
// it and comes again.
#pragma once

#include <cstdint>
#include <memory>

namespace ucs {

// A watched descriptor or timer. Destroying it waits until a callback that is running has returned,
// unless the destroyer is that callback. No callback starts afterwards. The descriptor stays the
// caller's, which closes it after the watch is gone.
class async_watch {
  public:
    // Runs on the helper thread, without any lock of this module held. events are epoll's; 0 for a
    // timer.
    using callback_t = void (*)(void *arg, uint32_t events);

    async_watch() = default;
    // Level-triggered. Throws ucs::error when the descriptor cannot be watched.
    static async_watch fd(int fd, uint32_t events, callback_t callback, void *arg);
    // Every interval_ns nanoseconds; 0: not before set_interval() or set_once().
    static async_watch timer(uint64_t interval_ns, callback_t callback, void *arg);

    async_watch(async_watch &&other) noexcept = default;
    async_watch &operator=(async_watch &&other) noexcept;
    ~async_watch();

    explicit operator bool() const { return impl_ != nullptr; }
    void reset(); // stops it, too
    // For good, as a destruction does, but callbacks of other watches may still use it, in vain.
    // Those of watches that use each other end when all of them were stopped, before the first is
    // destroyed.
    void stop();

    // Without waiting for a callback, which may still run. From any thread. Nothing, if it is
    // empty.
    void set_events(uint32_t events); // of a descriptor; 0: none
    // Of a descriptor: the kernel does not look at it from pause() to resume(), so that traffic on
    // it costs nothing. False: it cannot be watched now.
    void pause();
    bool resume(uint32_t events);
    void set_interval(uint64_t interval_ns); // of a timer, from now; 0: it stops
    void set_once(uint64_t delay_ns);        // of a timer: one callback, so long from now; 0: none

    struct impl;

  private:
    explicit async_watch(std::shared_ptr<impl> watch) : impl_(std::move(watch)) {}
    std::shared_ptr<impl> impl_;
};

// True on the helper thread.
bool on_async_thread();

} // namespace ucs
