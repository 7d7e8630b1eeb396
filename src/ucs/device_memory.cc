// SPDX-License-Identifier: BSD-3-Clause
//
// The drivers' functions are declared here, because nothing is built with the drivers' headers.
// Memory that the system keeps coherent (malloc on GH200) is the host's: its driver does not know
// it.
#include "ucs/device_memory.h"

#include "ucs/log.h"

#include <cstring>
#include <dlfcn.h>
#include <iterator>
#include <link.h>
#include <mutex>
#include <string>
#include <unistd.h>

namespace ucs::device_memory {

std::atomic<bool> has_driver{false};

namespace {

// cuda.h: CUresult is 0 for success, CUdeviceptr is an integer as wide as a pointer.
using cuda_attributes = int (*)(unsigned count, const int *which, void **data, uintptr_t address);
using cuda_range = int (*)(uintptr_t *base, size_t *length, uintptr_t address);
constexpr int cuda_memory_type = 2; // CU_POINTER_ATTRIBUTE_MEMORY_TYPE
constexpr int cuda_is_managed = 8;  // CU_POINTER_ATTRIBUTE_IS_MANAGED
constexpr unsigned cuda_device = 2; // CU_MEMORYTYPE_DEVICE

// hsa_ext_amd.h: hsa_status_t is 0 for success. HIP's own question would leave its failure where
// the program asks for its last error.
struct rocm_pointer {
    uint32_t size;
    int type;
    void *agent_base;
    void *host_base;
    size_t length;
    void *user_data;
    uint64_t owner;
    uint64_t newer_members[8];
};
using rocm_info = int (*)(const void *address, rocm_pointer *out, void *, void *, void *);
using rocm_agent_info = int (*)(uint64_t agent, int which, void *value);
constexpr int rocm_allocated = 1; // HSA_EXT_POINTER_TYPE_HSA
constexpr int rocm_imported = 4;  // HSA_EXT_POINTER_TYPE_IPC
constexpr int rocm_kind = 17;     // HSA_AGENT_INFO_DEVICE
constexpr int rocm_processor = 0; // HSA_DEVICE_TYPE_CPU

std::atomic<cuda_attributes> cuda{nullptr};
std::atomic<cuda_range> cuda_range_of{nullptr};
std::atomic<rocm_info> rocm{nullptr};
std::atomic<rocm_agent_info> rocm_agent{nullptr};

// ze_api.h: ze_result_t is 0 for success, handles are pointers. A question is put to a context. The
// drivers get one of ours each, as in UCX: Intel's knows the memory of all contexts of a process.
struct ze_description {
    int structure;
    const void *next;
    uint32_t flags;
};
struct ze_properties {
    int structure;
    void *next;
    int type;
    uint64_t id;
    uint64_t page_size;
};
using ze_init = int (*)(uint32_t flags);
using ze_list_drivers = int (*)(uint32_t *count, void **drivers);
using ze_create_context = int (*)(void *driver, const ze_description *, void **context);
using ze_properties_of = int (*)(void *context, const void *address, ze_properties *,
                                 void **device);
using ze_range = int (*)(void *context, const void *address, void **base, size_t *length);
constexpr int ze_of_context = 0xd;     // ZE_STRUCTURE_TYPE_CONTEXT_DESC
constexpr int ze_of_properties = 0x17; // ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES
constexpr int ze_device = 2;           // ZE_MEMORY_TYPE_DEVICE
constexpr int ze_shared = 3;           // ZE_MEMORY_TYPE_SHARED

std::atomic<ze_properties_of> ze{nullptr}; // set after what is below
std::atomic<ze_range> ze_range_of{nullptr};
void *ze_contexts[8];
unsigned ze_context_count = 0;
bool ze_was_tried = false;

std::mutex looking;
unsigned long long seen_loads = 0;

struct driver_files {
    unsigned long long loads = 0;
    std::string cuda, rocm, ze;
};

bool has_file_name(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, name, strlen(name)) == 0;
}

// Called for each loaded library.
int note_driver(dl_phdr_info *info, size_t, void *arg)
{
    auto *found = static_cast<driver_files *>(arg);
    if (info->dlpi_adds == seen_loads) {
        return 1; // nothing was loaded since the last look
    }
    found->loads = info->dlpi_adds;
    if (has_file_name(info->dlpi_name, "libcuda.so")) {
        found->cuda = info->dlpi_name;
    } else if (has_file_name(info->dlpi_name, "libhsa-runtime64.so")) {
        found->rocm = info->dlpi_name;
    } else if (has_file_name(info->dlpi_name, "libze_loader.so")) {
        found->ze = info->dlpi_name;
    }
    return 0;
}

// The library stays: it has given us an address.
template <class F>
bool take(const std::string &file, const char *symbol, std::atomic<F> *out)
{
    if (file.empty() || out->load(std::memory_order_relaxed)) {
        return false;
    }
    void *library = dlopen(file.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    void *function = library ? dlsym(library, symbol) : nullptr;
    out->store(reinterpret_cast<F>(function), std::memory_order_release);
    return function != nullptr;
}

void make_ze_contexts(ze_list_drivers list, ze_create_context create)
{
    void *drivers[std::size(ze_contexts)];
    uint32_t count = std::size(drivers);
    if (list(&count, drivers) != 0) {
        return;
    }
    const ze_description plain = {ze_of_context, nullptr, 0};
    for (uint32_t i = 0; i < count; ++i) {
        if (create(drivers[i], &plain, &ze_contexts[ze_context_count]) == 0) {
            ++ze_context_count;
        }
    }
}

// The contexts stay as long as the process.
bool take_ze(const std::string &file)
{
    if (file.empty() || ze_was_tried) {
        return false;
    }
    ze_was_tried = true;
    std::atomic<ze_init> init{nullptr};
    std::atomic<ze_list_drivers> list{nullptr};
    std::atomic<ze_create_context> create{nullptr};
    if (take(file, "zeInit", &init) && take(file, "zeDriverGet", &list) &&
        take(file, "zeContextCreate", &create) && init.load()(0) == 0) {
        make_ze_contexts(list, create);
    }
    if (ze_context_count == 0) {
        return false;
    }
    take(file, "zeMemGetAddressRange", &ze_range_of);
    return take(file, "zeMemGetAllocProperties", &ze);
}

bool find_cuda(uintptr_t address, allocation *out) noexcept
{
    cuda_attributes ask = cuda.load(std::memory_order_acquire);
    if (!ask) {
        return false;
    }
    const int which[] = {cuda_memory_type, cuda_is_managed};
    unsigned type = 0;
    uint64_t managed = 0; // a bool or an int, by the driver's version
    void *data[] = {&type, &managed};
    if (ask(2, which, data, address) != 0 || (type != cuda_device && !managed)) {
        return false;
    }
    out->type = managed ? UCS_MEMORY_TYPE_CUDA_MANAGED : UCS_MEMORY_TYPE_CUDA;
    cuda_range range_of = cuda_range_of.load(std::memory_order_acquire);
    uintptr_t base = 0;
    size_t length = 0;
    if (range_of && range_of(&base, &length, address) == 0) {
        out->base = reinterpret_cast<void *>(base);
        out->length = length;
    }
    return true;
}

// Managed memory of ROCm is the system's own.
bool find_rocm(const void *address, allocation *out) noexcept
{
    rocm_info ask = rocm.load(std::memory_order_acquire);
    rocm_pointer known = {};
    known.size = sizeof(known);
    if (!ask || ask(address, &known, nullptr, nullptr, nullptr) != 0 ||
        (known.type != rocm_allocated && known.type != rocm_imported)) {
        return false;
    }
    int kind = rocm_processor;
    rocm_agent_info ask_agent = rocm_agent.load(std::memory_order_acquire);
    if (!ask_agent || ask_agent(known.owner, rocm_kind, &kind) != 0 || kind == rocm_processor) {
        return false;
    }
    *out = {UCS_MEMORY_TYPE_ROCM, known.agent_base, known.length};
    return true;
}

bool find_ze(const void *address, allocation *out) noexcept
{
    ze_properties_of ask = ze.load(std::memory_order_acquire);
    for (unsigned i = 0; ask && i < ze_context_count; ++i) {
        ze_properties known = {};
        known.structure = ze_of_properties;
        if (ask(ze_contexts[i], address, &known, nullptr) != 0 ||
            (known.type != ze_device && known.type != ze_shared)) {
            continue;
        }
        out->type =
            known.type == ze_device ? UCS_MEMORY_TYPE_ZE_DEVICE : UCS_MEMORY_TYPE_ZE_MANAGED;
        ze_range range_of = ze_range_of.load(std::memory_order_acquire);
        void *base = nullptr;
        size_t length = 0;
        if (range_of && range_of(ze_contexts[i], address, &base, &length) == 0) {
            out->base = base;
            out->length = length;
        }
        return true;
    }
    return false;
}

} // namespace

void look() noexcept
try {
    std::lock_guard lock(looking);
    driver_files found;
    dl_iterate_phdr(note_driver, &found);
    if (found.loads == 0) {
        return;
    }
    seen_loads = found.loads;
    take(found.cuda, "cuMemGetAddressRange_v2", &cuda_range_of);
    bool any = take(found.cuda, "cuPointerGetAttributes", &cuda);
    take(found.rocm, "hsa_agent_get_info", &rocm_agent);
    any = take(found.rocm, "hsa_amd_pointer_info", &rocm) || any;
    any = take_ze(found.ze) || any;
    if (any) {
        has_driver.store(true, std::memory_order_release);
        ucs_debug("a driver's library is loaded: each buffer of which the program does not say "
                  "where it is costs a question to it");
    }
} catch (const std::bad_alloc &) {
    // asked again by the next call
}

void load_drivers(const char *cuda_device) noexcept
{
    if (!cuda.load(std::memory_order_relaxed) && access(cuda_device, F_OK) == 0 &&
        !dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL)) {
        ucs_debug("%s exists, but: %s", cuda_device, dlerror());
    }
    look();
}

