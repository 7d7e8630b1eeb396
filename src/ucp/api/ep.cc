// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions of endpoints, listeners and connection requests.
#include "ucp/api/print.h"
#include "ucp/connect/announce.h"
#include "ucp/connect/cm.h"
#include "ucp/connect/listener.h"
#include "ucp/connect/wireup.h"
#include "ucp/core/nb.h"
#include "ucp/core/raw_value.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucs/check.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"

#include <uct/api/v2/uct_v2.h>

#include <algorithm>
#include <cstring>

namespace {

bool given(const ucp_ep_params_t *params, uint64_t bit)
{
    return (params->field_mask & bit) != 0;
}

// What ucp_ep_create and ucp_ep_modify_nb share.
void apply_params(ucp_ep *ep, const ucp_ep_params_t *params)
{
    ucp::ep_control &c = *ep->control;
    if (given(params, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE)) {
        ep->err_mode = params->err_mode;
    }
    if (given(params, UCP_EP_PARAM_FIELD_ERR_HANDLER)) {
        ucp::ep_extras &extras = c.have_extras();
        extras.err_cb = params->err_handler.cb;
        extras.err_arg = params->err_handler.arg;
    }
    if (given(params, UCP_EP_PARAM_FIELD_USER_DATA)) {
        ep->user_data = params->user_data;
        c.has_user_data = true;
    }
    if (given(params, UCP_EP_PARAM_FIELD_NAME) && params->name) {
        c.have_extras().name.assign(params->name, strnlen(params->name, UCP_ENTITY_NAME_MAX - 1));
    }
    c.user_owned = true;
    if (ep->err_mode != UCP_ERR_HANDLING_MODE_NONE) {
        ep->worker->start_keepalive();
    }
}

ucp_ep *create_client(ucp_worker *worker, const ucp_ep_params_t *params, const ucp::greeting &mine)
{
    if (!given(params, UCP_EP_PARAM_FIELD_SOCK_ADDR) || !params->sockaddr.addr) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "ucp_ep_create: UCP_EP_PARAMS_FLAGS_CLIENT_SERVER needs "
                         "params->sockaddr.addr");
    }
    if (ucs::sockaddr_length(params->sockaddr.addr) == 0) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "ucp_ep_create: params->sockaddr.addr has address family %d",
                         params->sockaddr.addr->sa_family);
    }
    bool has_local =
        given(params, UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR) && params->local_sockaddr.addr;
    ucp_ep *ep = ucp::ep_new(worker, ucp::ep_origin::client);
    try {
        apply_params(ep, params);
        ucp::connect_client(ep, params->sockaddr.addr,
                            static_cast<socklen_t>(ucs::sockaddr_length(params->sockaddr.addr)),
                            has_local ? &params->local_sockaddr : nullptr,
                            (params->flags & UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID) != 0, mine);
    } catch (...) {
        ucp::ep_destroy(ep);
        throw;
    }
    return ep;
}

// Out of the listener's books; the request belongs to the caller from here on.
void claim(ucp_conn_request *request)
{
    std::lock_guard<ucs::opt_lock> guard(request->context->lock);
    if (request->listener) {
        std::erase(request->listener->delivered, request);
    }
}

ucp_ep *create_server(ucp_worker *worker, const ucp_ep_params_t *params, const ucp::greeting &mine)
{
    ucp_conn_request *request = params->conn_request;
    if (!request) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "ucp_ep_create: params->conn_request must not be NULL");
    }
    if (request->context != worker->context) {
        throw ucs::error(UCS_ERR_INVALID_PARAM,
                         "ucp_ep_create: params->conn_request belongs to another context");
    }
    claim(request);
    std::unique_ptr<ucp_conn_request> owned(request);
    ucp::client_hello client;
    ucs_status_t status = ucp::parse_client_hello(request->data, &client);
    if (status == UCS_OK && given(params, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) &&
        static_cast<uint8_t>(params->err_mode) != client.err_mode) {
        status = UCS_ERR_UNSUPPORTED;
    }
    if (status != UCS_OK) {
        ucp::reject_request(worker, request);
        throw ucs::error(status,
                         "ucp_ep_create: asymmetric endpoint configuration: the client's "
                         "error handling mode is %u",
                         client.err_mode);
    }
    ucp_ep *ep = nullptr;
    try {
        ep = ucp::ep_new(worker, ucp::ep_origin::server);
        ep->err_mode = static_cast<ucp_err_handling_mode_t>(client.err_mode);
        apply_params(ep, params);
        ucp::accept_client(ep, request, client, mine);
    } catch (...) {
        ucp::reject_request(worker, request);
        if (ep) {
            ucp::ep_destroy(ep);
        }
        throw;
    }
    return ep;
}

