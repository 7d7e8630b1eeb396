// SPDX-License-Identifier: BSD-3-Clause
//
//   initiator                        target
//   fi_write   -- write, data -->    checks, moves, [remote CQ data]
//   completion <-- acked -----
//   fi_read    -- read -->           checks
//   completion <-- read_data, data --
//   fi_atomic  -- atomic, operands --> executes
//   completion <-- acked / read_data, old values --
//
// Data too large for one message moves by UCP's rendezvous, straight between the two buffers. While
// such data is under way to the target's memory, later messages of the same sender wait, so that
// what was ordered behind a write is seen behind it.
#include "prov/ucxlike/data/rma.h"

#include "prov/ucxlike/data/atomic.h"
#include "prov/ucxlike/data/rx.h"
#include "prov/ucxlike/data/tx.h"
#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"

#include <cstdlib>

namespace ucxlike {

namespace {

// ---- initiator ----

enum class kind { write, read };

struct rma_call {
    const iovec *iov;
    size_t count;
    fi_addr_t peer;
    uint64_t address;
    uint64_t key;
    uint64_t data;
    void *context;
};

tx_op *begin(endpoint *ep, fi_addr_t dest, unsigned options, ssize_t *error)
{
    int failed;
    conn *to = ep->route(dest, &failed);
    if (!to) {
        *error = failed;
        return nullptr;
    }
    *error = -FI_EAGAIN;
    if (ep->inflight >= ep->tx_limit || held_by_fence(to, options)) {
        return nullptr;
    }
    tx_op *op = ep->eng->tx_ops.get();
    if (!op) {
        return nullptr;
    }
    op->eng = ep->eng;
    op->owner = ep;
    op->to = to;
    op->error = 0;
    op->tag = 0;
    op->length = 0;
    op->count = 0;
    op->ack_id = ep->eng->acks.try_add(op);
    if (!op->ack_id) {
        ep->eng->tx_ops.put(op);
        return nullptr;
    }
    op->pending = tx_op::wait_ack;
    return op;
}

size_t finish_header(endpoint *ep, tx_op *op, wire::builder &b, uint16_t what, unsigned *flags)
{
    *flags = 0;
    if (op->to->tx_id == 0) {
        b.say_hello(ep->hello_for(op->to));
        *flags = UCP_AM_SEND_FLAG_REPLY;
    }
    return b.finish(op->to->tx_id, what);
}

ssize_t post(fid_ep *f, kind k, unsigned options, const rma_call &c)
{
    auto *ep = static_cast<endpoint *>(f);
    PROV_CHECK_ARG(EP_DATA, c.count <= limit::iov && (c.iov || !c.count),
                   "fi_rma: iov_count %zu is over %zu\n", c.count, limit::iov);
    ucs::opt_guard g(ep->eng->lock);
    ssize_t error;
    tx_op *op = begin(ep, c.peer, options, &error);
    if (!op) {
        return error;
    }
    op->context = c.context;
    op->cq_flags = FI_RMA | (k == kind::write ? FI_WRITE : FI_READ);
    op->options = options & tx_complete ? 0 : tx_op::silent;
    size_t total = 0;
    for (size_t i = 0; i < c.count; ++i) {
        op->iov[i] = {c.iov[i].iov_base, c.iov[i].iov_len};
        total += c.iov[i].iov_len;
    }
    op->count = c.count;
    op->length = total;

    wire::builder b(op->header);
    if (options & tx_data) {
        b.data(c.data);
    }
    b.ack(op->ack_id);
    b.rma({c.address, c.key, total});
    unsigned am_flags;
    if (k == kind::read) {
        size_t header = finish_header(ep, op, b, wire::read, &am_flags);
        return tx_post(op, wire::am_rma, header, nullptr, 0, false, am_flags);
    }
    size_t header = finish_header(ep, op, b, wire::write, &am_flags);
    if (options & tx_inject) {
        size_t at = 0;
        for (size_t i = 0; i < c.count; ++i) {
            if (c.iov[i].iov_len) {
                memcpy(op->inject + at, c.iov[i].iov_base, c.iov[i].iov_len);
            }
            at += c.iov[i].iov_len;
        }
        return tx_post(op, wire::am_rma, header, op->inject, total, false, am_flags);
    }
    if (c.count == 1) {
        return tx_post(op, wire::am_rma, header, c.iov[0].iov_base, total, false, am_flags);
    }
    return tx_post(op, wire::am_rma, header, op->iov, c.count, true, am_flags);
}

ssize_t post_msg(fid_ep *f, kind k, const fi_msg_rma *m, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m, "fi_rma: msg must not be NULL\n");
    PROV_CHECK_ARG(EP_DATA, m->rma_iov_count == 1 && m->rma_iov,
                   "fi_rma: rma_iov_count must be 1\n");
    PROV_CHECK_ARG(EP_DATA, m->msg_iov || !m->iov_count, "fi_rma: msg_iov must not be NULL\n");
    if (ssize_t error = check_flags("fi_rma", flags, tx_call_flags | FI_READ | FI_WRITE | FI_RMA)) {
        return error;
    }
    if (flags & FI_MULTICAST) {
        return -FI_EOPNOTSUPP;
    }
    unsigned options = static_cast<endpoint *>(f)->tx_options(flags);
    if (options & tx_inject) {
        size_t total = 0;
        for (size_t i = 0; i < m->iov_count; ++i) {
            total += m->msg_iov[i].iov_len;
        }
        PROV_CHECK_ARG(EP_DATA, total <= limit::inject, "fi_rma: %zu bytes cannot be injected\n",
                       total);
    }
    return post(f, k, options,
                {m->msg_iov, m->iov_count, m->addr, m->rma_iov->addr, m->rma_iov->key, m->data,
                 m->context});
}

unsigned defaults(fid_ep *f)
{
    return static_cast<endpoint *>(f)->tx_defaults;
}

ssize_t read(fid_ep *f, void *buf, size_t len, void *, fi_addr_t src, uint64_t addr, uint64_t key,
             void *context)
{
    iovec iov = {buf, len};
    return post(f, kind::read, defaults(f), {&iov, 1, src, addr, key, 0, context});
}

ssize_t readv(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t src, uint64_t addr,
              uint64_t key, void *context)
{
    return post(f, kind::read, defaults(f), {iov, count, src, addr, key, 0, context});
}

ssize_t readmsg(fid_ep *f, const fi_msg_rma *m, uint64_t flags)
{
    return post_msg(f, kind::read, m, flags);
}

ssize_t write(fid_ep *f, const void *buf, size_t len, void *, fi_addr_t dest, uint64_t addr,
              uint64_t key, void *context)
{
    iovec iov = {const_cast<void *>(buf), len};
    return post(f, kind::write, defaults(f), {&iov, 1, dest, addr, key, 0, context});
}

ssize_t writev(fid_ep *f, const iovec *iov, void **, size_t count, fi_addr_t dest, uint64_t addr,
               uint64_t key, void *context)
{
    return post(f, kind::write, defaults(f), {iov, count, dest, addr, key, 0, context});
}

ssize_t writemsg(fid_ep *f, const fi_msg_rma *m, uint64_t flags)
{
    return post_msg(f, kind::write, m, flags);
}

ssize_t inject_data(fid_ep *f, const void *buf, size_t len, unsigned options, uint64_t data,
                    fi_addr_t dest, uint64_t addr, uint64_t key)
{
    PROV_CHECK_ARG(EP_DATA, len <= limit::inject, "fi_inject_write: len %zu is over %zu\n", len,
                   limit::inject);
    iovec iov = {const_cast<void *>(buf), len};
    return post(f, kind::write, tx_inject | options, {&iov, 1, dest, addr, key, data, nullptr});
}

ssize_t inject(fid_ep *f, const void *buf, size_t len, fi_addr_t dest, uint64_t addr, uint64_t key)
{
    return inject_data(f, buf, len, 0, 0, dest, addr, key);
}

ssize_t writedata(fid_ep *f, const void *buf, size_t len, void *, uint64_t data, fi_addr_t dest,
                  uint64_t addr, uint64_t key, void *context)
{
    iovec iov = {const_cast<void *>(buf), len};
    return post(f, kind::write, defaults(f) | tx_data, {&iov, 1, dest, addr, key, data, context});
}

ssize_t injectdata(fid_ep *f, const void *buf, size_t len, uint64_t data, fi_addr_t dest,
                   uint64_t addr, uint64_t key)
{
    return inject_data(f, buf, len, tx_data, data, dest, addr, key);
}

// ---- target ----

// The region stays until the access is over.
struct found {
    char *at;
    int error;
    mr_access access;
};

// A peer that is refused all the time does not fill the log.
constexpr bool worth_a_line(uint64_t number)
{
    return number <= 10 || (number & (number - 1)) == 0;
}

found lookup(conn *from, const wire::rma &r, uint64_t bytes, uint64_t access)
{
    mr_access m = from->owner->dom->access_mr(r.key);
    char *at = m ? m->at(r.address, bytes, access) : nullptr;
    int error = !m ? FI_ENOKEY : !at ? FI_EACCES : 0;
    if (error && worth_a_line(++from->eng->refused)) {
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

void replay(conn *c);

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
        replay(from);
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
        memcpy(at, data, length);
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
            memcpy(op->iov[i].buffer, at, op->iov[i].length);
        }
        at += op->iov[i].length;
    }
    tx_answered(op, 0);
    return UCS_OK;
}

