// SPDX-License-Identifier: BSD-3-Clause
// The worker's loop and its lists of callbacks.
#include "uct/base/worker.h"

#include <algorithm>
#include <utility>

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
    fast_count_ = fast_.size();
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
    fast_count_ = fast_.size();
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

void worker::rest(void *arg)
{
    for (progress_source &s : slow_) {
        s.resting = s.resting || s.arg == arg;
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
    for (size_t i = 0; i < fast_count_; ++i) {
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
    } else if (busy_ > 0 && UCS_UNLIKELY(--busy_ == 0)) {
        end_busy();
    }
    return UCS_UNLIKELY(++round_ >= next_slow_);
}

// From now on each slow source is polled in every round, but those that rest.
UCS_NOINLINE void worker::end_busy()
{
    for (progress_source &s : slow_) {
        s.interval = 1;
        s.due = 0;
    }
    next_slow_ = 0;
}

unsigned worker::next_interval(progress_source &s, unsigned work) const
{
    constexpr uint64_t short_ns = 10'000; // of all rounds from one poll to the next
    if (work > 0) {
        return 1;
    }
    if (busy_ > 0) {
        return std::min(2 * s.interval, max_interval);
    }
    if (!s.resting) {
        return 1;
    }
    uint64_t now = clock_ns();
    uint64_t since = now - std::exchange(s.polled_ns, now);
    return since < short_ns ? std::min(2 * s.interval, max_rest) : 1;
}

UCS_NOINLINE unsigned worker::poll_slow()
{
    unsigned count = 0;
    for (size_t i = 0; i < slow_.size(); ++i) {
        if (slow_[i].due > round_) {
            continue;
        }
        void *arg = slow_[i].arg;
        slow_[i].resting = false;
        unsigned work = slow_[i].poll(arg);
        count += work;
        if (i >= slow_.size() || slow_[i].arg != arg) {
            continue; // removed by its own callback
        }
        slow_[i].interval = next_interval(slow_[i], work);
        slow_[i].due = round_ + slow_[i].interval;
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
