// SPDX-License-Identifier: BSD-3-Clause
//
// What completion queues, event queues and counters have in common: the engines they progress when
// they are read, and the descriptor a thread can sleep on. The descriptor is an epoll set of the
// engines' own ones and of an eventfd; the latter is rung when an entry is written while somebody
// sleeps, because another thread may have progressed the engine, and by fi_cq_signal.
#pragma once

#include "engine.h"

#include <atomic>

namespace ucxlike {

class waitable {
  public:
    explicit waitable(bool locked) : engines_lock_(locked) {}
    ~waitable();
    waitable(const waitable &) = delete;
    waitable &operator=(const waitable &) = delete;

    void add_engine(engine *e);
    void remove_engine(engine *e);

    unsigned progress()
    {
        ucs::opt_guard g(engines_lock_);
        unsigned n = 0;
        for (auto &u : engines_)
            n += u.eng->progress();
        return n;
    }

    int fd(); // throws failure
    // An entry was written: ends the sleep of whoever armed.
    void notify()
    {
        if (UCS_UNLIKELY(waiting_.load(std::memory_order_relaxed)))
            ring();
    }
    // Makes fd readable until the next clear().
    void ring();
    // True: the caller may sleep on fd(). `ready` is asked after the engines are armed.
    template <class F>
    bool arm(F &&ready)
    {
        disarm();
        waiting_.store(true);
        if (arm_engines() && !ready())
            return true;
        disarm();
        return false;
    }
    void disarm();
    // Sleeps at most `timeout` ms (negative: without end) unless `ready`.
    template <class F>
    void sleep(F &&ready, int timeout)
    {
        int f = fd();
        if (arm(ready))
            wait_fd(f, timeout);
        disarm();
    }

  private:
    struct use {
        engine *eng;
        unsigned count;
    };

    bool arm_engines();
    static void wait_fd(int fd, int timeout);

    ucs::opt_lock engines_lock_;
    std::vector<use> engines_;
    std::atomic<bool> waiting_{false};
    std::atomic<bool> rung_{false};
    int epoll_ = -1;
    int event_ = -1;
};

} // namespace ucxlike
