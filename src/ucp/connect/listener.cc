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

// On the connection manager's thread. Throws bad_alloc.
std::unique_ptr<ucp_conn_request> new_request(ucp_listener *listener,
                                              const uct_cm_listener_conn_request_args_t *args)
{
    auto request = std::make_unique<ucp_conn_request>();
    request->context = listener->worker->context;
    request->listener = listener;
    request->uct = args->conn_request;
    request->listener_id = listener->id;
    request->listens = listener->worker;
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
    return request;
}

void conn_request_cb(uct_listener_h uct, void *arg, const uct_cm_listener_conn_request_args_t *args)
{
    auto *listener = static_cast<ucp_listener *>(arg);
    ucs_status_t status = ucs::guard([&] { return listener->post(new_request(listener, args)); });
    if (status != UCS_OK) {
        (void)uct_listener_reject(uct, args->conn_request);
    }
}

} // namespace

unsigned ucp::listener_backlog(const ucp_context &context) noexcept
{
    constexpr unsigned automatic = 1024;
    return context.config.listener_backlog ? context.config.listener_backlog : automatic;
}

ucp_listener::ucp_listener(ucp_worker *w, const ucp_listener_params_t *params)
    : worker(w), id(++w->listeners_made)
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
    uct_params.backlog =
        static_cast<int>(std::min<unsigned>(ucp::listener_backlog(*worker->context), INT_MAX));
    worker->listeners.reserve(worker->listeners.size() + 1);
    ucs_status_t status = uct_listener_create(cm.uct, params->sockaddr.addr,
                                              params->sockaddr.addrlen, &uct_params, &uct);
    if (status != UCS_OK) {
        throw ucs::error(status, "ucp_listener_create: %s: %s",
                         ucs::sockaddr_string(params->sockaddr.addr).c_str(),
                         ucs_status_string(status));
    }
    worker->listeners.push_back(this);
}

ucs_status_t ucp_listener::post(std::unique_ptr<ucp_conn_request> request)
{
    {
        std::lock_guard<std::mutex> guard(worker->event_mutex);
        if (closing) {
            return UCS_ERR_REJECTED;
        }
        ucp::event ev{ucp::event::kind::conn_request};
        ev.request = request.get();
        worker->events.push_more(std::move(ev));
        (void)request.release();
        worker->has_events.store(true, std::memory_order_release);
    }
    worker->wake();
    return UCS_OK;
}

// Takes the requests that no callback was told of out of the events; there will be no more.
void ucp_listener::take_unheard(requests *unheard) noexcept
{
    std::lock_guard<std::mutex> guard(worker->event_mutex);
    closing = true;
    worker->events.erase_if([&](const ucp::event &ev) {
        bool ours = ev.request && ev.request->listener == this;
        if (ours) {
            unheard->push_back(ev.request);
        }
        return ours;
    });
}

ucp_listener::~ucp_listener()
{
    std::erase(worker->listeners, this);
    requests unheard;
    take_unheard(&unheard);
    while (ucp_conn_request *request = unheard.pop_front()) {
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