ucp_ep *create_by_address(ucp_worker *worker, const ucp_ep_params_t *params)
{
    if (!params->address) {
        throw ucs::error(UCS_ERR_INVALID_PARAM, "ucp_ep_create: params->address must not be NULL");
    }
    bool no_loopback = given(params, UCP_EP_PARAM_FIELD_FLAGS) &&
                       (params->flags & UCP_EP_PARAMS_FLAGS_NO_LOOPBACK);
    ucp_ep *ep = ucp::ep_from_address(worker, params->address, no_loopback);
    try {
        apply_params(ep, params);
        if (ep->err_mode != UCP_ERR_HANDLING_MODE_NONE) {
            ucp::unpacked_address peer;
            if (ucp::unpack_address(params->address, SIZE_MAX, &peer) == UCS_OK) {
                ucp::watch_peer(ep, peer);
            }
        }
    } catch (...) {
        ucp::take_back(ep);
        throw;
    }
    if (ep->state == ucp::ep_state::connecting || ep->control->unsure) {
        ucp::start_wireup(ep);
    }
    return ep;
}

ucp_ep *create_ep(ucp_worker *worker, const ucp_ep_params_t *params, const ucp::greeting &mine)
{
    if (given(params, UCP_EP_PARAM_FIELD_FLAGS) &&
        (params->flags & UCP_EP_PARAMS_FLAGS_CLIENT_SERVER)) {
        return create_client(worker, params, mine);
    }
    if (given(params, UCP_EP_PARAM_FIELD_CONN_REQUEST)) {
        return create_server(worker, params, mine);
    }
    if (given(params, UCP_EP_PARAM_FIELD_REMOTE_ADDRESS)) {
        return create_by_address(worker, params);
    }
    throw ucs::error(UCS_ERR_INVALID_PARAM,
                     "ucp_ep_create: params->field_mask names no peer: neither address, nor "
                     "conn_request, nor flags with UCP_EP_PARAMS_FLAGS_CLIENT_SERVER");
}

ucs_status_t query_sockaddr(ucp_ep *ep, ucp_ep_attr_t *attr)
{
    ucp::cm_addresses addresses;
    ucs_status_t status = ucp::query_addresses(ep, &addresses,
                                               attr->field_mask & UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR
                                                   ? ucp::which_addresses::both
                                                   : ucp::which_addresses::remote);
    if (status != UCS_OK) {
        return status;
    }
    if (attr->field_mask & UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR) {
        attr->local_sockaddr = addresses.local;
    }
    if (attr->field_mask & UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR) {
        attr->remote_sockaddr = addresses.remote;
    }
    return UCS_OK;
}

void query_transports(const ucp_ep *ep, ucp_transports_t *out)
{
    unsigned count = std::min<unsigned>(out->num_entries, ep->lane_count);
    for (unsigned i = 0; i < count; ++i) {
        const auto &rsc = ep->worker->context->resources[ep->lanes[i].iface->resource];
        auto *entry = reinterpret_cast<ucp_transport_entry_t *>(
            reinterpret_cast<char *>(out->entries) + i * out->entry_size);
        if (out->entry_size >= sizeof(ucp_transport_entry_t)) {
            entry->transport_name = rsc.desc.tl_name;
            entry->device_name = rsc.desc.dev_name;
        }
    }
    out->num_entries = count;
}

