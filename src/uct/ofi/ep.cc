// SPDX-License-Identifier: BSD-3-Clause
// What happens around a post: accounting, refusals, flush, failure, the end.
#include "uct/ofi/ep.h"

#include "uct/ofi/error.h"
#include "uct/ofi/msg_iface.h"
#include "uct/ofi/rdm_iface.h"

#include <utility>

namespace uct::ofi {

size_t fill_iov(const uct_iov_t *iov, size_t count, iovec *pieces, void **descs)
{
    size_t n = 0;
    for (size_t i = 0; i < count; ++i) {
        size_t length = iov[i].length * iov[i].count;
        if (length == 0) {
            continue;
        }
        auto *registered = static_cast<const memory *>(iov[i].memh);
        pieces[n] = {iov[i].buffer, length};
        descs[n++] = registered ? registered->desc : nullptr;
    }
    return n;
}

size_t total_length(const iovec *pieces, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; ++i) {
        length += pieces[i].iov_len;
    }
    return length;
}

void ep::posted(op *o, op::kind what, uct_completion_t *completion)
{
    o->what = what;
    o->owner = this;
    o->sequence = ++owner().posted_;
    o->completion = completion;
    in_flight_.push_back(o);
    ++owner().outstanding_;
}

ucs_status_t ep::post_failed(ssize_t ret)
{
    if (UCS_LIKELY(ret == -FI_EAGAIN)) {
        ring(); // the core may have left the peer a request of its own
        return no_resource();
    }
    // A broken connection also shows up as an event, which is what fails the endpoint.
    ucs_debug("endpoint %p: post failed: %s", static_cast<void *>(this),
              fi_strerror(static_cast<int>(-ret)));
    ucs_status_t status = status_of(static_cast<int>(ret));
    return status == UCS_ERR_INVALID_PARAM && conn ? no_resource() : status;
}

ucs_status_t ep::post_failed(ssize_t ret, op *unused)
{
    owner().put(unused);
    return post_failed(ret);
}

void ep::take_marks(ucs::list<op, &op::link> &marks)
{
    while (!in_flight_.empty() && in_flight_.front()->what == op::kind::flush_mark) {
        marks.push_back(in_flight_.pop_front());
    }
}

ucs_status_t ep::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        cancel();
        return UCS_OK;
    }
    if (UCS_UNLIKELY(status() != UCS_OK)) {
        return status();
    }
    if (held_op_ || has_pending()) {
        return no_resource();
    }
    if (in_flight_.empty()) {
        return UCS_OK;
    }
    if (completion) {
        op *mark = owner().get_op();
        if (!mark) {
            return no_resource();
        }
        mark->what = op::kind::flush_mark;
        mark->owner = this;
        mark->completion = completion;
        in_flight_.push_back(mark);
    }
    return UCS_INPROGRESS;
}

ucs_status_t ep::fence(unsigned)
{
    return status();
}

ucs_status_t ep::check(unsigned, uct_completion_t *)
{
    return status();
}

void ep::cancel()
{
    set_failed(UCS_ERR_CANCELED);
    // The core may still read or write the memory of operations in flight; what the user gets is
    // their end as far as callbacks go. The callbacks may destroy the endpoint.
    ofi::iface &home = owner();
    ucs::list<op, &op::link> all;
    all.splice_back(in_flight_);
    for (op *o : all) {
        o->owner = nullptr;
    }
    while (op *o = all.pop_front()) {
        uct_completion_t *completion = std::exchange(o->completion, nullptr);
        if (o->what == op::kind::flush_mark) {
            home.put(o);
        } else if (o->what == op::kind::get_bcopy) {
            o->what = op::kind::rma;
        }
        complete(completion, UCS_ERR_CANCELED);
    }
}

op *ep::oldest_rma()
{
    for (op *o : in_flight_) {
        if (o->what == op::kind::rma || o->what == op::kind::get_bcopy) {
            return o;
        }
    }
    return nullptr;
}

void ep::fail_operations(ucs_status_t status)
{
    ofi::iface &home = owner();
    if (held_op_) {
        home.put(std::exchange(held_op_, nullptr));
    }
    ucs::list<op, &op::link> all;
    all.splice_back(in_flight_);
    for (op *o : all) {
        o->owner = nullptr;
    }
    while (op *o = all.pop_front()) {
        uct_completion_t *completion = o->completion;
        if (o->what != op::kind::flush_mark) {
            --home.outstanding_;
        }
        home.put(o);
        complete(completion, status);
    }
}

void ep::orphan_operations()
{
    if (held_op_) {
        owner().put(std::exchange(held_op_, nullptr));
    }
    while (op *o = in_flight_.pop_front()) {
        o->owner = nullptr;
        if (o->what == op::kind::flush_mark) {
            owner().put(o);
        }
    }
}

void ep::destroy()
{
    if (sibling.linked()) {
        sibling.unlink();
    }
    if (owner().failing_ == this) {
        owner().failing_ = nullptr;
    }
    orphan_operations();
    if (remote) {
        static_cast<rdm_iface &>(owner()).forget(*remote);
    }
    delete this;
}

} // namespace uct::ofi
