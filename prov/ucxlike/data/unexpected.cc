// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that no receive waited for: kept, looked at (FI_PEEK, FI_CLAIM, FI_DISCARD), taken.
#include "prov/ucxlike/data/rx.h"

#include "prov/ucxlike/queue/cq.h"
#include "ucs/copy.h"

#include <cstdlib>

namespace ucxlike {

// Eager messages above this size stay in UCP's buffer, if UCP lets us, instead of being copied.
static constexpr size_t hold_above = 1024;

ucs_status_t rx_queue::keep(msg_in *u, conn *from, const wire::message &m, void *data,
                            size_t length, const ucp_am_recv_param_t *param)
{
    u->from = from;
    u->owner = from->owner;
    u->m = m;
    u->length = length;
    u->claimed = false;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
        u->how = msg_in::data::rendezvous;
        u->bytes = data;
        return UCS_INPROGRESS;
    }
    if (length > hold_above && (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)) {
        u->how = msg_in::data::held;
        u->bytes = data;
        return UCS_INPROGRESS;
    }
    u->how = msg_in::data::copied;
    u->bytes = length <= sizeof(u->inline_bytes) ? u->inline_bytes : malloc(length);
    if (UCS_UNLIKELY(!u->bytes)) {
        PROV_WARN(EP_DATA, "no memory for an unexpected message of %zu bytes\n", length);
        u->how = msg_in::data::lost; // the receive that it meets ends with an error
        return UCS_OK;
    }
    if (length) {
        ucs::copy(u->bytes, data, length);
    }
    return UCS_OK;
}

void rx_queue::drop(msg_in *u)
{
    if (u->how == msg_in::data::held || u->how == msg_in::data::rendezvous) {
        ucp_am_data_release(eng_->worker, u->bytes);
    } else if (u->how == msg_in::data::copied && u->bytes != u->inline_bytes) {
        free(u->bytes);
    }
    eng_->msgs.put(u);
}

// An unexpected message meets its receive.
void rx_queue::take(rx_op *r, msg_in *u)
{
    if (u->how == msg_in::data::rendezvous) {
        deliver(r, u->from, u->m, u->bytes, u->length, true);
        eng_->msgs.put(u);
        return;
    }
    if (UCS_UNLIKELY(u->how == msg_in::data::lost)) {
        r->from = u->from;
        r->m = u->m;
        r->length = 0;
        finish(r, FI_ENOMEM);
        drop(u);
        return;
    }
    deliver(r, u->from, u->m, u->bytes, u->length, false);
    drop(u);
}

// Where a message is told of that no receive takes.
cq *rx_queue::cq_of(const endpoint *ep, const msg_in *u)
{
    const endpoint *of = ep ? ep : u->from->owner;
    return of ? of->rx_cq : nullptr;
}

ssize_t rx_queue::peek(endpoint *ep, const recv_call &c)
{
    if (!(c.flags & FI_PEEK)) {
        return claim(ep, c);
    }
    match_key key = {c.tag, c.source};
    auto *u = static_cast<msg_in *>(tagged_.find_msg(key, c.ignore));
    if (!u) {
        // An application that peeks in a loop reads error entries, which progresses nothing.
        eng_->progress();
        u = static_cast<msg_in *>(tagged_.find_msg(key, c.ignore));
    }
    if (!u) {
        cq *q = cq_of(ep);
        if (!q && !ep) {
            return -FI_ENOMSG;
        }
        if (q) {
            q->write_error({c.context, FI_RECV | FI_TAGGED, 0, nullptr, 0, c.tag, FI_ADDR_NOTAVAIL},
                           FI_ENOMSG, FI_ENOMSG);
        }
        return 0;
    }
    if (c.flags & FI_DISCARD) {
        rx_op *r = make(ep, c);
        if (!r) {
            return -FI_EAGAIN;
        }
        tagged_.remove(u);
        discard(r, u, u->length);
        return 0;
    }
    if (c.flags & FI_CLAIM) {
        bool added = false;
        if (int error = guard([&] {
                added = claimed_.emplace(c.context, u).second;
                return 0;
            })) {
            return error;
        }
        PROV_CHECK_ARG(EP_DATA, added,
                       "fi_trecvmsg: FI_CLAIM: this context has a claimed message already\n");
        tagged_.remove(u);
    }
    if (cq *q = cq_of(ep, u)) {
        q->write({c.context,
                  FI_RECV | FI_TAGGED | (u->m.flags & wire::has_data ? FI_REMOTE_CQ_DATA : 0),
                  u->length, nullptr, u->m.data, u->m.tag, u->from->addr});
    }
    return 0;
}

// Ends the message as a receive would, so that a sender that waits for the delivery is told.
// `length` is that of the completion, which is written whether or not completions are selective.
void rx_queue::discard(rx_op *r, msg_in *u, size_t length)
{
    r->flags |= FI_TAGGED | FI_COMPLETION;
    r->count = 0;
    r->from = u->from;
    r->m = u->m;
    r->length = r->total = length;
    drop(u);
    finish(r, 0);
}

// FI_CLAIM without FI_PEEK: the message that a peek claimed for this context.
ssize_t rx_queue::claim(endpoint *ep, const recv_call &c)
{
    auto it = claimed_.find(c.context);
    if (it == claimed_.end()) {
        PROV_WARN(EP_DATA, "fi_trecvmsg: FI_CLAIM: no message was claimed with this context\n");
        return -FI_EINVAL;
    }
    msg_in *u = it->second;
    rx_op *r = make(ep, c);
    if (!r) {
        return -FI_EAGAIN;
    }
    claimed_.erase(it);
    if (c.flags & FI_DISCARD) {
        discard(r, u, 0);
        return 0;
    }
    r->flags |= FI_TAGGED;
    take(r, u);
    return 0;
}

void rx_queue::purge(conn *from)
{
    for (matcher *m : {&plain_, &tagged_}) {
        while (auto *u = static_cast<msg_in *>(m->find_msg({0, from}, ~0ull))) {
            m->remove(u);
            drop(u);
        }
    }
    std::erase_if(claimed_, [this, from](const auto &claim) {
        bool its = claim.second->from == from;
        if (its) {
            drop(claim.second);
        }
        return its;
    });
}

} // namespace ucxlike
