// SPDX-License-Identifier: BSD-3-Clause
// A client's endpoint: the steps of the connection manager, told in the words of this mode.
#include "uct/sockaddr/client.h"

#include "ucs/sockaddr.h"
#include "uct/base/ops.h"

#include <utility>

namespace uct::sockaddr_mode {

namespace {

bool has(const uct_ep_params_t &params, uint64_t field)
{
    return (params.field_mask & field) != 0;
}

void check_params(uct_md &md, const uct_ep_params_t &params)
{
    const sockaddr *to = has(params, UCT_EP_PARAM_FIELD_SOCKADDR) && params.sockaddr
                             ? params.sockaddr->addr
                             : nullptr;
    if (!to || ucs::sockaddr_length(to) == 0 ||
        params.sockaddr->addrlen < ucs::sockaddr_length(to)) {
        throw ucs::error(UCS_ERR_INVALID_PARAM, "uct_ep_create: params->sockaddr must be a whole "
                                                "address of family AF_INET or AF_INET6");
    }
    if (has(params, UCT_EP_PARAM_FIELD_CM_RESOLVE_CB)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED,
                         "uct_ep_create: params->cm_resolve_cb needs params->cm");
    }
    if (!md.is_sockaddr_accessible(to, UCT_SOCKADDR_ACC_REMOTE)) {
        throw ucs::error(UCS_ERR_UNREACHABLE,
                         "uct_ep_create: params->sockaddr %s is not reached from this memory "
                         "domain",
                         ucs::sockaddr_string(to).c_str());
    }
}

template <class F>
F callback_of(const uct_ep_params_t &params, uint64_t field, F value, const char *name)
{
    if (has(params, field) && !value) {
        throw ucs::error(UCS_ERR_INVALID_PARAM, "uct_ep_create: params->%s must not be NULL", name);
    }
    return has(params, field) ? value : nullptr;
}

} // namespace

const uct_iface_ops_t &client_table()
{
    static const uct_iface_ops_t ops = make_ops<client, client_ep>();
    return ops;
}

client::client(uct_md &domain, uct_worker &worker, const uct_iface_params_t &params)
    : iface(client_table(), worker, domain, params)
{
}

ucs_status_t client::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    return ucs::guard([&] {
        check_params(md, params);
        *ep_p = new client_ep(*this, params);
    });
}

client_ep::client_ep(client &owner, const uct_ep_params_t &params)
    : uct_ep{&owner}, owner_(owner),
      pack_(callback_of(params, UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB, params.sockaddr_pack_cb,
                        "sockaddr_pack_cb")),
      connect_(callback_of(params, UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT,
                           params.sockaddr_cb_client, "sockaddr_cb_client")),
      disconnect_(callback_of(params, UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB,
                              params.disconnect_cb, "disconnect_cb")),
      user_data_(has(params, UCT_EP_PARAM_FIELD_USER_DATA) ? params.user_data : nullptr),
      anywhere_(has(params, UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS) &&
                (params.sockaddr_cb_flags & UCT_CB_FLAG_ASYNC)),
      later_(owner.owner)
{
    uct_ep_params_t below{};
    below.field_mask =
        UCT_EP_PARAM_FIELD_CM | UCT_EP_PARAM_FIELD_SOCKADDR | UCT_EP_PARAM_FIELD_USER_DATA |
        UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS | UCT_EP_PARAM_FIELD_CM_RESOLVE_CB |
        UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT | UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB;
    below.cm = &owner.cm();
    below.sockaddr = params.sockaddr;
    below.user_data = this;
    below.sockaddr_cb_flags = UCT_CB_FLAG_ASYNC;
    below.cm_resolve_cb = on_resolve;
    below.sockaddr_cb_client = on_connect;
    below.disconnect_cb = on_disconnect;
    if (has(params, UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR)) {
        below.field_mask |= UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR;
        below.local_sockaddr = params.local_sockaddr;
    }
    std::lock_guard guard(mutex_); // the callbacks wait until the connection is known here
    ucs_status_t status = uct_ep_create(&below, &connection_);
    if (status != UCS_OK) {
        throw ucs::error(status, "uct_ep_create: no connection to %s: %s",
                         ucs::sockaddr_string(params.sockaddr->addr).c_str(),
                         ucs_status_string(status));
    }
}

client_ep::~client_ep()
{
    uct_ep_destroy(connection_); // waits for a running callback, unless called in it
    later_.drop();
    for (uct_completion_t *completion : waiting_) {
        complete(completion, UCS_ERR_CANCELED);
    }
}

template <class F>
void client_ep::tell(bool anywhere, F &&call)
{
    if (anywhere) {
        call();
    } else {
        later_.put(std::forward<F>(call));
    }
}

uct_ep_h client_ep::connection()
{
    std::lock_guard guard(mutex_);
    return connection_;
}

ucs_status_t client_ep::status()
{
    std::lock_guard guard(mutex_);
    return status_;
}

