// SPDX-License-Identifier: BSD-3-Clause
// The completion loop and the receives it feeds.
#include "uct/ofi/core/ep.h"
#include "uct/ofi/core/iface.h"
#include "uct/ofi/fabric/error.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace uct::ofi {

namespace {

constexpr size_t usual = 16; // completions that one poll handles
constexpr size_t many = receive_budget::total;

} // namespace

template <size_t batch>
UCS_ALWAYS_INLINE unsigned iface::read_cq(fid_cq *cq)
{
    fi_cq_data_entry entries[batch];
    ssize_t n = fi_cq_read(cq, entries, batch);
    if (n <= 0) {
        if (used_count_ + missing_receives_ > 0 && cq == cq_.get()) {
            if (shared_ && n != -FI_EAVAIL) {
                shared_->queue_is_empty();
            }
            repost_used();
        }
        return UCS_LIKELY(n == -FI_EAGAIN) || n == 0 ? 0 : cq_error(cq, n);
    }
    tell_waiting();
    for (ssize_t i = 0; i < n; ++i) {
        handle(entries[i]);
    }
    return static_cast<unsigned>(n);
}

unsigned iface::poll_cq(fid_cq *cq)
{
    return read_cq<usual>(cq);
}

unsigned iface::poll_costly_cq()
{
    return read_cq<many>(cq_.get());
}

// In a receive buffer, which is aligned as the user wants it.
void iface::deliver_aligned(uint8_t id, void *data, size_t length)
{
    auto *r = length <= limit.segment ? get_receive() : nullptr;
    if (!r) {
        deliver(id, data, length, 0); // rather than not at all
        return;
    }
    copy_bytes(r->payload, data, length);
    if (deliver(id, r->payload, length, UCT_CB_PARAM_FLAG_DESC) == UCS_INPROGRESS) {
        r->user = nullptr;
    } else {
        put_receive(r);
    }
}

UCS_ALWAYS_INLINE void iface::handle(const fi_cq_data_entry &entry)
{
    auto *o = static_cast<op *>(static_cast<fi_context2 *>(entry.op_context));
    if (UCS_LIKELY(o->what == op::kind::receive)) {
        on_receive(static_cast<receive_op *>(o), entry);
    } else if (UCS_UNLIKELY(o->what == op::kind::shared_receive)) {
        on_shared_receive(o, entry);
    } else {
        finish(o, UCS_OK);
    }
}

// The message lies where the next one may lie soon: the user copies what it keeps.
UCS_ALWAYS_INLINE void iface::on_shared_receive(op *o, const fi_cq_data_entry &entry)
{
    // A core may give a buffer back with its last message or by itself.
    if ((entry.flags & FI_RECV) && UCS_LIKELY(!closing_)) {
        if (UCS_UNLIKELY((entry.data & am_special) != plain_)) {
            on_special_shared(entry);
        } else if (UCS_UNLIKELY(am_alignment_ != 0)) {
            deliver_aligned(static_cast<uint8_t>(entry.data & am_id_mask), entry.buf, entry.len);
        } else {
            deliver(static_cast<uint8_t>(entry.data & am_id_mask), entry.buf, entry.len, 0);
        }
    }
    if (entry.flags & FI_MULTI_RECV) {
        take_shared_back(o);
    }
}

// The core gave a shared buffer back.
void iface::take_shared_back(op *o)
{
    shared_->returned(o);
    missing_receives_ = closing_ ? 0 : shared_->post();
}

// One that has a number may have to wait for others: it goes on in a buffer of its own.
void iface::on_special_shared(const fi_cq_data_entry &entry)
{
    if (!order_ || (entry.data & am_ping)) {
        return;
    }
    auto *r = entry.len <= limit.segment + limit.prefix ? get_receive() : nullptr;
    if (!r) {
        ucs_error("%s/%s: no memory for a message of %zu bytes: it is lost",
                  domain.provider.transport.c_str(), domain.dev.name.c_str(), entry.len);
        return;
    }
    copy_bytes(r->payload - limit.prefix, entry.buf, entry.len);
    deliver_in_order(r, entry);
}

