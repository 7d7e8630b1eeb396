/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that came after UCX 1.13, as programs and tools built for 1.18 and later make them: the
 * attributes of a memory domain, registration and keys with parameters, and the device interface,
 * which is refused. The structures are declared here once more, as UCX 1.18 has them; the one that
 * is written stands right before a page that cannot be touched.
 */
#include "check.h"

#include <ucp/api/device/ucp_host.h>
#include <ucp/api/ucp.h>
#include <uct/api/uct.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct md_attr_118 {
    uint64_t field_mask, max_alloc;
    size_t max_reg;
    uint64_t flags, reg, reg_nonblock, cache, gva, detect, alloc, access, dmabuf;
    ucs_linear_func_t reg_cost;
    char component_name[16];
    size_t rkey_packed_size;
    ucs_cpu_set_t local_cpus;
    size_t exported_mkey_packed_size;
    char global_id[256];
    size_t reg_alignment;
};

struct reg_params_118 {
    uint64_t field_mask, flags;
    int dmabuf_fd;
    size_t dmabuf_offset;
};

struct pack_params_118 {
    uint64_t field_mask;
    unsigned flags;
};

ucs_status_t uct_md_query_v2(uct_md_h md, struct md_attr_118 *attr);
ucs_status_t uct_md_mem_reg_v2(uct_md_h md, void *address, size_t length,
                               const struct reg_params_118 *params, uct_mem_h *memh);
ucs_status_t uct_md_mkey_pack_v2(uct_md_h md, uct_mem_h memh, void *address, size_t length,
                                 const struct pack_params_118 *params, void *buffer);

static void check_query(uct_md_h md)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct md_attr_118 *attr = (struct md_attr_118 *)(pages + page) - 1;
    uct_md_attr_t old;
    size_t i;

    CHECK(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
    CHECK(uct_md_query(md, &old) == UCS_OK);
    memset(attr, 0x5a, sizeof(*attr));
    attr->field_mask = UINT64_MAX;
    CHECK(uct_md_query_v2(md, attr) == UCS_OK);
    CHECK(attr->max_alloc == old.cap.max_alloc && attr->max_reg == old.cap.max_reg);
    CHECK(attr->flags == old.cap.flags && attr->reg == old.cap.reg_mem_types);
    CHECK(attr->detect == old.cap.detect_mem_types && attr->alloc == old.cap.alloc_mem_types);
    CHECK(attr->access == old.cap.access_mem_types && attr->cache == old.cap.reg_mem_types);
    CHECK(attr->reg_nonblock == 0 && attr->gva == 0 && attr->dmabuf == 0);
    CHECK(attr->reg_cost.c == old.reg_cost.c && attr->reg_cost.m == old.reg_cost.m);
    CHECK(strcmp(attr->component_name, old.component_name) == 0);
    CHECK(attr->rkey_packed_size == old.rkey_packed_size && attr->exported_mkey_packed_size == 0);
    CHECK(memcmp(&attr->local_cpus, &old.local_cpus, sizeof(old.local_cpus)) == 0);
    CHECK(attr->global_id[0] == 0 && attr->global_id[255] == 0 && attr->reg_alignment == 1);

    /* A member whose bit is not set stays as it is. */
    memset(attr, 0x5a, sizeof(*attr));
    attr->field_mask = 1 << 2;
    CHECK(uct_md_query_v2(md, attr) == UCS_OK && attr->flags == old.cap.flags);
    attr->flags = attr->max_reg;
    for (i = sizeof(attr->field_mask); i < sizeof(*attr); ++i) {
        CHECK(((char *)attr)[i] == 0x5a);
    }
    munmap(pages, 2 * page);
}

