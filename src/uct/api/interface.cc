// SPDX-License-Identifier: BSD-3-Clause
// The exported uct_* calls but those of connection managers and of memory: checks of the arguments,
// then one call.
#include <uct/api/uct.h>

#include "ucs/check.h"
#include "ucs/device_memory.h"
#include "ucs/error.h"
#include "ucs/other_ucx.h"
#include "ucs/stats/stats.h"
#include "uct/base/cm.h"
#include "uct/base/component.h"
#include "uct/base/config.h"
#include "uct/base/iface.h"
#include "uct/base/md.h"
#include "uct/base/worker.h"
#include "uct/sockaddr/iface.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

extern "C" {

const char *uct_device_type_names[UCT_DEVICE_TYPE_LAST] = {"network", "intra-node", "accelerator",
                                                           "loopback"};
static_assert(sizeof(uct_device_type_names) == 32);

ucs_status_t uct_query_components(uct_component_h **components_p, unsigned *num_components_p)
{
    UCS_CHECK_ARG(components_p, "uct_query_components: components_p must not be NULL");
    UCS_CHECK_ARG(num_components_p, "uct_query_components: num_components_p must not be NULL");
    ucs_status_t status =
        ucs::refuse_other_ucx("uct_query_components", __builtin_return_address(0));
    if (status != UCS_OK) {
        return status;
    }
    return ucs::guard([&] {
        const auto &all = uct::components();
        auto *list =
            static_cast<uct_component_h *>(calloc(all.size() + 1, sizeof(uct_component_h)));
        if (!list) {
            throw std::bad_alloc();
        }
        std::copy(all.begin(), all.end(), list);
        *components_p = list;
        *num_components_p = static_cast<unsigned>(all.size());
    });
}

void uct_release_component_list(uct_component_h *components)
{
    free(components);
}

ucs_status_t uct_component_query(uct_component_h component, uct_component_attr_t *attr)
{
    UCS_CHECK_ARG(component, "uct_component_query: component must not be NULL");
    UCS_CHECK_ARG(attr, "uct_component_query: component_attr must not be NULL");
    UCS_CHECK_ARG(!(attr->field_mask & UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES) || attr->md_resources,
                  "uct_component_query: component_attr->md_resources must not be NULL");
    return ucs::guard([&] {
        uint64_t mask = attr->field_mask;
        if (mask & UCT_COMPONENT_ATTR_FIELD_NAME) {
            snprintf(attr->name, sizeof(attr->name), "%s", component->name.c_str());
        }
        if (mask &
            (UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES)) {
            std::vector<std::string> names = component->md_names();
            if (mask & UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES) {
                for (size_t i = 0; i < names.size(); ++i) {
                    snprintf(attr->md_resources[i].md_name, sizeof(attr->md_resources[i].md_name),
                             "%s", names[i].c_str());
                }
            }
            if (mask & UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT) {
                attr->md_resource_count = static_cast<unsigned>(names.size());
            }
        }
        if (mask & UCT_COMPONENT_ATTR_FIELD_FLAGS) {
            attr->flags = component->flags();
        }
    });
}

ucs_status_t uct_md_config_read(uct_component_h component, const char *env_prefix,
                                const char *filename, uct_md_config_t **config_p)
{
    UCS_CHECK_ARG(component, "uct_md_config_read: component must not be NULL");
    UCS_CHECK_ARG(config_p, "uct_md_config_read: config_p must not be NULL");
    return ucs::guard([&] {
        *config_p =
            uct::read_config<uct_md_config>(component->name, env_prefix, filename).release();
    });
}

ucs_status_t uct_md_open(uct_component_h component, const char *md_name,
                         const uct_md_config_t *config, uct_md_h *md_p)
{
    UCS_CHECK_ARG(component, "uct_md_open: component must not be NULL");
    UCS_CHECK_ARG(md_name, "uct_md_open: md_name must not be NULL");
    UCS_CHECK_ARG(config, "uct_md_open: config must not be NULL");
    UCS_CHECK_ARG(md_p, "uct_md_open: md_p must not be NULL");
    ucs::device_memory::load_drivers();
    return ucs::guard([&] { *md_p = component->open_md(md_name, *config); });
}

void uct_md_close(uct_md_h md)
{
    delete md;
}

ucs_status_t uct_md_query(uct_md_h md, uct_md_attr_t *md_attr)
{
    UCS_CHECK_ARG(md, "uct_md_query: md must not be NULL");
    UCS_CHECK_ARG(md_attr, "uct_md_query: md_attr must not be NULL");
    return ucs::guard([&] {
        md->query(md_attr);
        md_attr->cap.detect_mem_types |= ucs::device_memory::known_kinds();
    });
}

ucs_status_t uct_md_query_tl_resources(uct_md_h md, uct_tl_resource_desc_t **resources_p,
                                       unsigned *num_resources_p)
{
    UCS_CHECK_ARG(md, "uct_md_query_tl_resources: md must not be NULL");
    UCS_CHECK_ARG(resources_p, "uct_md_query_tl_resources: resources_p must not be NULL");
    UCS_CHECK_ARG(num_resources_p, "uct_md_query_tl_resources: num_resources_p must not be NULL");
    return ucs::guard([&] {
        std::vector<uct_tl_resource_desc_t> found = md->tl_resources();
        auto *list =
            static_cast<uct_tl_resource_desc_t *>(calloc(found.size() + 1, sizeof(found[0])));
        if (!list) {
            throw std::bad_alloc();
        }
        std::copy(found.begin(), found.end(), list);
        *resources_p = list;
        *num_resources_p = static_cast<unsigned>(found.size());
    });
}

void uct_release_tl_resource_list(uct_tl_resource_desc_t *resources)
{
    free(resources);
}

ucs_status_t uct_worker_create(ucs_async_context_t *, ucs_thread_mode_t thread_mode,
                               uct_worker_h *worker_p)
{
    UCS_CHECK_ARG(worker_p, "uct_worker_create: worker_p must not be NULL");
    UCS_CHECK_ARG(thread_mode >= UCS_THREAD_MODE_SINGLE && thread_mode < UCS_THREAD_MODE_LAST,
                  "uct_worker_create: thread_mode %d is not a thread mode", thread_mode);
    return ucs::guard([&] { *worker_p = new uct::worker(thread_mode); });
}

void uct_worker_destroy(uct_worker_h worker)
{
    if (worker) {
        delete uct::worker_of(worker);
    }
}

void uct_worker_progress_register_safe(uct_worker_h worker, ucs_callback_t func, void *arg,
                                       unsigned flags, uct_worker_cb_id_t *id_p)
{
    if (!worker || !func || !id_p) {
        ucs_error("uct_worker_progress_register_safe: worker, func and id_p must not be NULL");
        return;
    }
    // An id that is set already belongs to a callback that waits.
    if (*id_p == UCS_CALLBACKQ_ID_NULL) {
        (void)ucs::guard([&] { *id_p = uct::worker_of(worker)->register_safe(func, arg, flags); });
    }
}

void uct_worker_progress_unregister_safe(uct_worker_h worker, uct_worker_cb_id_t *id_p)
{
    if (!worker || !id_p) {
        ucs_error("uct_worker_progress_unregister_safe: worker and id_p must not be NULL");
        return;
    }
    if (*id_p != UCS_CALLBACKQ_ID_NULL) {
        uct::worker_of(worker)->unregister_safe(*id_p);
        *id_p = UCS_CALLBACKQ_ID_NULL;
    }
}

ucs_status_t uct_md_iface_config_read(uct_md_h md, const char *tl_name, const char *env_prefix,
                                      const char *filename, uct_iface_config_t **config_p)
{
    UCS_CHECK_ARG(md, "uct_md_iface_config_read: md must not be NULL");
    UCS_CHECK_ARG(config_p, "uct_md_iface_config_read: config_p must not be NULL");
    return ucs::guard([&] {
        std::string name = tl_name ? tl_name : md->component.name;
        std::vector<uct_tl_resource_desc_t> resources = md->tl_resources();
        if (tl_name && std::none_of(resources.begin(), resources.end(),
                                    [&](const auto &r) { return name == r.tl_name; })) {
            throw ucs::error(UCS_ERR_NO_DEVICE,
                             "uct_md_iface_config_read: tl_name \"%s\" is not a transport of this "
                             "memory domain",
                             tl_name);
        }
        *config_p = uct::read_config<uct_iface_config>(name, env_prefix, filename).release();
    });
}

void uct_config_release(void *config)
{
    delete static_cast<uct::config_object *>(config);
}

ucs_status_t uct_config_get(void *config, const char *name, char *value, size_t max)
{
    UCS_CHECK_ARG(config, "uct_config_get: config must not be NULL");
    UCS_CHECK_ARG(name, "uct_config_get: name must not be NULL");
    UCS_CHECK_ARG(value && max > 0, "uct_config_get: value must have room");
    return ucs::guard([&] {
        auto *object = static_cast<uct::config_object *>(config);
        std::string text;
        ucs_status_t status = ucs::config::get(object->table(), object->values(), name, &text);
        if (status == UCS_ERR_NO_ELEM) {
            status = ucs::config::get(object->table(), object->values(),
                                      (object->prefix + name).c_str(), &text);
        }
        if (status == UCS_OK) {
            snprintf(value, max, "%s", text.c_str());
        }
        return status;
    });
}

ucs_status_t uct_config_modify(void *config, const char *name, const char *value)
{
    UCS_CHECK_ARG(config, "uct_config_modify: config must not be NULL");
    UCS_CHECK_ARG(name, "uct_config_modify: name must not be NULL");
    UCS_CHECK_ARG(value, "uct_config_modify: value must not be NULL");
    return ucs::guard([&] {
        auto *object = static_cast<uct::config_object *>(config);
        ucs_status_t status = ucs::config::set(object->table(), object->values(), name, value);
        if (status == UCS_ERR_NO_ELEM) {
            // UCX takes the name without the prefix of the object.
            status = ucs::config::set(object->table(), object->values(),
                                      (object->prefix + name).c_str(), value);
        }
        return status;
    });
}

static uct_iface_h open_counted(uct_md &md, uct_worker &worker, const uct_iface_params_t &params,
                                const uct_iface_config_t &config)
{
    bool counts = ucs::stats::wanted();
    uct_iface_h opened = md.open_iface(&worker, params, config);
    if (counts) {
        try {
            static_cast<uct::iface *>(opened)->count_traffic(params.mode.device.tl_name,
                                                             params.mode.device.dev_name);
        } catch (...) {
            opened->ops.iface_close(opened);
            throw;
        }
    }
    return opened;
}

ucs_status_t uct_iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t *params,
                            const uct_iface_config_t *config, uct_iface_h *iface_p)
{
    UCS_CHECK_ARG(md, "uct_iface_open: md must not be NULL");
    UCS_CHECK_ARG(worker, "uct_iface_open: worker must not be NULL");
    UCS_CHECK_ARG(params, "uct_iface_open: params must not be NULL");
    UCS_CHECK_ARG(config, "uct_iface_open: config must not be NULL");
    UCS_CHECK_ARG(iface_p, "uct_iface_open: iface_p must not be NULL");
    UCS_CHECK_ARG(params->field_mask & UCT_IFACE_PARAM_FIELD_OPEN_MODE,
                  "uct_iface_open: params->open_mode must be given");
    constexpr uint64_t sockaddr_modes =
        UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER | UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT;
    constexpr uint64_t modes = UCT_IFACE_OPEN_MODE_DEVICE | sockaddr_modes;
    UCS_CHECK_ARG(std::has_single_bit(params->open_mode) &&
                      (params->open_mode & (modes | UCT_IFACE_OPEN_MODE_STUB)),
                  "uct_iface_open: params->open_mode 0x%lx is not one mode", params->open_mode);
    if (!(params->open_mode & modes)) {
        ucs_error("uct_iface_open: params->open_mode 0x%lx: UCT_IFACE_OPEN_MODE_STUB is not "
                  "supported",
                  params->open_mode);
        return UCS_ERR_UNSUPPORTED;
    }
    if (params->open_mode & sockaddr_modes) {
        return ucs::guard([&] { *iface_p = uct::sockaddr_mode::open(*md, *worker, *params); });
    }
    // Programs set the names without UCT_IFACE_PARAM_FIELD_DEVICE: the open mode implies them.
    UCS_CHECK_ARG(params->mode.device.tl_name && params->mode.device.dev_name,
                  "uct_iface_open: params->mode.device names must be given");
    return ucs::guard([&] {
        for (const uct_tl_resource_desc_t &r : md->tl_resources()) {
            if (strcmp(r.tl_name, params->mode.device.tl_name) == 0 &&
                strcmp(r.dev_name, params->mode.device.dev_name) == 0) {
                *iface_p = open_counted(*md, *worker, *params, *config);
                return;
            }
        }
        throw ucs::error(UCS_ERR_NO_DEVICE,
                         "uct_iface_open: params->mode.device %s/%s is not of this memory domain",
                         params->mode.device.tl_name, params->mode.device.dev_name);
    });
}

