// SPDX-License-Identifier: BSD-3-Clause
//
// What completion queues, event queues and counters have in common: the engines they progress when
// they are read, the wait object, and the descriptor a thread can sleep on. The descriptor is an
// epoll set of the engines' own ones and of an eventfd; the latter is rung when an entry is written
// while a thread sleeps, because another one may have progressed the engine, and by fi_cq_signal.
#pragma once

#include "prov/ucxlike/engine.h"

#include "ucs/sys.h"

#include <atomic>

namespace ucxlike {

class wait_set;

// How long a call may still wait; a negative number of milliseconds is without end.
class deadline {
  public:
    explicit deadline(int milliseconds)
        : end_(milliseconds >= 0
                   ? ucs::monotonic_ns() + static_cast<uint64_t>(milliseconds) * ns_per_ms
                   : UINT64_MAX)
    {
    }
    // Milliseconds for poll, rounded up; 0: it is over.
    int left() const
    {
        if (end_ == UINT64_MAX) {
            return -1;
        }
        uint64_t now = ucs::monotonic_ns();
        return now >= end_ ? 0 : static_cast<int>((end_ - now + ns_per_ms - 1) / ns_per_ms);
    }

  private:
    static constexpr uint64_t ns_per_ms = 1'000'000;
    uint64_t end_; // nanoseconds
};

class waitable {
  public:
    waitable(bool locked, fi_wait_obj wait_obj, fid_wait *set);
    virtual ~waitable();
    waitable(const waitable &) = delete;
    waitable &operator=(const waitable &) = delete;

    // 0 when an object with this wait object can be opened.
    static int check(const char *call, fi_wait_obj wait_obj, const fid_wait *set);

    void add_engine(engine *e);
    void remove_engine(engine *e);
    // Counts what is bound to it; it cannot be closed meanwhile.
    void attach() { ++users_; }
    void detach() { --users_; }
    bool in_use() const;

    unsigned progress()
    {
        ucs::opt_guard g(engines_lock_);
        unsigned n = 0;
        for (auto &u : engines_) {
            n += u.eng->progress();
        }
        return n;
    }

    // There is something to read that the application has not been told of.
    virtual bool news() = 0;
    virtual void told() {}
    // There is something for fi_poll.
    virtual bool polled() { return news(); }

    // fi_trywait: 0 when the caller may sleep.
    int trywait();
    int control(int command, void *arg);
    // What to wait on. Throws failure when there is none, or when it would not tell of everything.
    int fd();
    bool can_sleep() const { return wait_obj_ != FI_WAIT_NONE && wait_obj_ != FI_WAIT_SET; }
    // An entry was written: ends the sleep of the thread that armed.
    void notify()
    {
        if (UCS_UNLIKELY(waiting_.load(std::memory_order_relaxed))) {
            ring();
        }
    }
    // Makes fd readable until the next clear().
    void ring();
    // True: the caller may sleep on fd(). `ready` is asked after the engines are armed.
    template <class F>
    bool arm(F &&ready)
    {
        disarm();
        waiting_.store(true);
        if (arm_engines() && !ready()) {
            return true;
        }
        disarm();
        return false;
    }
    void disarm();
    // Sleeps until the deadline unless `ready`.
    template <class F>
    void sleep(F &&ready, const deadline &end)
    {
        int f = fd();
        if (arm(ready)) {
            wait_fd(f, end.left());
        }
        disarm();
    }

    static void wait_fd(int fd, int timeout);

  private:
    struct use {
        engine *eng;
        unsigned count;
    };

    bool arm_engines();
    void make_fd();
    void close_fds();
    void watch(int fd);

    fi_wait_obj wait_obj_;
    wait_set *set_ = nullptr;
    std::atomic<int> users_{0};
    ucs::opt_lock engines_lock_;
    std::vector<use> engines_;
    std::atomic<bool> waiting_{false};
    std::atomic<bool> rung_{false};
    int epoll_ = -1;
    int event_ = -1;
    int unwatched_ = 0; // errno of a descriptor that epoll_ could not take
};

// The calls on the fid of such an object.
template <class T, class Fid>
struct waitable_fid {
    static int close(fid_t f)
    {
        T *self = from_base<T, Fid>(f);
        if (self->in_use()) {
            return -FI_EBUSY;
        }
        delete self;
        return 0;
    }
    static int control(fid_t f, int command, void *arg)
    {
        return from_base<T, Fid>(f)->control(command, arg);
    }
    static inline fi_ops ops = {
        .size = sizeof(fi_ops),
        .close = close,
        .bind = no_op,
        .control = control,
        .ops_open = no_op,
        .tostr = no_op,
        .ops_set = no_op,
    };
};

// The queue or counter of a fid; nullptr when it is neither.
waitable *waitable_of(fid_t f);

} // namespace ucxlike
