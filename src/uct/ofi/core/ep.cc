// SPDX-License-Identifier: BSD-3-Clause
// What happens around a post: accounting, refusals, flush, failure, the end.
#include "uct/ofi/core/ep.h"

#include "uct/ofi/fabric/error.h"

#include <rdma/fi_endpoint.h>
#include <utility>

namespace uct::ofi {

size_t fill_iov(const uct_iov_t *iov, size_t count, iovec *pieces, void **descs)
{
    size_t n = 0;
    for_each_piece(iov, count, [&](char *at, size_t length, const uct_iov_t &entry) {
        auto *registered = static_cast<const memory *>(entry.memh);
        pieces[n] = {at, length};
        descs[n++] = registered ? registered->desc : nullptr;
        return true;
    });
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
    o->mark = false;
    o->copied = false;
    o->owner = this;
    o->sequence = ++owner().posted_;
    o->completion = completion;
    in_flight_.push_back(o);
    ++owner().outstanding_;
}

void ep::refused()
{
    if (sleeper_) {
        ring(); // the core may have left the peer a request of its own
    } else if (remote && !reached_) {
        owner().not_reached(*remote);
    }
}

ucs_status_t ep::no_buffer()
{
    return is_full()       ? no_resource_of_own()
           : window_full() ? no_resource()
                           : no_resource(owner().buffers_);
}

ucs_status_t ep::post_failed(ssize_t ret)
{
    if (UCS_LIKELY(ret == -FI_EAGAIN)) {
        refused();
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
        op *mark = in_flight_.pop_front();
        if (!mark->completion) {
            open_fence(own_fence);
        }
        marks.push_back(mark);
    }
}

namespace {

// The last operation that the user posted, or the flush mark behind it; nullptr: there is none. No
// flush waits for a ping, of which there is one at a time: the user did not post it, and when a
// flush ends at once the program need not progress any more.
op *last_of_user(const ucs::list<op, &op::link> &in_flight)
{
    op *last = in_flight.back();
    if (!last || last->what != op::kind::ping) {
        return last;
    }
    return last == in_flight.front() ? nullptr : in_flight.prev(last);
}

} // namespace

ucs_status_t ep::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        cancel();
        return UCS_OK;
    }
    if (UCS_UNLIKELY(status() != UCS_OK)) {
        return status();
    }
    send_gathered();
    if (!held_ops_.empty() || has_pending()) {
        return no_resource();
    }
    op *last = last_of_user(in_flight_);
    if (!last) {
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
        in_flight_.insert_after(last, mark);
    }
    return UCS_INPROGRESS;
}

ucs_status_t ep::fence(unsigned)
{
    send_gathered();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (UCS_UNLIKELY(holds_overtaken())) {
        return no_resource();
    }
    op *last = last_overtaken();
    if (last && !(fenced_ & own_fence)) {
        op *mark = owner().get_op();
        if (!mark) {
            return no_resource();
        }
        mark->what = op::kind::flush_mark;
        mark->owner = this;
        mark->completion = nullptr;
        in_flight_.insert_after(last, mark);
        close_fence(own_fence);
    }
    return status();
}

op *ep::last_overtaken()
{
    op *last = nullptr;
    for (op *o : in_flight_) {
        if (owner().limit.overtaken >> static_cast<unsigned>(o->what) & 1) {
            last = o;
        }
    }
    return last;
}

bool ep::holds_overtaken()
{
    for (op *o : held_ops_) {
        if (owner().limit.overtaken >> static_cast<unsigned>(o->what) & 1) {
            return true;
        }
    }
    return false;
}

void ep::close_fence(fence_kind kind)
{
    fenced_ |= kind;
    hold();
}

// An endpoint is known by its interface: all endpoints between two share what they go over.
ucs_status_t ep::get_address(uct_ep_addr_t *address)
{
    return owner().write_address(reinterpret_cast<uct_iface_addr_t *>(address));
}

ucs_status_t ep::connect_to_ep(const uct_device_addr_t *device, const uct_ep_addr_t *address)
{
    if (connected_to_someone()) {
        ucs_error("uct_ep_connect_to_ep: ep is connected already");
        return UCS_ERR_ALREADY_EXISTS;
    }
    return ucs::guard([&] {
        owner().attach(*this, {.device = device,
                               .device_length = SIZE_MAX,
                               .iface = reinterpret_cast<const uct_iface_addr_t *>(address),
                               .iface_length = SIZE_MAX});
    });
}

ucs_status_t ep::check(unsigned, uct_completion_t *)
{
    if (status() == UCS_OK && target) {
        owner().probe(*this);
    }
    return status();
}

bool ep::ping()
{
    if (!target || status() != UCS_OK || owner().limit.watched) {
        return true;
    }
    for (op *o : in_flight_) {
        if (o->what == op::kind::ping) {
            return true; // the last one has not arrived yet
        }
    }
    buffer_op *b = owner().get_buffer();
    if (!b) {
        return true; // all of them are on their way
    }
    ssize_t ret =
        fi_senddata(target, b->data, 0, b->desc, am_ping, address, static_cast<fi_context2 *>(b));
    if (ret != 0) {
        post_failed(ret, b);
        return false;
    }
    posted(b, op::kind::ping, nullptr);
    ring();
    return true;
}

void iface::probe(ep &e)
{
    e.ping();
}

void ep::cancel()
{
    set_failed(UCS_ERR_CANCELED);
    end_for_user();
}

// The core may still read or write the memory of operations in flight; what the user gets is their
// end as far as callbacks go. The callbacks of a cancelled endpoint may destroy it.
void ep::end_for_user()
{
    fenced_ = 0;
    drop_unsent();
    leave_operations();
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
        } else if (o->what == op::kind::get_bcopy || o->what == op::kind::fetch) {
            o->what = op::kind::get; // what arrives is dropped
        }
        complete(completion, UCS_ERR_CANCELED);
    }
}

op *ep::oldest_rma()
{
    for (op *o : in_flight_) {
        if (o->what == op::kind::put || o->what == op::kind::get ||
            o->what == op::kind::get_bcopy) { // not atomics
            return o;
        }
    }
    return nullptr;
}

// The core of a connection is done with them. One without connections goes on, and may end them
// when what it has to do before is done.
void ep::fail_operations(ucs_status_t status)
{
    fenced_ = 0;
    ofi::iface &home = owner();
    drop_unsent();
    bool core_goes_on = remote != nullptr;
    if (core_goes_on && !in_flight_.empty()) {
        home.left_with_core(*remote, true);
    }
    ucs::list<op, &op::link> all;
    all.splice_back(in_flight_);
    for (op *o : all) {
        o->owner = nullptr;
    }
    while (op *o = all.pop_front()) {
        uct_completion_t *completion = o->completion;
        bool posted = o->what != op::kind::flush_mark;
        if (posted) {
            home.ended(o->sequence);
        }
        if (posted && core_goes_on) {
            o->what = op::kind::abandoned;
        } else {
            home.put(o);
        }
        complete(completion, status);
    }
}

void ep::drop_unsent()
{
    if (gathering_ && gathering_->begun()) {
        gathering_->drop();
    }
    while (op *o = held_ops_.pop_front()) {
        owner().put(o);
    }
}

// The core goes on with them.
void ep::leave_operations()
{
    if (remote && !in_flight_.empty()) {
        owner().left_with_core(*remote, false);
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
    send_gathered();
    end_for_user();
    if (remote) {
        owner().forget(*remote);
    }
    delete this;
}

} // namespace uct::ofi
