// SPDX-License-Identifier: BSD-3-Clause
// Creation of a client or a server endpoint, from the check of its parameters on, and the calls on
// it.
#include "uct/ofi/cm/ep.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/ofi/cm/cm.h"
#include "uct/ofi/cm/listener.h"

#include <cstring>

namespace uct::ofi {

namespace {

// A callback that the mask announces must be there.
template <class F>
F callback_of(const uct_ep_params_t &params, uint64_t field, F value, const char *name)
{
    if (!(params.field_mask & field)) {
        return nullptr;
    }
    if (!value) {
        throw ucs::error(UCS_ERR_INVALID_PARAM, "uct_ep_create: params->%s must not be NULL", name);
    }
    return value;
}

void check_client(const uct_ep_params_t &params)
{
    if (!(params.field_mask & UCT_EP_PARAM_FIELD_SOCKADDR) || !params.sockaddr ||
        !params.sockaddr->addr) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_ep_create: params->sockaddr or conn_request must be given with a cm");
    }
    if (ucs::sockaddr_length(params.sockaddr->addr) == 0) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_ep_create: params->sockaddr must be of family AF_INET or AF_INET6");
    }
    if ((params.field_mask & UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR) && params.local_sockaddr) {
        const sockaddr *local = params.local_sockaddr->addr;
        if (!local || local->sa_family != params.sockaddr->addr->sa_family) {
            throw ucs::error(UCS_ERR_INVALID_PARAM, "uct_ep_create: params->local_sockaddr must be "
                                                    "of the family of params->sockaddr");
        }
    }
}

void check_server(const uct_ep_params_t &params)
{
    if (!params.conn_request) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "uct_ep_create: params->conn_request must not be NULL");
    }
}

} // namespace

ucs_status_t cm::create_ep(const uct_ep_params_t &params, uct_ep_h *ep_p)
{
    if (!(params.field_mask & UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS) ||
        !(params.sockaddr_cb_flags & UCT_CB_FLAG_ASYNC)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED,
                         "uct_ep_create: params->sockaddr_cb_flags must contain UCT_CB_FLAG_ASYNC");
    }
    if (!(params.field_mask & UCT_EP_PARAM_FIELD_CONN_REQUEST)) {
        check_client(params);
        new cm_ep(*this, engine_, params, ep_p); // fills it
        return UCS_OK;
    }
    check_server(params);
    // The request is used up also when there is to be no endpoint.
    auto *request = static_cast<cm_conn *>(params.conn_request);
    std::shared_ptr<cm_engine> home = request->engine().shared_from_this();
    auto give_up = [&] {
        cm_engine::lock held(home->mutex());
        if (home->knows(request) && !request->answered()) {
            request->reject();
        }
        home->clean();
    };
    try {
        new cm_ep(*this, engine_, params, ep_p); // fills it
        return UCS_OK;
    } catch (const peer_gone &gone) {
        give_up();
        return gone.status;
    } catch (...) {
        give_up();
        throw;
    }
}

cm_ep::cm_ep(uct_cm &cm, std::shared_ptr<cm_engine> engine, const uct_ep_params_t &params,
             uct_ep_h *handle)
    : engine_(std::move(engine))
{
    iface = &cm;
    callbacks_.resolve = callback_of(params, UCT_EP_PARAM_FIELD_CM_RESOLVE_CB, params.cm_resolve_cb,
                                     "cm_resolve_cb");
    callbacks_.pack = callback_of(params, UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB,
                                  params.sockaddr_pack_cb, "sockaddr_pack_cb");
    callbacks_.connect = callback_of(params, UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT,
                                     params.sockaddr_cb_client, "sockaddr_cb_client");
    callbacks_.notify = callback_of(params, UCT_EP_PARAM_FIELD_SOCKADDR_NOTIFY_CB_SERVER,
                                    params.sockaddr_cb_server, "sockaddr_cb_server");
    callbacks_.disconnect = callback_of(params, UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB,
                                        params.disconnect_cb, "disconnect_cb");
    callbacks_.user_data =
        params.field_mask & UCT_EP_PARAM_FIELD_USER_DATA ? params.user_data : nullptr;
    if (params.field_mask & UCT_EP_PARAM_FIELD_CONN_REQUEST) {
        create_server(params, handle);
    } else {
        create_client(params, handle);
    }
}

cm_ep::~cm_ep()
{
    cm_engine::lock held(engine_->mutex());
    engine_->wait_for_callback(held, this);
    if (conn_) {
        conn_->detach();
    }
    engine_->clean();
}

