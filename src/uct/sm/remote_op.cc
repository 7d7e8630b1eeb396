// SPDX-License-Identifier: BSD-3-Clause
// Requests, what is done for peers, and answers.
#include "uct/sm/remote_op.h"

#include "ucs/copy.h"
#include "uct/base/atomic.h"
#include "uct/sm/iface.h"

#include <algorithm>
#include <cstring>

namespace uct::sm {

namespace {

constexpr size_t window = 32 * part_size; // of one operation on its way: others want room, too

// Copies between a flat buffer and a range of pieces.
template <class Copy>
void for_range(const remote_op &op, size_t offset, size_t length, Copy &&copy)
{
    for (size_t i = 0; i < op.piece_count && length > 0; ++i) {
        const iovec &piece = op.pieces[i];
        if (offset >= piece.iov_len) {
            offset -= piece.iov_len;
            continue;
        }
        size_t part = std::min(piece.iov_len - offset, length);
        copy(static_cast<char *>(piece.iov_base) + offset, part);
        offset = 0;
        length -= part;
    }
}

template <class T>
ucs_status_t apply(const request &r, char *target, uint64_t *result)
{
    auto *to = reinterpret_cast<T *>(target);
    T before = 0;
    ucs_status_t status;
    if (r.op == UCT_ATOMIC_OP_CSWAP) {
        status = cpu_compare_swap(static_cast<T>(r.compare), static_cast<T>(r.value), to, &before);
    } else {
        status = cpu_atomic(r.op, static_cast<T>(r.value), to, &before);
    }
    *result = before;
    return status;
}

} // namespace

remote_ops::remote_ops(iface &home, size_t most) : home_(home), most_(most) {}

remote_op *remote_ops::get(work what, ep *owner, peer *to, uct_completion_t *completion)
{
    if (pool_.used() >= most_) {
        return nullptr;
    }
    remote_op *op = pool_.get();
    if (!op) {
        return nullptr;
    }
    if (free_places_.empty()) {
        free_places_.push_back(static_cast<uint32_t>(places_.size()));
        places_.push_back(nullptr);
    }
    uint32_t place = free_places_.back();
    free_places_.pop_back();
    places_[place] = op;
    *op = remote_op{};
    op->id = ++posted_ << 24 | place;
    op->sequence = posted_;
    op->what = what;
    op->owner = owner;
    op->to = to;
    op->completion = completion;
    op->status = UCS_OK;
    return op;
}

void remote_ops::put(remote_op *op)
{
    uint32_t place = op->id & 0xffffff;
    places_[place] = nullptr;
    free_places_.push_back(place);
    pool_.put(op);
}

remote_op *remote_ops::find(uint64_t id)
{
    size_t place = id & 0xffffff;
    remote_op *op = place < places_.size() ? places_[place] : nullptr;
    return op && op->id == id && op->what != work::flush ? op : nullptr;
}

request remote_ops::request_for(const remote_op &op, size_t part) const
{
    return {.from = home_.address(),
            .op_id = op.id,
            .key = op.key,
            .address = op.remote + op.sent,
            .offset = op.sent,
            .value = op.args.value,
            .compare = op.args.compare,
            .length = static_cast<uint32_t>(part),
            .what = static_cast<uint8_t>(op.what),
            .op = op.args.op,
            .width = op.args.width,
            .reserved = 0};
}

bool remote_ops::send_part(remote_op *op)
{
    outbox &box = *op->to->box;
    if (!box.claim()) {
        return false;
    }
    size_t part = std::min(op->length - op->sent, part_size);
    request r = request_for(*op, part);
    size_t length = sizeof(r);
    bool in_frame = op->what == work::put;
    char *to = in_frame ? box.frame() : box.small();
    memcpy(to, &r, sizeof(r));
    if (in_frame) {
        for_range(*op, op->sent, part, [&](const char *from, size_t n) {
            ucs::copy(to + length, from, n);
            length += n;
        });
    }
    op->sent += part;
    if (box.publish(am_request, static_cast<uint32_t>(length), in_frame)) {
        op->to->ring();
    }
    return true;
}

void remote_ops::posted(remote_op *op)
{
    ++op->to->refs;
    ++outstanding_;
    op->owner->ops_.push_back(op);
}

bool remote_ops::send_whole(remote_op *op)
{
    if (!send_part(op)) {
        put(op);
        return false;
    }
    posted(op);
    return true;
}

ssize_t remote_ops::send_packed(remote_op *op, uct_pack_callback_t pack, void *arg)
{
    peer &to = *op->to;
    outbox &box = *to.box;
    if (!box.claim()) {
        ep *owner = op->owner;
        put(op);
        return owner->no_resource();
    }
    size_t length = pack(box.frame() + sizeof(request), arg);
    bool ring;
    if (length == 0) {
        put(op);
        ring = box.publish(am_answer, 0, false); // what was claimed has to go
    } else {
        op->length = length;
        request r = request_for(*op, length);
        memcpy(box.frame(), &r, sizeof(r));
        op->sent = length;
        posted(op);
        ring = box.publish(am_request, static_cast<uint32_t>(sizeof(r) + length), true);
    }
    if (ring) {
        to.ring();
    }
    return static_cast<ssize_t>(length);
}

void remote_ops::send(remote_op *op)
{
    posted(op);
    unsent_.push_back(op);
    progress();
}

bool remote_ops::add_flush(ep &owner, uct_completion_t *completion)
{
    remote_op *mark = get(work::flush, &owner, nullptr, completion);
    if (mark) {
        owner.ops_.push_back(mark);
    }
    return mark;
}

unsigned remote_ops::progress()
{
    unsigned count = 0;
    for (remote_op *op : unsent_) {
        while (op->sent < op->length && op->sent - op->answered < window && send_part(op)) {
            ++count;
        }
        if (op->sent == op->length) {
            op->unsent_link.unlink();
        }
    }
    // Answers to one peer keep their order; a peer without room holds up no other.
    size_t todo = answers_.size();
    while (todo-- > 0) {
        waiting_answer a = answers_.front();
        answers_.pop_front();
        if (send_answer(a)) {
            ++count;
        } else {
            answers_.push_back(a);
        }
    }
    return count;
}

ucs_status_t remote_ops::flush(uct_completion_t *completion)
{
    if (outstanding_ == 0) {
        return UCS_OK;
    }
    if (completion) {
        flushes_.push_back({completion, posted_, outstanding_});
    }
    return UCS_INPROGRESS;
}

void remote_ops::on_message(uint8_t id, const char *data, size_t length)
{
    if (id == am_request) {
        on_request(data, length);
    } else if (id == am_answer) {
        on_answer(data, length);
    }
}

ucs_status_t remote_ops::perform(const request &r, const char *data, size_t length,
                                 uint64_t *result)
{
    auto what = static_cast<work>(r.what);
    size_t touched = what == work::atomic ? r.width : r.length;
    bool sound = what == work::put      ? r.length == length
                 : what == work::get    ? r.length <= part_size
                 : what == work::atomic ? (r.width == 4 || r.width == 8) && r.address % r.width == 0
                                        : false;
    if (!sound) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucs_status_t status = UCS_OK;
    bool known = home_.domain.with_memory(r.key, r.address, touched, [&](char *at) {
        if (what == work::put) {
            copy_bytes(at, data, length);
        } else if (what == work::atomic) {
            status = r.width == 4 ? apply<uint32_t>(r, at, result) : apply<uint64_t>(r, at, result);
        }
    });
    return known ? status : UCS_ERR_INVALID_ADDR;
}

void remote_ops::on_request(const char *data, size_t length)
{
    request r;
    if (length < sizeof(r)) {
        return;
    }
    memcpy(&r, data, sizeof(r));
    peer *from = home_.answers_to(r.from);
    if (!from) {
        return;
    }
    waiting_answer a{.to = from,
                     .head = {.op_id = r.op_id,
                              .offset = r.offset,
                              .result = 0,
                              .length = r.length,
                              .status = UCS_OK},
                     .key = r.key,
                     .address = static_cast<work>(r.what) == work::get ? r.address : 0};
    a.head.status = perform(r, data + sizeof(r), length - sizeof(r), &a.head.result);
    bool queued = std::any_of(answers_.begin(), answers_.end(),
                              [&](const waiting_answer &other) { return other.to == from; });
    if (queued || !send_answer(a)) {
        answers_.push_back(a);
    }
}

bool remote_ops::send_answer(waiting_answer &a)
{
    outbox &box = *a.to->box;
    if (!box.claim()) {
        return false;
    }
    bool data = a.address != 0 && a.head.status == UCS_OK && a.head.length > 0;
    char *to = data ? box.frame() : box.small();
    size_t length = sizeof(a.head);
    if (data) {
        bool known =
            home_.domain.with_memory(a.key, a.address, a.head.length, [&](const char *from) {
                ucs::copy(to + length, from, a.head.length);
                length += a.head.length;
            });
        a.head.status = known ? UCS_OK : UCS_ERR_INVALID_ADDR;
    }
    memcpy(to, &a.head, sizeof(a.head));
    if (box.publish(am_answer, static_cast<uint32_t>(length), data)) {
        a.to->ring();
    }
    return true;
}

void remote_ops::take_data(remote_op *op, size_t offset, const char *data, size_t length)
{
    if (op->unpack) {
        op->unpack(op->unpack_arg, data, length);
        return;
    }
    for_range(*op, offset, length, [&](char *to, size_t n) {
        ucs::copy(to, data, n);
        data += n;
    });
}

void remote_ops::on_answer(const char *data, size_t length)
{
    answer a;
    if (length < sizeof(a)) {
        return;
    }
    memcpy(&a, data, sizeof(a));
    remote_op *op = find(a.op_id);
    size_t moved = length - sizeof(a);
    // What a peer says is checked against what it was asked.
    if (!op || a.offset > op->sent || a.length > op->sent - a.offset || a.length == 0 ||
        a.length > op->sent - op->answered) {
        return;
    }
    if (a.status != UCS_OK) {
        op->status = static_cast<ucs_status_t>(a.status);
    } else if (op->what == work::get && moved == a.length) {
        take_data(op, a.offset, data + sizeof(a), moved);
    } else if (op->what == work::get) {
        op->status = UCS_ERR_IO_ERROR;
    } else if (op->what == work::atomic && op->result) {
        if (op->args.width == 4) {
            auto result = static_cast<uint32_t>(a.result);
            memcpy(op->result, &result, sizeof(result));
        } else {
            memcpy(op->result, &a.result, sizeof(a.result));
        }
    }
    op->answered += a.length;
    if (op->answered == op->length) {
        finish(op);
    }
}

// The callbacks may destroy the endpoint and post anew.
void remote_ops::finish(remote_op *op)
{
    ucs::list<remote_op, &remote_op::link> marks;
    ep *owner = op->owner;
    if (op->unsent_link.linked()) {
        op->unsent_link.unlink();
    }
    if (owner) {
        op->link.unlink();
        while (!owner->ops_.empty() && owner->ops_.front()->what == work::flush) {
            marks.push_back(owner->ops_.pop_front());
        }
        owner->operation_ended();
    }
    --outstanding_;
    for (flush_mark &f : flushes_) {
        f.left -= op->sequence <= f.sequence;
    }
    peer *to = op->to;
    uct_completion_t *completion = op->completion;
    ucs_status_t status = op->status;
    put(op);
    complete(completion, status);
    while (remote_op *mark = marks.pop_front()) {
        uct_completion_t *flushed = mark->completion;
        put(mark);
        complete(flushed, UCS_OK);
    }
    complete_flushes();
    home_.release(*to);
}

void remote_ops::complete_flushes()
{
    while (!flushes_.empty() && flushes_.front().left == 0) {
        uct_completion_t *completion = flushes_.front().completion;
        flushes_.pop_front();
        complete(completion, UCS_OK);
    }
}

// Of a failed endpoint: flushes fail as well.
void remote_ops::cancel(ep &owner, ucs_status_t status)
{
    ucs::list<remote_op, &remote_op::link> all;
    all.splice_back(owner.ops_);
    for (remote_op *op : all) {
        op->owner = nullptr;
    }
    while (remote_op *op = all.pop_front()) {
        if (op->what == work::flush) {
            uct_completion_t *completion = op->completion;
            put(op);
            complete(completion, status);
        } else {
            op->status = status;
            finish(op);
        }
    }
}

void remote_ops::peer_gone(peer &p, ucs_status_t status)
{
    std::erase_if(answers_, [&](const waiting_answer &a) { return a.to == &p; });
    for (size_t i = 0; i < places_.size(); ++i) {
        remote_op *op = places_[i];
        if (op && op->to == &p && !op->owner) {
            op->status = status;
            finish(op);
        }
    }
}

} // namespace uct::sm