// Of all that carry pieces of a large message.
double bandwidth_of_rails(const ucp_ep *ep)
{
    double sum = 0;
    for (unsigned i = 0; i < ep->rail_count; ++i) {
        sum += ep->lanes[ep->rails[i]].bandwidth();
    }
    return sum;
}

} // namespace

namespace ucp {

ucs_status_t wait_request(ucp_worker *worker, ucs_status_ptr_t ptr) noexcept
{
    if (!UCS_PTR_IS_PTR(ptr)) {
        return UCS_PTR_STATUS(ptr);
    }
    ucs_status_t status;
    while ((status = ucp_request_check_status(ptr)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    ucp_request_free(ptr);
    return status;
}

ucs_status_t create_ep(ucp_worker_h worker, const ucp_ep_params_t *params, const greeting &mine,
                       ucp_ep_h *ep_p)
{
    ucs::opt_guard guard(worker->lock);
    auto create = [&] { *ep_p = ::create_ep(worker, params, mine); };
    // That a client has gone while it waited for the answer is no mistake of the caller's.
    return given(params, UCP_EP_PARAM_FIELD_CONN_REQUEST) ? ucs::guard_quietly(create)
                                                          : ucs::guard(create);
}

void hear_answer(ucp_ep_h ep) noexcept
{
    ep_tell_answer(ep);
}

std::span<const uint8_t> greeting_of(ucp_conn_request_h request) noexcept
{
    client_hello client;
    return parse_client_hello(request->data, &client) == UCS_OK ? client.greeting
                                                                : std::span<const uint8_t>{};
}

void keep_request(ucp_conn_request_h request) noexcept
{
    claim(request);
    std::lock_guard<ucs::opt_lock> guard(request->context->lock);
    request->listener = nullptr;
}

void refuse_request(ucp_worker_h worker, ucp_conn_request_h request) noexcept
{
    claim(request);
    reject_request(worker, request);
    delete request;
}

} // namespace ucp

extern "C" {

ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p)
{
    UCS_CHECK_ARG(worker, "ucp_ep_create: worker must not be NULL");
    UCS_CHECK_ARG(params, "ucp_ep_create: params must not be NULL");
    UCS_CHECK_ARG(ep_p, "ucp_ep_create: ep_p must not be NULL");
    if (given(params, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE)) {
        unsigned mode = ucp::raw_value(params->err_mode);
        UCS_CHECK_ARG(mode <= UCP_ERR_HANDLING_MODE_FAILOVER,
                      "ucp_ep_create: params->err_mode %u is not an error handling mode", mode);
    }
    ucs::opt_guard guard(worker->lock);
    ucp::greeting mine;
    bool fails_with_peer = given(params, UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE) &&
                           params->err_mode == UCP_ERR_HANDLING_MODE_PEER;
    mine.trust = fails_with_peer ? ucp::lane_trust::networks : ucp::lane_trust::none;
    return ucs::guard([&] { *ep_p = create_ep(worker, params, mine); });
}

ucs_status_ptr_t ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t *params)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_ep_modify_nb: ep must not be NULL");
    UCS_CHECK_ARG_PTR(params, "ucp_ep_modify_nb: params must not be NULL");
    UCS_CHECK_ARG_PTR(!given(params, UCP_EP_PARAM_FIELD_REMOTE_ADDRESS |
                                         UCP_EP_PARAM_FIELD_SOCK_ADDR |
                                         UCP_EP_PARAM_FIELD_CONN_REQUEST),
                      "ucp_ep_modify_nb: params->field_mask: the peer cannot be changed");
    ucs::opt_guard guard(ep->worker->lock);
    return UCS_STATUS_PTR(ucs::guard([&] { apply_params(ep, params); }));
}

ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_ep_close_nbx: ep must not be NULL");
    UCS_CHECK_ARG_PTR(param, "ucp_ep_close_nbx: param must not be NULL");
    ucs::opt_guard guard(ep->worker->lock);
    return ucp::ep_close(ep, param);
}

