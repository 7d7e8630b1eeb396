// SPDX-License-Identifier: BSD-3-Clause
//
// The target of RMA and atomics: looks up the region, moves the data, answers.
#include "prov/ucxlike/data/atomic.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/tx.h"
#include "ucs/copy.h"
#include "ucs/log.h"

namespace ucxlike {

namespace {

// The region stays until the access is over.
struct found {
    char *at;
    int error;
    mr_access access;
};

found lookup(conn *from, const wire::rma &r, uint64_t bytes, uint64_t access)
{
    mr_access m = from->owner->dom->access_mr(r.key);
    char *at = m ? m->at(r.address, bytes, access) : nullptr;
    int error = !m ? FI_ENOKEY : !at ? FI_EACCES : 0;
    if (error && ucs::log::worth_a_line(++from->eng->refused)) {
        PROV_WARN(EP_DATA, "a peer's access to key 0x%lx, %lu bytes at 0x%lx, is refused: %s\n",
                  r.key, bytes, r.address, m ? "outside of the region or its rights" : "no region");
    }
    return {at, error, std::move(m)};
}

void written(conn *from, const wire::message &m, char *at, int error)
{
    endpoint *ep = from->owner;
    if (ep && !error) {
        if ((m.flags & wire::has_data) && ep->rx_cq) {
            ep->rx_cq->write({nullptr, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, m.rma.length,
                              at, m.data, 0, from->addr});
        }
        if (ep->remote_write_cntr) {
            ep->remote_write_cntr->count();
        }
        ep->dom->accessed(m.rma.key, FI_REMOTE_WRITE);
    }
    if (m.flags & wire::has_ack) {
        answer(from, m.ack, error);
    }
}

// Data on its way into the target's memory, or into a reader's buffer.
struct transfer {
    conn *from;
    wire::message m;
    char *at;
    tx_op *op; // of a read
    mr_access access = {};
};

void transferred(transfer *t, ucs_status_t status)
{
    conn *from = t->from;
    if (t->op) {
        tx_answered(t->op, errno_of(status));
    } else {
        written(from, t->m, t->at, errno_of(status));
    }
    bool write = !t->op;
    delete t;
    if (write && --from->writes == 0) {
        replay_deferred(from);
    }
    if (--from->outstanding == 0) {
        from->drained();
    }
}

ucs_status_t fetch(transfer *t, void *descriptor, void *buffer, size_t count, bool iov)
{
    ucp_request_param_t p;
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv_am = [](void *request, ucs_status_t status, size_t, void *arg) {
        ucp_request_free(request);
        transferred(static_cast<transfer *>(arg), status);
    };
    p.user_data = t;
    if (iov) {
        p.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_iov();
    }
    ++t->from->outstanding;
    t->from->answers();
    if (!t->op) {
        ++t->from->writes;
    }
    ucs_status_ptr_t s = ucp_am_recv_data_nbx(t->from->eng->worker, descriptor, buffer, count, &p);
    if (UCS_PTR_IS_PTR(s)) {
        return UCS_INPROGRESS;
    }
    transferred(t, UCS_PTR_STATUS(s));
    return UCS_OK;
}

ucs_status_t write_arrived(conn *from, const wire::message &m, void *data, size_t length,
                           bool rendezvous)
{
    auto [at, error, access] = lookup(from, m.rma, length, FI_REMOTE_WRITE);
    if (!error && length != m.rma.length) {
        error = FI_EIO;
    }
    if (error) {
        written(from, m, nullptr, error);
        return UCS_ERR_REJECTED;
    }
    if (rendezvous) {
        return fetch(new transfer{from, m, at, nullptr, std::move(access)}, data, at, length,
                     false);
    }
    if (length) {
        ucs::copy(at, data, length);
    }
    written(from, m, at, 0);
    return UCS_OK;
}

void read_arrived(conn *from, const wire::message &m)
{
    auto [at, error, access] = lookup(from, m.rma, m.rma.length, FI_REMOTE_READ);
    if (error) {
        answer(from, m.ack, error);
        return;
    }
    if (cntr *c = from->owner->remote_read_cntr) {
        c->count();
    }
    from->owner->dom->accessed(m.rma.key, FI_REMOTE_READ);
    if (!from->tx) {
        return;
    }
    tx_op *op = from->eng->begin_own();
    op->source = access.hand_over();
    wire::builder b(op->header);
    b.ack(m.ack);
    from->eng->send_from(from->tx, op, b.finish(from->tx_id, wire::read_data), at, m.rma.length,
                         wire::am_rma);
}

ucs_status_t read_data_arrived(conn *from, const wire::message &m, void *data, size_t length,
                               bool rendezvous)
{
    tx_op *op = from->eng->acks.find(m.ack);
    if (!op || op->to != from || !(op->cq_flags & FI_READ)) {
        return UCS_ERR_REJECTED;
    }
    if (length != op->length) {
        tx_answered(op, FI_EIO);
        return UCS_ERR_REJECTED;
    }
    if (rendezvous) {
        auto *t = new transfer{from, m, nullptr, op};
        from->eng->acks.erase(op->ack_id);
        op->pending = (op->pending & ~tx_op::wait_ack) | tx_op::wait_data;
        if (op->count == 1) {
            return fetch(t, data, op->iov[0].buffer, length, false);
        }
        return fetch(t, data, op->iov, op->count, true);
    }
    auto *at = static_cast<const char *>(data);
    for (size_t i = 0; i < op->count; ++i) {
        if (op->iov[i].length) {
            ucs::copy(op->iov[i].buffer, at, op->iov[i].length);
        }
        at += op->iov[i].length;
    }
    tx_answered(op, 0);
    return UCS_OK;
}

void atomic_arrived(conn *from, const wire::message &m, const void *data, size_t length)
{
    auto op = static_cast<fi_op>(m.tag & 0xff);
    auto type = static_cast<fi_datatype>(m.tag >> 8 & 0xff);
    auto form = static_cast<atomic_form>(m.tag >> 16 & 0xff);
    size_t size = atomic_size(type);
    size_t count = m.rma.length;
    size_t operands = op == FI_ATOMIC_READ ? 0 : form == atomic_form::compare ? 2 : 1;
    if (!atomic_valid(type, op, form) || count > limit::atomic_bytes / size ||
        length != operands * count * size) {
        answer(from, m.ack, FI_EOPNOTSUPP);
        return;
    }
    uint64_t rights = (op == FI_ATOMIC_READ ? 0 : FI_REMOTE_WRITE) |
                      (form == atomic_form::write ? 0 : FI_REMOTE_READ);
    auto [at, error, access] = lookup(from, m.rma, count * size, rights);
    if (error) {
        answer(from, m.ack, error);
        return;
    }
    alignas(16) char old[limit::atomic_bytes];
    auto *operand = static_cast<const char *>(data);
    {
        ucs::opt_guard g(from->owner->dom->atomic_lock());
        atomic_execute(type, op, count, at, operand, operand + count * size, old);
    }
    if (cntr *c =
            op == FI_ATOMIC_READ ? from->owner->remote_read_cntr : from->owner->remote_write_cntr) {
        c->count();
    }
    from->owner->dom->accessed(m.rma.key, op == FI_ATOMIC_READ ? FI_REMOTE_READ : FI_REMOTE_WRITE);
    if (form == atomic_form::write) {
        answer(from, m.ack, 0);
    } else if (from->tx) {
        tx_op *reply = from->eng->begin_own();
        wire::builder b(reply->header);
        b.ack(m.ack);
        from->eng->send_own(from->tx, reply, b.finish(from->tx_id, wire::read_data), old,
                            count * size, wire::am_rma);
    }
}

} // namespace

void answer(conn *to, uint64_t ack, int error)
{
    if (!to->tx) {
        return;
    }
    tx_op *op = to->eng->try_begin_own();
    if (!op) {
        to->eng->give_up(to);
        return;
    }
    wire::builder b(op->header);
    b.tag(ack);
    b.data(static_cast<uint64_t>(error));
    to->eng->send_own(to->tx, op, b.finish(to->tx_id, wire::acked), nullptr, 0);
}

ucs_status_t rma_arrived(conn *from, const wire::message &m, void *data, size_t length,
                         const ucp_am_recv_param_t *param)
{
    bool rendezvous = param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
    ucs_status_t result = UCS_ERR_REJECTED;
    int error = guard([&] {
        switch (m.kind) {
        case wire::write:
            result = write_arrived(from, m, data, length, rendezvous);
            break;
        case wire::read:
            read_arrived(from, m);
            break;
        case wire::read_data:
            result = read_data_arrived(from, m, data, length, rendezvous);
            break;
        case wire::atomic:
            if (!rendezvous) {
                atomic_arrived(from, m, data, length);
            }
            break;
        default:
            break;
        }
        return 0;
    });
    if (error) {
        from->eng->give_up(from);
    }
    return result;
}

} // namespace ucxlike
