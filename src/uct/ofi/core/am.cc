// SPDX-License-Identifier: BSD-3-Clause
// Active messages: short is an inject from the stack, bcopy a send from a pool buffer, zcopy a send
// of the user's pieces behind the header.
#include "ucs/copy.h"
#include "uct/ofi/core/ep.h"

#include <cstring>
#include <rdma/fi_endpoint.h>

namespace uct::ofi {

ucs_status_t ep::am_short(uint8_t id, uint64_t header, const void *payload, unsigned length)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(length + sizeof(header) > owner().limit.on_stack || id >= UCT_AM_ID_MAX ||
                     injected_ >= owner().limit.inject_run)) {
        return am_short_buffered(id, header, payload, length);
    }
    if (gathers() && gathering_->joins(burst_alone, round())) {
        return gathering_->add(id, &header, sizeof(header), payload, length, burst_alone);
    }
    alignas(16) char message[short_limit];
    memcpy(message, &header, sizeof(header));
    ucs::copy_small(message + sizeof(header), payload, length);
    ssize_t ret = fi_injectdata(target, message, length + sizeof(header), id, address);
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret);
    }
    ++injected_;
    went_alone(burst_alone);
    ring();
    return UCS_OK;
}

ucs_status_t ep::am_short_buffered(uint8_t id, uint64_t header, const void *payload,
                                   unsigned length)
{
    if (id >= UCT_AM_ID_MAX) {
        return above_limit("uct_ep_am_short: id", id, UCT_AM_ID_MAX - 1);
    }
    if (length + sizeof(header) > owner().limit.max_short) {
        return above_limit("uct_ep_am_short: length", length,
                           owner().limit.max_short - sizeof(header));
    }
    buffer_op *b = get_send_buffer();
    if (!b) {
        return no_buffer();
    }
    memcpy(b->data, &header, sizeof(header));
    copy_bytes(b->data + sizeof(header), payload, length);
    send_packed(b, id, length + sizeof(header));
    return UCS_OK;
}

ucs_status_t ep::am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_short_iov: id", id, UCT_AM_ID_MAX - 1);
    }
    if (UCS_UNLIKELY(iov_length(iov, count) > owner().limit.max_short)) {
        return above_limit("uct_ep_am_short_iov: length", iov_length(iov, count),
                           owner().limit.max_short);
    }
    buffer_op *b = get_send_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    send_small(b, id, gather(b->data, iov, count), burst_alone);
    return UCS_OK;
}

ssize_t ep::am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_bcopy: id", id, UCT_AM_ID_MAX - 1);
    }
    buffer_op *b = get_send_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    return send_small(b, id, pack(b->data, arg),
                      UCS_UNLIKELY(flags & UCT_SEND_FLAG_BATCH) ? announced_alone : burst_alone);
}

// A packed message that may be small enough for a batch. An empty one is under every limit, also
// where nothing is gathered. `alone`: how many of a burst go by themselves.
UCS_ALWAYS_INLINE ssize_t ep::send_small(buffer_op *b, uint8_t id, size_t length, unsigned alone)
{
    if (gathers() && length <= owner().limit.batched && gathering_->joins(alone, round()) &&
        gathering_->add(id, nullptr, 0, b->data, length, alone) == UCS_OK) {
        owner().put(b);
        return static_cast<ssize_t>(length);
    }
    ssize_t sent = send_packed(b, id, length);
    went_alone(alone);
    return sent;
}

// A packed message counts as sent: packing twice is not allowed. When the core has no room it is
// held, and the endpoint is not ready until it went.
ssize_t ep::send_packed(buffer_op *b, uint64_t data, size_t length)
{
    send_gathered();
    b->what = op::kind::send;
    b->length = length;
    b->cq_data = data;
    // Nothing overtakes what was held, a batch before it.
    ssize_t ret = UCS_LIKELY(held_ops_.empty()) ? post_packed(b) : -FI_EAGAIN;
    if (UCS_UNLIKELY(ret != 0)) {
        if (ret != -FI_EAGAIN) {
            return post_failed(ret, b);
        }
        hold_packed(b, op::kind::send);
    }
    return static_cast<ssize_t>(length);
}

// A message of the core with what was gathered; dropped when the endpoint has gone.
void ep::post_gathered(buffer_op *b)
{
    if (UCS_UNLIKELY(!target || status() != UCS_OK)) {
        owner().put(b);
        return;
    }
    send_packed(b, am_batch, b->length);
}

void ep::hold_packed(buffer_op *b, op::kind what)
{
    // A program that was told that its message went may progress no more. The core moves on when
    // its queue is read, though nothing is taken out, and may have room then.
    constexpr unsigned tries = 16;
    bool first = held_ops_.empty();
    b->what = what;
    held_ops_.push_back(b);
    refused();
    for (unsigned i = 0; first && i < tries && owner().move_core(); ++i) {
        if (post_held()) {
            return;
        }
    }
    hold();
}

