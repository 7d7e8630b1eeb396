// SPDX-License-Identifier: BSD-3-Clause
// uct.h's calls on connection managers, listeners and their endpoints: arguments are checked here,
// the work is in the classes of uct/cm.h.
#include "uct/base/cm.h"
#include "ucs/check.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "uct/base/component.h"
#include "uct/base/ops.h"

namespace {

struct no_iface : uct_iface {};

bool is_cm_ep(uct_ep_h ep)
{
    // Every connection manager has the same table.
    return ep->iface->ops.cm_ep_conn_notify ==
           uct::make_ops<no_iface, uct::cm_ep>().cm_ep_conn_notify;
}

} // namespace

uct_cm::uct_cm(uct_component &component) : component(component)
{
    ops = uct::make_ops<no_iface, uct::cm_ep>();
}

ucs_status_t uct_cm_open(uct_component_h component, uct_worker_h worker,
                         const uct_cm_config_t *config, uct_cm_h *cm_p)
{
    UCS_CHECK_ARG(component, "uct_cm_open: component must not be NULL");
    UCS_CHECK_ARG(worker, "uct_cm_open: worker must not be NULL");
    UCS_CHECK_ARG(config, "uct_cm_open: config must not be NULL");
    UCS_CHECK_ARG(cm_p, "uct_cm_open: cm_p must not be NULL");
    return ucs::guard([&] { *cm_p = component->open_cm(worker, *config); });
}

void uct_cm_close(uct_cm_h cm)
{
    delete cm;
}

ucs_status_t uct_cm_query(uct_cm_h cm, uct_cm_attr_t *cm_attr)
{
    UCS_CHECK_ARG(cm, "uct_cm_query: cm must not be NULL");
    UCS_CHECK_ARG(cm_attr, "uct_cm_query: cm_attr must not be NULL");
    return ucs::guard([&] { cm->query(cm_attr); });
}

ucs_status_t uct_cm_config_read(uct_component_h component, const char *env_prefix,
                                const char *filename, uct_cm_config_t **config_p)
{
    UCS_CHECK_ARG(component, "uct_cm_config_read: component must not be NULL");
    UCS_CHECK_ARG(config_p, "uct_cm_config_read: config_p must not be NULL");
    UCS_CHECK_ARG(component->flags() & UCT_COMPONENT_FLAG_CM,
                  "uct_cm_config_read: component %s must have UCT_COMPONENT_FLAG_CM",
                  component->name.c_str());
    return ucs::guard([&] {
        *config_p = uct::read_config<uct_cm_config>(component->name + "_CM", env_prefix, filename)
                        .release();
    });
}

ucs_status_t uct_listener_create(uct_cm_h cm, const struct sockaddr *saddr, socklen_t socklen,
                                 const uct_listener_params_t *params, uct_listener_h *listener_p)
{
    UCS_CHECK_ARG(cm, "uct_listener_create: cm must not be NULL");
    UCS_CHECK_ARG(saddr, "uct_listener_create: saddr must not be NULL");
    UCS_CHECK_ARG(params, "uct_listener_create: params must not be NULL");
    UCS_CHECK_ARG(listener_p, "uct_listener_create: listener_p must not be NULL");
    size_t length = ucs::sockaddr_length(saddr);
    UCS_CHECK_ARG(length != 0, "uct_listener_create: saddr must be of family AF_INET or AF_INET6");
    UCS_CHECK_ARG(socklen >= length, "uct_listener_create: socklen %u must be at least %zu",
                  static_cast<unsigned>(socklen), length);
    UCS_CHECK_ARG((params->field_mask & UCT_LISTENER_PARAM_FIELD_CONN_REQUEST_CB) &&
                      params->conn_request_cb,
                  "uct_listener_create: params->conn_request_cb must be given");
    UCS_CHECK_ARG(!(params->field_mask & UCT_LISTENER_PARAM_FIELD_BACKLOG) || params->backlog > 0,
                  "uct_listener_create: params->backlog %d must be positive", params->backlog);
    return ucs::guard([&] { *listener_p = cm->listen(saddr, *params); });
}

void uct_listener_destroy(uct_listener_h listener)
{
    delete static_cast<uct::cm_listener *>(listener);
}

ucs_status_t uct_listener_reject(uct_listener_h listener, uct_conn_request_h conn_request)
{
    UCS_CHECK_ARG(listener, "uct_listener_reject: listener must not be NULL");
    UCS_CHECK_ARG(conn_request, "uct_listener_reject: conn_request must not be NULL");
    return ucs::guard(
        [&] { return static_cast<uct::cm_listener *>(listener)->reject(conn_request); });
}

ucs_status_t uct_listener_query(uct_listener_h listener, uct_listener_attr_t *listener_attr)
{
    UCS_CHECK_ARG(listener, "uct_listener_query: listener must not be NULL");
    UCS_CHECK_ARG(listener_attr, "uct_listener_query: listener_attr must not be NULL");
    return ucs::guard([&] { static_cast<uct::cm_listener *>(listener)->query(listener_attr); });
}

ucs_status_t uct_ep_connect(uct_ep_h ep, const uct_ep_connect_params_t *params)
{
    UCS_CHECK_ARG(ep, "uct_ep_connect: ep must not be NULL");
    UCS_CHECK_ARG(params, "uct_ep_connect: params must not be NULL");
    return ep->iface->ops.ep_connect(ep, params);
}

ucs_status_t uct_ep_disconnect(uct_ep_h ep, unsigned flags)
{
    UCS_CHECK_ARG(ep, "uct_ep_disconnect: ep must not be NULL");
    return ep->iface->ops.ep_disconnect(ep, flags);
}

ucs_status_t uct_cm_client_ep_conn_notify(uct_ep_h ep)
{
    UCS_CHECK_ARG(ep, "uct_cm_client_ep_conn_notify: ep must not be NULL");
    return ep->iface->ops.cm_ep_conn_notify(ep);
}

ucs_status_t uct_ep_query(uct_ep_h ep, uct_ep_attr_t *ep_attr)
{
    UCS_CHECK_ARG(ep, "uct_ep_query: ep must not be NULL");
    UCS_CHECK_ARG(ep_attr, "uct_ep_query: ep_attr must not be NULL");
    if (!is_cm_ep(ep)) {
        return UCS_ERR_UNSUPPORTED;
    }
    return static_cast<uct::cm_ep *>(ep)->query(ep_attr);
}
