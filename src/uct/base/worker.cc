// SPDX-License-Identifier: BSD-3-Clause
// The worker's loop and its lists of callbacks.
#include "uct/base/worker.h"

#include <algorithm>

namespace uct {

namespace {

// Written down here, not taken from a header: its values did not change, its place did.
constexpr unsigned callback_oneshot = 2;

unsigned progress_worker(void *arg)
{
    return static_cast<worker *>(arg)->progress();
}

} // namespace

worker::worker(ucs_thread_mode_t mode) : uct_worker{}, thread_mode(mode)
{
    progress_q.fast_elems[0].cb = progress_worker;
    progress_q.fast_elems[0].arg = this;
}

void worker::add_source(const progress_source &source)
{
    (source.slow ? slow_ : fast_).push_back(source);
    next_slow_ = 0;
}

void worker::expect_source()
{
    size_t count = sources_ + 1;
    fast_.reserve(count);
    slow_.reserve(count);
    {
        std::lock_guard guard(mutex_);
        deferred_.reserve(deferred_.size() + count);
    }
    sources_ = count;
}

void worker::remove_source(unsigned (*poll)(void *), void *arg)
{
    for (auto *list : {&fast_, &slow_}) {
        auto same = [&](const progress_source &s) { return s.poll == poll && s.arg == arg; };
        list->erase(std::remove_if(list->begin(), list->end(), same), list->end());
    }
}

void worker::hasten(void *arg)
{
    for (progress_source &s : slow_) {
        if (s.arg == arg) {
            s.interval = 1;
            s.due = next_slow_ = 0;
        }
    }
}

int worker::register_safe(ucs_callback_t callback, void *arg, unsigned flags)
{
    std::lock_guard guard(mutex_);
    registered_.push_back({++last_id_, callback, arg, (flags & callback_oneshot) != 0});
    attention_.store(true, std::memory_order_release);
    return last_id_;
}

void worker::unregister_safe(int id)
{
    std::lock_guard guard(mutex_);
    std::erase_if(registered_, [&](const registered &r) { return r.id == id; });
}

void worker::defer(void (*callback)(void *arg), void *arg)
{
    std::lock_guard guard(mutex_);
    deferred_.push_back({callback, arg});
    attention_.store(true, std::memory_order_release);
}

void worker::cancel_deferred(void *arg)
{
    std::lock_guard guard(mutex_);
    std::erase_if(deferred_, [&](const deferred &d) { return d.arg == arg; });
}

unsigned worker::progress()
{
    unsigned count = 0;
    // By index: a callback may open or close an interface.
    for (size_t i = 0; i < fast_.size(); ++i) {
        count += fast_[i].poll(fast_[i].arg);
    }
    if (!slow_.empty() && slow_due(count)) {
        count += poll_slow();
    }
    if (UCS_UNLIKELY(attention_.load(std::memory_order_relaxed))) {
        count += progress_registered();
    }
    return count;
}

UCS_ALWAYS_INLINE bool worker::slow_due(unsigned fast_work)
{
    if (fast_work > 0) {
        busy_ = busy_rounds;
    } else if (busy_ > 0) {
        --busy_;
    }
    return UCS_UNLIKELY(busy_ == 0) || ++busy_round_ >= next_slow_;
}

UCS_NOINLINE unsigned worker::poll_slow()
{
    unsigned count = 0;
    for (size_t i = 0; i < slow_.size(); ++i) {
        if (busy_ > 0 && slow_[i].due > busy_round_) {
            continue;
        }
        void *arg = slow_[i].arg;
        unsigned work = slow_[i].poll(arg);
        count += work;
        if (i >= slow_.size() || slow_[i].arg != arg) {
            continue; // removed by its own callback
        }
        slow_[i].interval =
            work > 0 || busy_ == 0 ? 1 : std::min(2 * slow_[i].interval, max_interval);
        slow_[i].due = busy_round_ + slow_[i].interval;
    }
    next_slow_ = UINT64_MAX;
    for (const progress_source &s : slow_) {
        next_slow_ = std::min(next_slow_, s.due);
    }
    return count;
}

// The one that follows `after` in the order of their ids, without those behind `newest`.
bool worker::next_registered(int after, int newest, registered *next)
{
    std::lock_guard guard(mutex_);
    auto found = std::find_if(registered_.begin(), registered_.end(),
                              [&](const registered &r) { return r.id > after; });
    if (found == registered_.end() || found->id > newest) {
        return false;
    }
    *next = *found;
    if (found->oneshot) {
        registered_.erase(found);
    }
    return true;
}

// By id, not in a copy: there may be no memory for one.
UCS_NOINLINE unsigned worker::progress_registered()
{
    unsigned count = 0;
    int newest = 0;
    {
        std::lock_guard guard(mutex_);
        newest = last_id_;
    }
    registered next{};
    while (next_registered(next.id, newest, &next)) {
        count += next.callback(next.arg);
    }
    // One at a time: a callback may cancel those that follow.
    for (;;) {
        deferred next;
        {
            std::lock_guard guard(mutex_);
            if (deferred_.empty()) {
                attention_.store(!registered_.empty(), std::memory_order_relaxed);
                return count;
            }
            next = deferred_.front();
            deferred_.erase(deferred_.begin());
        }
        next.callback(next.arg);
        ++count;
    }
}

} // namespace uct