void uct_iface_close(uct_iface_h iface)
{
    if (iface) {
        iface->ops.iface_close(iface);
    }
}

ucs_status_t uct_iface_query(uct_iface_h iface, uct_iface_attr_t *attr)
{
    UCS_CHECK_ARG(iface, "uct_iface_query: iface must not be NULL");
    UCS_CHECK_ARG(attr, "uct_iface_query: iface_attr must not be NULL");
    return ucs::guard([&] { return iface->ops.iface_query(iface, attr); });
}

ucs_status_t uct_iface_get_device_address(uct_iface_h iface, uct_device_addr_t *addr)
{
    UCS_CHECK_ARG(iface, "uct_iface_get_device_address: iface must not be NULL");
    UCS_CHECK_ARG(addr, "uct_iface_get_device_address: addr must not be NULL");
    return ucs::guard([&] { return iface->ops.iface_get_device_address(iface, addr); });
}

ucs_status_t uct_iface_get_address(uct_iface_h iface, uct_iface_addr_t *addr)
{
    UCS_CHECK_ARG(iface, "uct_iface_get_address: iface must not be NULL");
    UCS_CHECK_ARG(addr, "uct_iface_get_address: addr must not be NULL");
    return ucs::guard([&] { return iface->ops.iface_get_address(iface, addr); });
}

