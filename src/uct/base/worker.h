// SPDX-License-Identifier: BSD-3-Clause
// A worker progresses its interfaces. Callers inline the walk over progress_q.fast_elems, and the
// element's size differs between versions of the API, so the worker puts exactly one element there:
// its own loop, below. Nothing but that loop calls back to the user.
#pragma once

#include "ucs/compiler.h"
#include "ucs/sys.h"

#include <uct/api/uct.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace uct {

// Something a worker polls. A slow one costs a system call each time: while a fast one has traffic
// it is polled ever less often, but at least every max_interval rounds. One that rests, too, while
// rounds are short, but at least every max_rest of them.
struct progress_source {
    unsigned (*poll)(void *arg);
    void *arg;
    bool slow;
    bool resting = false;   // it said so in its last poll
    unsigned interval = 1;  // rounds from one poll to the next
    uint64_t due = 0;       // the round of the next one
    uint64_t polled_ns = 0; // resting: when the last one was
};

// What interfaces of a worker have in common: the first one makes it, the last one owns it.
struct worker_part {
    virtual ~worker_part() = default;
};

class worker final : public uct_worker {
  public:
    explicit worker(ucs_thread_mode_t thread_mode);
    worker(const worker &) = delete;
    worker &operator=(const worker &) = delete;

    // From the worker's own thread, also from inside progress. A removed source is not polled
    // again, not even in the round that removes it.
    void add_source(const progress_source &source);
    // Makes room for one more, so that to add it needs no memory. Throws bad_alloc.
    void expect_source();
    void unexpect_source() { --sources_; }
    void remove_source(unsigned (*poll)(void *), void *arg);
    // A slow source has something to do: it is polled in the next round.
    void hasten(void *arg);
    // A slow source that is polled just now only waits for peers that it does not know.
    void rest(void *arg);

    // From any thread: callback runs in every (or with UCS_CALLBACKQ_FLAG_ONESHOT in one) later
    // round until it is removed. The id is positive. Throws bad_alloc.
    int register_safe(ucs_callback_t callback, void *arg, unsigned flags);
    void unregister_safe(int id);

    // From any thread: one call in a later round. The owner of arg cancels before it goes. Throws
    // bad_alloc.
    void defer(void (*callback)(void *arg), void *arg);
    void cancel_deferred(void *arg);

    unsigned progress();

    const ucs_thread_mode_t thread_mode;
    uint64_t (*clock_ns)() = ucs::monotonic_ns; // by which rounds are short; a test has its own
    std::vector<std::weak_ptr<worker_part>> parts;

  private:
    struct registered {
        int id;
        ucs_callback_t callback;
        void *arg;
        bool oneshot;
    };
    struct deferred {
        void (*callback)(void *arg);
        void *arg;
    };

    static constexpr unsigned max_interval = 512;
    static constexpr unsigned max_rest = 64;
    static constexpr unsigned busy_rounds = 256;

    bool slow_due(unsigned fast_work);
    void end_busy();
    unsigned next_interval(progress_source &s, unsigned work) const;
    unsigned poll_slow();
    unsigned progress_registered();
    bool next_registered(int after, int newest, registered *next);

    std::vector<progress_source> fast_;
    size_t fast_count_ = 0; // of them: size() divides
    std::vector<progress_source> slow_;
    size_t sources_ = 0;     // there is room for, in each of the lists
    unsigned busy_ = 0;      // rounds for which the fast sources still count as busy
    uint64_t round_ = 0;     // so far
    uint64_t next_slow_ = 0; // the round in which the next slow source is due

    std::atomic<bool> attention_ = false; // the lists below have something
    std::mutex mutex_;
    std::vector<registered> registered_;
    std::vector<deferred> deferred_;
    int last_id_ = 0;
};

inline worker *worker_of(uct_worker_h handle)
{
    return static_cast<worker *>(handle);
}

} // namespace uct
