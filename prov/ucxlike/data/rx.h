// SPDX-License-Identifier: BSD-3-Clause
//
// The receiving half of an endpoint, or of several (shared receive context): receives that wait
// for messages and messages that wait for receives. Runs under the engine's lock.
#pragma once

#include "prov/ucxlike/endpoint.h"

namespace ucxlike {

struct recv_call {
    const iovec *iov;
    size_t count;
    uint64_t tag;
    uint64_t ignore;
    const conn *source;
    void *context;
    uint64_t flags; // FI_COMPLETION, FI_MULTI_RECV, FI_PEEK, FI_CLAIM, FI_DISCARD
};

class rx_queue {
  public:
    explicit rx_queue(engine *eng) : eng_(eng) {}
    // Endpoints that share the queue, and the queue its owner is bound to: what a receive that
    // meets no message has to say goes to the latter, or else to one of the former.
    void join(endpoint *ep) { members_.push_back(ep); }
    void leave(endpoint *ep) { std::erase(members_, ep); }
    void report_to(cq *q) { own_cq_ = q; }
    ~rx_queue();

    ssize_t post(endpoint *ep, const recv_call &c);
    ssize_t post_tagged(endpoint *ep, const recv_call &c);
    // FI_PEEK, FI_CLAIM and FI_DISCARD of tagged receives; ep is nullptr if endpoints share them.
    ssize_t peek(endpoint *ep, const recv_call &c);
    bool cancel(void *context);
    // No message comes any more: every posted receive completes with this error, and so does each
    // that is posted later and finds no message.
    void flush(int error);
    // Forgets messages of a conn that goes away.
    void purge(conn *from);

    ucs_status_t message_arrived(conn *from, const wire::message &m, void *data, size_t length,
                                 const ucp_am_recv_param_t *param);
    ucs_status_t tagged_arrived(conn *from, const wire::message &m, void *data, size_t length,
                                const ucp_am_recv_param_t *param);

    engine *eng() const { return eng_; }

  private:
    using recv_list = ucs::list<rx_op, &rx_op::node>;

    rx_op *make(endpoint *ep, const recv_call &c);
    rx_op *slice(rx_op *multi, size_t length);
    void retire(rx_op *multi);
    void post_multi(rx_op *multi);
    ucs_status_t deliver(rx_op *r, conn *from, const wire::words &m, void *data, size_t length,
                         bool rendezvous);
    void take(rx_op *r, msg_in *u);
    ucs_status_t keep(msg_in *u, conn *from, const wire::message &m, void *data, size_t length,
                      const ucp_am_recv_param_t *param);
    void drop(msg_in *u);
    void discard(rx_op *r, msg_in *u, size_t length);
    ssize_t claim(endpoint *ep, const recv_call &c);
    cq *cq_of(const endpoint *ep) const;
    static cq *cq_of(const endpoint *ep, const msg_in *u);
    void finish(rx_op *r, int error);
    void report(rx_op *r);
    bool acknowledge(rx_op *r);
    template <class F>
    static void released(void *request, rx_op *r, F &&then);
    static void on_acknowledged(void *request, ucs_status_t status, void *arg);
    bool fetch(rx_op *r, void *descriptor);
    static void on_fetched(void *request, ucs_status_t status, size_t length, void *arg);
    void fail(rx_op *r, int error);
    static rx_op *withdraw(matcher &from, void *context);

    engine *eng_;
    std::vector<endpoint *> members_;
    cq *own_cq_ = nullptr;
    int closed_ = 0;
    recv_list active_; // a message moves in, or its sender is being told of it
    matcher plain_;    // untagged: all have the same tag
    matcher tagged_;
    std::unordered_map<void *, msg_in *> claimed_;
};

UCS_ALWAYS_INLINE rx_op *rx_queue::make(endpoint *ep, const recv_call &c)
{
    rx_op *r = eng_->rx_ops.get();
    if (UCS_UNLIKELY(!r)) {
        return nullptr;
    }
    r->owner = ep;
    r->context = c.context;
    r->flags = c.flags;
    r->key = {c.tag, c.source};
    r->ignore = c.ignore;
    r->total = 0;
    r->count = c.count;
    for (size_t i = 0; i < c.count; ++i) {
        r->iov[i] = c.iov[i];
        r->total += c.iov[i].iov_len;
    }
    r->parent = nullptr;
    r->used = 0;
    r->children = 0;
    r->retired = false;
    return r;
}

} // namespace ucxlike