int uct_iface_is_reachable(const uct_iface_h iface, const uct_device_addr_t *dev_addr,
                           const uct_iface_addr_t *iface_addr)
{
    if (!iface) {
        ucs_error("uct_iface_is_reachable: iface must not be NULL");
        return 0;
    }
    return iface->ops.iface_is_reachable(iface, dev_addr, iface_addr);
}

ucs_status_t uct_iface_event_fd_get(uct_iface_h iface, int *fd_p)
{
    UCS_CHECK_ARG(iface, "uct_iface_event_fd_get: iface must not be NULL");
    UCS_CHECK_ARG(fd_p, "uct_iface_event_fd_get: fd_p must not be NULL");
    return ucs::guard([&] { return iface->ops.iface_event_fd_get(iface, fd_p); });
}

ucs_status_t uct_iface_event_arm(uct_iface_h iface, unsigned events)
{
    UCS_CHECK_ARG(iface, "uct_iface_event_arm: iface must not be NULL");
    return ucs::guard([&] { return iface->ops.iface_event_arm(iface, events); });
}

ucs_status_t uct_iface_set_am_handler(uct_iface_h iface, uint8_t id, uct_am_callback_t cb,
                                      void *arg, uint32_t flags)
{
    UCS_CHECK_ARG(iface, "uct_iface_set_am_handler: iface must not be NULL");
    UCS_CHECK_ARG(id < UCT_AM_ID_MAX, "uct_iface_set_am_handler: id %u must be below %u", id,
                  static_cast<unsigned>(UCT_AM_ID_MAX));
    UCS_CHECK_ARG((flags & ~static_cast<uint32_t>(UCT_CB_FLAG_ASYNC | UCT_CB_FLAG_RESERVED)) == 0,
                  "uct_iface_set_am_handler: flags 0x%x are not callback flags", flags);
    static_cast<uct::iface *>(iface)->set_am_handler(id, cb, arg);
    return UCS_OK;
}

