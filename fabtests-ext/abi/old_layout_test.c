/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Programs built with older headers pass shorter structures. Each is placed here, with the size it
 * had in version 1.13, right before a page that cannot be touched: reading or writing what was
 * added later crashes. The worker's progress queue is walked as the inline code of both layouts
 * does.
 */
#include "check.h"

#include <ucp/api/ucp.h>
#include <ucs/async/async_fwd.h>
#include <uct/api/uct.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sizes in version 1.13. */
enum {
    UCP_PARAMS = 80,
    UCP_CONTEXT_ATTR = 64,
    UCP_MEM_MAP_PARAMS = 40,
    UCP_EP_ATTR = 296,
    UCP_REQUEST_PARAM = 72,
    UCT_EP_PARAMS = 144,
    UCT_MD_MEM_ATTR = 32,
    UCT_MEM_ALLOC_PARAMS = 56,
    UCT_ALLOCATED_MEMORY = 40
};

/* size bytes of zeros with nothing behind them. */
static void *before_the_edge(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(pages != MAP_FAILED);
    CHECK(mprotect(pages + page, page, PROT_NONE) == 0);
    return pages + page - size;
}

/* ---- UCT ---- */

static uct_worker_h uct_worker;

/* What uct_worker_progress() was before 1.16. */
static unsigned progress_with_elements_of_24_bytes(void)
{
    struct element {
        ucs_callback_t cb;
        void *arg;
        unsigned flags;
        int id;
    };
    const struct element *e = (const struct element *)uct_worker;
    unsigned count = 0, calls = 0;

    for (; e->cb != NULL; ++e) {
        count += e->cb(e->arg);
        CHECK(++calls < UCS_CALLBACKQ_FAST_COUNT);
    }
    return count;
}

static unsigned called;

static unsigned count_call(void *arg)
{
    CHECK(arg == &called);
    return ++called;
}

static void both_layouts_of_the_queue_reach_callbacks(void)
{
    uct_worker_cb_id_t id = UCS_CALLBACKQ_ID_NULL;

    uct_worker_progress_register_safe(uct_worker, count_call, &called, 0, &id);
    CHECK(id != UCS_CALLBACKQ_ID_NULL);
    called = 0;
    uct_worker_progress(uct_worker);
    CHECK(called > 0);
    called = 0;
    progress_with_elements_of_24_bytes();
    CHECK(called > 0);
    uct_worker_progress_unregister_safe(uct_worker, &id);
    CHECK(id == UCS_CALLBACKQ_ID_NULL);
    called = 0;
    uct_worker_progress(uct_worker);
    progress_with_elements_of_24_bytes();
    CHECK(called == 0);
}

static void memory_structures_keep_their_size(uct_md_h md)
{
    static const uct_alloc_method_t methods[] = {UCT_ALLOC_METHOD_MD, UCT_ALLOC_METHOD_HEAP};
    uct_mem_alloc_params_t *params = before_the_edge(UCT_MEM_ALLOC_PARAMS);
    uct_allocated_memory_t *memory = before_the_edge(UCT_ALLOCATED_MEMORY);
    uct_md_mem_attr_t *attr = before_the_edge(UCT_MD_MEM_ATTR);

    params->field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_ADDRESS |
                         UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE | UCT_MEM_ALLOC_PARAM_FIELD_MDS |
                         UCT_MEM_ALLOC_PARAM_FIELD_NAME;
    params->flags = UCT_MD_MEM_ACCESS_ALL;
    params->address = NULL;
    params->mem_type = UCS_MEMORY_TYPE_HOST;
    params->mds.mds = &md;
    params->mds.count = 1;
    params->name = "test";
    CHECK(uct_mem_alloc(8192, methods, 2, params, memory) == UCS_OK);
    CHECK(memory->address != NULL && memory->length >= 8192);

    attr->field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE | UCT_MD_MEM_ATTR_FIELD_SYS_DEV |
                       UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS | UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH;
    uct_md_mem_query(md, memory->address, memory->length, attr);
    CHECK(uct_mem_free(memory) == UCS_OK);
}

