// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/data/srx.h"

#include "prov/ucxlike/queue/cq.h"

namespace ucxlike {

srx::srx(domain *dom, void *context) : fid_ep(), domain_(dom), queue_(dom->fab->cm_engine())
{
    fid.fclass = FI_CLASS_SRX_CTX;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ep_ops_;
    cm = &no_cm_ops;
    msg = &srx_msg_ops;
    tagged = &srx_tagged_ops;
    rma = &no_rma_ops;
    atomic = &no_atomic_ops;
    collective = &no_collective_ops;
    domain_->add_ref();
}

srx::~srx()
{
    domain_->drop_ref();
}

int srx::open(fid_domain *d, fi_rx_attr *, fid_ep **out, void *context)
{
    PROV_CHECK_ARG(EP_CTRL, out, "fi_srx_context: rx_ep must not be NULL\n");
    return guard([&] {
        *out = new srx(from_fid<domain>(d), context);
        return 0;
    });
}

int srx::close(fid_t f)
{
    srx *self = from_base<srx, fid_ep>(f);
    if (self->users_ > 0) {
        PROV_WARN(EP_CTRL, "fi_close: the shared receive context is bound to %d endpoints\n",
                  self->users_.load());
        return -FI_EBUSY;
    }
    engine *e = self->queue_.eng();
    cq *bound = self->cq_;
    {
        ucs::opt_guard g(e->lock);
        delete self;
    }
    if (bound) {
        bound->remove_engine(e);
        bound->detach();
    }
    return 0;
}

int srx::control(fid_t, int command, void *)
{
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

// Completions go where the message came to; the rest goes to a queue bound here, if there is one.
int srx::bind(fid_t f, fid_t other, uint64_t)
{
    if (!other || (other->fclass != FI_CLASS_CQ && other->fclass != FI_CLASS_CNTR)) {
        return -FI_EINVAL;
    }
    if (other->fclass == FI_CLASS_CNTR) {
        PROV_WARN(EP_CTRL, "fi_ep_bind: receives are counted where the endpoint is bound to\n");
        return -FI_EOPNOTSUPP;
    }
    srx *self = from_base<srx, fid_ep>(f);
    PROV_CHECK_ARG(EP_CTRL, !self->cq_, "fi_ep_bind: a completion queue is bound already\n");
    return guard([&] {
        cq *q = from_base<cq, fid_cq>(other);
        engine *e = self->queue_.eng();
        q->add_engine(e);
        q->attach();
        ucs::opt_guard g(e->lock);
        self->cq_ = q;
        self->queue_.report_to(q);
        return 0;
    });
}

ssize_t srx::cancel(fid_t f, void *context)
{
    srx *self = from_base<srx, fid_ep>(f);
    ucs::opt_guard g(self->queue_.eng()->lock);
    return self->queue_.cancel(context) ? 0 : -FI_ENOENT;
}

fi_ops srx::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_ep srx::ep_ops_ = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = [](fid_t, int, int, void *, size_t *) -> int { return -FI_ENOPROTOOPT; },
    .setopt = [](fid_t, int, int, const void *, size_t) -> int { return -FI_ENOPROTOOPT; },
    .tx_ctx = no_op,
    .rx_ctx = no_op,
    .rx_size_left = no_op,
    .tx_size_left = no_op,
};

fi_ops_cm no_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = no_op,
    .getname = no_op,
    .getpeer = no_op,
    .connect = no_op,
    .listen = no_op,
    .accept = no_op,
    .reject = no_op,
    .shutdown = no_op,
    .join = no_op,
};

} // namespace ucxlike
