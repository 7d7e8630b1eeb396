// SPDX-License-Identifier: BSD-3-Clause
// Posted tagged receives, and the messages that match none; see tag.h.
#include "uct/ofi/core/ep.h"
#include "uct/ofi/rdm/tag.h"

#include <algorithm>
#include <cstring>
#include <rdma/fi_tagged.h>
#include <utility>

namespace uct::ofi {

tag_receives::tag_receives(ofi::iface &home, fid_ep *where, const uct_iface_params_t &params)
    : home_(home), where_(where),
      eager_cb_(params.field_mask & UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB ? params.eager_cb
                                                                         : nullptr),
      eager_arg_(params.field_mask & UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_ARG ? params.eager_arg
                                                                           : nullptr),
      ops_({.object_size = sizeof(tag_receive_op),
            .chunk = 64,
            .arg = &home,
            .object_init =
                [](void *, void *object) {
                    auto *r = static_cast<tag_receive_op *>(object);
                    r->what = op::kind::tag_receive;
                    r->has_buffer = false;
                    r->owner = nullptr;
                    r->op::link = {};
                    r->link = {};
                },
            .chunk_alloc =
                [](void *arg, size_t size, size_t align, void **cookie) {
                    return alloc_registered(&static_cast<ofi::iface *>(arg)->domain, size, align,
                                            cookie);
                },
            .chunk_free = free_registered,
            .object_cookie =
                [](void *, void *object, void *cookie) {
                    static_cast<tag_receive_op *>(object)->desc =
                        cookie ? static_cast<memory *>(cookie)->desc : nullptr;
                }})
{
}

ucs_status_t tag_receives::post(uct_tag_t tag, uct_tag_t mask, const uct_iov_t *iov, size_t count,
                                uct_tag_context_t *context)
{
    size_t most = home_.limit.max_iov - tag_own_pieces;
    if (size_t given = piece_count(iov, count); UCS_UNLIKELY(given > most)) {
        return above_limit("uct_iface_tag_recv_zcopy: iovcnt (with the blocks of each entry)",
                           given, most);
    }
    if (UCS_UNLIKELY(!spill_ && !(spill_ = home_.get_receive()))) {
        return UCS_ERR_NO_MEMORY;
    }
    if (UCS_UNLIKELY(outstanding_ == max_outstanding)) {
        return UCS_ERR_EXCEEDS_LIMIT;
    }
    idle_rounds_ = 0;
    if (UCS_UNLIKELY(catch_all_ != catch_all_state::none)) {
        if (catch_all_ == catch_all_state::posted) {
            catch_all_ = catch_all_state::cancelled;
            fi_cancel(&where_->fid, static_cast<fi_context2 *>(catch_all_op_));
        }
        return UCS_ERR_NO_RESOURCE;
    }
    auto *r = static_cast<tag_receive_op *>(ops_.get());
    if (UCS_UNLIKELY(!r)) {
        return UCS_ERR_NO_MEMORY;
    }
    auto &[pieces, descs] = r->pieces;
    pieces[0] = {&r->prefix, sizeof(r->prefix)};
    descs[0] = r->desc;
    size_t n = 1 + fill_iov(iov, count, pieces + 1, descs + 1);
    r->room = total_length(pieces + 1, n - 1);
    pieces[n] = {spill_->payload, home_.limit.segment};
    descs[n++] = spill_->desc;
    fi_msg_tagged message{.msg_iov = pieces,
                          .desc = descs,
                          .iov_count = n,
                          .addr = FI_ADDR_UNSPEC,
                          .tag = tag & mask,
                          .ignore = ~mask,
                          .context = static_cast<fi_context2 *>(r),
                          .data = 0};
    r->context = context;
    ssize_t ret = fi_trecvmsg(where_, &message, FI_COMPLETION);
    if (UCS_UNLIKELY(ret != 0)) {
        ops_.put(r);
        return ret == -FI_EAGAIN ? UCS_ERR_NO_RESOURCE : UCS_ERR_EXCEEDS_LIMIT;
    }
    posted_.push_back(r);
    ++outstanding_;
    return UCS_OK;
}

ucs_status_t tag_receives::cancel(uct_tag_context_t *context, bool force)
{
    for (tag_receive_op *r : posted_) {
        if (r->context == context) {
            if (force) {
                r->context = nullptr;
            }
            fi_cancel(&where_->fid, static_cast<fi_context2 *>(r));
            return UCS_OK;
        }
    }
    ucs_error("uct_iface_tag_recv_cancel: ctx %p is not of a posted receive",
              static_cast<void *>(context));
    return UCS_ERR_INVALID_PARAM;
}

void tag_receives::post_catch_all()
{
    receive_op *r = home_.get_receive();
    if (!r) {
        return;
    }
    // The prefix goes before the payload, so that that stands where the user expects it.
    ssize_t ret =
        fi_trecv(where_, r->payload - sizeof(tag_prefix), sizeof(tag_prefix) + home_.limit.segment,
                 r->desc, FI_ADDR_UNSPEC, 0, ~uint64_t(0), static_cast<fi_context2 *>(r));
    if (ret != 0) {
        home_.put_receive(r);
        return;
    }
    r->what = op::kind::tag_catch_all;
    catch_all_op_ = r;
    catch_all_ = catch_all_state::posted;
}

void tag_receives::ended(tag_receive_op *r, ucs_status_t status)
{
    r->link.unlink();
    --outstanding_;
    uct_tag_context_t *context = r->context;
    tag_prefix prefix = r->prefix;
    size_t room = r->room;
    ops_.put(r);
    if (!context) {
        return;
    }
    if (status != UCS_OK) {
        context->completed_cb(context, 0, 0, 0, nullptr, status);
        return;
    }
    context->tag_consumed_cb(context);
    bool fits = prefix.length <= room;
    context->completed_cb(context, prefix.tag, prefix.imm, fits ? prefix.length : room, nullptr,
                          fits ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED);
}

void tag_receives::ended(receive_op *r, ucs_status_t status)
{
    catch_all_ = catch_all_state::none;
    catch_all_op_ = nullptr;
    tag_prefix prefix;
    memcpy(&prefix, r->payload - sizeof(prefix), sizeof(prefix));
    home_.init_receive(r); // what the prefix has overwritten
    if (status != UCS_OK) {
        home_.put_receive(r);
        return;
    }
    idle_rounds_ = rounds_before_catch_all; // where one was, more may be
    unexpected(r, prefix);
}

void tag_receives::unexpected(receive_op *r, const tag_prefix &prefix)
{
    if (!eager_cb_) {
        ucs_warn("tagged message of %u bytes dropped: no eager_cb was given", prefix.length);
        home_.put_receive(r);
        return;
    }
    if (UCS_UNLIKELY(prefix.length > home_.limit.segment)) {
        ucs_warn("tagged message dropped: it says %u bytes, a buffer has %zu", prefix.length,
                 home_.limit.segment);
        home_.put_receive(r);
        return;
    }
    void *context = nullptr;
    ucs_status_t kept = eager_cb_(eager_arg_, r->payload, prefix.length,
                                  UCT_CB_PARAM_FLAG_DESC | UCT_CB_PARAM_FLAG_FIRST, prefix.tag,
                                  prefix.imm, &context);
    if (kept == UCS_INPROGRESS) {
        r->user = nullptr;
    } else {
        home_.put_receive(r);
    }
}

} // namespace uct::ofi