// The tag word of an atomic: op, type and form.
constexpr uint64_t pack(fi_datatype type, fi_op op, atomic_form form)
{
    return static_cast<uint64_t>(op) | static_cast<uint64_t>(type) << 8 |
           static_cast<uint64_t>(form) << 16;
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

// ---- order behind a write under way ----

struct deferred_message {
    unsigned am;
    wire::message m;
    void *bytes;
    size_t length;
    uint64_t attr;
    bool held;
};

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

struct deferred_messages {
    std::vector<deferred_message> list;
};

namespace {

void replay(conn *c)
{
    if (!c->deferred) {
        return;
    }
    std::unique_ptr<deferred_messages> d(c->deferred);
    c->deferred = nullptr;
    for (auto &e : d->list) {
        ucp_am_recv_param_t p = {};
        p.recv_attr = e.attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
        ucs_status_t st = dispatch(c, e.am, e.m, e.bytes, e.length, &p);
        bool refused = p.recv_attr && st != UCS_OK && st != UCS_INPROGRESS;
        if (e.held || refused) {
            ucp_am_data_release(c->eng->worker, e.bytes);
        } else if (!p.recv_attr) {
            free(e.bytes);
        }
    }
}

} // namespace

ucs_status_t defer(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                   const ucp_am_recv_param_t *param)
{
    deferred_message e = {am, m, data, length, param->recv_attr, false};
    e.m.hello = nullptr;
    e.held = !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) &&
             (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA);
    bool copied = !e.held && !(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
    int error = guard([&] {
        if (!c->deferred) {
            c->deferred = new deferred_messages;
        }
        auto &list = c->deferred->list;
        list.push_back(e);
        if (!copied) {
            return 0;
        }
        list.back().bytes = malloc(length ? length : 1);
        if (!list.back().bytes) {
            list.pop_back();
            return -FI_ENOMEM;
        }
        memcpy(list.back().bytes, data, length);
        return 0;
    });
    if (error) {
        c->eng->give_up(c);
        return copied ? UCS_OK : UCS_ERR_NO_MEMORY;
    }
    return copied ? UCS_OK : UCS_INPROGRESS;
}

void drop_deferred(conn *c)
{
    if (!c->deferred) {
        return;
    }
    for (auto &e : c->deferred->list) {
        if (e.held || (e.attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
            ucp_am_data_release(c->eng->worker, e.bytes);
        } else {
            free(e.bytes);
        }
    }
    delete c->deferred;
    c->deferred = nullptr;
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

// ---- atomics, initiator ----

namespace {

struct atomic_call {
    const fi_ioc *iov;
    size_t count;
    const fi_ioc *compare;
    size_t compare_count;
    const fi_ioc *result;
    size_t result_count;
    fi_addr_t peer;
    uint64_t address;
    uint64_t key;
    fi_datatype type;
    fi_op op;
    void *context;
};

size_t elements(const fi_ioc *iov, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; ++i) {
        n += iov[i].count;
    }
    return n;
}

uint8_t *gather(uint8_t *to, const fi_ioc *iov, size_t count, size_t size)
{
    for (size_t i = 0; i < count; ++i) {
        if (iov[i].count) {
            memcpy(to, iov[i].addr, iov[i].count * size);
        }
        to += iov[i].count * size;
    }
    return to;
}

ssize_t post_atomic(fid_ep *f, atomic_form form, unsigned options, const atomic_call &c)
{
    auto *ep = static_cast<endpoint *>(f);
    if (!atomic_valid(c.type, c.op, form)) {
        return -FI_EOPNOTSUPP;
    }
    PROV_CHECK_ARG(EP_DATA,
                   c.count <= limit::iov && c.compare_count <= limit::iov &&
                       c.result_count <= limit::iov,
                   "fi_atomic: more than %zu pieces of a buffer\n", limit::iov);
    PROV_CHECK_ARG(EP_DATA,
                   (c.iov || !c.count) && (c.compare || !c.compare_count) &&
                       (c.result || !c.result_count),
                   "fi_atomic: an array of buffers must not be NULL\n");
    size_t size = atomic_size(c.type);
    bool reads = c.op == FI_ATOMIC_READ;
    size_t n = reads ? elements(c.result, c.result_count) : elements(c.iov, c.count);
    PROV_CHECK_ARG(EP_DATA, n && n <= limit::atomic_bytes / size,
                   "fi_atomic: %zu elements; 1 to %zu can be given\n", n,
                   limit::atomic_bytes / size);
    PROV_CHECK_ARG(EP_DATA,
                   (form == atomic_form::write || elements(c.result, c.result_count) == n) &&
                       (form != atomic_form::compare || elements(c.compare, c.compare_count) == n),
                   "fi_atomic: the buffers differ in their number of elements\n");
    ucs::opt_guard g(ep->eng->lock);
    ssize_t error;
    tx_op *op = begin(ep, c.peer, options, &error);
    if (!op) {
        return error;
    }
    op->context = c.context;
    op->cq_flags = FI_ATOMIC | (form == atomic_form::write ? FI_WRITE : FI_READ);
    op->options = options & tx_complete ? 0 : tx_op::silent;
    uint8_t *end = op->inject;
    if (!reads) {
        end = gather(end, c.iov, c.count, size);
    }
    if (form == atomic_form::compare) {
        end = gather(end, c.compare, c.compare_count, size);
    }
    for (size_t i = 0; i < c.result_count; ++i) {
        op->iov[i] = {c.result[i].addr, c.result[i].count * size};
    }
    op->count = c.result_count;
    op->length = n * size;
    wire::builder b(op->header);
    b.tag(pack(c.type, c.op, form));
    b.ack(op->ack_id);
    b.rma({c.address, c.key, n});
    unsigned am_flags;
    size_t header = finish_header(ep, op, b, wire::atomic, &am_flags);
    return tx_post(op, wire::am_rma, header, op->inject, static_cast<size_t>(end - op->inject),
                   false, am_flags | UCP_AM_SEND_FLAG_EAGER);
}

ssize_t atomic_msg(fid_ep *f, atomic_form form, const fi_msg_atomic *m, const fi_ioc *compare,
                   size_t compare_count, const fi_ioc *result, size_t result_count, uint64_t flags)
{
    PROV_CHECK_ARG(EP_DATA, m && m->rma_iov && m->rma_iov_count == 1,
                   "fi_atomicmsg: msg must name one remote region\n");
    PROV_CHECK_ARG(EP_DATA, m->msg_iov || !m->iov_count,
                   "fi_atomicmsg: msg_iov must not be NULL\n");
    if (ssize_t error =
            check_flags("fi_atomicmsg", flags, tx_call_flags | FI_READ | FI_WRITE | FI_ATOMIC)) {
        return error;
    }
    if (flags & (FI_MULTICAST | FI_REMOTE_CQ_DATA)) {
        return -FI_EOPNOTSUPP;
    }
    PROV_CHECK_ARG(
        EP_DATA, m->rma_iov->count == elements(m->msg_iov, m->iov_count) || m->op == FI_ATOMIC_READ,
        "fi_atomicmsg: rma_iov->count %zu differs from the operands'\n", m->rma_iov->count);
    return post_atomic(f, form, static_cast<endpoint *>(f)->tx_options(flags),
                       {m->msg_iov, m->iov_count, compare, compare_count, result, result_count,
                        m->addr, m->rma_iov->addr, m->rma_iov->key, m->datatype, m->op,
                        m->context});
}

ssize_t a_write(fid_ep *f, const void *buf, size_t count, void *, fi_addr_t dest, uint64_t addr,
                uint64_t key, fi_datatype type, fi_op op, void *context)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    return post_atomic(f, atomic_form::write, defaults(f),
                       {&iov, 1, nullptr, 0, nullptr, 0, dest, addr, key, type, op, context});
}

ssize_t a_writev(fid_ep *f, const fi_ioc *iov, void **, size_t count, fi_addr_t dest, uint64_t addr,
                 uint64_t key, fi_datatype type, fi_op op, void *context)
{
    return post_atomic(f, atomic_form::write, defaults(f),
                       {iov, count, nullptr, 0, nullptr, 0, dest, addr, key, type, op, context});
}

ssize_t a_writemsg(fid_ep *f, const fi_msg_atomic *m, uint64_t flags)
{
    return atomic_msg(f, atomic_form::write, m, nullptr, 0, nullptr, 0, flags);
}

ssize_t a_inject(fid_ep *f, const void *buf, size_t count, fi_addr_t dest, uint64_t addr,
                 uint64_t key, fi_datatype type, fi_op op)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    return post_atomic(f, atomic_form::write, tx_inject,
                       {&iov, 1, nullptr, 0, nullptr, 0, dest, addr, key, type, op, nullptr});
}

ssize_t a_readwrite(fid_ep *f, const void *buf, size_t count, void *, void *result, void *,
                    fi_addr_t dest, uint64_t addr, uint64_t key, fi_datatype type, fi_op op,
                    void *context)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    fi_ioc res = {result, count};
    return post_atomic(f, atomic_form::fetch, defaults(f),
                       {&iov, 1, nullptr, 0, &res, 1, dest, addr, key, type, op, context});
}

