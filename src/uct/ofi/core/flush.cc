// SPDX-License-Identifier: BSD-3-Clause
// Flush and fence of an interface: what was posted before is counted down.
#include "uct/ofi/core/ep.h"
#include "uct/ofi/core/iface.h"

#include <atomic>

namespace uct::ofi {

ucs_status_t iface::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        return UCS_ERR_UNSUPPORTED; // each endpoint by itself
    }
    send_gathered();
    // What waits has been taken from the user, or is the user's own request.
    if (has_waiting()) {
        return completion ? UCS_ERR_NO_RESOURCE : UCS_INPROGRESS;
    }
    if (outstanding_ == 0) {
        return UCS_OK;
    }
    if (completion && !mark_flush(completion)) {
        return UCS_ERR_NO_RESOURCE;
    }
    return UCS_INPROGRESS;
}

// completion nullptr: a fence's.
bool iface::mark_flush(uct_completion_t *completion)
{
    auto *f = static_cast<flush_op *>(get_op());
    if (!f) {
        return false;
    }
    f->what = op::kind::flush_mark;
    f->owner = nullptr;
    f->completion = completion;
    f->sequence = posted_;
    f->left = outstanding_;
    flushes_.push_back(f);
    return true;
}

ucs_status_t iface::fence(unsigned)
{
    send_gathered();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    bool overtaken = false;
    bool held = false;
    for_each_ep([&](ep &e) {
        overtaken |= e.last_overtaken() != nullptr;
        held |= e.holds_overtaken();
    });
    if (UCS_UNLIKELY(held)) {
        return UCS_ERR_NO_RESOURCE;
    }
    if (!overtaken || fenced_) {
        return UCS_OK;
    }
    if (!mark_flush(nullptr)) {
        return UCS_ERR_NO_RESOURCE;
    }
    fenced_ = true;
    for_each_ep([](ep &e) { e.close_fence(ep::interface_fence); });
    return UCS_OK;
}

void iface::open_fence()
{
    fenced_ = false;
    for_each_ep([](ep &e) { e.open_fence(ep::interface_fence); });
}

void iface::count_flushed(uint64_t sequence)
{
    for (op *o : flushes_) {
        auto *f = static_cast<flush_op *>(o);
        if (sequence <= f->sequence && --f->left == 0) {
            flush_done_ = true;
        }
    }
}

// An earlier flush is over whenever a later one is.
unsigned iface::complete_flushes()
{
    flush_done_ = false;
    unsigned count = 0;
    while (!flushes_.empty() && static_cast<flush_op *>(flushes_.front())->left == 0) {
        op *done = flushes_.pop_front();
        uct_completion_t *completion = done->completion;
        put(done);
        if (completion) {
            complete(completion, UCS_OK);
        } else {
            open_fence();
        }
        ++count;
    }
    return count;
}

} // namespace uct::ofi