void cm_ep::create_client(const uct_ep_params_t &params, uct_ep_h *handle)
{
    if (callbacks_.resolve && callbacks_.pack) {
        throw ucs::error(UCS_ERR_INVALID_PARAM, "uct_ep_create: params->cm_resolve_cb and "
                                                "sockaddr_pack_cb exclude each other");
    }
    const sockaddr *local = nullptr;
    if ((params.field_mask & UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR) && params.local_sockaddr) {
        local = params.local_sockaddr->addr;
    }
    cm_engine::lock held(engine_->mutex());
    conn_ = new cm_conn(*engine_, this, params.sockaddr->addr, local);
    *handle = this;
    conn_->start_resolving();
}

void cm_ep::create_server(const uct_ep_params_t &params, uct_ep_h *handle)
{
    auto *request = static_cast<cm_conn *>(params.conn_request);
    const void *data = nullptr;
    size_t length = 0;
    std::vector<char> packed;
    if (callbacks_.pack) {
        uct_cm_ep_priv_data_pack_args_t args{};
        args.field_mask = UCT_CM_EP_PRIV_DATA_PACK_ARGS_FIELD_DEVICE_NAME;
        strncpy(args.dev_name, request->device_name().c_str(), sizeof(args.dev_name) - 1);
        packed.resize(engine_->max_priv());
        ssize_t ret = callbacks_.pack(callbacks_.user_data, &args, packed.data());
        if (ret < 0) {
            throw ucs::error(static_cast<ucs_status_t>(ret),
                             "uct_ep_create: sockaddr_pack_cb refused: %s",
                             ucs_status_string(static_cast<ucs_status_t>(ret)));
        }
        if (static_cast<size_t>(ret) > packed.size()) {
            throw ucs::error(UCS_ERR_EXCEEDS_LIMIT,
                             "uct_ep_create: sockaddr_pack_cb returned %zd of at most %zu bytes",
                             ret, packed.size());
        }
        data = packed.data();
        length = static_cast<size_t>(ret);
    } else {
        if (params.field_mask & UCT_EP_PARAM_FIELD_PRIV_DATA) {
            data = params.private_data;
        }
        if (data && (params.field_mask & UCT_EP_PARAM_FIELD_PRIV_DATA_LENGTH)) {
            length = params.private_data_length;
        }
        if (length > engine_->max_priv()) {
            throw ucs::error(
                UCS_ERR_BUFFER_TOO_SMALL,
                "uct_ep_create: params->private_data_length %zu is more than max_conn_priv %zu",
                length, engine_->max_priv());
        }
    }
    answer(request, data, length, handle);
}

void cm_ep::answer(cm_conn *request, const void *data, size_t length, uct_ep_h *handle)
{
    std::shared_ptr<cm_engine> home = request->engine().shared_from_this();
    cm_engine::lock held(home->mutex());
    if (home == engine_ || !request->movable()) {
        engine_ = home; // it is connected there already
        request->accept(this, data, length);
        conn_ = request;
        *handle = this;
        return;
    }
    // Not answered by the core: it can be answered from this engine.
    info_ptr info = request->take_info();
    home->retire(request);
    home->clean();
    held.unlock();
    cm_engine::lock ours(engine_->mutex());
    conn_ = new cm_conn(*engine_, nullptr, nullptr, std::move(info));
    try {
        conn_->accept(this, data, length);
        *handle = this;
    } catch (...) {
        engine_->retire(conn_);
        engine_->clean();
        throw;
    }
}

ucs_status_t cm_ep::connect(const uct_ep_connect_params_t *params)
{
    const void *data = nullptr;
    size_t length = 0;
    if (params->field_mask & UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA) {
        data = params->private_data;
    }
    if (data && (params->field_mask & UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA_LENGTH)) {
        length = params->private_data_length;
    }
    if (length > engine_->max_priv()) {
        ucs_error("uct_ep_connect: params->private_data_length %zu is more than max_conn_priv %zu",
                  length, engine_->max_priv());
        return UCS_ERR_BUFFER_TOO_SMALL;
    }
    cm_engine::lock held(engine_->mutex());
    return ucs::guard([&] { return conn_->connect(data, length); });
}

ucs_status_t cm_ep::disconnect(unsigned)
{
    cm_engine::lock held(engine_->mutex());
    return ucs::guard([&] { return conn_->disconnect(); });
}

ucs_status_t cm_ep::conn_notify()
{
    cm_engine::lock held(engine_->mutex());
    return ucs::guard([&] { return conn_->notify(); });
}

ucs_status_t cm_ep::query(uct_ep_attr_t *attr)
{
    cm_engine::lock held(engine_->mutex());
    return conn_->query(attr);
}

} // namespace uct::ofi