ucs_status_t uct_iface_set_am_tracer(uct_iface_h iface, uct_am_tracer_t tracer, void *arg)
{
    UCS_CHECK_ARG(iface, "uct_iface_set_am_tracer: iface must not be NULL");
    return ucs::guard([&] { static_cast<uct::iface *>(iface)->set_am_tracer(tracer, arg); });
}

ucs_status_t uct_iface_accept(uct_iface_h iface, uct_conn_request_h conn_request)
{
    UCS_CHECK_ARG(iface, "uct_iface_accept: iface must not be NULL");
    UCS_CHECK_ARG(conn_request, "uct_iface_accept: conn_request must not be NULL");
    return iface->ops.iface_accept(iface, conn_request);
}

ucs_status_t uct_iface_reject(uct_iface_h iface, uct_conn_request_h conn_request)
{
    UCS_CHECK_ARG(iface, "uct_iface_reject: iface must not be NULL");
    UCS_CHECK_ARG(conn_request, "uct_iface_reject: conn_request must not be NULL");
    return iface->ops.iface_reject(iface, conn_request);
}

ucs_status_t uct_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p)
{
    UCS_CHECK_ARG(params, "uct_ep_create: params must not be NULL");
    UCS_CHECK_ARG(ep_p, "uct_ep_create: ep_p must not be NULL");
    uint64_t mask = params->field_mask;
    if (mask & UCT_EP_PARAM_FIELD_CM) {
        UCS_CHECK_ARG(params->cm, "uct_ep_create: params->cm must not be NULL");
        return ucs::guard([&] { return params->cm->create_ep(*params, ep_p); });
    }
    UCS_CHECK_ARG((mask & UCT_EP_PARAM_FIELD_IFACE) && params->iface,
                  "uct_ep_create: params->iface or params->cm must be given");
    if ((mask & UCT_EP_PARAM_FIELD_SOCKADDR) ||
        uct::sockaddr_mode::is_sockaddr_iface(params->iface)) {
        if (!uct::sockaddr_mode::is_sockaddr_iface(params->iface)) {
            ucs_error("uct_ep_create: params->sockaddr needs params->cm, or a params->iface that "
                      "was opened with UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT");
            return UCS_ERR_UNSUPPORTED;
        }
        return params->iface->ops.ep_create(params, ep_p);
    }
    UCS_CHECK_ARG(!(mask & UCT_EP_PARAM_FIELD_PATH_INDEX) || params->path_index == 0,
                  "uct_ep_create: params->path_index %u must be below dev_num_paths, which is 1",
                  params->path_index);
    if (!(mask & (UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR))) {
        return params->iface->ops.ep_create(params, ep_p); // for uct_ep_connect_to_ep()
    }
    UCS_CHECK_ARG((mask & UCT_EP_PARAM_FIELD_DEV_ADDR) && params->dev_addr,
                  "uct_ep_create: params->dev_addr must be given");
    UCS_CHECK_ARG((mask & UCT_EP_PARAM_FIELD_IFACE_ADDR) && params->iface_addr,
                  "uct_ep_create: params->iface_addr must be given");
    return params->iface->ops.ep_create(params, ep_p);
}

