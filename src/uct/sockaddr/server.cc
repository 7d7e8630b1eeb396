// SPDX-License-Identifier: BSD-3-Clause
// The listener behind the interface and what came in through it.
#include "uct/sockaddr/server.h"

#include "ucs/sockaddr.h"
#include "uct/base/ops.h"

namespace uct::sockaddr_mode {

namespace {

class no_ep : public uct_ep {};

const sockaddr *checked_address(uct_md &md, const uct_iface_params_t &params)
{
    const ucs_sock_addr_t &wanted = params.mode.sockaddr.listen_sockaddr;
    if (!(params.field_mask & UCT_IFACE_PARAM_FIELD_SOCKADDR) || !wanted.addr) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_iface_open: params->mode.sockaddr.listen_sockaddr must be given to "
                         "open a server");
    }
    size_t length = ucs::sockaddr_length(wanted.addr);
    if (length == 0 || wanted.addrlen < length) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_iface_open: params->mode.sockaddr.listen_sockaddr must be a whole "
                         "address of family AF_INET or AF_INET6");
    }
    if (!params.mode.sockaddr.conn_request_cb) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_iface_open: params->mode.sockaddr.conn_request_cb must not be NULL");
    }
    if (!md.is_sockaddr_accessible(wanted.addr, UCT_SOCKADDR_ACC_LOCAL)) {
        throw ucs::error(UCS_ERR_NO_DEVICE,
                         "uct_iface_open: params->mode.sockaddr.listen_sockaddr %s is not an "
                         "address of this memory domain",
                         ucs::sockaddr_string(wanted.addr).c_str());
    }
    return wanted.addr;
}

} // namespace

const uct_iface_ops_t &server_table()
{
    static const uct_iface_ops_t ops = make_ops<server, no_ep>();
    return ops;
}

server::server(uct_md &domain, uct_worker &worker, const uct_iface_params_t &params)
    : iface(server_table(), worker, domain, params),
      callback_(params.mode.sockaddr.conn_request_cb),
      callback_arg_(params.mode.sockaddr.conn_request_arg),
      anywhere_((params.mode.sockaddr.cb_flags & UCT_CB_FLAG_ASYNC) != 0)
{
    const sockaddr *address = checked_address(domain, params);
    uct_listener_params_t listen{};
    listen.field_mask =
        UCT_LISTENER_PARAM_FIELD_CONN_REQUEST_CB | UCT_LISTENER_PARAM_FIELD_USER_DATA;
    listen.conn_request_cb = on_request;
    listen.user_data = this;
    std::lock_guard guard(mutex_); // requests wait until the listener is known here
    listener_ = cm_->listen(address, listen);
    uct_listener_attr_t attr{};
    attr.field_mask = UCT_LISTENER_ATTR_FIELD_SOCKADDR;
    uct_listener_query(listener_, &attr);
    listening_ = attr.sockaddr;
}

server::~server()
{
    std::set<uct_conn_request_h> queued;
    {
        std::lock_guard guard(mutex_);
        closing_ = true;
        queued.swap(queued_);
    }
    for (uct_conn_request_h request : queued) {
        uct_listener_reject(listener_, request);
    }
    uct_listener_destroy(listener_); // waits for a running callback, which may still answer
    later_.drop();
    std::set<uct_ep_h> accepted;
    {
        std::lock_guard guard(mutex_);
        accepted.swap(accepted_);
    }
    for (uct_ep_h ep : accepted) {
        uct_ep_destroy(ep);
    }
}

ucs_status_t server::create_ep(const uct_ep_params_t &, uct_ep_h *)
{
    ucs_error("uct_ep_create: params->iface listens; only one of "
              "UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT connects to an address");
    return UCS_ERR_UNSUPPORTED;
}

void server::on_request(uct_listener_h, void *arg, const uct_cm_listener_conn_request_args_t *args)
{
    auto &self = *static_cast<server *>(arg);
    std::string data(static_cast<const char *>(args->remote_data->conn_priv_data),
                     args->remote_data->conn_priv_data_length);
    uct_conn_request_h request = args->conn_request;
    {
        std::lock_guard guard(self.mutex_);
        if (self.closing_) {
            uct_listener_reject(self.listener_, request);
            return;
        }
        if (!self.anywhere_) {
            self.queued_.insert(request);
            self.later_.put([&self, request, data] { self.hand_out(request, data); });
            return;
        }
    }
    self.callback_(&self, self.callback_arg_, request, data.data(), data.size());
}

void server::hand_out(uct_conn_request_h request, const std::string &data)
{
    {
        std::lock_guard guard(mutex_);
        queued_.erase(request);
    }
    callback_(this, callback_arg_, request, data.data(), data.size());
}

ucs_status_t server::accept(uct_conn_request_h request)
{
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_CONN_REQUEST |
                        UCT_EP_PARAM_FIELD_USER_DATA | UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS |
                        UCT_EP_PARAM_FIELD_SOCKADDR_NOTIFY_CB_SERVER |
                        UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB;
    params.cm = cm_.get();
    params.conn_request = request;
    params.user_data = this;
    params.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
    params.sockaddr_cb_server = on_notify;
    params.disconnect_cb = on_disconnect;
    std::lock_guard guard(mutex_); // its callbacks wait until it is in the list
    uct_ep_h ep = nullptr;
    ucs_status_t status = uct_ep_create(&params, &ep);
    if (status == UCS_OK) {
        accepted_.insert(ep);
    }
    return status;
}

ucs_status_t server::reject(uct_conn_request_h request)
{
    return uct_listener_reject(listener_, request);
}

void server::on_notify(uct_ep_h ep, void *arg, const uct_cm_ep_server_conn_notify_args_t *args)
{
    if (args->status != UCS_OK) {
        static_cast<server *>(arg)->drop(ep);
    }
}

void server::on_disconnect(uct_ep_h ep, void *arg)
{
    static_cast<server *>(arg)->drop(ep);
}

// In a callback of the endpoint, which may be destroyed there.
void server::drop(uct_ep_h ep)
{
    std::lock_guard guard(mutex_);
    if (accepted_.erase(ep) > 0) {
        uct_ep_destroy(ep);
    }
}

} // namespace uct::sockaddr_mode