static void check_memory(uct_md_h md)
{
    enum { FLAGS = 1, DMABUF = 2, REVOCABLE = 1 };
    static char memory[4096];
    char key[2][512];
    uct_md_attr_t attr;
    struct reg_params_118 reg;
    struct pack_params_118 pack;
    uct_mem_h memh = UCT_MEM_HANDLE_NULL;

    CHECK(uct_md_query(md, &attr) == UCS_OK && attr.rkey_packed_size <= sizeof(key[0]));
    if (!(attr.cap.flags & UCT_MD_FLAG_REG)) {
        return;
    }
    memset(&reg, 0x5a, sizeof(reg));
    reg.field_mask = FLAGS | DMABUF;
    reg.flags = UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS;
    reg.dmabuf_fd = 0;
    CHECK(uct_md_mem_reg_v2(md, memory, sizeof(memory), &reg, &memh) == UCS_ERR_UNSUPPORTED);
    CHECK(memh == UCT_MEM_HANDLE_NULL);
    reg.field_mask = FLAGS;
    CHECK(uct_md_mem_reg_v2(md, memory, sizeof(memory), &reg, &memh) == UCS_OK);

    memset(&pack, 0x5a, sizeof(pack));
    pack.field_mask = FLAGS;
    pack.flags = REVOCABLE;
    CHECK(uct_md_mkey_pack_v2(md, memh, memory, 1, &pack, key[0]) == UCS_ERR_UNSUPPORTED);
    pack.field_mask = 0;
    memset(key, 0, sizeof(key));
    CHECK(uct_md_mkey_pack_v2(md, memh, memory, sizeof(memory) + 1, &pack, key[0]) ==
          UCS_ERR_INVALID_PARAM);
    CHECK(uct_md_mkey_pack_v2(md, memh, memory, sizeof(memory), &pack, key[0]) == UCS_OK);
    CHECK(uct_md_mkey_pack_v2(md, memh, NULL, SIZE_MAX, &pack, key[0]) == UCS_OK);
    CHECK(uct_md_mkey_pack(md, memh, key[1]) == UCS_OK);
    CHECK(memcmp(key[0], key[1], attr.rkey_packed_size) == 0);
    CHECK(uct_md_mem_dereg(md, memh) == UCS_OK);
}

static unsigned check_domains(uct_component_h component)
{
    uct_md_resource_desc_t resources[64];
    uct_component_attr_t attr = {0};
    uct_md_config_t *config;
    uct_md_h md;
    unsigned i, opened = 0;

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    CHECK(uct_component_query(component, &attr) == UCS_OK);
    if (attr.md_resource_count == 0 || attr.md_resource_count > 64) {
        return 0;
    }
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = resources;
    CHECK(uct_component_query(component, &attr) == UCS_OK);
    CHECK(uct_md_config_read(component, NULL, NULL, &config) == UCS_OK);
    for (i = 0; i < attr.md_resource_count; ++i) {
        if (uct_md_open(component, resources[i].md_name, config, &md) == UCS_OK) {
            check_query(md);
            check_memory(md);
            uct_md_close(md);
            ++opened;
        }
    }
    uct_config_release(config);
    return opened;
}

static void check_device_interface(void)
{
    ucp_params_t params = {0};
    ucp_context_attr_t attr = {0};
    ucp_context_h context = NULL;
    ucp_device_mem_list_params_t list = {0};
    ucp_device_local_mem_list_h local = NULL;
    ucp_device_remote_mem_list_h remote = NULL;
    ucp_device_counter_params_t counter_params = {0};
    uint64_t counter = 5;

    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG | UCP_FEATURE_DEVICE;
    CHECK(ucp_init(&params, NULL, &context) == UCS_ERR_UNSUPPORTED && !context);
    params.features = UCP_FEATURE_TAG;
    CHECK(ucp_init(&params, NULL, &context) == UCS_OK);
    attr.field_mask = UCP_ATTR_FIELD_DEVICE_COUNTER_SIZE;
    attr.device_counter_size = 0x5a;
    CHECK(ucp_context_query(context, &attr) == UCS_OK && attr.device_counter_size == 0);
    CHECK(ucp_device_local_mem_list_create(&list, &local) == UCS_ERR_UNSUPPORTED && !local);
    CHECK(ucp_device_remote_mem_list_create(&list, &remote) == UCS_ERR_UNSUPPORTED && !remote);
    CHECK(ucp_device_get_mem_list_length(NULL) == 0);
    ucp_device_mem_list_release(NULL);
    CHECK(ucp_device_counter_init(NULL, &counter_params, &counter) == UCS_ERR_UNSUPPORTED);
    CHECK(ucp_device_counter_read(NULL, &counter_params, &counter) == 0 && counter == 5);
    ucp_cleanup(context);
}

int main(void)
{
    uct_component_h *components;
    unsigned i, count, opened = 0;

    CHECK(uct_query_components(&components, &count) == UCS_OK);
    for (i = 0; i < count; ++i) {
        opened += check_domains(components[i]);
    }
    uct_release_component_list(components);
    printf("%u memory domains\n", opened);
    CHECK(opened > 0);
    check_device_interface();
    return 0;
}