static void endpoint_params_keep_their_size(uct_md_h md, const uct_tl_resource_desc_t *resource)
{
    uct_ep_params_t *params = before_the_edge(UCT_EP_PARAMS);
    uct_allocated_memory_t *memory = before_the_edge(UCT_ALLOCATED_MEMORY);
    uct_iface_params_t iface_params;
    uct_iface_config_t *config;
    uct_iface_attr_t attr;
    uct_iface_h iface;
    uct_ep_h ep;
    char device[256], address[256];

    CHECK(uct_md_iface_config_read(md, resource->tl_name, NULL, NULL, &config) == UCS_OK);
    iface_params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_DEVICE;
    iface_params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    iface_params.mode.device.tl_name = resource->tl_name;
    iface_params.mode.device.dev_name = resource->dev_name;
    CHECK(uct_iface_open(md, uct_worker, &iface_params, config, &iface) == UCS_OK);
    uct_config_release(config);

    CHECK(uct_iface_mem_alloc(iface, 4096, UCT_MD_MEM_ACCESS_ALL, "test", memory) == UCS_OK);
    uct_iface_mem_free(memory);

    CHECK(uct_iface_query(iface, &attr) == UCS_OK);
    CHECK(attr.device_addr_len <= sizeof(device) && attr.iface_addr_len <= sizeof(address));
    CHECK(uct_iface_get_device_address(iface, (uct_device_addr_t *)device) == UCS_OK);
    CHECK(uct_iface_get_address(iface, (uct_iface_addr_t *)address) == UCS_OK);
    params->field_mask =
        UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR | UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params->iface = iface;
    params->dev_addr = (const uct_device_addr_t *)device;
    params->iface_addr = (const uct_iface_addr_t *)address;
    CHECK(uct_ep_create(params, &ep) == UCS_OK);
    uct_ep_destroy(ep);
    uct_iface_close(iface);
}

static void uct_structures(void)
{
    uct_component_h *components;
    uct_component_attr_t attr;
    uct_md_resource_desc_t mds[16];
    ucs_async_context_t *async;
    unsigned i, count, used = 0;

    CHECK(ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &async) == UCS_OK);
    CHECK(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &uct_worker) == UCS_OK);
    both_layouts_of_the_queue_reach_callbacks();

    CHECK(uct_query_components(&components, &count) == UCS_OK);
    for (i = 0; i < count; ++i) {
        uct_tl_resource_desc_t *resources;
        uct_md_config_t *config;
        unsigned num_resources;
        uct_md_h md;

        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
        CHECK(uct_component_query(components[i], &attr) == UCS_OK);
        if (attr.md_resource_count == 0 || attr.md_resource_count > 16) {
            continue;
        }
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
        attr.md_resources = mds;
        CHECK(uct_component_query(components[i], &attr) == UCS_OK);
        CHECK(uct_md_config_read(components[i], NULL, NULL, &config) == UCS_OK);
        CHECK(uct_md_open(components[i], mds[0].md_name, config, &md) == UCS_OK);
        uct_config_release(config);
        CHECK(uct_md_query_tl_resources(md, &resources, &num_resources) == UCS_OK);
        memory_structures_keep_their_size(md);
        if (num_resources > 0) {
            endpoint_params_keep_their_size(md, &resources[0]);
            ++used;
        }
        uct_release_tl_resource_list(resources);
        uct_md_close(md);
    }
    CHECK(used > 0);
    uct_release_component_list(components);
    uct_worker_destroy(uct_worker);
    ucs_async_context_destroy(async);
}

/* ---- UCP ---- */

static ucp_worker_h worker;

