// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of our own: words to peers, answers to their reads and atomics.
#include "prov/ucxlike/engine.h"

#include "prov/ucxlike/data/op.h"
#include "prov/ucxlike/domain.h"

namespace ucxlike {

tx_op *engine::begin_own()
{
    tx_op *op = try_begin_own();
    if (!op) {
        throw failure{FI_ENOMEM};
    }
    return op;
}

tx_op *engine::try_begin_own() noexcept
{
    tx_op *op = tx_ops.get();
    if (!op) {
        return nullptr;
    }
    op->eng = this;
    op->owner = nullptr;
    op->to = nullptr;
    op->pending = 0;
    op->source = nullptr;
    return op;
}

static void end_own(tx_op *op)
{
    if (op->source) {
        mr_access::end(op->source);
    }
    op->eng->tx_ops.put(op);
}

// The peer may wait for what it will not get.
static void give_up(engine *eng, link *l, ucs_status_t status)
{
    if (l && !l->closing) {
        eng->fail(l, status);
    }
}

static void own_sent(void *request, ucs_status_t status, void *arg)
{
    auto *op = static_cast<tx_op *>(arg);
    // A peer that rejects it waits for nothing.
    if (UCS_UNLIKELY(status != UCS_OK && status != UCS_ERR_REJECTED)) {
        give_up(op->eng, op->eng->find(op->carrier), status);
    }
    end_own(op);
    ucp_request_free(request);
}

static void post_own(link *l, tx_op *op, size_t header_length, const void *payload, size_t length,
                     unsigned am, unsigned flags)
{
    ucp_request_param_t p;
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = flags;
    p.cb.send = own_sent;
    p.user_data = op;
    op->carrier = l->ep;
    l->spoke = true;
    ucs_status_ptr_t r = ucp_am_send_nbx(l->ep, am, op->header, header_length, payload, length, &p);
    if (UCS_PTR_IS_ERR(r)) {
        give_up(l->eng, l, UCS_PTR_STATUS(r));
    }
    if (!UCS_PTR_IS_PTR(r)) {
        end_own(op);
    }
}

void engine::send_own(link *l, tx_op *op, size_t header_length, const void *payload, size_t length,
                      unsigned am)
{
    if (length > sizeof(op->inject)) {
        length = sizeof(op->inject);
    }
    if (length) {
        memcpy(op->inject, payload, length);
    }
    post_own(l, op, header_length, op->inject, length, am,
             UCP_AM_SEND_FLAG_REPLY | UCP_AM_SEND_FLAG_EAGER);
}

void engine::send_from(link *l, tx_op *op, size_t header_length, const void *payload, size_t length,
                       unsigned am)
{
    post_own(l, op, header_length, payload, length, am, 0);
}

void engine::send_control(link *l, uint64_t id, uint16_t kind, const void *payload, size_t length)
{
    tx_op *op = begin_own();
    send_own(l, op, wire::builder(op->header).finish(id, kind), payload, length);
}

} // namespace ucxlike
