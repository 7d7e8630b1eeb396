/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Stands for the libraries of accelerators' drivers, libcuda.so.1, libhsa-runtime64.so.1 and
 * libze_loader.so.1: it says of memory what a test told it with stand_in_add().
 */
#include <stddef.h>
#include <stdint.h>

enum kind { KIND_DEVICE = 1, KIND_MANAGED, KIND_PINNED };

static struct {
    uintptr_t base;
    size_t length;
    enum kind kind;
} known[256];
static unsigned known_count;
static int is_initialized;

int stand_in_questions; /* how often it was asked */

void stand_in_add(void *base, size_t length, int kind)
{
    known[known_count].base = (uintptr_t)base;
    known[known_count].length = length;
    known[known_count].kind = (enum kind)kind;
    ++known_count;
}

static int find(uintptr_t address)
{
    unsigned i;
    for (i = 0; i < known_count; ++i) {
        if (address - known[i].base < known[i].length) {
            return (int)i;
        }
    }
    return -1;
}

/* CUDA: CUDA_ERROR_NOT_INITIALIZED before cuInit(); memory that it does not know has no type. */
int cuInit(unsigned flags)
{
    is_initialized = 1;
    return (int)flags;
}

int cuPointerGetAttributes(unsigned count, const int *which, void **data, uint64_t address)
{
    static const unsigned types[] = {0, 2, 2, 1}; /* CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST */
    int i = find(address);
    int kind = i < 0 ? 0 : known[i].kind;
    unsigned k;
    ++stand_in_questions;
    if (!is_initialized) {
        return 3;
    }
    for (k = 0; k < count; ++k) {
        if (which[k] == 2) { /* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
            *(unsigned *)data[k] = types[kind];
        } else if (which[k] == 8) { /* CU_POINTER_ATTRIBUTE_IS_MANAGED */
            *(unsigned char *)data[k] = kind == KIND_MANAGED;
        } else {
            return 1;
        }
    }
    return 0;
}

int cuMemGetAddressRange_v2(uint64_t *base, size_t *length, uint64_t address)
{
    int i = find(address);
    if (i < 0) {
        return 1;
    }
    *base = known[i].base;
    *length = known[i].length;
    return 0;
}

/* ROCm: device memory belongs to agent 2, a GPU, pinned memory of the host to agent 1, a CPU. */
int hsa_init(void)
{
    is_initialized = 1;
    return 0;
}

struct pointer_info {
    uint32_t size;
    int type;
    void *agent_base, *host_base;
    size_t length;
    void *user_data;
    uint64_t owner;
};

int hsa_amd_pointer_info(const void *address, struct pointer_info *out, void *allocate, void *count,
                         void *agents)
{
    int i = find((uintptr_t)address);
    ++stand_in_questions;
    if (!is_initialized || allocate || count || agents) {
        return 0x100b; /* HSA_STATUS_ERROR_NOT_INITIALIZED */
    }
    out->type = i < 0 ? 0 : 1; /* HSA_EXT_POINTER_TYPE_HSA */
    if (i >= 0) {
        out->agent_base = (void *)known[i].base;
        out->length = known[i].length;
        out->owner = known[i].kind == KIND_DEVICE ? 2 : 1;
    }
    return 0;
}

int hsa_agent_get_info(uint64_t agent, int which, void *value)
{
    if (which != 17) { /* HSA_AGENT_INFO_DEVICE */
        return 1;
    }
    *(int *)value = agent == 2;
    return 0;
}

/* Level Zero: two drivers with a context each, of which the second has all memory. */
int zeInit(uint32_t flags)
{
    is_initialized = 1;
    return (int)flags;
}

static char ze_drivers[2], ze_contexts[2];

int zeDriverGet(uint32_t *count, void **drivers)
{
    uint32_t i;
    if (!is_initialized) {
        return 0x78000001; /* ZE_RESULT_ERROR_UNINITIALIZED */
    }
    *count = *count == 0 || *count > 2 ? 2 : *count;
    for (i = 0; drivers && i < *count; ++i) {
        drivers[i] = &ze_drivers[i];
    }
    return 0;
}

struct ze_structure {
    int type;
    const void *next;
};

int zeContextCreate(void *driver, const struct ze_structure *description, void **context)
{
    if (description->type != 0xd || description->next) { /* ZE_STRUCTURE_TYPE_CONTEXT_DESC */
        return 1;
    }
    *context = &ze_contexts[(char *)driver - ze_drivers];
    return 0;
}

struct ze_properties {
    struct ze_structure head;
    int type;
    uint64_t id, page_size;
};

int zeMemGetAllocProperties(void *context, const void *address, struct ze_properties *out,
                            void **device)
{
    static const int types[] = {0, 2, 3, 1}; /* ZE_MEMORY_TYPE_DEVICE, _SHARED, _HOST */
    int i = find((uintptr_t)address);
    ++stand_in_questions;
    if (out->head.type != 0x17 || out->head.next || device) { /* ..._MEMORY_ALLOCATION_PROPERTIES */
        return 1;
    }
    out->type = i < 0 || context != &ze_contexts[1] ? 0 : types[known[i].kind];
    return 0;
}

int zeMemGetAddressRange(void *context, const void *address, void **base, size_t *length)
{
    int i = find((uintptr_t)address);
    if (i < 0 || context != &ze_contexts[1]) {
        return 1;
    }
    *base = (void *)known[i].base;
    *length = known[i].length;
    return 0;
}
