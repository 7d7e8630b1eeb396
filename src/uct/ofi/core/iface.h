// SPDX-License-Identifier: BSD-3-Clause
// What interfaces over connectionless and over connected endpoints share: the completion queue, the
// pools, the posted receives. One completion queue carries sends and receives, except over verbs.
#pragma once

#include "ucs/async.h"
#include "ucs/mpool.h"
#include "uct/base/iface.h"
#include "uct/ofi/core/keepalive.h"
#include "uct/ofi/core/limits.h"
#include "uct/ofi/core/md.h"
#include "uct/ofi/core/op.h"
#include "uct/ofi/core/receive_pool.h"
#include "uct/ofi/core/sequence.h"
#include "uct/ofi/core/shared_receives.h"
#include "uct/ofi/core/wait_set.h"
#include "uct/ofi/fabric/fid.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace uct::ofi {

// An active message travels as the bytes the handler gets; its id is in the low bits of the
// completion data that the core carries along. The bits above are 0, but for what follows.
constexpr uint64_t am_id_mask = UCT_AM_ID_MAX - 1;
constexpr uint64_t am_batch = UCT_AM_ID_MAX;         // it is several (gathering.h)
constexpr uint64_t am_ping = 2 * UCT_AM_ID_MAX;      // for no handler: did it arrive?
constexpr uint64_t am_sequenced = 4 * UCT_AM_ID_MAX; // it has a number (sequence.h)
constexpr uint64_t am_special = am_batch | am_ping | am_sequenced;

struct peer; // of connectionless cores

// What a caller gave as the address of a peer. Lengths are SIZE_MAX where it does not know.
struct peer_address {
    const uct_device_addr_t *device;
    size_t device_length;
    const uct_iface_addr_t *iface;
    size_t iface_length;
};

class iface : public uct::iface {
  public:
    iface(const uct_iface_ops_t &table, uct_worker &worker, ofi::md &domain,
          const uct_iface_params_t &params, const uct_iface_config &config);

