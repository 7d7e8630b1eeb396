// SPDX-License-Identifier: BSD-3-Clause
// The exported uct_* calls about memory: registration, remote keys, allocation by a list of
// methods.
#include <uct/api/uct.h>

#include "ucs/check.h"
#include "ucs/device_memory.h"
#include "ucs/error.h"
#include "ucs/sockaddr.h"
#include "ucs/sys.h"
#include "uct/base/component.h"
#include "uct/base/iface.h"
#include "uct/base/md.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <sys/mman.h>

namespace {

constexpr unsigned known_reg_flags = UCT_MD_MEM_FLAG_NONBLOCK | UCT_MD_MEM_FLAG_FIXED |
                                     UCT_MD_MEM_FLAG_LOCK | UCT_MD_MEM_FLAG_HIDE_ERRORS |
                                     UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_SYMMETRIC_RKEY;

constexpr size_t huge_page = 2u << 20;

struct request {
    size_t length;
    void *address;
    unsigned flags;
    std::span<const uct_md_h> mds;
};

struct allocation {
    void *address = nullptr;
    size_t length = 0;
    uct_md_h md = nullptr;
    uct_mem_h memh = UCT_MEM_HANDLE_NULL;
};

allocation map_pages(const request &r, int extra_flags, size_t page)
{
    size_t length = (r.length + page - 1) / page * page;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | extra_flags;
    if (!(r.flags & UCT_MD_MEM_FLAG_NONBLOCK)) {
        flags |= MAP_POPULATE;
    }
    if (r.flags & UCT_MD_MEM_FLAG_FIXED) {
        flags |= MAP_FIXED;
    }
    void *address = mmap(r.address, length, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (address == MAP_FAILED) {
        return {};
    }
    if ((r.flags & UCT_MD_MEM_FLAG_FIXED) && address != r.address) {
        munmap(address, length);
        return {};
    }
    return {address, length};
}

allocation try_method(uct_alloc_method_t method, const request &r)
{
    switch (method) {
    case UCT_ALLOC_METHOD_THP: {
        if (r.flags & UCT_MD_MEM_FLAG_FIXED) {
            return {};
        }
        size_t length = (r.length + huge_page - 1) / huge_page * huge_page;
        void *address = nullptr;
        if (r.length < huge_page || posix_memalign(&address, huge_page, length) != 0) {
            return {};
        }
        madvise(address, length, MADV_HUGEPAGE);
        return {address, length};
    }
    case UCT_ALLOC_METHOD_MD:
        for (uct_md_h md : r.mds) {
            uct_md_attr_t attr;
            md->query(&attr);
            if (attr.cap.flags & UCT_MD_FLAG_ALLOC) {
                allocation a{r.address, r.length, md, UCT_MEM_HANDLE_NULL};
                if (ucs::guard([&] { a.memh = md->alloc(&a.length, &a.address, r.flags); }) ==
                    UCS_OK) {
                    return a;
                }
            }
        }
        return {};
    case UCT_ALLOC_METHOD_HEAP: {
        void *address = nullptr;
        if ((r.flags & UCT_MD_MEM_FLAG_FIXED) || posix_memalign(&address, 64, r.length) != 0) {
            return {};
        }
        return {address, r.length};
    }
    case UCT_ALLOC_METHOD_MMAP:
        return map_pages(r, 0, ucs::page_size());
    case UCT_ALLOC_METHOD_HUGE:
        return map_pages(r, MAP_HUGETLB, huge_page);
    case UCT_ALLOC_METHOD_LAST:
        break;
    }
    return {};
}

// The pages that a range of memory touches.
std::span<char> pages_of(const void *address, size_t length)
{
    uintptr_t mask = ucs::page_size() - 1;
    uintptr_t begin = reinterpret_cast<uintptr_t>(address) & ~mask;
    uintptr_t end = (reinterpret_cast<uintptr_t>(address) + length + mask) & ~mask;
    return {reinterpret_cast<char *>(begin), end > begin ? end - begin : 0};
}

bool is_mapped(const void *address, size_t length)
{
    std::span<char> pages = pages_of(address, length);
    // Without a flag that does something it only looks at the mappings.
    return !pages.empty() && msync(pages.data(), pages.size(), MS_ASYNC) == 0;
}

// Throws ucs::error for memory that the processor cannot load.
void refuse_device(const void *address)
{
    ucs_memory_type_t type = ucs::device_memory::find(address).type;
    if (!ucs::device_memory::is_host(type)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED,
                         "uct_md_mem_reg: address %p is %s, which is not supported: use memory of "
                         "the host",
                         address, ucs::device_memory::name(type));
    }
}

ucs_status_t populate(char *address, size_t length)
{
    std::span<char> pages = pages_of(address, length);
#ifdef MADV_POPULATE_WRITE
    if (madvise(pages.data(), pages.size(), MADV_POPULATE_WRITE) == 0) {
        return UCS_OK;
    }
#endif
    // An older kernel, or memory that may only be read.
    if (madvise(pages.data(), pages.size(), MADV_WILLNEED) == 0) {
        return UCS_OK;
    }
    ucs_error("uct_md_mem_advise: addr %p, length %zu: %s", static_cast<void *>(address), length,
              strerror(errno));
    return errno == ENOMEM ? UCS_ERR_INVALID_ADDR : UCS_ERR_IO_ERROR;
}

bool is_address(const ucs_sock_addr_t *address)
{
    size_t length = address && address->addr ? ucs::sockaddr_length(address->addr) : 0;
    return length > 0 && address->addrlen >= length;
}

} // namespace

