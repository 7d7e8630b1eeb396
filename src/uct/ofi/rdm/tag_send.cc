// SPDX-License-Identifier: BSD-3-Clause
// Tagged messages to an endpoint; see tag.h.
#include "uct/ofi/core/ep.h"
#include "uct/ofi/rdm/tag.h"

#include <cstring>
#include <rdma/fi_tagged.h>

namespace uct::ofi {

namespace {

void write_prefix(char *to, uct_tag_t tag, uint64_t imm, size_t length)
{
    tag_prefix prefix{.kind = tag_eager,
                      .reserved = {},
                      .length = static_cast<uint32_t>(length),
                      .imm = imm,
                      .tag = tag};
    memcpy(to, &prefix, sizeof(prefix));
}

} // namespace

ucs_status_t ep::tag_eager_short(uct_tag_t tag, const void *data, size_t length)
{
    const limits &limit = owner().limit;
    if (UCS_UNLIKELY(!limit.tagged)) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(length > limit.on_stack - sizeof(tag_prefix))) {
        return above_limit("uct_ep_tag_eager_short: length", length,
                           limit.on_stack - sizeof(tag_prefix));
    }
    alignas(16) char message[short_limit];
    write_prefix(message, tag, 0, length);
    copy_bytes(message + sizeof(tag_prefix), data, length);
    ssize_t ret = fi_tinject(target, message, sizeof(tag_prefix) + length, address, tag);
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret);
    }
    ring();
    return UCS_OK;
}

ssize_t ep::tag_eager_bcopy(uct_tag_t tag, uint64_t imm, uct_pack_callback_t pack, void *arg,
                            unsigned)
{
    if (UCS_UNLIKELY(!owner().limit.tagged)) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (!ready()) {
        return not_ready();
    }
    buffer_op *b = owner().get_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    size_t length = pack(b->data + sizeof(tag_prefix), arg);
    write_prefix(b->data, tag, imm, length);
    b->length = sizeof(tag_prefix) + length;
    b->cq_data = tag;
    ssize_t ret = post_tagged(b);
    if (UCS_LIKELY(ret == 0)) {
    } else if (ret != -FI_EAGAIN) {
        return post_failed(ret, b);
    } else {
        hold_packed(b, op::kind::tag_send);
    }
    return static_cast<ssize_t>(length);
}

ssize_t ep::post_tagged(buffer_op *b)
{
    ssize_t ret = fi_tsend(target, b->data, b->length, b->desc, address, b->cq_data,
                           static_cast<fi_context2 *>(b));
    if (UCS_LIKELY(ret == 0)) {
        posted(b, op::kind::send, nullptr);
        ring();
    }
    return ret;
}

ucs_status_t ep::tag_eager_zcopy(uct_tag_t tag, uint64_t imm, const uct_iov_t *iov, size_t count,
                                 unsigned, uct_completion_t *completion)
{
    const limits &limit = owner().limit;
    if (UCS_UNLIKELY(!limit.tagged)) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (!ready()) {
        return not_ready();
    }
    if (size_t most = limit.max_iov - 1, given = piece_count(iov, count);
        UCS_UNLIKELY(given > most)) {
        return above_limit("uct_ep_tag_eager_zcopy: iovcnt (with the blocks of each entry)", given,
                           most);
    }
    size_t length = iov_length(iov, count);
    if (UCS_UNLIKELY(length > limit.segment - sizeof(tag_prefix))) {
        return above_limit("uct_ep_tag_eager_zcopy: length", length,
                           limit.segment - sizeof(tag_prefix));
    }
    buffer_op *b = owner().get_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    write_prefix(b->data, tag, imm, length);
    auto &[pieces, descs] = b->pieces;
    pieces[0] = {b->data, sizeof(tag_prefix)};
    descs[0] = b->desc;
    size_t n = 1 + fill_iov(iov, count, pieces + 1, descs + 1);
    fi_msg_tagged message{.msg_iov = pieces,
                          .desc = descs,
                          .iov_count = n,
                          .addr = address,
                          .tag = tag,
                          .ignore = 0,
                          .context = static_cast<fi_context2 *>(b),
                          .data = 0};
    ssize_t ret = fi_tsendmsg(target, &message, FI_COMPLETION);
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, b);
    }
    posted(b, op::kind::send, completion);
    ring();
    return UCS_INPROGRESS;
}

} // namespace uct::ofi
