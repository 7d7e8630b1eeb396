// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/connect/rdm.h"

#include "prov/ucxlike/av.h"
#include "prov/ucxlike/connect/mc.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/rx.h"
#include "prov/ucxlike/data/srx.h"
#include "prov/ucxlike/data/tx.h"
#include "prov/ucxlike/info.h"
#include "prov/ucxlike/queue/eq.h"

#include "ucp/connect/greeting.h"
#include "ucs/sys.h"

#include <algorithm>
#include <utility>

namespace ucxlike {

// ---- the endpoint ----

rdm_endpoint::rdm_endpoint(domain *d, const fi_info &info, void *context)
    : endpoint(d, info, context, true), name_(address::from(info.src_addr, info.src_addrlen)),
      incarnation_(ucs::random_u64())
{
    if (name_.empty()) {
        name_ = default_source(d->addr_format() == FI_SOCKADDR_IN6 ? AF_INET6 : AF_INET);
    }
    cm = &cm_ops_;
    engine_ = std::make_unique<engine>(d->fab->context(), d->locked());
    eng = engine_.get();
}

// Endpoints that share receives share the engine where messages arrive.
void rdm_endpoint::bind_shared_rx()
{
    eng = dom->fab->cm_engine();
    engine_.reset();
}

rdm_endpoint::~rdm_endpoint()
{
    if (engine_) {
        eng->stop_auto_progress();
    }
    queues bound;
    {
        ucs::opt_guard g(eng->lock);
        bound = take_queues();
        if (listener_) {
            ucp_listener_destroy(listener_);
        }
        flush_outstanding(nullptr, FI_ECANCELED);
        while (tx_op *op = outstanding.pop_front()) {
            op->owner = nullptr;
        }
        own_rx_.reset();
        claims_.clear();
        for (auto &p : peers_) {
            p->tx = nullptr;
            p->owner = nullptr;
            if (bound.shared && rx) {
                rx->purge(p.get());
            }
            drop_deferred(p.get());
        }
        if (!engine_) {
            leave_shared_engine();
        }
    }
    bound.let_go();
    engine_.reset(); // before the peers, which its last operations still name
}

void rdm_endpoint::leave_shared_engine()
{
    eng->abandon(this);
    for (auto &p : peers_) {
        eng->ids.erase(p->rx_id);
        if (p->outstanding == 0) {
            continue;
        }
        p->detached = true;
        p.release(); // goes with its last operation
    }
}

void rdm_endpoint::detach()
{
    if (av_) {
        av_->detach(this);
    }
    // What was sent should arrive, also when the process ends after this call.
    if (enabled && inflight) {
        eng->progress_until([this] { return inflight == 0; }, param_int("close_timeout", 500));
    }
}

int rdm_endpoint::bind_av(av *a)
{
    PROV_CHECK_ARG(EP_CTRL, !av_, "fi_ep_bind: an address vector is bound already\n");
    table_.clear(); // of an attempt that found no memory
    index_.clear();
    for (fi_addr_t i = 0; i < a->size(); ++i) {
        address at = a->at(i);
        if (!at.empty()) {
            address_inserted(at, i, a->reported(i));
        }
    }
    a->attach(this);
    av_ = a;
    return 0;
}

int rdm_endpoint::check_bound()
{
    if (!av_) {
        PROV_WARN(EP_CTRL, "fi_enable: an RDM endpoint needs an address vector\n");
        return -FI_ENOAV;
    }
    if (!tx_cq && !rx_cq && !send_cntr && !recv_cntr && !read_cntr && !write_cntr) {
        PROV_WARN(EP_CTRL, "fi_enable: no completion queue is bound\n");
        return -FI_ENOCQ;
    }
    return 0;
}

// The listener comes last: no peer knows of the endpoint when something fails before.
int rdm_endpoint::enable()
{
    ucs::opt_guard g(eng->lock);
    if (dom->auto_progress()) {
        eng->start_auto_progress();
    }
    if (shared_rx_) {
        shared_rx_->queue()->join(this);
        rx = shared_rx_->queue();
    } else {
        own_rx_ = std::make_unique<rx_queue>(eng);
        rx = own_rx_.get();
    }
    if (int error = guard([this] {
            listen();
            return 0;
        })) {
        if (shared_rx_) {
            rx->leave(this);
        }
        rx = nullptr;
        own_rx_.reset();
        return error;
    }
    return 0;
}

void rdm_endpoint::listen()
{
    address at = name_;
    if (is_any(at)) {
        // A name must be one that a peer can connect to.
        address concrete = default_source(at.sa.sa_family);
        concrete.set_port(at.port());
        at = concrete;
    }
    address actual;
    listener_ = eng->listen(at, this, &actual);
    at.set_port(actual.port());
    name_ = at;
}

ssize_t rdm_endpoint::not_yet(conn *to)
{
    auto *p = static_cast<peer *>(to);
    if (p->refused) {
        return -std::exchange(p->refused, 0);
    }
    if (p->greeted == p->tx) {
        return -FI_EAGAIN;
    }
    int error = guard([&] {
        greet(p);
        p->greeted = p->tx;
        return 0;
    });
    return error ? error : -FI_EAGAIN;
}

void rdm_endpoint::greet(peer *p)
{
    tx_op *op = eng->begin_own();
    wire::builder b(op->header);
    b.say_hello(hello_for(p));
    eng->send_own(p->tx, op, b.finish(0, wire::none), nullptr, 0);
}

// The request carries the hello, too. So the peer identifies the link even if this process makes no
// further progress.
void rdm_endpoint::call(peer *p)
{
    uint8_t words[wire::max_header];
    wire::builder b(words);
    b.say_hello(hello_for(p));
    size_t length = b.finish(0, wire::connect);
    p->tx = eng->connect(p->name, nullptr, p, this, {reinterpret_cast<char *>(words), length});
    p->tx_id = 0;
}

wire::hello rdm_endpoint::hello_for(const conn *to)
{
    return wire::make_hello(name_, incarnation_, to->rx_id);
}

// The first entry of an address speaks for all.
fi_addr_t rdm_endpoint::reported(const address &name) const
{
    fi_addr_t first = FI_ADDR_NOTAVAIL;
    auto [from, to] = index_.equal_range(name);
    for (; from != to; ++from) {
        first = std::min(first, from->second);
    }
    return first == FI_ADDR_NOTAVAIL ? first : table_[first].reported;
}

peer *rdm_endpoint::peer_at(fi_addr_t index)
{
    if (index >= table_.size() || table_[index].at.empty()) {
        return nullptr;
    }
    peer *p = peer_named(table_[index].at);
    if (routes_.size() < table_.size()) {
        routes_.resize(table_.size());
    }
    routes_[index] = p;
    return p;
}

conn *rdm_endpoint::route_slow(fi_addr_t dest, int *error)
{
    *error = -FI_EINVAL;
    if (!enabled) {
        *error = -FI_EOPBADSTATE;
        return nullptr;
    }
    peer *p = nullptr;
    int failed = guard([&] {
        p = peer_at(dest);
        if (!p) {
            return 0;
        }
        if (!p->tx) {
            call(p);
        }
        return 0;
    });
    if (failed) {
        *error = failed;
        return nullptr;
    }
    if (!p) {
        PROV_WARN(EP_DATA, "dest_addr 0x%lx is not in the address vector\n", dest);
    }
    return p;
}

const conn *rdm_endpoint::source_slow(fi_addr_t addr)
{
    peer *p = nullptr;
    guard([&] {
        p = peer_at(addr);
        return 0;
    });
    return p;
}

void rdm_endpoint::address_inserted(const address &a, fi_addr_t index, fi_addr_t report)
{
    ucs::opt_guard g(eng->lock);
    if (table_.size() <= index) {
        table_.resize(index + 1);
    }
    unalias(a);
    index_.emplace(a, index);
    table_[index] = {a, report};
    if (index < routes_.size()) {
        routes_[index] = nullptr;
    }
    auto it = names_.find(a);
    if (it != names_.end()) {
        it->second->addr = reported(a);
    }
}

// The connection stays: the peer may still send, or be inserted again.
void rdm_endpoint::address_removed(const address &a, fi_addr_t index)
{
    ucs::opt_guard g(eng->lock);
    if (index < table_.size()) {
        table_[index] = {};
    }
    if (index < routes_.size()) {
        routes_[index] = nullptr;
    }
    auto [from, to] = index_.equal_range(a);
    for (auto it = from; it != to;) {
        it = it->second == index ? index_.erase(it) : std::next(it);
    }
    auto it = names_.find(a);
    if (it != names_.end()) {
        it->second->addr = reported(a);
    }
}

// ---- connections that come in ----

void rdm_endpoint::connected(ucp_conn_request_h request)
{
    ucp_conn_request_attr_t attr = {};
    attr.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
    address from;
    if (ucp_conn_request_query(request, &attr) == UCS_OK) {
        from = address::from(&attr.client_address, sizeof(attr.client_address));
    }
    auto greeting = ucp::greeting_of(request);
    uint8_t words[wire::max_header] = {};
    size_t length = std::min(greeting.size(), sizeof(words));
    std::copy_n(greeting.begin(), length, words); // they go with the request
    link *l = nullptr;
    if (guard([&] {
            l = eng->accept(request, nullptr, this);
            return 0;
        })) {
        ucp_listener_reject(listener_, request);
    }
    if (!l) {
        return;
    }
    l->from = from;
    wire::message m;
    if (wire::parse(words, length, m) && m.kind == wire::connect && m.hello) {
        identify(l, m);
    } else if (m.other_version) {
        eng->refuse_version(l, m);
    }
}

// ---- names ----

int rdm_endpoint::getname(fid_t f, void *addr, size_t *length)
{
    auto *self = static_cast<rdm_endpoint *>(from_base<endpoint, fid_ep>(f));
    PROV_CHECK_ARG(EP_CTRL, length, "fi_getname: addrlen must not be NULL\n");
    return copy_address(self->name_, addr, length, true);
}

int rdm_endpoint::setname(fid_t f, void *addr, size_t length)
{
    auto *self = static_cast<rdm_endpoint *>(from_base<endpoint, fid_ep>(f));
    address a = address::from(addr, length);
    PROV_CHECK_ARG(EP_CTRL, !a.empty(), "fi_setname: addr is not a socket address\n");
    if (self->enabled) {
        return -FI_EOPBADSTATE;
    }
    self->name_ = a;
    return 0;
}

fi_ops_cm rdm_endpoint::cm_ops_ = {
    .size = sizeof(fi_ops_cm),
    .setname = setname,
    .getname = getname,
    .getpeer = no_op,
    .connect = no_op,
    .listen = no_op,
    .accept = no_op,
    .reject = no_op,
    .shutdown = no_op,
    .join = group::join,
};

} // namespace ucxlike
