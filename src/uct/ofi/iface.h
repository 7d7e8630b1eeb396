// SPDX-License-Identifier: BSD-3-Clause
// What interfaces over connectionless and over connected endpoints share: the completion queue, the
// pools, the posted receives. One completion queue carries sends and receives, except over verbs.
#pragma once

#include "ucs/mpool.h"
#include "uct/iface.h"
#include "uct/ofi/fid.h"
#include "uct/ofi/md.h"
#include "uct/ofi/op.h"

namespace uct::ofi {

// An active message travels as the bytes the handler gets; its id is in the low bits of the
// completion data that the core carries along. The bits above are 0.
constexpr uint64_t am_id_mask = UCT_AM_ID_MAX - 1;

// Set at open, read by every operation.
struct limits {
    size_t inject;     // largest message the core copies at once
    size_t segment;    // largest active message; the size of every buffer
    size_t max_short;  // largest am_short and put_short
    size_t max_header; // of am_zcopy
    size_t on_stack;   // largest am_short that goes without a pool buffer
    size_t max_iov;
    uint64_t put_flags; // what makes the completion of a write mean that it is done at the target
    bool rma;
    bool immediate_rma; // a write is done when it was posted
};

constexpr size_t max_iov = 4;        // pieces of one operation
constexpr size_t short_limit = 1024; // of max_short: beyond, a pool buffer costs no more

class iface : public uct::iface {
  public:
    iface(const uct_iface_ops_t &table, uct_worker &worker, ofi::md &domain,
          const uct_iface_params_t &params, const uct_iface_config &config);

    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned) { return UCS_OK; }

    op *get_op() { return static_cast<op *>(ops_.get()); }
    buffer_op *get_buffer() { return static_cast<buffer_op *>(buffers_.get()); }
    void put(op *o) { (o->has_buffer ? buffers_ : ops_).put(o); }

    // Reads what the completion queue has, up to one batch, and runs handlers and completions.
    unsigned poll_cq() { return poll_cq(cq_.get()) + (tx_cq_ ? poll_cq(tx_cq_.get()) : 0); }
    // Until it is empty. Used before an endpoint is declared dead.
    void drain_cq();

    // Ends an operation: takes it out of its endpoint's list, completes it, puts it back.
    void finish(op *o, ucs_status_t status);

    // An endpoint is dead: everything in flight ends with status, then the user is told. Only from
    // progress. The callbacks may destroy the endpoint.
    void fail(ep *victim, ucs_status_t status);

    ofi::md &domain;
    limits limit;
    const unsigned tx_queue_len; // asked for; 0: the core's own
    const unsigned max_num_eps;  // asked for; 0: the core's own

  protected:
    virtual ~iface();

    // size: wanted; a device may have room for less.
    fid_ptr<fid_cq> open_cq(size_t size);
    // Where receives are posted: the endpoint, or the shared receive context.
    void post_receives(fid_ep *where, unsigned count);
    void fill_attr(uct_iface_attr_t *attr) const;
    bool has_outstanding() const { return outstanding_ > 0; }

    // An operation failed at the core: the transport decides what it means for the endpoint.
    virtual void on_error(op *o, ucs_status_t status) = 0;

    fid_ptr<fid_cq> cq_;
    // Of sends alone, where queues really overrun (verbs). The core counts sends against the size
    // of their queue, but not what the shared receives may add; those have theirs of their own
    // number.
    fid_ptr<fid_cq> tx_cq_;
    fid_ep *rx_ = nullptr;
    bool closing_ = false;

  private:
    friend class ep;

    void on_receive(receive_op *r, const fi_cq_data_entry &entry);
    void repost(receive_op *r);
    void repost_failed(receive_op *r);
    void init_receive(receive_op *r);
    void *alloc_chunk(size_t size, size_t align, void **cookie);
    static void free_chunk(void *arg, void *chunk, size_t size, void *cookie);
    bool post(receive_op *r);
    unsigned poll_cq(fid_cq *cq);
    UCS_NOINLINE unsigned cq_error(fid_cq *cq, ssize_t ret);
    static void release_desc(uct_recv_desc_t *self, void *desc);

    ucs::mpool_base ops_;
    ucs::mpool_base buffers_;
    ucs::mpool_base receives_;
    ep *failing_ = nullptr;         // nullptr again when a callback destroyed it
    uint64_t posted_ = 0;           // operations ever
    size_t outstanding_ = 0;        // operations in flight, for the flush of the interface
    unsigned missing_receives_ = 0; // to be posted when there is room again
};

} // namespace uct::ofi