ssize_t a_readwritev(fid_ep *f, const fi_ioc *iov, void **, size_t count, fi_ioc *result, void **,
                     size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
                     fi_datatype type, fi_op op, void *context)
{
    return post_atomic(
        f, atomic_form::fetch, defaults(f),
        {iov, count, nullptr, 0, result, result_count, dest, addr, key, type, op, context});
}

ssize_t a_readwritemsg(fid_ep *f, const fi_msg_atomic *m, fi_ioc *result, void **,
                       size_t result_count, uint64_t flags)
{
    return atomic_msg(f, atomic_form::fetch, m, nullptr, 0, result, result_count, flags);
}

ssize_t a_compwrite(fid_ep *f, const void *buf, size_t count, void *, const void *compare, void *,
                    void *result, void *, fi_addr_t dest, uint64_t addr, uint64_t key,
                    fi_datatype type, fi_op op, void *context)
{
    fi_ioc iov = {const_cast<void *>(buf), count};
    fi_ioc cmp = {const_cast<void *>(compare), count};
    fi_ioc res = {result, count};
    return post_atomic(f, atomic_form::compare, defaults(f),
                       {&iov, 1, &cmp, 1, &res, 1, dest, addr, key, type, op, context});
}

ssize_t a_compwritev(fid_ep *f, const fi_ioc *iov, void **, size_t count, const fi_ioc *compare,
                     void **, size_t compare_count, fi_ioc *result, void **, size_t result_count,
                     fi_addr_t dest, uint64_t addr, uint64_t key, fi_datatype type, fi_op op,
                     void *context)
{
    return post_atomic(f, atomic_form::compare, defaults(f),
                       {iov, count, compare, compare_count, result, result_count, dest, addr, key,
                        type, op, context});
}