    ucs_status_t create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p);
    ucs_status_t flush(unsigned flags, uct_completion_t *completion);
    ucs_status_t fence(unsigned flags);

    // Attaches an endpoint to the way to a peer, which is made if there is none. Throws ucs::error
    // and leaves the endpoint as it was.
    void attach(ep &from, const peer_address &to);
    virtual ucs_status_t write_address(uct_iface_addr_t *address) = 0;

    zcopy_op *get_zcopy() { return static_cast<zcopy_op *>(ops_.get()); }
    op *get_op() { return static_cast<op *>(ops_.get()); }
    buffer_op *get_buffer() { return static_cast<buffer_op *>(buffers_.get()); }
    receive_op *get_receive() { return receives_->get(*this); }
    void put_receive(receive_op *r) { receives_->put(r); }
    // For tests: all that are posted, held or with the program, and those that are held. The first
    // are of all interfaces that have one pool.
    size_t receives_used() const { return receives_->used(); }
    size_t receives_kept() const { return share_.kept; } // posted by this one, or soon to be
    size_t receives_held() const { return order_ ? order_->held() : 0; }
    // Bytes that messages of any length may be received into.
    size_t receive_room() const;
    void init_receive(receive_op *r) { receives_->init(r); }
    // An operation is over, or the core is done with it.
    static void left_order(buffer_op *b);
    void put(op *o)
    {
        if (o->has_buffer) {
            buffers_.put(o);
        } else {
            ops_.put(o);
        }
    }

    // Reads what the completion queue has, up to one batch, and runs handlers and completions.
    unsigned poll_cq() { return poll_cq(cq_.get()) + (tx_cq_ ? poll_cq(tx_cq_.get()) : 0); }
    // The same of a queue without one for sends, up to all the messages that it has: where each
    // read of it costs much.
    unsigned poll_costly_cq();
    // Polls the core without taking anything from its queue. False: where that serves nothing.
    virtual bool move_core() { return false; }
    // Sends what the endpoints gathered.
    virtual void send_gathered() {}

    // Until it is empty. Used before an endpoint is declared dead.
    void drain_cq();

    // Ends an operation: takes it out of its endpoint's list, completes it, puts it back.
    void finish(op *o, ucs_status_t status);

    // An endpoint is dead: everything in flight ends with status, then the user is told. Only from
    // progress. The callbacks may destroy the endpoint.
    void fail(ep *victim, ucs_status_t status);

    // The core's handle of an endpoint that carries regions of the endpoint's peer. False: none.
    virtual bool find_carrier(ep &, const std::string &, fi_addr_t *) { return false; }

    // Asks whether the endpoint's peer can be reached; what it finds, it reports in a later
    // progress.
    virtual void probe(ep &e);

    ofi::md &domain;
    limits limit;
    const unsigned tx_queue_len; // asked for; 0: the core's own
    const unsigned max_num_eps;  // asked for; 0: the core's own
    const int signal_cpu;        // that the core should wake, asked for; -1: any

  protected:
    virtual ~iface();

    virtual void connect(ep &from, const peer_address &to) = 0;
    virtual void for_each_ep(const std::function<void(ep &)> &call) = 0;

    // size: wanted; a device may have room for less.
    fid_ptr<fid_cq> open_cq(size_t size);
    // How many receives to keep posted.
    unsigned receives_wanted(const uct_iface_config &config) const;
    // The program's callback runs when fd is readable, once. Every successful arming calls it.
    void announce_event(int fd);
    // One descriptor for those of the core's queues and the keepalive's. Throws ucs::error.
    int wait_on(const std::vector<fid_t> &queues);
    // UCS_ERR_BUSY: there is something to progress already.
    ucs_status_t try_wait(std::vector<fid_t> queues);
    // Where receives are posted: the endpoint, or the shared receive context. most: that are ever
    // posted at a time; all of them at once, or few that become more when much arrives.
    void post_receives(fid_ep *where, unsigned most, bool at_once);
    // As many as may ever be, now.
    void post_all_receives();
    // Instead, in buffers that messages share.
    void post_shared_receives(fid_ep *where, const uct_iface_config &config);
    void fill_attr(uct_iface_attr_t *attr) const;
    void set_figures(uct_iface_attr_t *attr, bool loopback) const;
    bool has_outstanding() const { return outstanding_ > 0; }
    // Looks after idle peers, when that is due. Every poll function calls it once.
    UCS_ALWAYS_INLINE unsigned progress_keepalive()
    {
        return UCS_LIKELY(!keepalive_) || !keepalive_->due() ? 0 : keep_alive();
    }
    // Asks of each peer whether it is there; what is found, a later progress reports.
    virtual void check_peers() = 0;
    // Of interfaces with peers: the core refused a message to one that nothing has reached so far;
    // an endpoint that leads to one is destroyed.
    virtual void not_reached(peer &) {}
    virtual void forget(peer &) {}
    // An endpoint ended, after a failure of the peer or not, while the core had operations of it.
    virtual void left_with_core(peer &, bool) {}
    // Flushes of the interface whose operations are over. Every poll function calls it once.
    UCS_ALWAYS_INLINE unsigned progress_flushes()
    {
        return UCS_LIKELY(!flush_done_) ? 0 : complete_flushes();
    }

    // An operation failed at the core: the transport decides what it means for the endpoint.
    virtual void on_error(op *o, ucs_status_t status) = 0;
    // A message with what the peer gathered.
    virtual void deliver_gathered(char *, size_t) {}
    // An operation of no endpoint ended.
    virtual void on_unowned(op *, ucs_status_t) {}

    std::unique_ptr<keepalive> keepalive_; // when asked for, and the transport needs it
    // What cq_ is waited for with, where fi_trywait() does nothing.
    fid_ptr<fid_wait> waited_with_;
    fid_ptr<fid_cq> cq_;
    // Of sends alone, where queues really overrun (verbs). The core counts sends against the size
    // of their queue, but not what the shared receives may add; those have theirs of their own
    // number.
    fid_ptr<fid_cq> tx_cq_;
    wait_set waits_; // of wait_on()
    fid_ep *rx_ = nullptr;
    bool closing_ = false;
    std::unique_ptr<shared_receives> shared_; // with limit.shared, instead of posted receives
    std::unique_ptr<receive_order> order_;    // where messages have a prefix
    ucs::async_watch event_watch_;            // reset before the descriptor goes

  private:
    friend class ep;

    static void finish_special(op *o, ucs_status_t status);
    // An operation that was counted in outstanding_ is over.
    UCS_ALWAYS_INLINE void ended(uint64_t sequence)
    {
        --outstanding_;
        if (UCS_UNLIKELY(!flushes_.empty())) {
            count_flushed(sequence);
        }
    }
    UCS_NOINLINE void count_flushed(uint64_t sequence);
    UCS_NOINLINE unsigned complete_flushes();
    bool mark_flush(uct_completion_t *completion);
    void open_fence();

    void on_receive(receive_op *r, const fi_cq_data_entry &entry);
    void on_shared_receive(op *o, const fi_cq_data_entry &entry);
    UCS_NOINLINE void on_special_shared(const fi_cq_data_entry &entry);
    void take_shared_back(op *o);
    UCS_NOINLINE void on_special(receive_op *r, const fi_cq_data_entry &entry);
    UCS_NOINLINE unsigned keep_alive();
    void deliver_in_order(receive_op *r, const fi_cq_data_entry &entry);
    void post_another(receive_op *kept);
    UCS_NOINLINE void deliver_aligned(uint8_t id, void *data, size_t length);
    void repost(receive_op *r);
    UCS_NOINLINE void repost_used();
    UCS_NOINLINE void repost_many();
    UCS_NOINLINE void give_surplus_back();
    UCS_NOINLINE void post_more(unsigned count);
    // A message that was longer than its receive buffer.
    void report_lost(const fi_cq_err_entry &error) const;
    void repost_failed(receive_op *r);
    bool post(receive_op *r);
    unsigned poll_cq(fid_cq *cq);
    template <size_t batch>
    unsigned read_cq(fid_cq *cq);
    void handle(const fi_cq_data_entry &entry);
    UCS_NOINLINE unsigned cq_error(fid_cq *cq, ssize_t ret);

    ucs::mpool_base ops_;
    credits buffers_;
    std::shared_ptr<receive_pool> receives_;
    std::shared_ptr<receive_budget> budget_; // nullptr: this one takes no part in it
    receive_share share_;
    uint64_t full_round_ = 0;       // of progress: the last one in which used_ was full
    unsigned in_a_row_ = 0;         // messages of such rounds, one after the other
    ep *failing_ = nullptr;         // nullptr again when a callback destroyed it
    uint64_t posted_ = 0;           // operations ever
    size_t outstanding_ = 0;        // operations in flight, for the flush of the interface
    unsigned missing_receives_ = 0; // to be posted when there is room again
    bool receives_failed_ = false;  // for more than lack of room, which was logged
    // What completion data has in am_special when its message is nothing special.
    uint64_t plain_ = 0;
    // Receives that were filled and are posted again when nothing else is to be done, or when they
    // are many: a waiting receiver gets its message first.
    static constexpr unsigned most_used = 16;
    receive_op *used_[most_used];
    unsigned used_count_ = 0;
    unsigned used_limit_ = 1;
    bool flush_done_ = false; // the first of flushes_
    bool fenced_ = false;     // one of flushes_ is a fence
    // Flushes and fences of the interface, in the order in which they were asked.
    ucs::list<op, &op::link> flushes_;
};

} // namespace uct::ofi
