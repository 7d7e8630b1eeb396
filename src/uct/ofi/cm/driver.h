// SPDX-License-Identifier: BSD-3-Clause
// Which thread takes the turns of a connection manager. While connections come and go and the
// program polls the worker, that thread does, from uct_worker_progress(): nothing has to be handed
// from thread to thread. Otherwise the helper thread does, which sleeps on the queues' descriptors.
//
//   sleeping ── something begins or happens ──► the worker is asked to poll
//   polling  ── quiet for hot_ns ─────────────► sleeping, the worker is left alone
//   polling  ── not polled for guard_ns ──────► sleeping, the helper thread takes over
//   sleeping ── woken often for nothing ──────► resting, until the guard's clock or wake() ends it
//
// All members but polled_ are guarded by the engine's mutex.
#pragma once

#include "ucs/async.h"

#include <atomic>
#include <cstdint>
#include <vector>

namespace uct {
class worker;
}

namespace uct::ofi {

class cm_engine;

class cm_driver {
  public:
    explicit cm_driver(cm_engine &engine);
    cm_driver(const cm_driver &) = delete;
    cm_driver &operator=(const cm_driver &) = delete;
    ~cm_driver();

    // The engine can be found by weak_from_this() from here on.
    void start(worker *poller);
    // No turns are taken from here on. Without the mutex.
    void stop();
    // The worker goes; the helper thread stays.
    void forget_worker();

    // A descriptor that is readable when there is something to do.
    void add(int fd);

    // There is something to do: from outside a turn.
    void wake();
    // Something was done: by the helper thread.
    void stir();
    // Nothing was there to do for it. A descriptor may stay readable: that of a listener does when
    // the process has no descriptor left for a connection that arrives.
    void found_nothing();

    // A turn of the worker's thread begins or, with what it has done, ends.
    void begin_poll();
    void end_poll(bool did_something);

    // Whether the helper thread has nothing to do now.
    bool polling() const { return polling_; }
    // Called when a turn begins: what woke it is used up.
    void used_up();

  private:
    static void on_event(void *arg, uint32_t events);
    static void on_guard(void *arg, uint32_t events);
    static unsigned on_poll(void *arg);

    void ask_to_poll();
    void enter(uint64_t now);
    void leave();
    void end_rest();
    bool watch(int fd);

    cm_engine &engine_;
    worker *worker_ = nullptr;
    int registration_ = 0; // of the worker's callback
    bool polling_ = false;
    std::atomic<bool> polled_ = false; // since the guard looked
    bool woken_ = false;
    bool deaf_ = false; // a queue could not be watched: the guard's clock does for it
    bool resting_ = false;
    unsigned in_vain_ = 0; // turns of the helper thread, one soon after the other
    uint64_t last_in_vain_ = 0;
    uint64_t last_poll_ = 0;
    uint64_t hot_until_ = 0;
    std::vector<int> queues_; // descriptors; watched when the worker does not poll
    int set_ = -1;            // of what is waited for
    int wakeup_ = -1;
    ucs::async_watch events_;
    ucs::async_watch guard_;
};

} // namespace uct::ofi