UCS_ALWAYS_INLINE void iface::on_receive(receive_op *r, const fi_cq_data_entry &entry)
{
    if (UCS_UNLIKELY(closing_)) {
        put_receive(r); // the interface is closing
        return;
    }
    if (UCS_UNLIKELY((entry.data & am_special) != plain_)) {
        on_special(r, entry);
        return;
    }
    ucs_status_t status = deliver(static_cast<uint8_t>(entry.data & am_id_mask), r->payload,
                                  entry.len, UCT_CB_PARAM_FLAG_DESC);
    if (UCS_UNLIKELY(status == UCS_INPROGRESS)) {
        post_another(r);
        return;
    }
    repost(r);
}

// In place of one that was filled and is kept.
void iface::post_another(receive_op *kept)
{
    kept->user = nullptr;
    if (shared_) {
        return;
    }
    if (receive_op *r = get_receive()) {
        repost(r);
    } else {
        ++missing_receives_;
    }
}

void iface::on_special(receive_op *r, const fi_cq_data_entry &entry)
{
    if (order_ && !(entry.data & am_ping)) {
        deliver_in_order(r, entry);
        return;
    }
    if (entry.data & am_batch) {
        deliver_gathered(r->payload, entry.len);
    }
    repost(r);
}

UCS_ALWAYS_INLINE void iface::repost(receive_op *r)
{
    if (shared_) {
        put_receive(r);
        return;
    }
    used_[used_count_++] = r;
    if (used_count_ >= used_limit_) {
        repost_many();
    }
}

// So many at a time, round after round, that soon there may be no buffer where the next one comes.
void iface::repost_many()
{
    if (budget_) {
        uint64_t now = round();
        in_a_row_ = now - full_round_ <= 1 ? in_a_row_ + used_count_ : used_count_;
        full_round_ = now;
        if (2 * in_a_row_ >= share_.kept && share_.kept < share_.most) {
            in_a_row_ = 0;
            post_more(budget_->more(share_));
        }
    }
    repost_used();
}

// Of those that were filled.
void iface::give_surplus_back()
{
    while (used_count_ > 0 && budget_->shrink(share_)) {
        put_receive(used_[--used_count_]);
    }
}

void iface::repost_used()
{
    if (UCS_UNLIKELY(share_.has_surplus)) {
        give_surplus_back();
    }
    while (used_count_ > 0) {
        receive_op *r = used_[--used_count_];
        if (UCS_UNLIKELY(!post(r))) {
            put_receive(r);
            ++missing_receives_;
        }
    }
    if (shared_) {
        missing_receives_ = shared_->post();
    } else if (UCS_UNLIKELY(missing_receives_ > 0)) {
        post_more(std::exchange(missing_receives_, 0));
    }
}

void iface::deliver_in_order(receive_op *r, const fi_cq_data_entry &entry)
{
    order_prefix prefix;
    bool whole = entry.len >= sizeof(prefix);
    if (whole) {
        memcpy(&prefix, r->payload - sizeof(prefix), sizeof(prefix));
    }
    receives_->restore_release(r);
    receive_order::message m{r, static_cast<uint32_t>(entry.len - sizeof(prefix)),
                             static_cast<uint8_t>(entry.data & am_id_mask)};
    auto verdict = whole && (entry.data & am_sequenced) ? order_->arrived(prefix, m)
                                                        : receive_order::verdict::drop;
    if (verdict == receive_order::verdict::drop) {
        ucs_error("%s/%s: dropped a message of %zu bytes that has no place in the order",
                  domain.provider.transport.c_str(), domain.dev.name.c_str(), entry.len);
        repost(r);
        return;
    }
    if (verdict == receive_order::verdict::later) {
        post_another(r);
        return;
    }
    if (deliver(m.id, r->payload, m.length, UCT_CB_PARAM_FLAG_DESC) == UCS_INPROGRESS) {
        post_another(r);
    } else {
        repost(r);
    }
    while (order_->take(prefix.sender, &m)) {
        if (deliver(m.id, m.buffer->payload, m.length, UCT_CB_PARAM_FLAG_DESC) != UCS_INPROGRESS) {
            put_receive(m.buffer);
        }
    }
}

bool iface::post(receive_op *r)
{
    ssize_t ret = fi_recv(rx_, r->payload - limit.prefix, limit.segment + limit.prefix, r->desc,
                          FI_ADDR_UNSPEC, static_cast<fi_context2 *>(r));
    if (UCS_UNLIKELY(ret != 0 && ret != -FI_EAGAIN && !std::exchange(receives_failed_, true))) {
        ucs_error("fi_recv: %s", fi_strerror(static_cast<int>(-ret)));
    }
    return ret == 0;
}

