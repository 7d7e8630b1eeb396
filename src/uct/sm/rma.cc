// SPDX-License-Identifier: BSD-3-Clause
// Put, get and atomic operations: by loads and stores, by cross-memory attach, or by asking.
#include "uct/base/atomic.h"
#include "uct/sm/ep.h"
#include "uct/sm/iface.h"

#include <cstring>

namespace uct::sm {

// The first use finds out whether the system allows it.
bool ep::can_copy()
{
    if (UCS_UNLIKELY(peer_->access == memory_access::unknown)) {
        copied result = probe(peer_->about);
        if (result == copied::gone) {
            home().suspect(*peer_);
        }
        peer_->access =
            result == copied::forbidden ? memory_access::forbidden : memory_access::allowed;
    }
    return peer_->access == memory_access::allowed;
}

ucs_status_t ep::after_copy(copied result)
{
    switch (result) {
    case copied::done:
        return UCS_OK;
    case copied::fault:
        return UCS_ERR_INVALID_ADDR;
    case copied::forbidden: // since the last time
        peer_->access = memory_access::forbidden;
        return no_resource();
    default:
        home().suspect(*peer_);
        return no_resource();
    }
}

// One message. local: of a put it is sent, of a get it is where the answer goes.
ucs_status_t ep::ask(work what, const iovec &local, uint64_t remote, uct_rkey_t key,
                     uct_completion_t *completion, remote_op **op_p)
{
    remote_op *op = home().operations.get(what, this, peer_, completion);
    if (!op) {
        return no_resource();
    }
    op->key = rkey::of(key)->key;
    op->remote = remote;
    op->length = local.iov_len;
    op->pieces[0] = local;
    op->piece_count = 1;
    *op_p = op;
    return UCS_OK;
}

ucs_status_t ep::put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t key)
{
    if (!ready()) {
        return not_ready();
    }
    if (length == 0) {
        return UCS_OK;
    }
    if (char *to = rkey::of(key)->mapped(remote, length)) {
        copy_bytes(to, buffer, length);
        return UCS_OK;
    }
    if (UCS_UNLIKELY(length > part_size)) {
        return above_limit("uct_ep_put_short: length", length, part_size);
    }
    if (can_copy()) {
        return after_copy(write_to(peer_->about, buffer, remote, length));
    }
    remote_op *op;
    ucs_status_t status =
        ask(work::put, {const_cast<void *>(buffer), length}, remote, key, nullptr, &op);
    return status != UCS_OK ? status : home().operations.send_whole(op) ? UCS_OK : no_resource();
}

// What was packed must not be packed again: no room is no answer here, if it can be helped.
ucs_status_t ep::put_packed(const char *data, size_t length, uint64_t remote, uct_rkey_t key)
{
    auto put = [&] { return put_short(data, static_cast<unsigned>(length), remote, key); };
    ucs_status_t status = put();
    if (UCS_UNLIKELY(status == UCS_ERR_NO_RESOURCE)) {
        // The peer has gone, or the system has come to forbid the copy: then the peer is asked.
        status = peer_->access == memory_access::forbidden ? put() : UCS_ERR_CONNECTION_RESET;
    }
    return status;
}

ssize_t ep::put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t key)
{
    if (!ready()) {
        return not_ready();
    }
    bool has_key = key != 0 && key != UCT_INVALID_RKEY; // what has no length needs none
    if (char *to = has_key ? rkey::of(key)->mapped(remote, part_size) : nullptr) {
        return static_cast<ssize_t>(pack(to, arg));
    }
    if (has_key && !rkey::of(key)->local && !can_copy()) {
        remote_op *op;
        ucs_status_t status = ask(work::put, {nullptr, part_size}, remote, key, nullptr, &op);
        return status == UCS_OK ? home().operations.send_packed(op, pack, arg)
                                : static_cast<ssize_t>(status);
    }
    char data[part_size];
    size_t length = pack(data, arg);
    if (UCS_UNLIKELY(!has_key && length > 0)) {
        return UCS_ERR_INVALID_PARAM;
    }
    ucs_status_t status = put_packed(data, length, remote, key);
    return status == UCS_OK ? static_cast<ssize_t>(length) : static_cast<ssize_t>(status);
}

ucs_status_t ep::put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion)
{
    return move(work::put, iov, count, remote, key, completion);
}

ucs_status_t ep::get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion)
{
    return move(work::get, iov, count, remote, key, completion);
}

ucs_status_t ep::move(work what, const uct_iov_t *iov, size_t count, uint64_t remote,
                      uct_rkey_t key, uct_completion_t *completion)
{
    bool put = what == work::put;
    if (!ready()) {
        return not_ready();
    }
    size_t length = iov_length(iov, count);
    if (length == 0) {
        return UCS_OK;
    }
    if (char *at = rkey::of(key)->mapped(remote, length)) {
        if (put) {
            gather(at, iov, count);
        } else {
            scatter(iov, count, at);
        }
        return UCS_OK;
    }
    size_t pieces = piece_count(iov, count);
    if (UCS_UNLIKELY(pieces > max_pieces)) {
        return above_limit(
            "uct_ep_put_zcopy or uct_ep_get_zcopy: iovcnt (with the blocks of each entry)", pieces,
            max_pieces);
    }
    if (can_copy()) {
        copied result = copied::done;
        for_each_piece(iov, count, [&](char *local, size_t n, const uct_iov_t &) {
            result = put ? write_to(peer_->about, local, remote, n)
                         : read_from(peer_->about, local, remote, n);
            remote += n;
            return result == copied::done;
        });
        return after_copy(result);
    }
    remote_op *op;
    ucs_status_t status = ask(what, {nullptr, length}, remote, key, completion, &op);
    if (status != UCS_OK) {
        return status;
    }
    op->piece_count = 0;
    for_each_piece(iov, count, [&](char *local, size_t n, const uct_iov_t &) {
        op->pieces[op->piece_count++] = {local, n};
        return true;
    });
    home().operations.send(op);
    return UCS_INPROGRESS;
}

