// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that wait: see credits.h.
#include "uct/base/credits.h"

namespace uct {

void waiters::add(waiter &w, bool parks)
{
    ++count_;
    if (parks) {
        w.where = waiter::place::parked;
        ++parked_;
    } else if (w.lacks) {
        w.where = waiter::place::credits;
        w.lacks->waiting_.push_back(&w);
        if (!w.lacks->link_.linked()) {
            lacking_.push_back(w.lacks);
        }
    } else {
        w.where = waiter::place::trying;
        ++trying_count_;
        trying_.push_back(&w);
    }
}

bool waiters::untried() const
{
    if (woken_count_ > 0 || tried_ < trying_count_) {
        return true;
    }
    for (const credits *c : lacking_) {
        if (c->available()) {
            return true;
        }
    }
    return false;
}

// It is in no list any more.
void waiters::leave(waiter &w)
{
    parked_ -= w.where == waiter::place::parked;
    woken_count_ -= w.where == waiter::place::woken;
    trying_count_ -= w.where == waiter::place::trying;
    w.where = waiter::place::none;
    --count_;
}

void waiters::remove(waiter &w)
{
    if (!w.waits()) {
        return;
    }
    if (w.wait_link.linked()) {
        w.wait_link.unlink();
    }
    leave(w);
    tried_ = 0; // it may be one of those
}

void waiters::wake(waiter &w)
{
    remove(w);
    ++count_;
    ++woken_count_;
    w.where = waiter::place::woken;
    woken_.push_back(&w);
}

} // namespace uct
