// SPDX-License-Identifier: BSD-3-Clause
// Objects in order of the time at which something is due for them: a look at the first one tells
// whether anything is. The link and the time live in the object. Meant for objects that all wait
// equally long, or are due at once: adding those takes one step. Another one is sorted in from the
// end.
#pragma once

#include "ucs/list.h"

namespace ucs {

// When: the member with the time. It does not change while the object is in the timeline.
template <class T, list_node T::*Link, auto When>
class timeline {
  public:
    bool empty() const { return items_.empty(); }
    // nullptr: there is none.
    T *first() const { return items_.front(); }

    // The first object if its time is before now; else nullptr.
    T *due(uint64_t now) const
    {
        T *item = items_.front();
        return item && item->*When < now ? item : nullptr;
    }

    // item: in no timeline by this link.
    void add(T *item)
    {
        T *first = items_.front();
        if (!first || item->*When <= first->*When) {
            items_.push_front(item);
            return;
        }
        T *before = items_.back();
        while (item->*When < before->*When) {
            before = items_.prev(before); // ends at the first one
        }
        items_.insert_after(before, item);
    }

    // Also of an object that is in none.
    static void remove(T *item)
    {
        if ((item->*Link).linked()) {
            items::erase(item);
        }
    }

  private:
    using items = list<T, Link>;
    items items_;
};

} // namespace ucs
