// SPDX-License-Identifier: BSD-3-Clause
// Put and get. Memory that is mapped here is reached by loads and stores. The completion of a put
// means that it is done at the target, so that a flush has only to wait for completions.
#include "uct/ofi/core/ep.h"

#include <cstring>
#include <rdma/fi_rma.h>

namespace uct::ofi {

namespace {

bool is_key(uct_rkey_t key)
{
    return key != 0 && key != UCT_INVALID_RKEY;
}

} // namespace

ucs_status_t ep::put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t key)
{
    if (UCS_UNLIKELY(length == 0)) {
        return status();
    }
    if (UCS_UNLIKELY(fenced_)) {
        return no_resource();
    }
    if (char *to = here(key, remote, length)) {
        copy_bytes(to, buffer, length);
        return UCS_OK;
    }
    fi_addr_t to_memory;
    ucs_status_t status =
        reach(key, &to_memory, length, owner().limit.max_short, "uct_ep_put_short: length");
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    if (length <= owner().limit.put_inject) {
        ssize_t ret = fi_inject_write(target, buffer, length, to_memory,
                                      remote - rkey::of(key)->offset, rkey::of(key)->key);
        if (UCS_UNLIKELY(ret != 0)) {
            return post_failed(ret);
        }
        ring();
        return UCS_OK;
    }
    buffer_op *b = owner().get_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    copy_bytes(b->data, buffer, length);
    return write_buffer(b, length, to_memory, remote, key);
}

ssize_t ep::put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t key)
{
    if (UCS_UNLIKELY(fenced_)) {
        return no_resource();
    }
    bool has_key = is_key(key); // what has no length needs none
    if (char *to = has_key ? here(key, remote, owner().limit.segment) : nullptr) {
        return static_cast<ssize_t>(pack(to, arg));
    }
    if (!ready()) {
        return not_ready();
    }
    fi_addr_t to_memory = address;
    if (UCS_UNLIKELY(has_key && !find_memory(key, &to_memory))) {
        return UCS_ERR_UNREACHABLE;
    }
    buffer_op *b = owner().get_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    size_t length = pack(b->data, arg);
    if (UCS_UNLIKELY(length == 0 || !has_key)) {
        owner().put(b);
        return length == 0 ? 0 : static_cast<ssize_t>(UCS_ERR_INVALID_PARAM);
    }
    if (char *to = here(key, remote, length)) { // near the end of what is mapped
        copy_bytes(to, b->data, length);
        owner().put(b);
        return static_cast<ssize_t>(length);
    }
    aim(b, length, to_memory, remote, key);
    ssize_t ret = post_put(b);
    if (UCS_UNLIKELY(ret == -FI_EAGAIN)) {
        hold_packed(b, op::kind::put);
    } else if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, b);
    }
    return static_cast<ssize_t>(length);
}

void ep::aim(buffer_op *b, size_t length, fi_addr_t to, uint64_t remote, uct_rkey_t key)
{
    b->length = length;
    b->target = {to, remote - rkey::of(key)->offset, rkey::of(key)->key};
}

ucs_status_t ep::write_buffer(buffer_op *b, size_t length, fi_addr_t to, uint64_t remote,
                              uct_rkey_t key)
{
    aim(b, length, to, remote, key);
    ssize_t ret = post_put(b);
    return UCS_LIKELY(ret == 0) ? UCS_OK : post_failed(ret, b);
}

// 0: it has gone.
ssize_t ep::post_put(buffer_op *b)
{
    b->pieces.iov[0] = {b->data, b->length};
    fi_rma_iov where{b->target.address, b->length, b->target.key};
    fi_msg_rma message{.msg_iov = b->pieces.iov,
                       .desc = &b->desc,
                       .iov_count = 1,
                       .addr = b->target.to,
                       .rma_iov = &where,
                       .rma_iov_count = 1,
                       .context = static_cast<fi_context2 *>(b)};
    ssize_t ret = fi_writemsg(target, &message, owner().limit.put_flags | FI_COMPLETION);
    if (UCS_LIKELY(ret == 0)) {
        posted(b, op::kind::put, nullptr);
        ring();
    }
    return ret;
}