void uct_ep_destroy(uct_ep_h ep)
{
    if (ep) {
        ep->iface->ops.ep_destroy(ep);
    }
}

ucs_status_t uct_ep_get_address(uct_ep_h ep, uct_ep_addr_t *addr)
{
    UCS_CHECK_ARG(ep, "uct_ep_get_address: ep must not be NULL");
    UCS_CHECK_ARG(addr, "uct_ep_get_address: addr must not be NULL");
    return ep->iface->ops.ep_get_address(ep, addr);
}

ucs_status_t uct_ep_connect_to_ep(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                                  const uct_ep_addr_t *ep_addr)
{
    UCS_CHECK_ARG(ep, "uct_ep_connect_to_ep: ep must not be NULL");
    UCS_CHECK_ARG(dev_addr, "uct_ep_connect_to_ep: dev_addr must not be NULL");
    UCS_CHECK_ARG(ep_addr, "uct_ep_connect_to_ep: ep_addr must not be NULL");
    return ep->iface->ops.ep_connect_to_ep(ep, dev_addr, ep_addr);
}

ucs_status_t uct_ep_check(const uct_ep_h ep, unsigned flags, uct_completion_t *comp)
{
    UCS_CHECK_ARG(ep, "uct_ep_check: ep must not be NULL");
    UCS_CHECK_ARG(flags == 0, "uct_ep_check: flags 0x%x must be 0", flags);
    return ep->iface->ops.ep_check(ep, flags, comp);
}

} // extern "C"
