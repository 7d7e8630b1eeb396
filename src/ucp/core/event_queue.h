// SPDX-License-Identifier: BSD-3-Clause
//
// The events of a worker, in the order in which they came. A source that cannot handle a lack of
// memory when its event comes has room promised before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace ucp {

template <class Event>
class event_queue {
  public:
    // Room for `count` more events, which push() then finds. Throws bad_alloc.
    void promise(size_t count)
    {
        make_room(waiting() + promised_ + count);
        promised_ += count;
    }
    void release(size_t count) noexcept { promised_ -= count; }

    // Of the room that was promised.
    void push(Event &&ev) noexcept
    {
        if (events_.size() == events_.capacity()) {
            events_.erase(events_.begin(), events_.begin() + static_cast<std::ptrdiff_t>(first_));
            first_ = 0;
        }
        events_.push_back(std::move(ev));
    }
    // Beside it. Throws bad_alloc.
    void push_more(Event &&ev)
    {
        make_room(waiting() + promised_ + 1);
        push(std::move(ev));
    }
    // False: there is none.
    bool pop(Event *ev) noexcept
    {
        if (waiting() == 0) {
            return false;
        }
        *ev = std::move(events_[first_++]);
        if (first_ == events_.size()) {
            events_.clear();
            first_ = 0;
        }
        return true;
    }
    // Of those that wait, from the oldest on.
    template <class F>
    void for_each(F &&f)
    {
        std::for_each(events_.begin() + static_cast<std::ptrdiff_t>(first_), events_.end(), f);
    }
    template <class F>
    void erase_if(F &&f)
    {
        auto begin = events_.begin() + static_cast<std::ptrdiff_t>(first_);
        events_.erase(std::remove_if(begin, events_.end(), f), events_.end());
    }

  private:
    size_t waiting() const noexcept { return events_.size() - first_; }

    void make_room(size_t count)
    {
        if (count <= events_.capacity()) {
            return;
        }
        std::vector<Event> larger;
        larger.reserve(2 * count);
        std::move(events_.begin() + static_cast<std::ptrdiff_t>(first_), events_.end(),
                  std::back_inserter(larger));
        events_.swap(larger);
        first_ = 0;
    }

    std::vector<Event> events_;
    size_t first_ = 0; // of those that wait
    size_t promised_ = 0;
};

} // namespace ucp
