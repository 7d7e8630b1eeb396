/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program in C99, compiled with the public headers and linked with -lucxlike alone: what it does
 * is what a first program does with each interface, one process talking to itself.
 */
#include "check.h"

#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG = 0x1234, LIMIT = 10000000 };

/* ---- UCP ---- */

static ucp_worker_h worker;
static ucp_ep_h ep;

static ucs_status_t wait_for(void *request)
{
    ucs_status_t status;
    unsigned long tries = 0;

    if (request == NULL) {
        return UCS_OK;
    }
    if (UCS_PTR_IS_ERR(request)) {
        return UCS_PTR_STATUS(request);
    }
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
        CHECK(++tries < LIMIT);
    }
    ucp_request_free(request);
    return status;
}

static void tagged_message(void)
{
    const char sent[] = "hello";
    char received[sizeof(sent)] = "";
    ucp_request_param_t param;
    void *receive;

    param.op_attr_mask = 0;
    receive = ucp_tag_recv_nbx(worker, received, sizeof(received), TAG, (ucp_tag_t)-1, &param);
    CHECK(wait_for(ucp_tag_send_nbx(ep, sent, sizeof(sent), TAG, &param)) == UCS_OK);
    CHECK(wait_for(receive) == UCS_OK);
    CHECK(memcmp(sent, received, sizeof(sent)) == 0);
}

static void put_and_get(ucp_context_h context)
{
    uint64_t target = 0, value = 42, read = 0;
    ucp_mem_map_params_t map;
    ucp_request_param_t param;
    ucp_mem_h memh;
    ucp_rkey_h rkey;
    void *key;
    size_t length;

    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = &target;
    map.length = sizeof(target);
    CHECK(ucp_mem_map(context, &map, &memh) == UCS_OK);
    CHECK(ucp_rkey_pack(context, memh, &key, &length) == UCS_OK);
    CHECK(ucp_ep_rkey_unpack(ep, key, &rkey) == UCS_OK);
    ucp_rkey_buffer_release(key);

    param.op_attr_mask = 0;
    CHECK(wait_for(ucp_put_nbx(ep, &value, sizeof(value), (uintptr_t)&target, rkey, &param)) ==
          UCS_OK);
    CHECK(wait_for(ucp_ep_flush_nbx(ep, &param)) == UCS_OK);
    CHECK(target == 42);
    CHECK(wait_for(ucp_get_nbx(ep, &read, sizeof(read), (uintptr_t)&target, rkey, &param)) ==
          UCS_OK);
    CHECK(read == 42);

    ucp_rkey_destroy(rkey);
    CHECK(ucp_mem_unmap(context, memh) == UCS_OK);
}