static void wait_for(void *request)
{
    ucs_status_t status;

    if (request == NULL) {
        return;
    }
    CHECK(!UCS_PTR_IS_ERR(request));
    while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
        ucp_worker_progress(worker);
    }
    CHECK(status == UCS_OK);
    ucp_request_free(request);
}

static ucp_context_h context_from_a_short_params(void)
{
    ucp_params_t *params = before_the_edge(UCP_PARAMS);
    ucp_context_attr_t *attr = before_the_edge(UCP_CONTEXT_ATTR);
    ucp_context_h context;

    params->field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
                         UCP_PARAM_FIELD_REQUEST_INIT | UCP_PARAM_FIELD_REQUEST_CLEANUP |
                         UCP_PARAM_FIELD_TAG_SENDER_MASK | UCP_PARAM_FIELD_MT_WORKERS_SHARED |
                         UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_ESTIMATED_NUM_PPN |
                         UCP_PARAM_FIELD_NAME;
    params->features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
    params->name = "test";
    CHECK(ucp_init_version(1, 13, params, NULL, &context) == UCS_OK);

    attr->field_mask = UCP_ATTR_FIELD_REQUEST_SIZE | UCP_ATTR_FIELD_THREAD_MODE |
                       UCP_ATTR_FIELD_MEMORY_TYPES | UCP_ATTR_FIELD_NAME;
    CHECK(ucp_context_query(context, attr) == UCS_OK);
    CHECK(strcmp(attr->name, "test") == 0);
    return context;
}

static void ucp_structures(void)
{
    ucp_mem_map_params_t *map = before_the_edge(UCP_MEM_MAP_PARAMS);
    ucp_request_param_t *param = before_the_edge(UCP_REQUEST_PARAM);
    ucp_ep_attr_t *ep_attr = before_the_edge(UCP_EP_ATTR);
    ucp_context_h context = context_from_a_short_params();
    ucp_worker_params_t worker_params;
    ucp_ep_params_t ep_params;
    ucp_address_t *address;
    char sent = 'x', received = 0;
    void *receive;
    size_t length;
    ucp_mem_h memh;
    ucp_ep_h ep;

    map->field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS |
                      UCP_MEM_MAP_PARAM_FIELD_PROT | UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    map->length = 8192;
    map->flags = UCP_MEM_MAP_ALLOCATE;
    map->prot = UCP_MEM_MAP_PROT_LOCAL_READ | UCP_MEM_MAP_PROT_LOCAL_WRITE;
    map->memory_type = UCS_MEMORY_TYPE_HOST;
    CHECK(ucp_mem_map(context, map, &memh) == UCS_OK);
    CHECK(ucp_mem_unmap(context, memh) == UCS_OK);

    worker_params.field_mask = 0;
    CHECK(ucp_worker_create(context, &worker_params, &worker) == UCS_OK);
    CHECK(ucp_worker_get_address(worker, &address, &length) == UCS_OK);
    ep_params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    ep_params.address = address;
    CHECK(ucp_ep_create(worker, &ep_params, &ep) == UCS_OK);
    ucp_worker_release_address(worker, address);

    /* 5 was "unknown" before memory types were added. */
    param->op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_MEMORY_TYPE;
    param->datatype = ucp_dt_make_contig(1);
    param->memory_type = (ucs_memory_type_t)5;
    receive = ucp_tag_recv_nbx(worker, &received, 1, 1, (ucp_tag_t)-1, param);
    wait_for(ucp_tag_send_nbx(ep, &sent, 1, 1, param));
    wait_for(receive);
    CHECK(received == 'x');

    ep_attr->field_mask = UCP_EP_ATTR_FIELD_NAME;
    CHECK(ucp_ep_query(ep, ep_attr) == UCS_OK);
    param->op_attr_mask = 0;
    wait_for(ucp_ep_close_nbx(ep, param));
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}

int main(void)
{
    uct_structures();
    ucp_structures();
    printf("PASS\n");
    return 0;
}
