// SPDX-License-Identifier: BSD-3-Clause
// Endpoints of `sm`. Messages go into the peer's inbox, in one order. Memory of ours is reached by
// loads and stores, other memory of the peer by cross-memory attach, and where the system forbids
// that, and for atomic operations, the peer does the work (remote_op.h).
#pragma once

#include "uct/base/iface.h"
#include "uct/sm/copy.h"
#include "uct/sm/inbox.h"
#include "uct/sm/md.h"
#include "uct/sm/remote_op.h"

namespace uct::sm {

class iface;
struct peer;

class ep final : public uct::ep {
  public:
    explicit ep(sm::iface &home);

    ucs_status_t am_short(uint8_t id, uint64_t header, const void *payload, unsigned length);
    ucs_status_t am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count);
    ssize_t am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags);
    ucs_status_t am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned flags,
                          uct_completion_t *completion);
    ucs_status_t put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t key);
    ssize_t put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t key);
    ucs_status_t put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion);
    ucs_status_t get_short(void *buffer, unsigned length, uint64_t remote, uct_rkey_t key);
    ucs_status_t get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t key, uct_completion_t *completion);
    ucs_status_t get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion);
    ucs_status_t atomic32_post(unsigned op, uint32_t value, uint64_t remote, uct_rkey_t key);
    ucs_status_t atomic64_post(unsigned op, uint64_t value, uint64_t remote, uct_rkey_t key);
    ucs_status_t atomic32_fetch(unsigned op, uint32_t value, uint32_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion);
    ucs_status_t atomic64_fetch(unsigned op, uint64_t value, uint64_t *result, uint64_t remote,
                                uct_rkey_t key, uct_completion_t *completion);
    ucs_status_t atomic_cswap32(uint32_t compare, uint32_t swap, uint64_t remote, uct_rkey_t key,
                                uint32_t *result, uct_completion_t *completion);
    ucs_status_t atomic_cswap64(uint64_t compare, uint64_t swap, uint64_t remote, uct_rkey_t key,
                                uint64_t *result, uct_completion_t *completion);
    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned flags);
    ucs_status_t check(unsigned flags, uct_completion_t *completion);
    ucs_status_t get_address(uct_ep_addr_t *address);
    ucs_status_t connect_to_ep(const uct_device_addr_t *device, const uct_ep_addr_t *address);
    void destroy();

    void attach(peer &to);
    // From progress: the peer is gone. The caller reports it, unless that destroyed the endpoint.
    void fail(ucs_status_t status);
    // One of its operations has left the list.
    void operation_ended();

    ucs::list_node sibling; // in the peer's list, until it fails

  private:
    ~ep() = default;

    sm::iface &home() const;
    bool can_copy(); // by cross-memory attach
    ucs_status_t after_copy(copied result);
    ucs_status_t put_packed(const char *data, size_t length, uint64_t remote, uct_rkey_t key);
    ucs_status_t ask(work what, const iovec &local, uint64_t remote, uct_rkey_t key,
                     uct_completion_t *completion, remote_op **op_p);
    ucs_status_t move(work what, const uct_iov_t *iov, size_t count, uint64_t remote,
                      uct_rkey_t key, uct_completion_t *completion);
    template <class T>
    ucs_status_t atomic(const atomic_args &args, uint64_t remote, uct_rkey_t key, T *result,
                        uct_completion_t *completion);

    peer *peer_ = nullptr;
    outbox *box_ = nullptr;                      // the peer's
    ucs::list<remote_op, &remote_op::link> ops_; // in the order of posting
    bool fenced_ = false;                        // suspended until ops_ is empty

    friend class remote_ops;
};

} // namespace uct::sm