extern "C" {

const char *uct_alloc_method_names[UCT_ALLOC_METHOD_LAST + 1] = {"thp",  "md",   "heap",
                                                                 "mmap", "huge", nullptr};
static_assert(sizeof(uct_alloc_method_names) == 48);

ucs_status_t uct_md_mem_reg(uct_md_h md, void *address, size_t length, unsigned flags,
                            uct_mem_h *memh_p)
{
    UCS_CHECK_ARG(md, "uct_md_mem_reg: md must not be NULL");
    UCS_CHECK_ARG(memh_p, "uct_md_mem_reg: memh_p must not be NULL");
    UCS_CHECK_ARG(address || length == 0, "uct_md_mem_reg: address must not be NULL");
    UCS_CHECK_ARG(length > 0, "uct_md_mem_reg: length must not be 0");
    UCS_CHECK_ARG((flags & ~known_reg_flags) == 0, "uct_md_mem_reg: flags 0x%x are not known",
                  flags & ~known_reg_flags);
    auto reg = [&] {
        refuse_device(address);
        *memh_p = md->reg(address, length, flags);
    };
    return flags & UCT_MD_MEM_FLAG_HIDE_ERRORS ? ucs::guard_quietly(reg) : ucs::guard(reg);
}

ucs_status_t uct_md_mem_dereg(uct_md_h md, uct_mem_h memh)
{
    UCS_CHECK_ARG(md, "uct_md_mem_dereg: md must not be NULL");
    UCS_CHECK_ARG(memh != UCT_MEM_HANDLE_NULL, "uct_md_mem_dereg: memh must not be NULL");
    return ucs::guard([&] { md->dereg(memh); });
}

ucs_status_t uct_md_mem_advise(uct_md_h md, uct_mem_h memh, void *addr, size_t length,
                               uct_mem_advice_t advice)
{
    UCS_CHECK_ARG(md, "uct_md_mem_advise: md must not be NULL");
    UCS_CHECK_ARG(memh != UCT_MEM_HANDLE_NULL, "uct_md_mem_advise: memh must not be NULL");
    UCS_CHECK_ARG(addr && length > 0, "uct_md_mem_advise: addr and length must name memory");
    UCS_CHECK_ARG(advice == UCT_MADV_NORMAL || advice == UCT_MADV_WILLNEED,
                  "uct_md_mem_advise: advice %d is not known", advice);
    std::span<char> known = md->memory_of(memh);
    auto *begin = static_cast<char *>(addr);
    UCS_CHECK_ARG(begin >= known.data() && length <= known.size() &&
                      static_cast<size_t>(begin - known.data()) <= known.size() - length,
                  "uct_md_mem_advise: addr %p and length %zu are not within memh", addr, length);
    return advice == UCT_MADV_WILLNEED ? populate(begin, length) : UCS_OK;
}

ucs_status_t uct_md_mem_query(uct_md_h md, const void *address, size_t length,
                              uct_md_mem_attr_t *mem_attr)
{
    UCS_CHECK_ARG(md, "uct_md_mem_query: md must not be NULL");
    UCS_CHECK_ARG(address && length > 0, "uct_md_mem_query: address and length must name memory");
    UCS_CHECK_ARG(mem_attr, "uct_md_mem_query: mem_attr must not be NULL");
    ucs::device_memory::look();
    ucs::device_memory::allocation known = ucs::device_memory::find(address);
    // A device's need not be mapped here.
    if (known.type == UCS_MEMORY_TYPE_HOST && !is_mapped(address, length)) {
        return UCS_ERR_INVALID_ADDR; // not logged: callers ask one domain after the other
    }
    uint64_t mask = mem_attr->field_mask;
    if (mask & UCT_MD_MEM_ATTR_FIELD_MEM_TYPE) {
        mem_attr->mem_type = known.type;
    }
    if (mask & UCT_MD_MEM_ATTR_FIELD_SYS_DEV) {
        mem_attr->sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN;
    }
    if (mask & UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS) {
        mem_attr->base_address = known.base ? known.base : const_cast<void *>(address);
    }
    if (mask & UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH) {
        mem_attr->alloc_length = known.length ? known.length : length;
    }
    if (mask & UCT_MD_MEM_ATTR_FIELD_DMABUF_FD) {
        mem_attr->dmabuf_fd = UCT_DMABUF_FD_INVALID;
    }
    if (mask & UCT_MD_MEM_ATTR_FIELD_DMABUF_OFFSET) {
        mem_attr->dmabuf_offset = 0;
    }
    return UCS_OK;
}

ucs_status_t uct_md_detect_memory_type(uct_md_h md, const void *addr, size_t length,
                                       ucs_memory_type_t *mem_type_p)
{
    UCS_CHECK_ARG(md, "uct_md_detect_memory_type: md must not be NULL");
    UCS_CHECK_ARG(addr, "uct_md_detect_memory_type: addr must not be NULL");
    UCS_CHECK_ARG(length > 0, "uct_md_detect_memory_type: length must not be 0");
    UCS_CHECK_ARG(mem_type_p, "uct_md_detect_memory_type: mem_type_p must not be NULL");
    uct_md_mem_attr_t attr{};
    attr.field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE;
    ucs_status_t status = uct_md_mem_query(md, addr, length, &attr);
    if (status == UCS_OK) {
        *mem_type_p = attr.mem_type;
    }
    return status;
}

ucs_status_t uct_md_mkey_pack(uct_md_h md, uct_mem_h memh, void *rkey_buffer)
{
    UCS_CHECK_ARG(md, "uct_md_mkey_pack: md must not be NULL");
    UCS_CHECK_ARG(memh != UCT_MEM_HANDLE_NULL, "uct_md_mkey_pack: memh must not be NULL");
    UCS_CHECK_ARG(rkey_buffer, "uct_md_mkey_pack: rkey_buffer must not be NULL");
    return ucs::guard([&] { md->pack_mkey(memh, rkey_buffer); });
}

ucs_status_t uct_rkey_unpack(uct_component_h component, const void *rkey_buffer,
                             uct_rkey_bundle_t *rkey_ob)
{
    UCS_CHECK_ARG(component, "uct_rkey_unpack: component must not be NULL");
    UCS_CHECK_ARG(rkey_buffer, "uct_rkey_unpack: rkey_buffer must not be NULL");
    UCS_CHECK_ARG(rkey_ob, "uct_rkey_unpack: rkey_ob must not be NULL");
    return ucs::guard([&] { return component->rkey_unpack(rkey_buffer, rkey_ob); });
}

ucs_status_t uct_rkey_ptr(uct_component_h component, uct_rkey_bundle_t *rkey_ob,
                          uint64_t remote_addr, void **addr_p)
{
    UCS_CHECK_ARG(component, "uct_rkey_ptr: component must not be NULL");
    UCS_CHECK_ARG(rkey_ob, "uct_rkey_ptr: rkey_ob must not be NULL");
    UCS_CHECK_ARG(addr_p, "uct_rkey_ptr: addr_p must not be NULL");
    return ucs::guard([&] { return component->rkey_ptr(rkey_ob, remote_addr, addr_p); });
}

ucs_status_t uct_rkey_release(uct_component_h component, const uct_rkey_bundle_t *rkey_ob)
{
    UCS_CHECK_ARG(component, "uct_rkey_release: component must not be NULL");
    UCS_CHECK_ARG(rkey_ob, "uct_rkey_release: rkey_ob must not be NULL");
    return ucs::guard([&] { return component->rkey_release(rkey_ob); });
}

ucs_status_t uct_mem_alloc(size_t length, const uct_alloc_method_t *methods, unsigned num_methods,
                           const uct_mem_alloc_params_t *params, uct_allocated_memory_t *mem)
{
    UCS_CHECK_ARG(length > 0, "uct_mem_alloc: length must not be 0");
    UCS_CHECK_ARG(methods && num_methods > 0, "uct_mem_alloc: methods must not be empty");
    UCS_CHECK_ARG(params, "uct_mem_alloc: params must not be NULL");
    UCS_CHECK_ARG(mem, "uct_mem_alloc: mem must not be NULL");
    uint64_t mask = params->field_mask;
    request r{length, nullptr, UCT_MD_MEM_ACCESS_ALL, {}};
    if (mask & UCT_MEM_ALLOC_PARAM_FIELD_FLAGS) {
        r.flags = params->flags;
    }
    if (mask & UCT_MEM_ALLOC_PARAM_FIELD_ADDRESS) {
        r.address = params->address;
    }
    if (mask & UCT_MEM_ALLOC_PARAM_FIELD_MDS) {
        r.mds = {params->mds.mds, params->mds.count};
    }
    UCS_CHECK_ARG(!(r.flags & UCT_MD_MEM_FLAG_FIXED) ||
                      (r.address && reinterpret_cast<uintptr_t>(r.address) % ucs::page_size() == 0),
                  "uct_mem_alloc: params->address %p must be a page with UCT_MD_MEM_FLAG_FIXED",
                  r.address);
    if ((mask & UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE) && params->mem_type != UCS_MEMORY_TYPE_HOST) {
        return UCS_ERR_NO_MEMORY; // no transport of ours has other memory
    }
    return ucs::guard([&]() -> ucs_status_t {
        for (unsigned i = 0; i < num_methods; ++i) {
            allocation a = try_method(methods[i], r);
            if (a.address) {
                // Only the members that every version of the struct has.
                mem->address = a.address;
                mem->length = a.length;
                mem->method = methods[i];
                mem->mem_type = UCS_MEMORY_TYPE_HOST;
                mem->md = a.md;
                mem->memh = a.memh;
                return UCS_OK;
            }
        }
        return UCS_ERR_NO_MEMORY;
    });
}

ucs_status_t uct_mem_free(const uct_allocated_memory_t *mem)
{
    UCS_CHECK_ARG(mem, "uct_mem_free: mem must not be NULL");
    switch (mem->method) {
    case UCT_ALLOC_METHOD_THP:
    case UCT_ALLOC_METHOD_HEAP:
        free(mem->address);
        return UCS_OK;
    case UCT_ALLOC_METHOD_MD:
        return ucs::guard([&] { mem->md->free(mem->memh); });
    case UCT_ALLOC_METHOD_MMAP:
    case UCT_ALLOC_METHOD_HUGE:
        munmap(mem->address, mem->length);
        return UCS_OK;
    case UCT_ALLOC_METHOD_LAST:
        break;
    }
    ucs_error("uct_mem_free: mem->method %d is not one", mem->method);
    return UCS_ERR_INVALID_PARAM;
}

ucs_status_t uct_iface_mem_alloc(uct_iface_h iface, size_t length, unsigned flags, const char *name,
                                 uct_allocated_memory_t *mem)
{
    UCS_CHECK_ARG(iface, "uct_iface_mem_alloc: iface must not be NULL");
    UCS_CHECK_ARG(mem, "uct_iface_mem_alloc: mem must not be NULL");
    uct_md_h md = &static_cast<uct::iface *>(iface)->md;
    const uct_alloc_method_t methods[] = {UCT_ALLOC_METHOD_MD, UCT_ALLOC_METHOD_THP,
                                          UCT_ALLOC_METHOD_MMAP, UCT_ALLOC_METHOD_HEAP};
    uct_mem_alloc_params_t params{};
    params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_MDS |
                        UCT_MEM_ALLOC_PARAM_FIELD_NAME;
    params.flags = flags;
    params.mds = {&md, 1};
    params.name = name;
    uct_allocated_memory_t allocated;
    ucs_status_t status = uct_mem_alloc(length, methods, 4, &params, &allocated);
    if (status != UCS_OK) {
        return status;
    }
    if (allocated.method != UCT_ALLOC_METHOD_MD) {
        status = uct_md_mem_reg(md, allocated.address, allocated.length,
                                flags ? flags : static_cast<unsigned>(UCT_MD_MEM_ACCESS_ALL),
                                &allocated.memh);
        if (status != UCS_OK) {
            uct_mem_free(&allocated);
            return status;
        }
        allocated.md = md;
    }
    memcpy(mem, &allocated, offsetof(uct_allocated_memory_t, sys_device));
    return UCS_OK;
}

void uct_iface_mem_free(const uct_allocated_memory_t *mem)
{
    if (!mem) {
        ucs_error("uct_iface_mem_free: mem must not be NULL");
        return;
    }
    if (mem->method != UCT_ALLOC_METHOD_MD && mem->memh != UCT_MEM_HANDLE_NULL) {
        uct_md_mem_dereg(mem->md, mem->memh);
    }
    uct_mem_free(mem);
}

int uct_md_is_sockaddr_accessible(uct_md_h md, const ucs_sock_addr_t *sockaddr,
                                  uct_sockaddr_accessibility_t mode)
{
    if (!md || !is_address(sockaddr)) {
        ucs_error("uct_md_is_sockaddr_accessible: md must not be NULL and sockaddr must be a whole "
                  "address of family AF_INET or AF_INET6");
        return 0;
    }
    return md->is_sockaddr_accessible(sockaddr->addr, mode);
}

} // extern "C"