void iface::post_receives(fid_ep *where, unsigned most, bool at_once)
{
    rx_ = where;
    share_.most = share_.kept = most;
    if (!at_once) {
        budget_ = receive_budget::of(owner);
        budget_->join(share_);
    }
    post_more(share_.kept);
}

void iface::post_all_receives()
{
    if (budget_) {
        budget_->leave(share_);
        budget_.reset();
        post_more(share_.most - std::exchange(share_.kept, share_.most));
    }
}

void iface::post_more(unsigned count)
{
    used_limit_ = std::clamp(share_.kept / 8, 1u, most_used);
    for (; count > 0; --count) {
        receive_op *r = get_receive();
        if (!r) {
            break;
        }
        if (!post(r)) {
            put_receive(r);
            break;
        }
    }
    missing_receives_ += count;
}

void iface::finish(op *o, ucs_status_t status)
{
    if (UCS_UNLIKELY(o->what >= op::kind::tag_receive)) {
        on_unowned(o, status);
        return;
    }
    // The callbacks may destroy the endpoint: what they complete leaves its list before.
    ucs::list<op, &op::link> marks;
    if (o->link.linked()) {
        o->link.unlink();
        if (o->owner) {
            o->owner->copies_ -= o->copied;
            o->owner->marks_ -= o->mark;
            o->owner->operation_ended();
            o->owner->take_marks(marks);
        }
    }
    ended(o->sequence);
    uct_completion_t *completion = o->completion;
    if (UCS_UNLIKELY(o->what >= op::kind::get_bcopy)) {
        finish_special(o, status);
    }
    put(o);
    complete(completion, status);
    while (op *mark = marks.pop_front()) {
        completion = mark->completion;
        put(mark);
        complete(completion, status == UCS_ERR_CANCELED ? status : UCS_OK);
    }
}

void iface::finish_special(op *o, ucs_status_t status)
{
    auto *b = static_cast<buffer_op *>(o);
    if (o->what == op::kind::numbered_send) {
        left_order(b);
    } else if (o->what == op::kind::get_bcopy && status == UCS_OK) {
        b->unpack(b->arg, b->data, b->length);
    } else if (o->what == op::kind::fetch && status == UCS_OK) {
        memcpy(b->arg, b->data + ep::atomic_result, b->length);
    }
}

void iface::drain_cq()
{
    while (poll_cq() > 0) {
    }
}

unsigned iface::cq_error(fid_cq *cq, ssize_t ret)
{
    if (ret != -FI_EAVAIL) {
        ucs_error("fi_cq_read on %s/%s: %s", domain.provider.transport.c_str(),
                  domain.dev.name.c_str(), fi_strerror(static_cast<int>(-ret)));
        return 0;
    }
    // Larger than the entry of our version: later versions of a core may write their own.
    union {
        fi_cq_err_entry entry;
        char room[256];
    } error{};
    if (fi_cq_readerr(cq, &error.entry, 0) != 1) {
        return 0;
    }
    auto *o = static_cast<op *>(static_cast<fi_context2 *>(error.entry.op_context));
    if (error.entry.err != FI_ECANCELED) {
        ucs_debug("%s/%s: operation %p failed: %s", domain.provider.transport.c_str(),
                  domain.dev.name.c_str(), static_cast<void *>(o), fi_strerror(error.entry.err));
    }
    if (o && o->what == op::kind::receive) {
        report_lost(error.entry);
        repost_failed(static_cast<receive_op *>(o));
    } else if (o && o->what == op::kind::shared_receive) {
        report_lost(error.entry);
        if ((error.entry.flags & FI_MULTI_RECV) && !closing_) {
            shared_->returned_early(o);
            ++missing_receives_;
        }
    } else {
        on_error(o, status_of(error.entry.err));
    }
    return 1;
}

void iface::report_lost(const fi_cq_err_entry &error) const
{
    if (error.err == FI_ETRUNC) {
        ucs_error("%s/%s: lost a message of %zu bytes, of which %zu can be received: its sender's "
                  "SEG_SIZE is larger",
                  domain.provider.transport.c_str(), domain.dev.name.c_str(),
                  error.len + error.olen, limit.segment + limit.prefix);
    }
}

void iface::repost_failed(receive_op *r)
{
    if (closing_) {
        put_receive(r);
    } else {
        repost(r);
    }
}

} // namespace uct::ofi
