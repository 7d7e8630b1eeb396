// SPDX-License-Identifier: BSD-3-Clause
//
// What RDM and MSG endpoints share: bound queues, defaults of operations, outstanding operations.
// They differ in where a message goes (route) and in connection management.
#pragma once

#include "prov/ucxlike/data/op.h"
#include "prov/ucxlike/domain.h"

namespace ucxlike {

class cq;
class cntr;
class eq;
class av;
class rx_queue;
class srx;
class group;

// What a send does beyond moving bytes; computed once per call from flags and defaults.
enum tx_option : unsigned {
    tx_tagged = 1 << 0,
    tx_data = 1 << 1,     // carries CQ data
    tx_inject = 1 << 2,   // the buffer is the caller's again at once
    tx_complete = 1 << 3, // success is reported too
    tx_deliver = 1 << 4,  // complete when the receiver has it
    tx_group = 1 << 5,    // dest_addr is that of a multicast group
    tx_transmit = 1 << 6, // complete when it has arrived, matched or not
    tx_fence = 1 << 7,    // not before what was sent to this peer has completed
};

// The flags that transmit calls take; FI_MORE is a hint.
constexpr uint64_t tx_call_flags = FI_COMPLETION | FI_REMOTE_CQ_DATA | FI_INJECT | FI_MORE |
                                   FI_FENCE | FI_MULTICAST | FI_INJECT_COMPLETE |
                                   FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE;
// 0, or -FI_EBADFLAGS with a line that names the flags.
inline ssize_t check_flags(const char *call, uint64_t flags, uint64_t known)
{
    if (UCS_LIKELY(!(flags & ~known))) {
        return 0;
    }
    PROV_WARN(EP_DATA, "%s: flags 0x%lx are not supported\n", call, flags & ~known);
    return -FI_EBADFLAGS;
}

class endpoint : public fid_ep {
  public:
    static int open(fid_domain *dom, fi_info *info, fid_ep **out, void *context);

    domain *dom;
    engine *eng = nullptr;
    rx_queue *rx = nullptr;
    cq *tx_cq = nullptr;
    cq *rx_cq = nullptr;
    eq *events = nullptr;
    cntr *send_cntr = nullptr;
    cntr *recv_cntr = nullptr;
    cntr *read_cntr = nullptr;
    cntr *write_cntr = nullptr;
    cntr *remote_read_cntr = nullptr;
    cntr *remote_write_cntr = nullptr;

    const bool is_rdm;
    bool enabled = false;
    bool tx_selective = false;
    bool rx_selective = false;
    unsigned tx_defaults = tx_complete; // of calls without flags
    uint64_t tx_flags = 0;              // fi_tx_attr::op_flags
    uint64_t rx_flags = 0;
    uint64_t caps;
    size_t min_multi_recv = limit::min_multi_recv;
    size_t tx_limit;
    size_t inflight = 0;
    ucs::list<tx_op, &tx_op::node> outstanding;

    // Where a message goes; nullptr and a negative errno when that cannot be reached.
    conn *route(fi_addr_t dest, int *error)
    {
        conn *c = is_rdm ? (dest < routes_.size() ? routes_[dest] : nullptr) : single_;
        if (UCS_LIKELY(c && c->tx)) {
            return c;
        }
        return route_slow(dest, error);
    }
    // The conn a directed receive names; nullptr: any.
    const conn *source(fi_addr_t addr)
    {
        if (addr == FI_ADDR_UNSPEC || !is_rdm || !(caps & FI_DIRECTED_RECV)) {
            return nullptr;
        }
        if (addr < routes_.size() && routes_[addr]) {
            return routes_[addr];
        }
        return source_slow(addr);
    }
    // Nothing can be injected to this peer yet: -FI_EAGAIN, or why there will be no connection.
    virtual ssize_t not_yet(conn *) { return -FI_EAGAIN; }
    virtual wire::hello hello_for(const conn *) { return {}; }
    // Multicast: messages to this group (our id of it) are received; the group of such an address.
    virtual bool in_group(uint64_t) const { return false; }
    virtual group *group_at(fi_addr_t) { return nullptr; }
    virtual bool has_groups() const { return false; }

    unsigned tx_options(uint64_t flags) const;
    void flush_outstanding(conn *only, int error);

  protected:
    endpoint(domain *dom, const fi_info &info, void *context, bool rdm);
    virtual ~endpoint();
    virtual conn *route_slow(fi_addr_t dest, int *error) = 0;
    virtual const conn *source_slow(fi_addr_t) { return nullptr; }
    virtual int check_bound() = 0; // 0: what the endpoint needs is bound to it
    virtual int enable() = 0;      // nothing is left of it when it fails
    virtual int bind_av(av *) { return -FI_EINVAL; }
    virtual void bind_shared_rx() {} // shared_rx_ is about to be set
    int bind_cq(cq *q, uint64_t flags);
    int bind_cntr(cntr *c, uint64_t flags);
    virtual void detach() {} // before the object goes

    void attach_queues();
    void detach_queues(size_t count); // the first so many

    // What the endpoint was bound to. Taken under the engine's lock where others progress the
    // engine, let go of without it: reading a queue takes the queue's lock and then the engines'.
    struct queues {
        engine *eng; // nullptr: the endpoint was never enabled
        domain *dom;
        cq *tx;
        cq *rx;
        eq *events;
        cntr *counters[6];
        srx *shared;

        void let_go();
    };
    queues take_queues();

    std::vector<conn *> routes_;
    conn *single_ = nullptr;
    std::unique_ptr<rx_queue> own_rx_;
    srx *shared_rx_ = nullptr;

  private:
    static int close(fid_t f);
    static int bind(fid_t f, fid_t other, uint64_t flags);
    static int control(fid_t f, int command, void *arg);
    static ssize_t cancel(fid_t f, void *context);
    static int getopt(fid_t f, int level, int name, void *value, size_t *length);
    static int setopt(fid_t f, int level, int name, const void *value, size_t length);
    static fi_ops fid_ops_;
    static fi_ops_ep ep_ops_;

    template <class F>
    void for_each_queue(F &&f);
};

// The answer to fi_getopt of a size_t.
int get_option(size_t value, void *to, size_t *length);

extern fi_ops_msg msg_ops;
extern fi_ops_tagged tagged_ops;
extern fi_ops_msg srx_msg_ops;
extern fi_ops_tagged srx_tagged_ops;
extern fi_ops_rma rma_ops;
extern fi_ops_atomic atomic_ops;
extern fi_ops_rma no_rma_ops;
extern fi_ops_atomic no_atomic_ops;
extern fi_ops_collective no_collective_ops;

} // namespace ucxlike
