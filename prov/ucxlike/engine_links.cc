// SPDX-License-Identifier: BSD-3-Clause
//
// Links: made, failed, closed.
#include "prov/ucxlike/engine.h"

#include "ucp/connect/greeting.h"

#include <memory>

namespace ucxlike {

link *engine::add(const ucp_ep_params_t &params, conn *owner, acceptor *home,
                  std::string_view words, ucs_status_t *status)
{
    std::unique_ptr<link> made(new link{.eng = this, .owner = owner, .home = home});
    link *l = made.get();
    ucp_ep_params_t p = params;
    p.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    p.err_handler.cb = on_error;
    p.err_handler.arg = l;
    ucp::greeting mine;
    if (!words.empty()) {
        mine = {words.data(), words.size(), home ? nullptr : on_answered, l};
    }
    // A connected endpoint may leave by ending its connection.
    mine.trust = home ? ucp::lane_trust::all : ucp::lane_trust::none;
    *status = ucp::create_ep(worker, &p, mine, &l->ep);
    if (*status != UCS_OK) {
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
        *status = UCS_ERR_NO_MEMORY;
        return nullptr;
    }
    return made.release();
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
        admit_stranger(l);
    }
    return l;
}

// A link without a hello is kept for some time, and only so many of them are kept.
void engine::admit_stranger(link *l)
{
    if (strangers_count_ >= most_strangers_) {
        dismiss(strangers_.front());
    }
    l->accepted_at = now_ms();
    strangers_.push_back(l);
    ++strangers_count_;
}

void engine::dismiss_strangers()
{
    uint64_t now = now_ms();
    for (link *l; (l = strangers_.front()) && now - l->accepted_at >= patience_;) {
        dismiss(l);
    }
}

void engine::dismiss(link *l)
{
    PROV_INFO(EP_CTRL, "link %p: the peer has not said who it is\n", static_cast<void *>(l));
    introduced(l);
    fail(l, UCS_ERR_TIMED_OUT);
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
    if (ucs_status_t st = ucp_listener_query(listener, &attr); st != UCS_OK) {
        ucp_listener_destroy(listener);
        throw failure{errno_of(st)};
    }
    *actual = address::from(&attr.sockaddr, sizeof(attr.sockaddr));
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

// The close itself waits for more than that: the peer takes part in it.
void engine::linger(link *l)
{
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.send = [](void *request, ucs_status_t, void *arg) {
        --static_cast<engine *>(arg)->lingering_;
        ucp_request_free(request);
    };
    p.user_data = this;
    lingering_ += UCS_PTR_IS_PTR(ucp_ep_flush_nbx(l->ep, &p));
}

void engine::close(link *l, bool force)
{
    l->closing = true;
    l->owner = nullptr;
    introduced(l);
    if (l->promised && !force) {
        linger(l);
    }
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

bool engine::leave(link *l)
{
    if (l->promised || l->spoke || l->failed || l->closing || !ucp::leave(l->ep)) {
        return false;
    }
    forget(l);
    return true;
}

void engine::abandon(acceptor *home)
{
    for (auto at = links_.begin(); at != links_.end();) {
        link *l = (at++)->second; // closing may take it out
        if (l->home != home) {
            continue;
        }
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
    introduced(l);
    auto it = links_.find(l->ep);
    if (it != links_.end() && it->second == l) {
        links_.erase(it);
    }
    delete l;
}

} // namespace ucxlike
