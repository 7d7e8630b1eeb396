// SPDX-License-Identifier: BSD-3-Clause
// Endpoints that wait: see credits.h.
#include "uct/base/credits.h"

namespace uct {

void waiters::add(waiter &w, bool parks)
{
    ++count_;
    if (parks) {
        w.parked = true;
        return;
    }
    ++listed_;
    if (!w.lacks) {
        trying_.push_back(&w);
        return;
    }
    w.lacks->waiting_.push_back(&w);
    if (!w.lacks->link_.linked()) {
        lacking_.push_back(w.lacks);
    }
}

void waiters::remove(waiter &w)
{
    if (!w.waits()) {
        return;
    }
    --count_;
    if (w.parked) {
        w.parked = false;
    } else {
        w.wait_link.unlink();
        --listed_;
    }
}

void waiters::wake(waiter &w)
{
    remove(w);
    w.lacks = nullptr;
    add(w, false);
}

} // namespace uct
