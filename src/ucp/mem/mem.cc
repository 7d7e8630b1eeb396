// SPDX-License-Identifier: BSD-3-Clause
//
// Memory handles: see mem.h. Memory that we allocate comes from an md that can share it on the
// node, so that peers map it; every md that registers gets its registration.
#include "ucp/mem/mem.h"

#include "ucp/core/raw_value.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/memory_type.h"
#include "ucp/mem/rail_memory.h"
#include "ucs/check.h"
#include "ucs/error.h"
#include "ucs/sys.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <unistd.h>

namespace ucp {

namespace {

size_t page_size() noexcept
{
    static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return size;
}

bool md_has(const ucp_context *context, unsigned i, uint64_t flag) noexcept
{
    return context->mds[i].attr.cap.flags & flag;
}

void unmap(ucp_mem *mem) noexcept
{
    ucp_context *context = mem->context;
    for (unsigned i = 0; i < context->md_count; ++i) {
        if (mem->md_map & (1u << i) && static_cast<int>(i) != mem->alloc_md) {
            uct_md_mem_dereg(context->mds[i].md, mem->memh[i]);
        }
    }
    if (mem->import_cmpt) {
        uct_rkey_release(mem->import_cmpt, &mem->import_bundle);
    }
    if (!mem->allocated) {
        return;
    }
    if (mem->alloc_md >= 0) {
        uct_allocated_memory_t a = {};
        a.address = mem->address;
        a.length = mem->alloc_length;
        a.method = UCT_ALLOC_METHOD_MD;
        a.mem_type = UCS_MEMORY_TYPE_HOST;
        a.md = context->mds[mem->alloc_md].md;
        a.memh = mem->alloc_memh;
        uct_mem_free(&a);
    } else {
        munmap(mem->address, mem->alloc_length);
    }
}

bool allocate_md(ucp_mem *mem, void *address, size_t length, bool fixed, unsigned access)
{
    ucp_context *context = mem->context;
    for (unsigned i = 0; i < context->md_count; ++i) {
        if (!md_has(context, i, UCT_MD_FLAG_ALLOC) || !md_has(context, i, UCT_MD_FLAG_REG) ||
            (fixed && !md_has(context, i, UCT_MD_FLAG_FIXED))) {
            continue;
        }
        uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
        uct_mem_alloc_params_t params = {};
        params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_ADDRESS |
                            UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE | UCT_MEM_ALLOC_PARAM_FIELD_MDS |
                            UCT_MEM_ALLOC_PARAM_FIELD_NAME;
        params.flags = access | (fixed ? UCT_MD_MEM_FLAG_FIXED : 0);
        params.address = fixed ? address : nullptr;
        params.mem_type = UCS_MEMORY_TYPE_HOST;
        params.mds.mds = &context->mds[i].md;
        params.mds.count = 1;
        params.name = "ucp_mem_map";
        uct_allocated_memory_t got = {};
        if (uct_mem_alloc(length, &method, 1, &params, &got) != UCS_OK) {
            continue;
        }
        mem->address = got.address;
        mem->length = length;
        mem->alloc_length = got.length;
        mem->alloc_md = static_cast<int>(i);
        mem->alloc_memh = got.memh;
        mem->memh[i] = got.memh;
        mem->md_map |= 1u << i;
        return true;
    }
    return false;
}

void allocate(ucp_mem *mem, void *address, size_t length, bool fixed, unsigned access)
{
    mem->allocated = true;
    if (allocate_md(mem, address, length, fixed, access)) {
        return;
    }
    size_t page = page_size();
    size_t bytes = (length + page - 1) / page * page;
    if (bytes == 0) {
        bytes = page;
    }
    void *p = mmap(address, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | (fixed ? MAP_FIXED : 0), -1, 0);
    if (p == MAP_FAILED || (fixed && p != address)) {
        if (p != MAP_FAILED) {
            munmap(p, bytes);
        }
        throw ucs::error(UCS_ERR_NO_MEMORY, "ucp_mem_map: cannot allocate %zu bytes at %p", length,
                         address);
    }
    mem->address = p;
    mem->length = length;
    mem->alloc_length = bytes;
    mem->alloc_md = -1;
}

// What the user allows, as an md wants to know it; everything when nothing is said.
unsigned access_of(const ucp_mem_map_params_t *params) noexcept
{
    unsigned prot = params->field_mask & UCP_MEM_MAP_PARAM_FIELD_PROT ? params->prot : 0;
    if (prot == 0) {
        return UCT_MD_MEM_ACCESS_ALL;
    }
    unsigned access = 0;
    if (prot & UCP_MEM_MAP_PROT_LOCAL_READ) {
        access |= UCT_MD_MEM_ACCESS_LOCAL_READ;
    }
    if (prot & UCP_MEM_MAP_PROT_LOCAL_WRITE) {
        access |= UCT_MD_MEM_ACCESS_LOCAL_WRITE;
    }
    if (prot & UCP_MEM_MAP_PROT_REMOTE_READ) {
        access |= UCT_MD_MEM_ACCESS_REMOTE_GET;
    }
    if (prot & UCP_MEM_MAP_PROT_REMOTE_WRITE) {
        access |= UCT_MD_MEM_ACCESS_REMOTE_PUT | UCT_MD_MEM_ACCESS_REMOTE_ATOMIC;
    }
    return access;
}

uint8_t denied_by(unsigned access) noexcept
{
    return static_cast<uint8_t>((access & UCT_MD_MEM_ACCESS_REMOTE_GET ? 0 : RIGHT_READ) |
                                (access & UCT_MD_MEM_ACCESS_REMOTE_PUT ? 0 : RIGHT_WRITE));
}

// false: the pages were to be locked, and no md could do that.
bool register_all(ucp_mem *mem, unsigned flags, unsigned access) noexcept
{
    ucp_context *context = mem->context;
    bool lock = flags & UCP_MEM_MAP_LOCK, locked = false;
    if (mem->length == 0) {
        return true;
    }
    for (unsigned i = 0; i < context->md_count; ++i) {
        if (mem->md_map & (1u << i) || !md_has(context, i, UCT_MD_FLAG_REG)) {
            continue;
        }
        unsigned reg_flags = access;
        if (flags & UCP_MEM_MAP_NONBLOCK) {
            reg_flags |= UCT_MD_MEM_FLAG_NONBLOCK;
        }
        if (lock) {
            reg_flags |= UCT_MD_MEM_FLAG_LOCK;
        }
        // Silent: not every md can register all memory, and one that cannot is just not used for
        // it.
        if (uct_md_mem_reg(context->mds[i].md, mem->address, mem->length,
                           reg_flags | UCT_MD_MEM_FLAG_HIDE_ERRORS, &mem->memh[i]) == UCS_OK) {
            mem->md_map |= 1u << i;
            locked = locked || lock;
        }
    }
    return locked || !lock;
}

void list(ucp_mem *mem)
{
    mem_table &table = mem->context->memory;
    mem->id = ucs::random_u64();
    const mapping m = {mem->id, reinterpret_cast<uintptr_t>(mem->address), mem->length, mem,
                       mem->denied};
    table.by_id.add(m);
    if (mem->allocated) {
        table.allocated.add(m);
    }
}

void unlist(ucp_mem *mem) noexcept
{
    mem_table &table = mem->context->memory;
    table.by_id.remove(mem->id);
    if (mem->allocated) {
        table.allocated.remove(reinterpret_cast<uintptr_t>(mem->address));
    }
}

} // namespace

bool is_mapped(ucp_worker *worker, uint64_t id, uint64_t address, uint64_t length,
               uint8_t right) noexcept
{
    mapping m = worker->memory.by_id.find(id);
    return m.id == id && m.holds(address, length) && !(m.denied & right);
}

mem_view &mapped_memory(ucp_worker *worker) noexcept
{
    return worker->memory.by_id;
}

ucp_mem *find_allocated(ucp_worker *worker, const void *buffer, size_t length) noexcept
{
    auto address = reinterpret_cast<uintptr_t>(buffer);
    mapping m = worker->memory.allocated.find(address);
    return m.holds(address, length) ? m.mem : nullptr;
}

// ---- temporary registrations of requests

namespace {

ucs_status_t reg(data_request *req, uint8_t md_index, void *buffer, size_t length, unsigned access,
                 uct_mem_h *memh_p) noexcept
{
    ucp_mem *user = req->user_memh;
    if (!user) {
        user = find_allocated(req->worker, buffer, length);
    }
    if (user && user->md_map & (1u << md_index)) {
        *memh_p = user->memh[md_index];
        return UCS_OK;
    }
    if (req->memory.reg.memh) {
        if (req->memory.md == md_index) {
            *memh_p = req->memory.reg.memh;
            return UCS_OK;
        }
        release_memh(req);
    }
    registration made;
    ucs_status_t status =
        make_registration(req->worker->context, md_index, buffer, length, access, &made);
    if (status != UCS_OK) {
        return status;
    }
    req->memory.reg = made;
    req->memory.md = md_index;
    *memh_p = made.memh;
    return UCS_OK;
}

} // namespace

ucs_status_t request_reg(data_request *req, uint8_t md_index, void *buffer, size_t length,
                         uct_mem_h *memh_p) noexcept
{
    if (!md_has(req->worker->context, md_index, UCT_MD_FLAG_NEED_MEMH)) {
        *memh_p = nullptr;
        return UCS_OK;
    }
    return reg(req, md_index, buffer, length, UCT_MD_MEM_ACCESS_RMA, memh_p);
}

ucs_status_t request_reg_remote(data_request *req, uint8_t md_index, void *buffer, size_t length,
                                uct_mem_h *memh_p) noexcept
{
    if (!md_has(req->worker->context, md_index, UCT_MD_FLAG_REG)) {
        return UCS_ERR_UNSUPPORTED;
    }
    return reg(req, md_index, buffer, length, UCT_MD_MEM_ACCESS_REMOTE_GET, memh_p);
}

void withdraw_memh(data_request *req) noexcept
{
    if (req->memory.rails) {
        rail_memory_forget(req->memory.rails);
    }
    if (req->memory.reg.memh) {
        forget_registration(req->worker->context, req->memory.md, req->memory.reg);
    }
}

void release_memh(data_request *req) noexcept
{
    if (req->memory.rails) {
        rail_memory_release(req->memory.rails);
        req->memory.rails = nullptr;
    }
    if (req->memory.reg.memh) {
        drop_registration(req->worker->context, req->memory.md, req->memory.reg);
        req->memory.reg = {};
    }
    req->memory.zmemh = nullptr;
}

namespace {

// What the parameters of ucp_mem_map() ask for.
struct map_request {
    unsigned flags;
    void *address;
    size_t length; // not known of an import
    bool alloc;
    bool fixed;
    bool import;
    ucs_memory_type_t kind;
};

// What is said of the memory, or what its driver says; UNSUPPORTED if it is a device's.
ucs_status_t read_kind(const ucp_mem_map_params_t *params, map_request *m) noexcept
{
    unsigned type = params->field_mask & UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE
                        ? raw_value(params->memory_type)
                        : unsigned(UCS_MEMORY_TYPE_UNKNOWN);
    if (is_device_memory(type) ||
        (m->alloc && is_known_memory(type) && type != UCS_MEMORY_TYPE_HOST)) {
        ucs_error(
            "ucp_mem_map: params->memory_type %u, %s, is not supported: use memory of the host",
            type, ucs::device_memory::name(static_cast<ucs_memory_type_t>(type)));
        return UCS_ERR_UNSUPPORTED;
    }
    m->kind = is_known_memory(type) ? static_cast<ucs_memory_type_t>(type) : UCS_MEMORY_TYPE_HOST;
    if (m->alloc || m->length == 0 || is_known_memory(type)) {
        return UCS_OK;
    }
    m->kind = ucs::device_memory::find(m->address).type;
    return check_address("ucp_mem_map", "params->address", m->address, m->length);
}

ucs_status_t read_params(const ucp_mem_map_params_t *params, map_request *m)
{
    uint64_t mask = params->field_mask;
    m->flags = mask & UCP_MEM_MAP_PARAM_FIELD_FLAGS ? params->flags : 0;
    m->address = mask & UCP_MEM_MAP_PARAM_FIELD_ADDRESS ? params->address : nullptr;
    m->alloc = m->flags & UCP_MEM_MAP_ALLOCATE;
    m->fixed = m->flags & UCP_MEM_MAP_FIXED;
    m->import = mask & UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER;
    UCS_CHECK_ARG(!m->import || (!m->alloc && !m->fixed && params->exported_memh_buffer),
                  "ucp_mem_map: params->exported_memh_buffer must not be NULL nor come with "
                  "ALLOCATE or FIXED");
    UCS_CHECK_ARG(m->import || mask & UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                  "ucp_mem_map: params->field_mask must have LENGTH");
    m->length = m->import ? 0 : params->length;
    UCS_CHECK_ARG(m->alloc || m->address || m->length == 0,
                  "ucp_mem_map: params->address must not be NULL without ALLOCATE");
    UCS_CHECK_ARG(!m->fixed || m->alloc, "ucp_mem_map: params->flags has FIXED without ALLOCATE");
    UCS_CHECK_ARG(!m->fixed ||
                      (m->address && reinterpret_cast<uintptr_t>(m->address) % page_size() == 0),
                  "ucp_mem_map: params->address %p must be page aligned with FIXED", m->address);
    UCS_CHECK_ARG((m->flags & (UCP_MEM_MAP_NONBLOCK | UCP_MEM_MAP_LOCK)) !=
                      (UCP_MEM_MAP_NONBLOCK | UCP_MEM_MAP_LOCK),
                  "ucp_mem_map: params->flags must not have both NONBLOCK and LOCK");
    return read_kind(params, m);
}

// Throws ucs::error or bad_alloc.
ucp_mem *map(ucp_context *context, const ucp_mem_map_params_t *params, const map_request &wanted)
{
    auto mem = std::make_unique<ucp_mem>();
    mem->context = context;
    mem->address = wanted.address;
    mem->length = wanted.length;
    mem->alloc_md = -1;
    mem->mem_type = wanted.kind;
    const unsigned access = access_of(params);
    mem->denied = denied_by(access);
    if (wanted.alloc && wanted.length != 0) {
        allocate(mem.get(), wanted.address, wanted.length, wanted.fixed, access);
    }
    if (wanted.import) {
        ucs_status_t status = import_memory(mem.get(), params->exported_memh_buffer);
        if (status != UCS_OK) {
            throw ucs::error(status, "ucp_mem_map: params->exported_memh_buffer: %s",
                             ucs_status_string(status));
        }
    }
    if (!register_all(mem.get(), wanted.flags, access)) {
        unmap(mem.get());
        throw ucs::error(UCS_ERR_IO_ERROR,
                         "ucp_mem_map: %zu bytes at %p cannot be locked in memory", mem->length,
                         mem->address);
    }
    try {
        list(mem.get());
    } catch (const std::bad_alloc &) {
        unlist(mem.get());
        unmap(mem.get());
        throw;
    }
    return mem.release();
}

} // namespace

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params,
                                    ucp_mem_h *memh_p)
{
    UCS_CHECK_ARG(context, "ucp_mem_map: context must not be NULL");
    UCS_CHECK_ARG(params, "ucp_mem_map: params must not be NULL");
    UCS_CHECK_ARG(memh_p, "ucp_mem_map: memh_p must not be NULL");
    context->look_for_drivers();
    ucp::map_request wanted;
    ucs_status_t status = ucp::read_params(params, &wanted);
    if (status != UCS_OK) {
        return status;
    }
    return ucs::guard([&] {
        if (!wanted.import) {
            context->open_networks(); // peers get keys for them
        }
        *memh_p = ucp::map(context, params, wanted);
    });
}

