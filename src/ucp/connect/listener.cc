// SPDX-License-Identifier: BSD-3-Clause
//
// Listening, and the requests that arrive.
#include "ucp/connect/listener.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace {

// On the connection manager's thread.
void conn_request_cb(uct_listener_h uct, void *arg, const uct_cm_listener_conn_request_args_t *args)
{
    auto *listener = static_cast<ucp_listener *>(arg);
    auto request = std::make_unique<ucp_conn_request>();
    request->context = listener->worker->context;
    request->listener = listener;
    request->uct = args->conn_request;
    if ((args->field_mask & UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_CLIENT_ADDR) &&
        args->client_address.addr) {
        memcpy(&request->client, args->client_address.addr,
               std::min<size_t>(args->client_address.addrlen, sizeof(request->client)));
    }
    if ((args->field_mask & UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_REMOTE_DATA) &&
        args->remote_data &&
        (args->remote_data->field_mask & UCT_CM_REMOTE_DATA_FIELD_CONN_PRIV_DATA)) {
        const auto *p = static_cast<const uint8_t *>(args->remote_data->conn_priv_data);
        request->data.assign(p, p + args->remote_data->conn_priv_data_length);
    }
    ucp::event ev{ucp::event::kind::conn_request};
    ev.request = request.release();
    if (!listener->post(std::move(ev))) {
        (void)uct_listener_reject(uct, args->conn_request);
    }
}

} // namespace

ucp_listener::ucp_listener(ucp_worker *w, const ucp_listener_params_t *params) : worker(w)
{
    if (params->field_mask & UCP_LISTENER_PARAM_FIELD_CONN_HANDLER) {
        conn = params->conn_handler;
    }
    if (params->field_mask & UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER) {
        accept = params->accept_handler;
    }
    ucp::cm &cm = ucp::worker_cm(worker);
    uct_listener_params_t uct_params = {};
    uct_params.field_mask = UCT_LISTENER_PARAM_FIELD_CONN_REQUEST_CB |
                            UCT_LISTENER_PARAM_FIELD_USER_DATA | UCT_LISTENER_PARAM_FIELD_BACKLOG;
    uct_params.conn_request_cb = conn_request_cb;
    uct_params.user_data = this;
    constexpr unsigned automatic = 1024;
    unsigned backlog = worker->context->config.listener_backlog;
    uct_params.backlog =
        static_cast<int>(std::min<unsigned>(backlog ? backlog : automatic, INT_MAX));
    ucs_status_t status = uct_listener_create(cm.uct, params->sockaddr.addr,
                                              params->sockaddr.addrlen, &uct_params, &uct);
    if (status != UCS_OK) {
        throw ucs::error(status, "ucp_listener_create: %s: %s",
                         ucs::sockaddr_string(params->sockaddr.addr).c_str(),
                         ucs_status_string(status));
    }
    worker->listeners.push_back(this);
}

bool ucp_listener::post(ucp::event &&ev) noexcept
{
    {
        std::lock_guard<std::mutex> guard(worker->event_mutex);
        if (closing) {
            delete ev.request;
            return false;
        }
        worker->events.push_back(std::move(ev));
        worker->has_events.store(true, std::memory_order_release);
    }
    worker->wake();
    return true;
}

ucp_listener::~ucp_listener()
{
    std::erase(worker->listeners, this);
    std::vector<ucp_conn_request *> unheard;
    {
        std::lock_guard<std::mutex> guard(worker->event_mutex);
        closing = true;
        for (ucp::event &ev : worker->events) {
            if (ev.request && ev.request->listener == this) {
                unheard.push_back(ev.request);
            }
        }
        std::erase_if(worker->events, [&](const ucp::event &ev) {
            return ev.request && ev.request->listener == this;
        });
    }
    for (ucp_conn_request *request : unheard) {
        ucp::reject_request(worker, request);
        delete request;
    }
    {
        std::lock_guard<ucs::opt_lock> guard(worker->context->lock);
        if (!delivered.empty()) {
            ucs_warn("destroying listener %p with %zu unprocessed connection requests",
                     static_cast<void *>(this), delivered.size());
        }
        for (ucp_conn_request *request : delivered) {
            request->listener = nullptr;
        }
    }
    uct_listener_destroy(uct); // waits for a running callback
}