// 0: it has gone.
UCS_ALWAYS_INLINE ssize_t ep::post_packed(buffer_op *b)
{
    ssize_t ret;
    const limits &limit = owner().limit;
    if (b->length <= limit.inject && injected_ < limit.inject_run) {
        ret = fi_injectdata(target, b->data, b->length, b->cq_data, address);
        if (UCS_LIKELY(ret == 0)) {
            owner().put(b);
            ++injected_;
            ring();
        }
    } else if (UCS_UNLIKELY(limit.prefix != 0)) {
        ret = post_numbered(b);
    } else {
        ret = fi_senddata(target, b->data, b->length, b->desc, b->cq_data, address,
                          static_cast<fi_context2 *>(b));
        if (UCS_LIKELY(ret == 0)) {
            posted(b, op::kind::send, nullptr);
            b->copied = true;
            ++copies_;
            if (injected_ >= limit.inject_run) {
                b->mark = true;
                ++marks_;
                injected_ = 0;
            }
            ring();
        }
    }
    return ret;
}

bool ep::post_held()
{
    if (!target) {
        return false;
    }
    while (!held_ops_.empty()) {
        auto *b = static_cast<buffer_op *>(held_ops_.pop_front());
        ssize_t ret = b->what == op::kind::tag_send ? post_tagged(b)
                      : b->what == op::kind::put    ? post_put(b)
                                                    : post_packed(b);
        if (ret == -FI_EAGAIN) {
            held_ops_.push_front(b);
            refused();
            return false;
        }
        if (ret != 0) {
            post_failed(ret, b);
        }
    }
    return fenced_ == 0;
}

// The pieces of a message whose header is in the buffer. Where the core takes fewer, they are
// copied behind it: no message is larger than the buffer then.
size_t ep::fill_message(buffer_op *b, size_t header_length, const uct_iov_t *iov, size_t count)
{
    op_pieces &to = b->pieces;
    size_t prefix = owner().limit.prefix;
    size_t own = prefix + header_length > 0;
    if (own > 0) {
        to.iov[0] = {b->data - prefix, prefix + header_length};
        to.descs[0] = b->desc;
    }
    size_t n = own + fill_iov(iov, count, to.iov + own, to.descs + own);
    if (UCS_LIKELY(n <= owner().limit.max_iov)) {
        return n;
    }
    size_t length = header_length;
    for (size_t i = own; i < n; ++i) {
        copy_bytes(b->data + length, to.iov[i].iov_base, to.iov[i].iov_len);
        length += to.iov[i].iov_len;
    }
    to.iov[0] = {b->data - prefix, prefix + length};
    to.descs[0] = b->desc;
    return 1;
}

ucs_status_t ep::am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned,
                          uct_completion_t *completion)
{
    if (!ready()) {
        return not_ready();
    }
    const limits &limit = owner().limit;
    if (UCS_UNLIKELY(id >= UCT_AM_ID_MAX)) {
        return above_limit("uct_ep_am_zcopy: id", id, UCT_AM_ID_MAX - 1);
    }
    if (size_t pieces = piece_count(iov, count); UCS_UNLIKELY(pieces >= max_iov)) {
        return above_limit("uct_ep_am_zcopy: iovcnt (with the blocks of each entry)", pieces,
                           max_iov - 1);
    }
    if (UCS_UNLIKELY(header_length > limit.max_header)) {
        return above_limit("uct_ep_am_zcopy: header_length", header_length, limit.max_header);
    }
    if (UCS_UNLIKELY(header_length + iov_length(iov, count) > limit.segment)) {
        return above_limit("uct_ep_am_zcopy: length", header_length + iov_length(iov, count),
                           limit.segment);
    }
    if (UCS_UNLIKELY(send_gathered() && !ready())) {
        return not_ready();
    }
    buffer_op *b = owner().get_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    // The header is the caller's again when we return.
    copy_bytes(b->data, header, header_length);
    size_t pieces = fill_message(b, header_length, iov, count);
    if (UCS_UNLIKELY(limit.prefix != 0)) {
        ssize_t ret = post_numbered(b, pieces, id, completion);
        return UCS_LIKELY(ret == 0) ? UCS_INPROGRESS : post_failed(ret, b);
    }
    fi_msg message{.msg_iov = b->pieces.iov,
                   .desc = b->pieces.descs,
                   .iov_count = pieces,
                   .addr = address,
                   .context = static_cast<fi_context2 *>(b),
                   .data = id};
    ssize_t ret = fi_sendmsg(target, &message, FI_REMOTE_CQ_DATA | FI_COMPLETION);
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, b);
    }
    posted(b, op::kind::send, completion);
    ring();
    return UCS_INPROGRESS;
}

} // namespace uct::ofi
