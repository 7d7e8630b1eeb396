// SPDX-License-Identifier: BSD-3-Clause
//
// The endpoint of a connection: the calls of fi_cm(3) and what the application binds.
#include "prov/ucxlike/connect/msg.h"

#include "prov/ucxlike/connect/pep.h"
#include "prov/ucxlike/data/rx.h"
#include "prov/ucxlike/data/srx.h"
#include "prov/ucxlike/info.h"
#include "prov/ucxlike/queue/eq.h"

#include "ucp/connect/greeting.h"

namespace ucxlike {

msg_endpoint::msg_endpoint(domain *d, const fi_info &info, void *context)
    : endpoint(d, info, context, false), conn_(nullptr),
      name_(address::from(info.src_addr, info.src_addrlen)),
      dest_(address::from(info.dest_addr, info.dest_addrlen))
{
    cm = &cm_ops_;
    eng = d->fab->cm_engine();
    if (d->auto_progress()) {
        eng->start_auto_progress();
    }
    ucs::opt_guard g(eng->lock);
    if (info.handle && info.handle->fclass == FI_CLASS_CONNREQ) {
        conn_ = msg_conn::of_handle(info.handle);
        if (conn_->owner) {
            PROV_WARN(EP_CTRL, "fi_endpoint: info->handle is in use by another endpoint\n");
            throw failure{FI_EINVAL};
        }
        if (conn_->listener) {
            conn_->listener->forget(conn_);
        }
        conn_->listener = nullptr;
        if (conn_->request) {
            ucp::keep_request(conn_->request); // the passive endpoint may be closed first
        }
        name_ = conn_->local_name;
        dest_ = conn_->peer_name;
    } else {
        if (info.handle && info.handle->fclass == FI_CLASS_PEP) {
            name_ = from_base<pep, fid_pep>(info.handle)->hand_over();
        }
        conn_ = new msg_conn(eng);
    }
    conn_->owner = this;
    single_ = conn_;
}

msg_endpoint::~msg_endpoint()
{
    queues bound;
    {
        ucs::opt_guard g(eng->lock);
        bound = take_queues();
        if (bound.events) {
            bound.events->purge(&fid);
        }
        while (tx_op *op = outstanding.pop_front()) {
            op->owner = nullptr;
        }
        if (rx) {
            rx->purge(conn_);
        }
        own_rx_.reset();
        conn_->release();
    }
    bound.let_go();
}

void msg_endpoint::detach()
{
    if (!inflight) {
        return;
    }
    // Give what is on its way a moment, and more of it to what the application takes for sent. Then
    // take the link away under it.
    eng->progress_until([this] { return inflight == 0; }, 20);
    eng->progress_until([this] { return !has_injected(); }, linger_ms());
    ucs::opt_guard g(eng->lock);
    if (inflight && conn_->now == msg_conn::state::connected) {
        conn_->shutdown();
    }
    eng->progress_until([this] { return inflight == 0; }, param_int("close_timeout", 500));
}

bool msg_endpoint::has_injected()
{
    ucs::opt_guard g(eng->lock);
    for (tx_op *op : outstanding) {
        if (op->options & tx_op::injected) {
            return true;
        }
    }
    return false;
}

int msg_endpoint::check_bound()
{
    if (!events) {
        PROV_WARN(EP_CTRL, "fi_enable: a MSG endpoint needs an event queue\n");
        return -FI_ENOEQ;
    }
    if (!tx_cq && !rx_cq && !send_cntr && !recv_cntr && !read_cntr && !write_cntr) {
        PROV_WARN(EP_CTRL, "fi_enable: no completion queue is bound\n");
        return -FI_ENOCQ;
    }
    return 0;
}

int msg_endpoint::enable()
{
    if (shared_rx_) {
        shared_rx_->queue()->join(this);
        rx = shared_rx_->queue();
    } else {
        own_rx_ = std::make_unique<rx_queue>(eng);
        rx = own_rx_.get();
    }
    return 0;
}

conn *msg_endpoint::route_slow(fi_addr_t, int *error)
{
    *error = -FI_ENOTCONN;
    return nullptr;
}

int msg_endpoint::connect(fid_ep *f, const void *addr, const void *param, size_t length)
{
    msg_endpoint *self = from(f);
    PROV_CHECK_ARG(EP_CTRL, param || !length, "fi_connect: param must not be NULL\n");
    PROV_CHECK_ARG(EP_CTRL, length <= limit::cm_data, "fi_connect: paramlen %zu is over %zu\n",
                   length, limit::cm_data);
    address to = addr ? address::from(addr, sizeof(sockaddr_in6)) : self->dest_;
    PROV_CHECK_ARG(EP_CTRL, !to.empty(), "fi_connect: addr is not a socket address\n");
    if (!self->enabled) {
        int error = fi_enable(f);
        if (error) {
            return error;
        }
    }
    ucs::opt_guard g(self->eng->lock);
    if (self->conn_->now != msg_conn::state::idle) {
        PROV_WARN(EP_CTRL, "fi_connect: the endpoint has been connected before\n");
        return -FI_EISCONN;
    }
    return guard([&] {
        bool bound = !self->name_.empty() && self->name_.port() != 0;
        self->dest_ = to;
        return self->conn_->connect(to, bound ? &self->name_ : nullptr, param, length);
    });
}

int msg_endpoint::accept(fid_ep *f, const void *param, size_t length)
{
    msg_endpoint *self = from(f);
    PROV_CHECK_ARG(EP_CTRL, param || !length, "fi_accept: param must not be NULL\n");
    PROV_CHECK_ARG(EP_CTRL, length <= limit::cm_data, "fi_accept: paramlen %zu is over %zu\n",
                   length, limit::cm_data);
    if (!self->enabled) {
        int error = fi_enable(f);
        if (error) {
            return error;
        }
    }
    ucs::opt_guard g(self->eng->lock);
    return guard([&] { return self->conn_->accept(param, length); });
}

int msg_endpoint::shutdown(fid_ep *f, uint64_t flags)
{
    msg_endpoint *self = from(f);
    PROV_CHECK_ARG(EP_CTRL, flags == 0, "fi_shutdown: flags must be 0\n");
    ucs::opt_guard g(self->eng->lock);
    return guard([&] {
        if (self->conn_->now == msg_conn::state::idle) {
            return -FI_ENOTCONN;
        }
        self->conn_->shutdown();
        return 0;
    });
}

int msg_endpoint::setname(fid_t f, void *addr, size_t length)
{
    msg_endpoint *self = from(reinterpret_cast<fid_ep *>(f));
    address a = address::from(addr, length);
    PROV_CHECK_ARG(EP_CTRL, !a.empty(), "fi_setname: addr is not a socket address\n");
    if (self->conn_->now != msg_conn::state::idle) {
        return -FI_EOPBADSTATE;
    }
    self->name_ = a;
    return 0;
}

int msg_endpoint::getname(fid_t f, void *addr, size_t *length)
{
    msg_endpoint *self = from(reinterpret_cast<fid_ep *>(f));
    PROV_CHECK_ARG(EP_CTRL, length, "fi_getname: addrlen must not be NULL\n");
    ucs::opt_guard g(self->eng->lock);
    address a = self->conn_->own_name();
    if (a.empty()) {
        a = self->name_;
    }
    if (a.empty()) {
        a.in4.sin_family = AF_INET;
    }
    return copy_address(a, addr, length, true);
}

int msg_endpoint::getpeer(fid_ep *f, void *addr, size_t *length)
{
    msg_endpoint *self = from(f);
    PROV_CHECK_ARG(EP_CTRL, length, "fi_getpeer: addrlen must not be NULL\n");
    ucs::opt_guard g(self->eng->lock);
    if (self->conn_->peer_name.empty()) {
        return -FI_ENOTCONN;
    }
    return copy_address(self->conn_->peer_name, addr, length, true);
}

fi_ops_cm msg_endpoint::cm_ops_ = {
    .size = sizeof(fi_ops_cm),
    .setname = setname,
    .getname = getname,
    .getpeer = getpeer,
    .connect = connect,
    .listen = no_op,
    .accept = accept,
    .reject = no_op,
    .shutdown = shutdown,
    .join = no_op,
};

} // namespace ucxlike