ucs_status_ptr_t ucp_ep_close_nb(ucp_ep_h ep, unsigned mode)
{
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = mode == UCP_EP_CLOSE_MODE_FORCE ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    return ucp_ep_close_nbx(ep, &param);
}

ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h ep)
{
    return ucp_ep_close_nb(ep, UCP_EP_CLOSE_MODE_FLUSH);
}

void ucp_ep_destroy(ucp_ep_h ep)
{
    if (!ep) {
        ucs_error("ucp_ep_destroy: ep must not be NULL");
        return;
    }
    ucp_worker *worker = ep->worker;
    (void)ucp::wait_request(worker, ucp_disconnect_nb(ep));
}

ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_ep_flush_nbx: ep must not be NULL");
    UCS_CHECK_ARG_PTR(param, "ucp_ep_flush_nbx: param must not be NULL");
    ucs::opt_guard guard(ep->worker->lock);
    ucs_status_t status = ep->check_usable();
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    auto *req = ucp::request_get<ucp::flush_request>(ep->worker, param);
    if (!req) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
    }
    req->flags |= ucp::REQ_POSTING;
    ucp::ep_flush_start(ep, req);
    return ucp::post_return(req, param);
}

ucs_status_ptr_t ucp_ep_flush_nb(ucp_ep_h ep, unsigned flags, ucp_send_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_param(cb);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = flags;
    return ucp_ep_flush_nbx(ep, &param);
}

ucs_status_t ucp_ep_flush(ucp_ep_h ep)
{
    UCS_CHECK_ARG(ep, "ucp_ep_flush: ep must not be NULL");
    ucp_request_param_t param = {};
    return ucp::wait_request(ep->worker, ucp_ep_flush_nbx(ep, &param));
}

ucs_status_t ucp_ep_query(ucp_ep_h ep, ucp_ep_attr_t *attr)
{
    UCS_CHECK_ARG(ep, "ucp_ep_query: ep must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_ep_query: attr must not be NULL");
    ucs::opt_guard guard(ep->worker->lock);
    if (attr->field_mask & UCP_EP_ATTR_FIELD_NAME) {
        std::string name = ucp::name_of(*ep);
        strncpy(attr->name, name.c_str(), UCP_ENTITY_NAME_MAX - 1);
        attr->name[UCP_ENTITY_NAME_MAX - 1] = '\0';
    }
    if (attr->field_mask & UCP_EP_ATTR_FIELD_TRANSPORTS) {
        UCS_CHECK_ARG(attr->transports.entries || attr->transports.num_entries == 0,
                      "ucp_ep_query: attr->transports.entries must not be NULL");
        query_transports(ep, &attr->transports);
    }
    if (attr->field_mask & UCP_EP_ATTR_FIELD_USER_DATA) {
        attr->user_data = ep->control->has_user_data ? ep->user_data : nullptr;
    }
    if (attr->field_mask & (UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR | UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR)) {
        return query_sockaddr(ep, attr);
    }
    return UCS_OK;
}

ucs_status_t ucp_ep_evaluate_perf(ucp_ep_h ep, const ucp_ep_evaluate_perf_param_t *param,
                                  ucp_ep_evaluate_perf_attr_t *attr)
{
    UCS_CHECK_ARG(ep, "ucp_ep_evaluate_perf: ep must not be NULL");
    UCS_CHECK_ARG(param, "ucp_ep_evaluate_perf: param must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_ep_evaluate_perf: attr must not be NULL");
    UCS_CHECK_ARG(param->field_mask & UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE,
                  "ucp_ep_evaluate_perf: param->message_size must be given");
    ucs::opt_guard guard(ep->worker->lock);
    if (ep->lane_count == 0) {
        return UCS_ERR_NOT_CONNECTED;
    }
    const uct_iface_attr_t &iface = ep->am_lane().attr();
    double size = static_cast<double>(param->message_size);
    double bandwidth = std::max(ep->am_lane().bandwidth(), bandwidth_of_rails(ep));
    if (attr->field_mask & UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME) {
        attr->estimated_time = iface.latency.c + iface.overhead + size / bandwidth;
    }
    return UCS_OK;
}