ucs_status_t ep::put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion)
{
    size_t whole = iov_length(iov, count);
    if (UCS_UNLIKELY(whole == 0)) {
        return status();
    }
    if (UCS_UNLIKELY(fenced_)) {
        return no_resource();
    }
    if (char *to = here(key, remote, whole)) {
        gather(to, iov, count);
        return UCS_OK;
    }
    fi_addr_t to_memory;
    ucs_status_t status = reach(key, &to_memory, piece_count(iov, count), owner().limit.max_iov,
                                "uct_ep_put_zcopy: iovcnt (with the blocks of each entry)");
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    zcopy_op *o = owner().get_zcopy();
    if (UCS_UNLIKELY(!o)) {
        return no_resource();
    }
    size_t n = fill_iov(iov, count, o->pieces.iov, o->pieces.descs);
    fi_rma_iov where{remote - rkey::of(key)->offset, whole, rkey::of(key)->key};
    fi_msg_rma message{.msg_iov = o->pieces.iov,
                       .desc = o->pieces.descs,
                       .iov_count = n,
                       .addr = to_memory,
                       .rma_iov = &where,
                       .rma_iov_count = 1,
                       .context = static_cast<fi_context2 *>(o)};
    ssize_t ret = fi_writemsg(target, &message, owner().limit.put_flags | FI_COMPLETION);
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, o);
    }
    posted(o, op::kind::put, completion);
    ring();
    return UCS_INPROGRESS;
}

ucs_status_t ep::get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t key)
{
    if (UCS_UNLIKELY(!owner().limit.immediate_rma)) {
        return UCS_ERR_UNSUPPORTED;
    }
    if (UCS_UNLIKELY(length == 0)) {
        return status();
    }
    if (UCS_UNLIKELY(fenced_)) {
        return no_resource();
    }
    if (const char *from = here(key, remote, length)) {
        copy_bytes(buffer, from, length);
        return UCS_OK;
    }
    fi_addr_t from_memory;
    ucs_status_t status =
        reach(key, &from_memory, length, owner().limit.max_short, "uct_ep_get_short: length");
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    op *o = owner().get_op();
    if (UCS_UNLIKELY(!o)) {
        return no_resource();
    }
    ssize_t ret =
        fi_read(target, buffer, length, nullptr, from_memory, remote - rkey::of(key)->offset,
                rkey::of(key)->key, static_cast<fi_context2 *>(o));
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, o);
    }
    posted(o, op::kind::get, nullptr);
    ring();
    return UCS_OK;
}

ucs_status_t ep::get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t key, uct_completion_t *completion)
{
    if (UCS_UNLIKELY(length == 0)) {
        return status();
    }
    if (UCS_UNLIKELY(fenced_)) {
        return no_resource();
    }
    if (char *from = here(key, remote, length)) {
        unpack(arg, from, length);
        return UCS_OK;
    }
    fi_addr_t from_memory;
    ucs_status_t status =
        reach(key, &from_memory, length, owner().limit.segment, "uct_ep_get_bcopy: length");
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    buffer_op *b = owner().get_buffer();
    if (UCS_UNLIKELY(!b)) {
        return no_buffer();
    }
    b->unpack = unpack;
    b->arg = arg;
    b->length = length;
    ssize_t ret =
        fi_read(target, b->data, length, b->desc, from_memory, remote - rkey::of(key)->offset,
                rkey::of(key)->key, static_cast<fi_context2 *>(b));
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, b);
    }
    posted(b, op::kind::get_bcopy, completion);
    ring();
    return UCS_INPROGRESS;
}

ucs_status_t ep::get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion)
{
    size_t whole = iov_length(iov, count);
    if (UCS_UNLIKELY(whole == 0)) {
        return status();
    }
    if (UCS_UNLIKELY(fenced_)) {
        return no_resource();
    }
    if (char *from = here(key, remote, whole)) {
        scatter(iov, count, from);
        return UCS_OK;
    }
    fi_addr_t from_memory;
    ucs_status_t status = reach(key, &from_memory, piece_count(iov, count), owner().limit.max_iov,
                                "uct_ep_get_zcopy: iovcnt (with the blocks of each entry)");
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return status;
    }
    zcopy_op *o = owner().get_zcopy();
    if (UCS_UNLIKELY(!o)) {
        return no_resource();
    }
    size_t n = fill_iov(iov, count, o->pieces.iov, o->pieces.descs);
    ssize_t ret =
        fi_readv(target, o->pieces.iov, o->pieces.descs, n, from_memory,
                 remote - rkey::of(key)->offset, rkey::of(key)->key, static_cast<fi_context2 *>(o));
    if (UCS_UNLIKELY(ret != 0)) {
        return post_failed(ret, o);
    }
    posted(o, op::kind::get, completion);
    ring();
    return UCS_INPROGRESS;
}

} // namespace uct::ofi
