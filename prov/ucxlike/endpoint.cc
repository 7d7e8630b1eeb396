// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/endpoint.h"

#include "prov/ucxlike/av.h"
#include "prov/ucxlike/connect/msg.h"
#include "prov/ucxlike/connect/rdm.h"
#include "prov/ucxlike/data/rx.h"
#include "prov/ucxlike/data/srx.h"
#include "prov/ucxlike/data/tx.h"
#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"
#include "prov/ucxlike/queue/eq.h"

namespace ucxlike {

endpoint::endpoint(domain *d, const fi_info &info, void *context, bool rdm)
    : fid_ep(), dom(d), is_rdm(rdm), caps(info.caps)
{
    fid.fclass = FI_CLASS_EP;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ep_ops_;
    msg = &msg_ops;
    tagged = &tagged_ops;
    rma = &rma_ops;
    atomic = &atomic_ops;
    collective = &no_collective_ops;
    if (info.tx_attr) {
        tx_flags = info.tx_attr->op_flags;
    }
    if (info.rx_attr) {
        rx_flags = info.rx_attr->op_flags;
    }
    size_t size = info.tx_attr && info.tx_attr->size ? info.tx_attr->size : limit::tx_size;
    tx_limit = d->tx_size() ? d->tx_size() : size;
    dom->add_ref();
}

endpoint::~endpoint()
{
    dom->drop_ref();
}

int endpoint::open(fid_domain *d, fi_info *info, fid_ep **out, void *context)
{
    PROV_CHECK_ARG(EP_CTRL, info && info->ep_attr && out,
                   "fi_endpoint: info, info->ep_attr and ep must not be NULL\n");
    return guard([&] {
        auto *dom = from_fid<domain>(d);
        switch (info->ep_attr->type) {
        case FI_EP_RDM:
            *out = new rdm_endpoint(dom, *info, context);
            return 0;
        case FI_EP_MSG:
            *out = new msg_endpoint(dom, *info, context);
            return 0;
        default:
            PROV_WARN(EP_CTRL, "fi_endpoint: info->ep_attr->type %d is not supported\n",
                      info->ep_attr->type);
            return -FI_EINVAL;
        }
    });
}

unsigned endpoint::tx_options(uint64_t flags) const
{
    unsigned o = 0;
    if (!tx_selective || (flags & FI_COMPLETION)) {
        o |= tx_complete;
    }
    if (flags & FI_REMOTE_CQ_DATA) {
        o |= tx_data;
    }
    if (flags & FI_INJECT) {
        o |= tx_inject;
    }
    if (flags & (FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)) {
        o |= tx_deliver;
    } else if (flags & FI_TRANSMIT_COMPLETE) {
        o |= tx_transmit;
    }
    if (flags & FI_MULTICAST) {
        o |= tx_group;
    }
    if (flags & FI_FENCE) {
        o |= tx_fence;
    }
    return o;
}

template <class F>
void endpoint::for_each_queue(F &&f)
{
    if (tx_cq) {
        f(tx_cq);
    }
    if (rx_cq) {
        f(rx_cq);
    }
    if (events) {
        f(events);
    }
    for (cntr *c :
         {send_cntr, recv_cntr, read_cntr, write_cntr, remote_read_cntr, remote_write_cntr}) {
        if (c) {
            f(c);
        }
    }
}

// All of them or, with an exception, none.
void endpoint::attach_queues()
{
    size_t done = 0;
    try {
        for_each_queue([&](auto *q) {
            q->add_engine(eng);
            ++done;
        });
        dom->add_engine(eng);
    } catch (...) {
        detach_queues(done);
        throw;
    }
}

void endpoint::detach_queues(size_t count)
{
    for_each_queue([&](auto *q) {
        if (count > 0) {
            q->remove_engine(eng);
            --count;
        }
    });
}

endpoint::queues endpoint::take_queues()
{
    if (shared_rx_ && rx) {
        rx->leave(this);
    }
    queues taken = {
        enabled ? eng : nullptr,
        dom,
        tx_cq,
        rx_cq,
        events,
        {send_cntr, recv_cntr, read_cntr, write_cntr, remote_read_cntr, remote_write_cntr},
        shared_rx_};
    tx_cq = rx_cq = nullptr;
    events = nullptr;
    send_cntr = recv_cntr = read_cntr = write_cntr = remote_read_cntr = remote_write_cntr = nullptr;
    shared_rx_ = nullptr;
    return taken;
}

void endpoint::queues::let_go()
{
    auto detach = [this](auto *q) {
        if (!q) {
            return;
        }
        if (eng) {
            q->remove_engine(eng);
        }
        q->detach();
    };
    if (eng) {
        dom->remove_engine(eng);
    }
    detach(tx);
    detach(rx);
    detach(events);
    for (cntr *c : counters) {
        detach(c);
    }
    if (shared) {
        shared->detach();
    }
}

// Operations that wait for the peer's word will not get it any more.
void endpoint::flush_outstanding(conn *only, int error)
{
    for (tx_op *op : outstanding) {
        if (only && op->to != only) {
            continue;
        }
        if (!(op->pending & tx_op::wait_ack)) {
            continue;
        }
        if (!op->error) {
            op->error = error;
        }
        eng->acks.erase(op->ack_id);
        op->pending &= ~tx_op::wait_ack;
        if (!op->pending) {
            tx_finish(op);
        }
    }
}

int endpoint::close(fid_t f)
{
    auto *self = from_base<endpoint, fid_ep>(f);
    if (self->has_groups()) {
        PROV_WARN(EP_CTRL, "fi_close: the endpoint is in multicast groups\n");
        return -FI_EBUSY;
    }
    return guard([&] {
        self->detach();
        delete self;
        return 0;
    });
}

int endpoint::bind_cq(cq *q, uint64_t flags)
{
    PROV_CHECK_ARG(EP_CTRL,
                   (flags & (FI_SEND | FI_RECV)) &&
                       !(flags & ~(FI_SEND | FI_RECV | FI_SELECTIVE_COMPLETION)),
                   "fi_ep_bind: flags 0x%lx do not fit a completion queue\n", flags);
    PROV_CHECK_ARG(EP_CTRL, !((flags & FI_SEND) && tx_cq) && !((flags & FI_RECV) && rx_cq),
                   "fi_ep_bind: a completion queue is bound already\n");
    if (flags & FI_SEND) {
        tx_cq = q;
        tx_selective = flags & FI_SELECTIVE_COMPLETION;
        q->attach();
    }
    if (flags & FI_RECV) {
        rx_cq = q;
        rx_selective = flags & FI_SELECTIVE_COMPLETION;
        q->attach();
    }
    return 0;
}

int endpoint::bind_cntr(cntr *c, uint64_t flags)
{
    struct {
        uint64_t flag;
        cntr *endpoint::*member;
    } slots[] = {{FI_SEND, &endpoint::send_cntr},
                 {FI_RECV, &endpoint::recv_cntr},
                 {FI_READ, &endpoint::read_cntr},
                 {FI_WRITE, &endpoint::write_cntr},
                 {FI_REMOTE_READ, &endpoint::remote_read_cntr},
                 {FI_REMOTE_WRITE, &endpoint::remote_write_cntr}};
    uint64_t known = 0;
    for (auto &s : slots) {
        known |= s.flag;
    }
    PROV_CHECK_ARG(EP_CTRL, (flags & known) && !(flags & ~known),
                   "fi_ep_bind: flags 0x%lx do not fit a counter\n", flags);
    for (auto &s : slots) {
        if (!(flags & s.flag)) {
            continue;
        }
        PROV_CHECK_ARG(EP_CTRL, !(this->*s.member), "fi_ep_bind: a counter is bound already\n");
        this->*s.member = c;
        c->attach();
    }
    return 0;
}

int endpoint::bind(fid_t f, fid_t other, uint64_t flags)
{
    auto *self = from_base<endpoint, fid_ep>(f);
    PROV_CHECK_ARG(EP_CTRL, other, "fi_ep_bind: fid must not be NULL\n");
    PROV_CHECK_ARG(EP_CTRL, !self->enabled, "fi_ep_bind: the endpoint is enabled already\n");
    switch (other->fclass) {
    case FI_CLASS_CQ:
        return self->bind_cq(from_base<cq, fid_cq>(other), flags);
    case FI_CLASS_EQ:
        PROV_CHECK_ARG(EP_CTRL, !self->events, "fi_ep_bind: an event queue is bound already\n");
        self->events = from_base<eq, fid_eq>(other);
        self->events->attach();
        return 0;
    case FI_CLASS_CNTR:
        return self->bind_cntr(from_base<cntr, fid_cntr>(other), flags);
    case FI_CLASS_AV:
        return guard([&] { return self->bind_av(from_base<av, fid_av>(other)); });
    case FI_CLASS_SRX_CTX: {
        PROV_CHECK_ARG(EP_CTRL, !self->shared_rx_,
                       "fi_ep_bind: a shared receive context is bound already\n");
        return guard([&] {
            self->bind_shared_rx();
            self->shared_rx_ = from_base<srx, fid_ep>(other);
            self->shared_rx_->attach();
            return 0;
        });
    }
    case FI_CLASS_MR:
        return 0;
    default:
        PROV_WARN(EP_CTRL, "fi_ep_bind: fid is of class %zu\n", other->fclass);
        return -FI_EINVAL;
    }
}

int endpoint::control(fid_t f, int command, void *arg)
{
    auto *self = from_base<endpoint, fid_ep>(f);
    switch (command) {
    case FI_ENABLE:
        if (self->enabled) {
            return -FI_EOPBADSTATE;
        }
        return guard([&] {
            self->tx_defaults = self->tx_options(self->tx_flags) & ~(tx_inject | tx_data);
            if (int error = self->check_bound()) {
                return error;
            }
            self->attach_queues();
            int error = guard([&] { return self->enable(); });
            self->enabled = !error;
            if (error) {
                self->dom->remove_engine(self->eng);
                self->detach_queues(SIZE_MAX);
            }
            return error;
        });
    case FI_GETOPSFLAG: {
        PROV_CHECK_ARG(EP_CTRL, arg, "fi_control: arg of FI_GETOPSFLAG must not be NULL\n");
        auto *flags = static_cast<uint64_t *>(arg);
        PROV_CHECK_ARG(EP_CTRL, !(*flags & FI_TRANSMIT) != !(*flags & FI_RECV),
                       "fi_control: FI_GETOPSFLAG needs FI_TRANSMIT or FI_RECV\n");
        *flags = *flags & FI_TRANSMIT ? self->tx_flags : self->rx_flags;
        return 0;
    }
    case FI_SETOPSFLAG: {
        PROV_CHECK_ARG(EP_CTRL, arg, "fi_control: arg of FI_SETOPSFLAG must not be NULL\n");
        uint64_t flags = *static_cast<uint64_t *>(arg);
        PROV_CHECK_ARG(EP_CTRL, !(flags & FI_TRANSMIT) != !(flags & FI_RECV),
                       "fi_control: FI_SETOPSFLAG needs FI_TRANSMIT or FI_RECV\n");
        uint64_t known = flags & FI_TRANSMIT ? tx_call_flags : FI_COMPLETION | FI_MULTI_RECV;
        if (check_flags("fi_control", flags & ~(FI_TRANSMIT | FI_RECV), known)) {
            return -FI_EBADFLAGS;
        }
        if (flags & FI_TRANSMIT) {
            self->tx_flags = flags & ~FI_TRANSMIT;
            self->tx_defaults = self->tx_options(self->tx_flags) & ~(tx_inject | tx_data);
        } else {
            self->rx_flags = flags & ~FI_RECV;
        }
        return 0;
    }
    default:
        return -FI_ENOSYS;
    }
}

ssize_t endpoint::cancel(fid_t f, void *context)
{
    auto *self = from_base<endpoint, fid_ep>(f);
    if (!self->rx) {
        return -FI_EINVAL;
    }
    ucs::opt_guard g(self->eng->lock);
    return self->rx->cancel(context) ? 0 : -FI_ENOENT;
}

int get_option(size_t value, void *to, size_t *length)
{
    PROV_CHECK_ARG(EP_CTRL, to && length, "fi_getopt: optval and optlen must not be NULL\n");
    if (*length < sizeof(size_t)) {
        *length = sizeof(size_t);
        return -FI_ETOOSMALL;
    }
    memcpy(to, &value, sizeof(value));
    *length = sizeof(value);
    return 0;
}

int endpoint::getopt(fid_t f, int level, int name, void *value, size_t *length)
{
    auto *self = from_base<endpoint, fid_ep>(f);
    if (level != FI_OPT_ENDPOINT) {
        return -FI_ENOPROTOOPT;
    }
    switch (name) {
    case FI_OPT_MIN_MULTI_RECV:
        return get_option(self->min_multi_recv, value, length);
    case FI_OPT_CM_DATA_SIZE:
        if (self->is_rdm) {
            return -FI_ENOPROTOOPT;
        }
        return get_option(limit::cm_data, value, length);
    default:
        return -FI_ENOPROTOOPT;
    }
}

int endpoint::setopt(fid_t f, int level, int name, const void *value, size_t length)
{
    auto *self = from_base<endpoint, fid_ep>(f);
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_MIN_MULTI_RECV) {
        return -FI_ENOPROTOOPT;
    }
    PROV_CHECK_ARG(EP_CTRL, value && length == sizeof(size_t),
                   "fi_setopt: FI_OPT_MIN_MULTI_RECV takes a size_t\n");
    memcpy(&self->min_multi_recv, value, sizeof(size_t));
    return 0;
}

fi_ops endpoint::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_ep endpoint::ep_ops_ = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = getopt,
    .setopt = setopt,
    .tx_ctx = no_op,
    .rx_ctx = no_op,
    .rx_size_left = [](fid_ep *) -> ssize_t { return limit::rx_size; },
    .tx_size_left = [](fid_ep *f) -> ssize_t {
        auto *ep = static_cast<endpoint *>(f);
        return static_cast<ssize_t>(ep->tx_limit - std::min(ep->tx_limit, ep->inflight));
    },
};

fi_ops_collective no_collective_ops = {
    .size = sizeof(fi_ops_collective),
    .barrier = no_op,
    .broadcast = no_op,
    .alltoall = no_op,
    .allreduce = no_op,
    .allgather = no_op,
    .reduce_scatter = no_op,
    .reduce = no_op,
    .scatter = no_op,
    .gather = no_op,
    .msg = no_op,
    .barrier2 = no_op,
};

} // namespace ucxlike