ucs_status_t client_ep::on_resolve(void *arg, const uct_cm_ep_resolve_args_t *args)
{
    auto &self = *static_cast<client_ep *>(arg);
    self.connection();
    if (args->status != UCS_OK) {
        self.end(args->status);
        return UCS_OK;
    }
    uct_cm_ep_priv_data_pack_args_t pack{};
    pack.field_mask = UCT_CM_EP_PRIV_DATA_PACK_ARGS_FIELD_DEVICE_NAME;
    memcpy(pack.dev_name, args->dev_name, sizeof(pack.dev_name));
    self.tell(self.anywhere_ || !self.pack_, [&self, pack] { self.send_request(pack); });
    return UCS_OK;
}

void client_ep::send_request(const uct_cm_ep_priv_data_pack_args_t &args)
{
    uct_cm_attr_t about{};
    about.field_mask = UCT_CM_ATTR_FIELD_MAX_CONN_PRIV;
    owner_.cm().query(&about);
    std::vector<char> data(about.max_conn_priv);
    ssize_t length = pack_ ? pack_(user_data_, &args, data.data()) : 0;
    ucs_status_t status = UCS_OK;
    if (length < 0) {
        status = static_cast<ucs_status_t>(length);
    } else {
        uct_ep_connect_params_t params{};
        params.field_mask = UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA |
                            UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA_LENGTH;
        params.private_data = data.data();
        params.private_data_length = static_cast<size_t>(length);
        status = uct_ep_connect(connection(), &params);
    }
    if (status == UCS_OK) {
        return;
    }
    // The user ended it, and gets no callback for that.
    {
        std::lock_guard guard(mutex_);
        status_ = status;
    }
    settle();
}

void client_ep::on_connect(uct_ep_h ep, void *arg, const uct_cm_ep_client_connect_args_t *args)
{
    auto &self = *static_cast<client_ep *>(arg);
    self.connection();
    ucs_status_t status = args->status;
    if (status == UCS_OK) {
        status = uct_cm_client_ep_conn_notify(ep);
    }
    if (status == UCS_OK) {
        self.connected(*args->remote_data);
    } else {
        self.end(status);
    }
}

void client_ep::connected(const uct_cm_remote_data_t &data)
{
    {
        std::lock_guard guard(mutex_);
        up_ = true;
    }
    settle();
    if (!connect_) {
        return;
    }
    auto bytes = [](const void *from, size_t length) {
        return std::string(static_cast<const char *>(from), length);
    };
    std::string device = bytes(data.dev_addr, data.dev_addr_length);
    std::string priv = bytes(data.conn_priv_data, data.conn_priv_data_length);
    tell(anywhere_, [this, mask = data.field_mask, device, priv] {
        uct_cm_remote_data_t copy{};
        copy.field_mask = mask;
        copy.dev_addr = reinterpret_cast<const uct_device_addr_t *>(device.data());
        copy.dev_addr_length = device.size();
        copy.conn_priv_data = priv.data();
        copy.conn_priv_data_length = priv.size();
        uct_cm_ep_client_connect_args_t args{};
        args.field_mask = UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_REMOTE_DATA |
                          UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_STATUS;
        args.remote_data = &copy;
        args.status = UCS_OK;
        connect_(this, user_data_, &args);
    });
}

void client_ep::on_disconnect(uct_ep_h, void *arg)
{
    auto &self = *static_cast<client_ep *>(arg);
    self.connection();
    self.end(UCS_ERR_CONNECTION_RESET);
}

void client_ep::end(ucs_status_t status)
{
    bool anywhere;
    {
        std::lock_guard guard(mutex_);
        if (status_ != UCS_OK) {
            return; // cancelled, and the user knows
        }
        status_ = status;
        bool has_callback = up_ ? disconnect_ != nullptr : connect_ != nullptr;
        anywhere = has_callback ? anywhere_ : owner_.errors_anywhere();
    }
    settle();
    tell(anywhere, [this, status] { tell_end(status); }); // which may destroy it
}

void client_ep::tell_end(ucs_status_t status)
{
    if (up_ && disconnect_) {
        disconnect_(this, user_data_);
    } else if (!up_ && connect_) {
        uct_cm_remote_data_t none{};
        uct_cm_ep_client_connect_args_t args{};
        args.field_mask = UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_REMOTE_DATA |
                          UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_STATUS;
        args.remote_data = &none;
        args.status = status;
        connect_(this, user_data_, &args);
    } else {
        owner_.report_error(this, status);
    }
}

void client_ep::settle()
{
    later_.put([this] {
        std::vector<uct_completion_t *> done;
        ucs_status_t status;
        {
            std::lock_guard guard(mutex_);
            done.swap(waiting_);
            status = status_;
        }
        for (uct_completion_t *completion : done) {
            complete(completion, status);
        }
    });
}

ucs_status_t client_ep::flush(unsigned flags, uct_completion_t *completion)
{
    if (flags & UCT_FLUSH_FLAG_CANCEL) {
        {
            std::lock_guard guard(mutex_);
            if (status_ == UCS_OK) {
                status_ = UCS_ERR_CANCELED;
            }
        }
        settle();
        return UCS_OK;
    }
    std::lock_guard guard(mutex_);
    if (status_ != UCS_OK || up_) {
        return status_;
    }
    if (completion) {
        waiting_.push_back(completion);
    }
    return UCS_INPROGRESS;
}

ucs_status_t client_ep::disconnect(unsigned flags)
{
    return uct_ep_disconnect(connection(), flags);
}

} // namespace uct::sockaddr_mode
