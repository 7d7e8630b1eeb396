// SPDX-License-Identifier: BSD-3-Clause
//
// An operation on its way: handed to UCP, answered by the peer, ended.
#include "prov/ucxlike/data/tx.h"

namespace ucxlike {

static void report(tx_op *op)
{
    endpoint *ep = op->owner;
    if (UCS_LIKELY(!op->error)) {
        report_success(ep, op->context, op->cq_flags, op->options & tx_op::silent);
        return;
    }
    if (ep->tx_cq) {
        ep->tx_cq->write_error(
            {op->context, op->cq_flags, 0, nullptr, 0, op->tag, FI_ADDR_NOTAVAIL}, op->error,
            op->error);
    }
    if (cntr *counter = counter_of(ep, op->cq_flags)) {
        counter->count_error();
    }
}

void tx_part_finished(tx_op *whole, endpoint *owner)
{
    if (!owner) {
        whole->owner = nullptr;
    }
    if (--whole->count) {
        return;
    }
    if (whole->owner) {
        report(whole);
    }
    whole->eng->tx_ops.put(whole);
}

void tx_finish(tx_op *op)
{
    conn *to = op->to;
    if (op->node.linked()) {
        op->node.unlink();
        if (op->owner) {
            --op->owner->inflight;
        }
    }
    if (UCS_UNLIKELY(op->options & tx_op::part)) {
        tx_part_finished(op->whole, op->owner);
    } else if (op->owner) {
        report(op);
    }
    op->eng->tx_ops.put(op);
    if (to && --to->outstanding == 0) {
        to->drained();
    }
}

void tx_answered(tx_op *op, int error)
{
    op->eng->acks.erase(op->ack_id);
    op->pending &= ~(tx_op::wait_ack | tx_op::wait_data);
    if (error && !op->error) {
        op->error = error;
    }
    if (!op->pending) {
        tx_finish(op);
    }
}

void tx_sent(void *request, ucs_status_t status, void *arg)
{
    auto *op = static_cast<tx_op *>(arg);
    ucp_request_free(request);
    op->pending &= ~tx_op::wait_ucp;
    if (UCS_UNLIKELY(status != UCS_OK)) {
        if (!op->error) {
            op->error = errno_of(status);
        }
        if (op->pending & tx_op::wait_ack) {
            op->eng->acks.erase(op->ack_id);
            op->pending &= ~tx_op::wait_ack;
        }
    } else if (op->to->tx) {
        op->to->tx->promised = true;
    }
    if (!op->pending) {
        tx_finish(op);
    }
}

ssize_t tx_post(tx_op *op, unsigned am, size_t header_length, const void *buffer, size_t count,
                bool is_iov, unsigned am_flags)
{
    ucp_request_param_t p;
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = am_flags;
    p.cb.send = tx_sent;
    p.user_data = op;
    if (is_iov) {
        p.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_iov();
    }
    conn *to = op->to;
    op->pending |= tx_op::wait_ucp;
    ucs_status_ptr_t r =
        ucp_am_send_nbx(to->tx->ep, am, op->header, header_length, buffer, count, &p);
    if (UCS_LIKELY(!r)) {
        op->pending &= ~tx_op::wait_ucp;
        if (UCS_LIKELY(!op->pending)) {
            endpoint *ep = op->owner;
            to->tx->promised = true;
            if (UCS_UNLIKELY(op->options & tx_op::part)) {
                tx_part_finished(op->whole, ep);
                op->eng->tx_ops.put(op);
                return 0;
            }
            report_success(ep, op->context, op->cq_flags, op->options & tx_op::silent);
            op->eng->tx_ops.put(op);
            return 0;
        }
    } else if (UCS_UNLIKELY(UCS_PTR_IS_ERR(r))) {
        ucs_status_t status = UCS_PTR_STATUS(r);
        if (op->pending & tx_op::wait_ack) {
            op->eng->acks.erase(op->ack_id);
        }
        op->pending = 0;
        if (status == UCS_ERR_NO_RESOURCE || status == UCS_ERR_NO_MEMORY) {
            op->eng->tx_ops.put(op);
            return -FI_EAGAIN;
        }
        // The peer is gone: that is the operation's result, not the call's.
        ++to->outstanding;
        op->error = errno_of(status);
        tx_finish(op);
        return 0;
    }
    if (op->options & tx_op::injected) {
        to->tx->promised = true;
    }
    ++to->outstanding;
    ++op->owner->inflight;
    op->owner->outstanding.push_back(op);
    return 0;
}

} // namespace ucxlike
