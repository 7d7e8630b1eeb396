// SPDX-License-Identifier: BSD-3-Clause
// An endpoint over a core provider: where it sends (a core endpoint and an address in it) and what
// is in flight. The same class serves both kinds of interface; over connected endpoints the
// connection, shared by all endpoints to one peer, sets and clears the target.
#pragma once

#include "uct/iface.h"
#include "uct/ofi/doorbell.h"
#include "uct/ofi/iface.h"

#include <sys/uio.h>

namespace uct::ofi {

// UCT's pieces as the core's; empty ones are left out. Returns how many there are.
size_t fill_iov(const uct_iov_t *iov, size_t count, iovec *pieces, void **descs);
size_t total_length(const iovec *pieces, size_t count);

class connection;
struct peer;

class ep final : public uct::ep {
  public:
    explicit ep(ofi::iface &owner) : uct::ep(owner) {}

    // Active messages (am.cc).
    ucs_status_t am_short(uint8_t id, uint64_t header, const void *payload, unsigned length);
    ucs_status_t am_short_iov(uint8_t id, const uct_iov_t *iov, size_t count);
    ssize_t am_bcopy(uint8_t id, uct_pack_callback_t pack, void *arg, unsigned flags);
    ucs_status_t am_zcopy(uint8_t id, const void *header, unsigned header_length,
                          const uct_iov_t *iov, size_t count, unsigned flags,
                          uct_completion_t *completion);

    // Remote memory (rma.cc).
    ucs_status_t put_short(const void *buffer, unsigned length, uint64_t remote, uct_rkey_t key);
    ssize_t put_bcopy(uct_pack_callback_t pack, void *arg, uint64_t remote, uct_rkey_t key);
    ucs_status_t put_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion);
    ucs_status_t get_bcopy(uct_unpack_callback_t unpack, void *arg, size_t length, uint64_t remote,
                           uct_rkey_t key, uct_completion_t *completion);
    ucs_status_t get_zcopy(const uct_iov_t *iov, size_t count, uint64_t remote, uct_rkey_t key,
                           uct_completion_t *completion);

    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned flags);
    ucs_status_t check(unsigned flags, uct_completion_t *completion);
    void destroy();

    // Flush marks that nothing stands in front of any more.
    void take_marks(ucs::list<op, &op::link> &marks);
    // nullptr: none is in flight.
    op *oldest_rma();
    // Completes everything in flight; the core has no more use of it.
    void fail_operations(ucs_status_t status);
    // Ends everything for the user, though the core may not be done.
    void cancel();
    // Leaves the operations to themselves: they end without their endpoint.
    void orphan_operations();

    fid_ep *target = nullptr;
    fi_addr_t address = FI_ADDR_UNSPEC;
    void set_bell(remote_bell *bell) { bell_ = bell; }

    connection *conn = nullptr; // over connected endpoints
    peer *remote = nullptr;     // over connectionless ones
    ucs::list_node sibling;     // in the list of the connection's or peer's endpoints

  private:
    friend class ofi::iface;

    ofi::iface &owner() { return static_cast<ofi::iface &>(owner_); }
    bool post_held() override;

    UCS_NOINLINE ucs_status_t am_short_buffered(uint8_t id, uint64_t header, const void *payload,
                                                unsigned length);
    ucs_status_t post_failed(ssize_t ret);
    ucs_status_t post_failed(ssize_t ret, op *unused);
    void posted(op *o, op::kind what, uct_completion_t *completion);
    ssize_t send_packed(buffer_op *b, uint64_t data, size_t length);
    ucs_status_t write_buffer(buffer_op *b, size_t length, uint64_t remote, uct_rkey_t key);
    // After each post: the peer may sleep.
    UCS_ALWAYS_INLINE void ring()
    {
        if (bell_) {
            if (UCS_UNLIKELY(bell_->fence)) {
                std::atomic_thread_fence(std::memory_order_seq_cst);
            } else {
                std::atomic_signal_fence(std::memory_order_seq_cst);
            }
            if (UCS_UNLIKELY(bell_->word->load(std::memory_order_relaxed) != 0)) {
                bell_->ring();
            }
        }
    }

    remote_bell *bell_ = nullptr; // on-node
    ucs::list<op, &op::link> in_flight_;
    buffer_op *held_op_ = nullptr; // packed, and refused by the core for now
};

} // namespace uct::ofi
