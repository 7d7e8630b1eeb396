// SPDX-License-Identifier: BSD-3-Clause
//
// Links: made, failed, closed. Messages find their sender by the id they carry; the handlers here
// only parse and hand on.
#include "prov/ucxlike/engine.h"

#include "prov/ucxlike/data/op.h"
#include "prov/ucxlike/data/rma.h"
#include "prov/ucxlike/data/rx.h"
#include "prov/ucxlike/data/tx.h"
#include "prov/ucxlike/endpoint.h"

#include "ucp/connect/greeting.h"
#include "ucs/sys.h"

#include <climits>
#include <poll.h>
#include <unistd.h>

namespace ucxlike {

uint64_t now_ms()
{
    return ucs::monotonic_ns() / 1000000;
}

engine::engine(ucp_context_h context, bool locked, bool lasts)
    : lasting(lasts), lock(locked), tx_ops(64), rx_ops(64), msgs(64)
{
    ucp_worker_params_t params = {};
    params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    params.thread_mode = locked ? UCS_THREAD_MODE_SERIALIZED : UCS_THREAD_MODE_SINGLE;
    if (ucs_status_t st = ucp_worker_create(context, &params, &worker); st != UCS_OK) {
        PROV_WARN(EP_CTRL, "ucp_worker_create: %s\n", ucs_status_string(st));
        throw failure{errno_of(st)};
    }
    static constexpr ucp_am_recv_callback_t handlers[] = {
        on_data<wire::am_msg>, on_data<wire::am_tagged>, on_control, on_data<wire::am_rma>};
    for (unsigned id = 0; id < wire::am_last; ++id) {
        ucp_am_handler_param_t p = {};
        p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
        p.id = id;
        p.cb = handlers[id];
        p.arg = this;
        if (ucs_status_t st = ucp_worker_set_am_recv_handler(worker, &p); st != UCS_OK) {
            ucp_worker_destroy(worker);
            throw failure{errno_of(st)};
        }
    }
    if (ucp_worker_get_efd(worker, &efd_) != UCS_OK) {
        efd_ = -1;
    }
}

engine::~engine()
{
    stop_thread();
    std::vector<link *> open;
    for (auto &[ep, l] : links_) {
        open.push_back(l);
    }
    for (link *l : open) {
        l->owner = nullptr;
        if (!l->closing) {
            close(l, l->failed);
        }
    }
    progress_until([this] { return closing_ == 0; }, param_int("close_timeout", 500));
    ucp_worker_destroy(worker);
    for (auto &[ep, l] : links_) {
        delete l;
    }
}

void engine::start_thread()
{
    ucs::opt_guard g(lock);
    if (thread_.joinable()) {
        return;
    }
    if (efd_ < 0) {
        throw failure{FI_ENOSYS};
    }
    thread_ = std::thread([this] {
        while (!stop_) {
            progress();
            if (!arm()) {
                continue;
            }
            pollfd p = {.fd = efd_, .events = POLLIN, .revents = 0};
            poll(&p, 1, 1000);
            // An application that polls as well is faster: leave it the first move.
            usleep(20);
        }
    });
}

void engine::stop_thread()
{
    if (!thread_.joinable()) {
        return;
    }
    stop_ = true;
    wake();
    thread_.join();
}

bool engine::arm()
{
    ucs::opt_guard g(lock);
    if (efd_ < 0) {
        return true;
    }
    if (!failed_.empty() || mail) {
        return false;
    }
    ucs_status_t st = ucp_worker_arm(worker);
    return st == UCS_OK;
}

link *engine::add(const ucp_ep_params_t &params, conn *owner, acceptor *home,
                  std::string_view words, ucs_status_t *status)
{
    auto *l = new link{.eng = this, .owner = owner, .home = home};
    ucp_ep_params_t p = params;
    p.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    p.err_handler.cb = on_error;
    p.err_handler.arg = l;
    ucp::greeting mine;
    if (!words.empty()) {
        mine = {words.data(), words.size(), on_answered, l};
    }
    *status = ucp::create_ep(worker, &p, mine, &l->ep);
    if (*status != UCS_OK) {
        delete l;
        return nullptr;
    }
    if (guard([&] {
            links_[l->ep] = l;
            return 0;
        })) {
        ucp_request_param_t now = {};
        now.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        now.flags = UCP_EP_CLOSE_FLAG_FORCE;
        ucs_status_ptr_t r = ucp_ep_close_nbx(l->ep, &now);
        if (UCS_PTR_IS_PTR(r)) {
            ucp_request_free(r);
        }
        delete l;
        *status = UCS_ERR_NO_MEMORY;
        return nullptr;
    }
    return l;
}

link *engine::connect(const address &to, const address *from, conn *owner, acceptor *home,
                      std::string_view words)
{
    ucp_ep_params_t p = {};
    p.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    p.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    p.sockaddr.addr = &to.sa;
    p.sockaddr.addrlen = to.length();
    if (from) {
        p.field_mask |= UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR;
        p.local_sockaddr.addr = &from->sa;
        p.local_sockaddr.addrlen = from->length();
    }
    ucs_status_t st;
    link *l = add(p, owner, home, words, &st);
    if (!l) {
        PROV_WARN(EP_CTRL, "connecting: %s\n", ucs_status_string(st));
        throw failure{errno_of(st)};
    }
    return l;
}

link *engine::accept(ucp_conn_request_h request, conn *owner, acceptor *home,
                     std::string_view words)
{
    ucp_ep_params_t p = {};
    p.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
    p.conn_request = request;
    ucs_status_t st;
    link *l = add(p, owner, home, words, &st);
    if (!l) {
        PROV_INFO(EP_CTRL, "a connection went away before it was accepted: %s\n",
                  ucs_status_string(st));
    } else if (!owner) {
        l->accepted_at = now_ms();
    }
    return l;
}

ucp_listener_h engine::listen(const address &at, acceptor *a, address *actual)
{
    ucp_listener_params_t p = {};
    p.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    p.sockaddr.addr = &at.sa;
    p.sockaddr.addrlen = at.length();
    p.conn_handler.cb = [](ucp_conn_request_h request, void *arg) {
        guard([&] {
            static_cast<acceptor *>(arg)->connected(request);
            return 0;
        });
    };
    p.conn_handler.arg = a;
    ucp_listener_h listener;
    if (ucs_status_t st = ucp_listener_create(worker, &p, &listener); st != UCS_OK) {
        PROV_WARN(EP_CTRL, "listening: %s\n", ucs_status_string(st));
        throw failure{st == UCS_ERR_BUSY ? FI_EADDRINUSE : errno_of(st)};
    }
    ucp_listener_attr_t attr = {};
    attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    if (ucp_listener_query(listener, &attr) == UCS_OK) {
        *actual = address::from(&attr.sockaddr, sizeof(attr.sockaddr));
    }
    return listener;
}

link *engine::find(ucp_ep_h ep) const
{
    auto it = links_.find(ep);
    return it == links_.end() ? nullptr : it->second;
}

void engine::on_answered(void *arg, const void *data, size_t length)
{
    auto *l = static_cast<link *>(arg);
    if (l->closing || l->failed || !l->owner) {
        return;
    }
    guard([&] {
        l->owner->answered({static_cast<const char *>(data), length});
        return 0;
    });
}

// Called by UCP's progress; the owner hears of it after that, when it may do anything.
void engine::on_error(void *arg, ucp_ep_h, ucs_status_t status)
{
    auto *l = static_cast<link *>(arg);
    if (l->failed) {
        return;
    }
    l->failed = true;
    l->status = status;
    l->eng->failed_.push_back(l);
}

void engine::handle_failures()
{
    while (link *l = failed_.pop_front()) {
        PROV_INFO(EP_CTRL, "link %p failed: %s\n", static_cast<void *>(l),
                  ucs_status_string(l->status));
        if (conn *owner = l->owner) {
            l->owner = nullptr;
            guard([&] {
                owner->link_failed(l);
                return 0;
            });
        }
        if (!l->closing) {
            close(l, true);
        }
    }
}

void engine::collect_mail()
{
    mail.store(false);
    for (size_t i = 0; i < readers.size(); ++i) {
        readers[i]->collect();
    }
}

void engine::close(link *l, bool force)
{
    l->closing = true;
    l->owner = nullptr;
    ucp_request_param_t p = {};
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.flags = force ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    p.cb.send = on_closed;
    p.user_data = l;
    ++closing_;
    ucs_status_ptr_t r = ucp_ep_close_nbx(l->ep, &p);
    if (!UCS_PTR_IS_PTR(r)) {
        --closing_;
        forget(l);
    }
}

void engine::abandon(acceptor *home)
{
    std::vector<link *> theirs;
    for (auto &[ep, l] : links_) {
        if (l->home == home) {
            theirs.push_back(l);
        }
    }
    for (link *l : theirs) {
        l->home = nullptr;
        l->owner = nullptr;
        if (!l->closing) {
            close(l, l->failed);
        }
    }
}

void engine::on_closed(void *request, ucs_status_t, void *arg)
{
    auto *l = static_cast<link *>(arg);
    --l->eng->closing_;
    l->eng->forget(l);
    ucp_request_free(request);
}

void engine::forget(link *l)
{
    if (l->node.linked()) {
        l->node.unlink();
    }
    auto it = links_.find(l->ep);
    if (it != links_.end() && it->second == l) {
        links_.erase(it);
    }
    delete l;
}

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

static void post_own(link *l, tx_op *op, size_t header_length, const void *payload, size_t length,
                     unsigned am, unsigned flags)
{
    ucp_request_param_t p;
    p.op_attr_mask =
        UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = flags;
    p.cb.send = [](void *request, ucs_status_t, void *arg) {
        end_own(static_cast<tx_op *>(arg));
        ucp_request_free(request);
    };
    p.user_data = op;
    ucs_status_ptr_t r = ucp_am_send_nbx(l->ep, am, op->header, header_length, payload, length, &p);
    if (UCS_PTR_IS_ERR(r) && !l->closing) {
        l->eng->fail(l, UCS_PTR_STATUS(r)); // the peer may wait for it
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

// Whose message it is. Most carry an id of ours; the first ones of a connection are known by the
// link they came by.
conn *engine::sender(const wire::message &m, const ucp_am_recv_param_t *param, link **reply)
{
    if (UCS_LIKELY(m.id != 0)) {
        return ids.find(m.id);
    }
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        return nullptr;
    }
    link *l = find(param->reply_ep);
    if (!l || l->closing) {
        return nullptr;
    }
    *reply = l;
    if (!m.hello || !l->home) {
        return l->owner;
    }
    return l->home->identify(l, m);
}

// A data message goes to the half of its endpoint that it is for.
static ucs_status_t hand_on(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                            const ucp_am_recv_param_t *param)
{
    if (UCS_UNLIKELY(c->writes != 0)) {
        switch (c->admit()) {
        case conn::admission::later:
            return defer(c, am, m, data, length, param);
        case conn::admission::never:
            ++c->eng->dropped;
            return UCS_ERR_REJECTED;
        case conn::admission::now:
            break;
        }
    }
    switch (am) {
    case wire::am_msg:
        return c->owner->rx->message_arrived(c, m, data, length, param);
    case wire::am_tagged:
        return c->owner->rx->tagged_arrived(c, m, data, length, param);
    default:
        return rma_arrived(c, m, data, length, param);
    }
}

ucs_status_t dispatch(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                      const ucp_am_recv_param_t *param)
{
    return c->owner ? hand_on(c, am, m, data, length, param) : UCS_ERR_REJECTED;
}

template <unsigned am>
ucs_status_t engine::on_data(void *arg, const void *header, size_t header_length, void *data,
                             size_t length, const ucp_am_recv_param_t *param)
{
    auto *e = static_cast<engine *>(arg);
    wire::message m;
    link *reply = nullptr;
    conn *c = wire::parse(header, header_length, m) ? e->sender(m, param, &reply) : nullptr;
    if (UCS_UNLIKELY(!c || !c->owner)) {
        ++e->dropped;
        return UCS_OK;
    }
    if (UCS_UNLIKELY(m.flags & wire::has_group) && !c->owner->in_group(m.group)) {
        // Sent before the sender knew that we had left.
        ++e->dropped;
        if (m.flags & wire::has_ack) {
            answer(c, m.ack, FI_ENOTCONN);
        }
        return UCS_OK;
    }
    if (UCS_UNLIKELY(m.flags & wire::on_arrival)) {
        if (m.flags & wire::has_ack) {
            answer(c, m.ack, 0);
        }
        m.flags &= static_cast<uint8_t>(~(wire::has_ack | wire::on_arrival));
    }
    ucs_status_t st = hand_on(c, am, m, data, length, param);
    // The word to the sender says why; UCP's own refusal must not be faster with another reason.
    return am == wire::am_rma && st == UCS_ERR_REJECTED ? UCS_OK : st;
}

// The word of a peer about an operation of ours, if it is one that went to this peer. What brings
// data back does not succeed by a word.
static void acknowledged(conn *from, const wire::message &m)
{
    tx_op *op = from->eng->acks.find(m.tag);
    if (!op || op->to != from) {
        ++from->eng->dropped;
        return;
    }
    bool known = m.data <= INT_MAX && (m.data || !(op->cq_flags & FI_READ));
    tx_answered(op, known ? static_cast<int>(m.data) : FI_EIO);
}

ucs_status_t engine::on_control(void *arg, const void *header, size_t header_length, void *data,
                                size_t length, const ucp_am_recv_param_t *param)
{
    auto *e = static_cast<engine *>(arg);
    wire::message m;
    link *reply = nullptr;
    conn *c = wire::parse(header, header_length, m) ? e->sender(m, param, &reply) : nullptr;
    if (!c || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        ++e->dropped;
        return UCS_OK;
    }
    if (m.kind == wire::acked) {
        acknowledged(c, m);
        return UCS_OK;
    }
    guard([&] {
        c->control(m, data, length, reply);
        return 0;
    });
    return UCS_OK;
}

} // namespace ucxlike