UCS_EXPORT ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h memh)
{
    UCS_CHECK_ARG(context, "ucp_mem_unmap: context must not be NULL");
    UCS_CHECK_ARG(memh, "ucp_mem_unmap: memh must not be NULL");
    ucp::unlist(memh);
    ucp::unmap(memh);
    delete memh;
    return UCS_OK;
}

UCS_EXPORT ucs_status_t ucp_mem_query(const ucp_mem_h memh, ucp_mem_attr_t *attr)
{
    UCS_CHECK_ARG(memh, "ucp_mem_query: memh must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_mem_query: attr must not be NULL");
    if (attr->field_mask & UCP_MEM_ATTR_FIELD_ADDRESS) {
        attr->address = memh->length != 0 ? memh->address : nullptr; // as UCX says it
    }
    if (attr->field_mask & UCP_MEM_ATTR_FIELD_LENGTH) {
        attr->length = memh->length;
    }
    if (attr->field_mask & UCP_MEM_ATTR_FIELD_MEM_TYPE) {
        attr->mem_type = memh->mem_type;
    }
    return UCS_OK;
}

UCS_EXPORT ucs_status_t ucp_mem_advise(ucp_context_h context, ucp_mem_h memh,
                                       ucp_mem_advise_params_t *params)
{
    UCS_CHECK_ARG(context, "ucp_mem_advise: context must not be NULL");
    UCS_CHECK_ARG(memh, "ucp_mem_advise: memh must not be NULL");
    UCS_CHECK_ARG(params, "ucp_mem_advise: params must not be NULL");
    uint64_t needed = UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS | UCP_MEM_ADVISE_PARAM_FIELD_LENGTH |
                      UCP_MEM_ADVISE_PARAM_FIELD_ADVICE;
    UCS_CHECK_ARG((params->field_mask & needed) == needed,
                  "ucp_mem_advise: params->field_mask must have ADDRESS, LENGTH and ADVICE");
    auto begin = reinterpret_cast<uintptr_t>(params->address);
    auto base = reinterpret_cast<uintptr_t>(memh->address);
    UCS_CHECK_ARG(begin >= base && params->length <= memh->length &&
                      begin - base <= memh->length - params->length,
                  "ucp_mem_advise: params->address and length must lie in the mapping");
    UCS_CHECK_ARG(params->advice == UCP_MADV_NORMAL || params->advice == UCP_MADV_WILLNEED,
                  "ucp_mem_advise: params->advice %d is unknown", (int)params->advice);
    if (params->length != 0) {
        uintptr_t page = ucp::page_size();
        uintptr_t from = begin / page * page;
        madvise(reinterpret_cast<void *>(from), begin + params->length - from,
                params->advice == UCP_MADV_WILLNEED ? MADV_WILLNEED : MADV_NORMAL);
    }
    return UCS_OK;
}

} // extern "C"