allocation find(const void *address) noexcept
{
    allocation found;
    if (possible() && !find_cuda(reinterpret_cast<uintptr_t>(address), &found) &&
        !find_rocm(address, &found)) {
        find_ze(address, &found);
    }
    return found;
}

uint64_t known_kinds() noexcept
{
    uint64_t kinds = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    if (cuda.load(std::memory_order_relaxed)) {
        kinds |= UCS_BIT(UCS_MEMORY_TYPE_CUDA) | UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED);
    }
    if (rocm.load(std::memory_order_relaxed)) {
        kinds |= UCS_BIT(UCS_MEMORY_TYPE_ROCM);
    }
    if (ze.load(std::memory_order_relaxed)) {
        kinds |= UCS_BIT(UCS_MEMORY_TYPE_ZE_DEVICE) | UCS_BIT(UCS_MEMORY_TYPE_ZE_MANAGED);
    }
    return kinds;
}

const char *name(ucs_memory_type_t type) noexcept
{
    switch (type) {
    case UCS_MEMORY_TYPE_CUDA:
        return "memory of a CUDA device";
    case UCS_MEMORY_TYPE_CUDA_MANAGED:
        return "managed memory of CUDA";
    case UCS_MEMORY_TYPE_ROCM:
        return "memory of a ROCm device";
    case UCS_MEMORY_TYPE_ROCM_MANAGED:
        return "managed memory of ROCm";
    case UCS_MEMORY_TYPE_ZE_DEVICE:
        return "memory of a Level Zero device";
    case UCS_MEMORY_TYPE_ZE_MANAGED:
        return "shared memory of Level Zero";
    default:
        return "memory of the host";
    }
}

} // namespace ucs::device_memory