ssize_t a_compwritemsg(fid_ep *f, const fi_msg_atomic *m, const fi_ioc *compare, void **,
                       size_t compare_count, fi_ioc *result, void **, size_t result_count,
                       uint64_t flags)
{
    return atomic_msg(f, atomic_form::compare, m, compare, compare_count, result, result_count,
                      flags);
}

int valid(atomic_form form, fi_datatype type, fi_op op, size_t *count)
{
    if (!atomic_valid(type, op, form)) {
        return -FI_EOPNOTSUPP;
    }
    if (count) {
        *count = limit::atomic_bytes / atomic_size(type);
    }
    return 0;
}

} // namespace

int query_atomic(fid_domain *, fi_datatype type, fi_op op, fi_atomic_attr *attr, uint64_t flags)
{
    PROV_CHECK_ARG(DOMAIN, attr, "fi_query_atomic: attr must not be NULL\n");
    PROV_CHECK_ARG(DOMAIN, !(flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC | FI_TAGGED)),
                   "fi_query_atomic: flags 0x%lx are unknown\n", flags);
    atomic_form form = flags & FI_COMPARE_ATOMIC ? atomic_form::compare
                       : flags & FI_FETCH_ATOMIC ? atomic_form::fetch
                                                 : atomic_form::write;
    size_t count;
    int error = valid(form, type, op, &count);
    if (error) {
        return error;
    }
    attr->count = count;
    attr->size = atomic_size(type);
    return 0;
}

fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = readv,
    .readmsg = readmsg,
    .write = write,
    .writev = writev,
    .writemsg = writemsg,
    .inject = inject,
    .writedata = writedata,
    .injectdata = injectdata,
};

fi_ops_rma no_rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = no_op,
    .readv = no_op,
    .readmsg = no_op,
    .write = no_op,
    .writev = no_op,
    .writemsg = no_op,
    .inject = no_op,
    .writedata = no_op,
    .injectdata = no_op,
};

fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = a_write,
    .writev = a_writev,
    .writemsg = a_writemsg,
    .inject = a_inject,
    .readwrite = a_readwrite,
    .readwritev = a_readwritev,
    .readwritemsg = a_readwritemsg,
    .compwrite = a_compwrite,
    .compwritev = a_compwritev,
    .compwritemsg = a_compwritemsg,
    .writevalid = [](fid_ep *, fi_datatype type, fi_op op, size_t *count) -> int {
        return valid(atomic_form::write, type, op, count);
    },
    .readwritevalid = [](fid_ep *, fi_datatype type, fi_op op, size_t *count) -> int {
        return valid(atomic_form::fetch, type, op, count);
    },
    .compwritevalid = [](fid_ep *, fi_datatype type, fi_op op, size_t *count) -> int {
        return valid(atomic_form::compare, type, op, count);
    },
};

fi_ops_atomic no_atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = no_op,
    .writev = no_op,
    .writemsg = no_op,
    .inject = no_op,
    .readwrite = no_op,
    .readwritev = no_op,
    .readwritemsg = no_op,
    .compwrite = no_op,
    .compwritev = no_op,
    .compwritemsg = no_op,
    .writevalid = no_op,
    .readwritevalid = no_op,
    .compwritevalid = no_op,
};

} // namespace ucxlike
