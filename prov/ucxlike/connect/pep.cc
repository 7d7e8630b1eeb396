// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/connect/pep.h"

#include "prov/ucxlike/info.h"
#include "prov/ucxlike/queue/eq.h"

#include "ucp/connect/greeting.h"

#include <cerrno>
#include <memory>
#include <unistd.h>

namespace ucxlike {

pep::pep(fabric *fab, const fi_info &info, void *context)
    : fid_pep(), fabric_(fab), eng_(fab->cm_engine()), info_(fi_dupinfo(&info)),
      name_(address::from(info.src_addr, info.src_addrlen)),
      backlog_(param_int("backlog", limit::backlog))
{
    if (!info_) {
        throw failure{FI_ENOMEM};
    }
    fid.fclass = FI_CLASS_PEP;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ep_ops_;
    cm = &cm_ops_;
    if (info.domain_attr && info.domain_attr->control_progress == FI_PROGRESS_AUTO) {
        eng_->start_auto_progress();
    }
    fabric_->add_ref();
}

pep::~pep()
{
    {
        ucs::opt_guard g(eng_->lock);
        auto conns = std::move(conns_);
        conns_.clear();
        for (msg_conn *c : conns) {
            c->listener = nullptr;
            c->reject(nullptr, 0);
            c->release();
        }
        if (listener_) {
            ucp_listener_destroy(listener_);
        }
        if (events_) {
            events_->purge(&fid);
        }
    }
    if (events_) {
        if (listener_) {
            events_->remove_engine(eng_);
        }
        events_->detach();
    }
    if (holder_ >= 0) {
        ::close(holder_);
    }
    fi_freeinfo(info_);
    fabric_->drop_ref();
}

int pep::open(fid_fabric *f, fi_info *info, fid_pep **out, void *context)
{
    PROV_CHECK_ARG(EP_CTRL, info && info->ep_attr && out,
                   "fi_passive_ep: info, info->ep_attr and pep must not be NULL\n");
    PROV_CHECK_ARG(EP_CTRL, info->ep_attr->type == FI_EP_MSG,
                   "fi_passive_ep: info->ep_attr->type %d is not FI_EP_MSG\n", info->ep_attr->type);
    return guard([&] {
        *out = new pep(from_fid<fabric>(f), *info, context);
        return 0;
    });
}

int pep::close(fid_t f)
{
    delete from_base<pep, fid_pep>(f);
    return 0;
}

int pep::bind(fid_t f, fid_t other, uint64_t)
{
    pep *self = from_base<pep, fid_pep>(f);
    PROV_CHECK_ARG(EP_CTRL, other && other->fclass == FI_CLASS_EQ,
                   "fi_pep_bind: fid must be an event queue\n");
    PROV_CHECK_ARG(EP_CTRL, !self->events_, "fi_pep_bind: an event queue is bound already\n");
    self->events_ = from_base<eq, fid_eq>(other);
    self->events_->attach();
    return 0;
}

int pep::control(fid_t f, int command, void *arg)
{
    pep *self = from_base<pep, fid_pep>(f);
    if (command != FI_BACKLOG) {
        return -FI_ENOSYS;
    }
    PROV_CHECK_ARG(EP_CTRL, arg, "fi_control: arg of FI_BACKLOG must not be NULL\n");
    int backlog = *static_cast<int *>(arg);
    PROV_CHECK_ARG(EP_CTRL, backlog > 0, "fi_control: FI_BACKLOG must be above 0\n");
    ucs::opt_guard g(self->eng_->lock);
    self->backlog_ = backlog;
    return 0;
}

// Takes a port now, so that fi_getname can tell it before fi_listen.
int pep::assign(address at)
{
    if (holder_ >= 0) {
        ::close(holder_);
    }
    holder_ = socket(at.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;
    if (holder_ < 0) {
        return -errno;
    }
    setsockopt(holder_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    socklen_t length = at.length();
    if (::bind(holder_, &at.sa, length) != 0 || ::getsockname(holder_, &at.sa, &length) != 0) {
        int error = errno;
        PROV_WARN(EP_CTRL, "fi_setname: %s\n", ::strerror(error));
        ::close(holder_);
        holder_ = -1;
        return -error;
    }
    name_ = at;
    return 0;
}

int pep::setname(fid_t f, void *addr, size_t length)
{
    pep *self = from_base<pep, fid_pep>(f);
    address a = address::from(addr, length);
    PROV_CHECK_ARG(EP_CTRL, !a.empty(), "fi_setname: addr is not a socket address\n");
    if (self->listener_) {
        return -FI_EOPBADSTATE;
    }
    return self->assign(a);
}

int pep::getname(fid_t f, void *addr, size_t *length)
{
    pep *self = from_base<pep, fid_pep>(f);
    PROV_CHECK_ARG(EP_CTRL, length, "fi_getname: addrlen must not be NULL\n");
    address a = self->name_;
    if (a.empty()) {
        a.in4.sin_family = AF_INET;
    }
    return copy_address(a, addr, length, true);
}

address pep::hand_over()
{
    if (holder_ >= 0) {
        ::close(holder_);
    }
    holder_ = -1;
    return name_;
}

int pep::listen(fid_pep *f)
{
    pep *self = from_fid<pep>(f);
    PROV_CHECK_ARG(EP_CTRL, self->events_, "fi_listen: no event queue is bound\n");
    if (self->listener_) {
        return -FI_EOPBADSTATE;
    }
    return guard([&] {
        address at = self->name_;
        if (at.empty()) {
            at.in4.sin_family = AF_INET; // any address, any port
        }
        self->hand_over();
        {
            ucs::opt_guard g(self->eng_->lock);
            address actual;
            self->listener_ = self->eng_->listen(at, self, &actual);
            self->name_ = actual;
        }
        // Without the engine's lock: a queue's comes first.
        self->events_->add_engine(self->eng_);
        return 0;
    });
}

void pep::connected(ucp_conn_request_h request)
{
    auto words = ucp::greeting_of(request);
    wire::message m;
    std::string_view data;
    bool ours = wire::parse(words.data(), words.size(), m, &data);
    wire::hello h = {};
    if (ours && m.hello) {
        memcpy(&h, m.hello, sizeof(h));
    }
    if (m.other_version) {
        PROV_WARN(
            EP_CTRL,
            "a client speaks version %u of the provider's protocol, this library version %u\n",
            m.other_version, wire::version);
    }
    if (m.kind != wire::connect || !wire::is_id(h.id)) {
        PROV_INFO(EP_CTRL, "a connection that is not of a MSG endpoint is refused\n");
        ucp_listener_reject(listener_, request);
        return;
    }
    if (conns_.size() >= static_cast<size_t>(backlog_)) {
        PROV_INFO(EP_CTRL, "a connection over the backlog of %d is refused\n", backlog_);
        ucp_listener_reject(listener_, request);
        return;
    }
    ucp_conn_request_attr_t attr = {};
    attr.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
    ucs_status_t known = ucp_conn_request_query(request, &attr);
    int error = guard([&] {
        auto c = std::make_unique<msg_conn>(eng_);
        c->pending_id = h.id;
        c->local_name = name_;
        if (known == UCS_OK) {
            c->peer_name = address::from(&attr.client_address, sizeof(attr.client_address));
        }
        conns_.reserve(conns_.size() + 1);
        requested(c.get(), data);
        c->now = msg_conn::state::requested; // as idle: before the connection
        c->request = request;
        c->listener = this;
        conns_.push_back(c.release());
        return 0;
    });
    if (error) {
        ucp_listener_reject(listener_, request);
    }
}

void pep::requested(msg_conn *c, std::string_view data)
{
    eq::slot event = eq::make_slot();
    eq::event &e = event.front();
    e.bytes = data;
    fi_info *info = fi_dupinfo(info_);
    if (!info) {
        throw failure{FI_ENOMEM};
    }
    free(info->src_addr);
    free(info->dest_addr);
    info->src_addr = info->dest_addr = nullptr;
    info->src_addrlen = info->dest_addrlen = 0;
    set_address(&info->src_addr, &info->src_addrlen, name_);
    set_address(&info->dest_addr, &info->dest_addrlen, c->peer_name);
    info->handle = &c->handle;
    e.type = FI_CONNREQ;
    e.fid = &fid;
    e.cm = true;
    e.info = info;
    events_->write(std::move(event));
}

void pep::forget(msg_conn *c)
{
    std::erase(conns_, c);
}

int pep::reject(fid_pep *f, fid_t handle, const void *param, size_t length)
{
    pep *self = from_fid<pep>(f);
    PROV_CHECK_ARG(EP_CTRL, handle && handle->fclass == FI_CLASS_CONNREQ,
                   "fi_reject: handle is not that of a connection request\n");
    PROV_CHECK_ARG(EP_CTRL, param || !length, "fi_reject: param must not be NULL\n");
    PROV_CHECK_ARG(EP_CTRL, length <= limit::cm_data, "fi_reject: paramlen %zu is over %zu\n",
                   length, limit::cm_data);
    ucs::opt_guard g(self->eng_->lock);
    return guard([&] {
        msg_conn *c = msg_conn::of_handle(handle);
        if (c->owner) {
            return -FI_EBUSY;
        }
        c->reject(param, length);
        c->release();
        return 0;
    });
}

int pep::getopt(fid_t, int level, int name, void *value, size_t *length)
{
    if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) {
        return -FI_ENOPROTOOPT;
    }
    return get_option(limit::cm_data, value, length);
}

fi_ops pep::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = bind,
    .control = control,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_ep pep::ep_ops_ = {
    .size = sizeof(fi_ops_ep),
    .cancel = no_op,
    .getopt = getopt,
    .setopt = [](fid_t, int, int, const void *, size_t) -> int { return -FI_ENOPROTOOPT; },
    .tx_ctx = no_op,
    .rx_ctx = no_op,
    .rx_size_left = no_op,
    .tx_size_left = no_op,
};

fi_ops_cm pep::cm_ops_ = {
    .size = sizeof(fi_ops_cm),
    .setname = setname,
    .getname = getname,
    .getpeer = no_op,
    .connect = no_op,
    .listen = listen,
    .accept = no_op,
    .reject = reject,
    .shutdown = no_op,
    .join = no_op,
};

} // namespace ucxlike