ucs_status_t ep::get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t key)
{
    if (!ready()) {
        return not_ready();
    }
    if (length == 0) {
        return UCS_OK;
    }
    if (const char *from = rkey::of(key)->mapped(remote, length)) {
        copy_bytes(buffer, from, length);
        return UCS_OK;
    }
    if (UCS_UNLIKELY(length > part_size)) {
        return above_limit("uct_ep_get_short: length", length, part_size);
    }
    if (can_copy()) {
        return after_copy(read_from(peer_->about, buffer, remote, length));
    }
    remote_op *op;
    ucs_status_t status = ask(work::get, {buffer, length}, remote, key, nullptr, &op);
    return status != UCS_OK ? status : home().operations.send_whole(op) ? UCS_OK : no_resource();
}

ucs_status_t ep::get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t key, uct_completion_t *completion)
{
    if (!ready()) {
        return not_ready();
    }
    if (length == 0) {
        unpack(arg, nullptr, 0);
        return UCS_OK;
    }
    if (char *from = rkey::of(key)->mapped(remote, length)) {
        unpack(arg, from, length);
        return UCS_OK;
    }
    if (UCS_UNLIKELY(length > part_size)) {
        return above_limit("uct_ep_get_bcopy: length", length, part_size);
    }
    if (can_copy()) {
        char data[part_size];
        ucs_status_t status = after_copy(read_from(peer_->about, data, remote, length));
        if (status == UCS_OK) {
            unpack(arg, data, length);
        }
        return status;
    }
    remote_op *op;
    ucs_status_t status = ask(work::get, {nullptr, length}, remote, key, completion, &op);
    if (status != UCS_OK) {
        return status;
    }
    op->unpack = unpack;
    op->unpack_arg = arg;
    return home().operations.send_whole(op) ? UCS_INPROGRESS : no_resource();
}

// ---- Atomic operations. The peer's own processor does those on memory that is not mapped here, so
// that all of them are atomic with each other.

template <class T>
ucs_status_t ep::atomic(const atomic_args &args, uint64_t remote, uct_rkey_t key, T *result,
                        uct_completion_t *completion)
{
    if (!ready()) {
        return not_ready();
    }
    if (UCS_UNLIKELY(!atomic_aligned<T>(remote))) {
        return misaligned_atomic(remote, sizeof(T));
    }
    bool known = args.op < 64 && (cpu_atomic_fetch >> args.op & 1);
    if (UCS_UNLIKELY(!known || (!result && !(cpu_atomic_post >> args.op & 1)))) {
        return UCS_ERR_UNSUPPORTED; // a swap without its result is a put
    }
    if (char *at = rkey::of(key)->mapped(remote, sizeof(T))) {
        auto *target = reinterpret_cast<T *>(at);
        return args.op == UCT_ATOMIC_OP_CSWAP
                   ? cpu_compare_swap(static_cast<T>(args.compare), static_cast<T>(args.value),
                                      target, result)
                   : cpu_atomic(args.op, static_cast<T>(args.value), target, result);
    }
    remote_op *op;
    ucs_status_t status = ask(work::atomic, {nullptr, sizeof(T)}, remote, key, completion, &op);
    if (status != UCS_OK) {
        return status;
    }
    op->args = args;
    op->result = result;
    if (!home().operations.send_whole(op)) {
        return no_resource();
    }
    return result ? UCS_INPROGRESS : UCS_OK;
}

namespace {

template <class T>
atomic_args args_of(unsigned op, T value)
{
    return {value, 0, static_cast<uint8_t>(op), sizeof(T)};
}

template <class T>
atomic_args swap_args(T compare, T swap)
{
    return {swap, compare, UCT_ATOMIC_OP_CSWAP, sizeof(T)};
}

} // namespace

ucs_status_t ep::atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t key)
{
    return atomic<uint32_t>(args_of(op, value), remote, key, nullptr, nullptr);
}

ucs_status_t ep::atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t key)
{
    return atomic<uint64_t>(args_of(op, value), remote, key, nullptr, nullptr);
}

ucs_status_t ep::atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion)
{
    return atomic<uint32_t>(args_of(op, value), remote, key, result, completion);
}

ucs_status_t ep::atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion)
{
    return atomic<uint64_t>(args_of(op, value), remote, key, result, completion);
}

ucs_status_t ep::atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t key,
                                uint32_t *result, uct_completion_t *completion)
{
    return atomic<uint32_t>(swap_args(compare, swap), remote, key, result, completion);
}

ucs_status_t ep::atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t key,
                                uint64_t *result, uct_completion_t *completion)
{
    return atomic<uint64_t>(swap_args(compare, swap), remote, key, result, completion);
}

} // namespace uct::sm