static void use_ucp(void)
{
    ucp_worker_params_t worker_params;
    ucp_request_param_t param;
    ucp_ep_params_t ep_params;
    ucp_address_t *address;
    ucp_context_h context;
    ucp_config_t *config;
    ucp_params_t params;
    size_t length;

    CHECK(ucp_config_read(NULL, NULL, &config) == UCS_OK);
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
    CHECK(ucp_init(&params, config, &context) == UCS_OK);
    ucp_config_release(config);

    worker_params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker_params.thread_mode = UCS_THREAD_MODE_SINGLE;
    CHECK(ucp_worker_create(context, &worker_params, &worker) == UCS_OK);

    CHECK(ucp_worker_get_address(worker, &address, &length) == UCS_OK);
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = address;
    CHECK(ucp_ep_create(worker, &ep_params, &ep) == UCS_OK);
    ucp_worker_release_address(worker, address);

    tagged_message();
    put_and_get(context);

    param.op_attr_mask = 0;
    CHECK(wait_for(ucp_ep_close_nbx(ep, &param)) == UCS_OK);
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

/* ---- UCT ---- */

static unsigned messages;

static ucs_status_t on_message(void *arg, void *data, size_t length, unsigned flags)
{
    uint64_t header;

    (void)flags;
    CHECK(arg == &messages);
    CHECK(length == sizeof(header) + 4);
    memcpy(&header, data, sizeof(header));
    CHECK(header == 7 && memcmp((char *)data + sizeof(header), "ping", 4) == 0);
    ++messages;
    return UCS_OK;
}

/* Returns whether the transport could be used for the exchange. */
static int exchange(uct_md_h md, uct_worker_h uct_worker, const uct_tl_resource_desc_t *resource)
{
    uct_iface_config_t *config;
    uct_iface_params_t params;
    uct_ep_params_t ep_params;
    uct_iface_attr_t attr;
    uct_iface_h iface;
    uct_ep_h uct_ep;
    void *device, *address;
    unsigned long tries = 0;
    ucs_status_t status;

    CHECK(uct_md_iface_config_read(md, resource->tl_name, NULL, NULL, &config) == UCS_OK);
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    params.mode.device.tl_name = resource->tl_name;
    params.mode.device.dev_name = resource->dev_name;
    status = uct_iface_open(md, uct_worker, &params, config, &iface);
    uct_config_release(config);
    if (status != UCS_OK) {
        return 0;
    }
    CHECK(uct_iface_query(iface, &attr) == UCS_OK);
    if (!(attr.cap.flags & UCT_IFACE_FLAG_AM_SHORT) ||
        !(attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE)) {
        uct_iface_close(iface);
        return 0;
    }
    uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    CHECK(uct_iface_set_am_handler(iface, 3, on_message, &messages, 0) == UCS_OK);

    device = malloc(attr.device_addr_len + 1);
    address = malloc(attr.iface_addr_len + 1);
    CHECK(device != NULL && address != NULL);
    CHECK(uct_iface_get_device_address(iface, device) == UCS_OK);
    CHECK(uct_iface_get_address(iface, address) == UCS_OK);
    CHECK(uct_iface_is_reachable(iface, device, address));
    ep_params.field_mask =
        UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    ep_params.iface = iface;
    ep_params.dev_addr = device;
    ep_params.iface_addr = address;
    CHECK(uct_ep_create(&ep_params, &uct_ep) == UCS_OK);
    free(device);
    free(address);

    messages = 0;
    while ((status = uct_ep_am_short(uct_ep, 3, 7, "ping", 4)) == UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(uct_worker);
        CHECK(++tries < LIMIT);
    }
    CHECK(status == UCS_OK);
    while (messages == 0) {
        uct_worker_progress(uct_worker);
        CHECK(++tries < LIMIT);
    }
    CHECK(messages == 1);
    uct_ep_destroy(uct_ep);
    uct_iface_close(iface);
    printf("message over " UCT_TL_RESOURCE_DESC_FMT "\n", UCT_TL_RESOURCE_DESC_ARG(resource));
    return 1;
}

static unsigned use_component(uct_component_h component, uct_worker_h uct_worker)
{
    uct_md_resource_desc_t *mds;
    uct_component_attr_t attr;
    unsigned i, k, used = 0;

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    CHECK(uct_component_query(component, &attr) == UCS_OK);
    mds = calloc(attr.md_resource_count + 1, sizeof(*mds));
    CHECK(mds != NULL);
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES | UCT_COMPONENT_ATTR_FIELD_NAME;
    attr.md_resources = mds;
    CHECK(uct_component_query(component, &attr) == UCS_OK);

    for (i = 0; i < attr.md_resource_count; ++i) {
        uct_tl_resource_desc_t *resources;
        uct_md_config_t *config;
        unsigned count;
        uct_md_h md;

        CHECK(uct_md_config_read(component, NULL, NULL, &config) == UCS_OK);
        CHECK(uct_md_open(component, mds[i].md_name, config, &md) == UCS_OK);
        uct_config_release(config);
        CHECK(uct_md_query_tl_resources(md, &resources, &count) == UCS_OK);
        for (k = 0; k < count; ++k) {
            used += exchange(md, uct_worker, &resources[k]);
        }
        uct_release_tl_resource_list(resources);
        uct_md_close(md);
    }
    free(mds);
    return used;
}

static void use_uct(void)
{
    uct_component_h *components;
    ucs_async_context_t *async;
    unsigned i, count, used = 0;
    uct_worker_h uct_worker;

    CHECK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async) == UCS_OK);
    CHECK(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &uct_worker) == UCS_OK);
    CHECK(uct_query_components(&components, &count) == UCS_OK);
    for (i = 0; i < count; ++i) {
        used += use_component(components[i], uct_worker);
    }
    uct_release_component_list(components);
    CHECK(used > 0);
    uct_worker_destroy(uct_worker);
    ucs_async_context_destroy(async);
}

int main(void)
{
    unsigned major, minor, release;

    ucp_get_version(&major, &minor, &release);
    CHECK(major == UCP_API_MAJOR && minor >= UCP_API_MINOR);
    printf("interface %s\n", ucp_get_version_string());
    CHECK(strcmp(ucs_status_string(UCS_OK), "Success") == 0);
    CHECK(strlen(uct_device_type_names[UCT_DEVICE_TYPE_SELF]) > 0);
    CHECK(strlen(uct_alloc_method_names[UCT_ALLOC_METHOD_HEAP]) > 0);
    use_uct();
    use_ucp();
    printf("PASS\n");
    return 0;
}