void ucp_ep_print_info(ucp_ep_h ep, FILE *stream)
{
    if (!ep || !stream) {
        ucs_error("ucp_ep_print_info: ep and stream must not be NULL");
        return;
    }
    ucs::opt_guard guard(ep->worker->lock);
    ucs::guard([&] { ucp::print_ep(*ep, stream); });
}

ucs_status_t ucp_listener_create(ucp_worker_h worker, const ucp_listener_params_t *params,
                                 ucp_listener_h *listener_p)
{
    UCS_CHECK_ARG(worker, "ucp_listener_create: worker must not be NULL");
    UCS_CHECK_ARG(params, "ucp_listener_create: params must not be NULL");
    UCS_CHECK_ARG(listener_p, "ucp_listener_create: listener_p must not be NULL");
    UCS_CHECK_ARG(params->field_mask & UCP_LISTENER_PARAM_FIELD_SOCK_ADDR,
                  "ucp_listener_create: params->sockaddr must be given");
    UCS_CHECK_ARG(params->sockaddr.addr,
                  "ucp_listener_create: params->sockaddr.addr must not be NULL");
    UCS_CHECK_ARG(ucs::sockaddr_length(params->sockaddr.addr) != 0,
                  "ucp_listener_create: params->sockaddr.addr has address family %d",
                  params->sockaddr.addr->sa_family);
    bool conn = (params->field_mask & UCP_LISTENER_PARAM_FIELD_CONN_HANDLER) != 0;
    bool accept = (params->field_mask & UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER) != 0;
    UCS_CHECK_ARG(conn != accept, "ucp_listener_create: exactly one of params->conn_handler and "
                                  "params->accept_handler must be given");
    UCS_CHECK_ARG(!conn || params->conn_handler.cb,
                  "ucp_listener_create: params->conn_handler.cb must not be NULL");
    UCS_CHECK_ARG(!accept || params->accept_handler.cb,
                  "ucp_listener_create: params->accept_handler.cb must not be NULL");
    ucs::opt_guard guard(worker->lock);
    return ucs::guard([&] { *listener_p = new ucp_listener(worker, params); });
}

void ucp_listener_destroy(ucp_listener_h listener)
{
    if (!listener) {
        ucs_error("ucp_listener_destroy: listener must not be NULL");
        return;
    }
    ucs::opt_guard guard(listener->worker->lock);
    delete listener;
}

ucs_status_t ucp_listener_query(ucp_listener_h listener, ucp_listener_attr_t *attr)
{
    UCS_CHECK_ARG(listener, "ucp_listener_query: listener must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_listener_query: attr must not be NULL");
    if (!(attr->field_mask & UCP_LISTENER_ATTR_FIELD_SOCKADDR)) {
        return UCS_OK;
    }
    uct_listener_attr_t uct = {};
    uct.field_mask = UCT_LISTENER_ATTR_FIELD_SOCKADDR;
    ucs_status_t status = uct_listener_query(listener->uct, &uct);
    if (status == UCS_OK) {
        attr->sockaddr = uct.sockaddr;
    }
    return status;
}

ucs_status_t ucp_listener_reject(ucp_listener_h listener, ucp_conn_request_h conn_request)
{
    UCS_CHECK_ARG(listener, "ucp_listener_reject: listener must not be NULL");
    UCS_CHECK_ARG(conn_request, "ucp_listener_reject: conn_request must not be NULL");
    ucp::refuse_request(listener->worker, conn_request);
    return UCS_OK;
}

ucs_status_t ucp_conn_request_query(ucp_conn_request_h conn_request, ucp_conn_request_attr_t *attr)
{
    UCS_CHECK_ARG(conn_request, "ucp_conn_request_query: conn_request must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_conn_request_query: attr must not be NULL");
    if (attr->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR) {
        attr->client_address = conn_request->client;
    }
    if (attr->field_mask & UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID) {
        attr->client_id = conn_request->client_id;
    }
    return UCS_OK;
}

} // extern "C"
