// SPDX-License-Identifier: BSD-3-Clause
// The calls about memory domains that have parameters with a field mask: see uct/api/v2/uct_v2.h.
#include <uct/api/v2/uct_v2.h>

#include "ucs/check.h"
#include "ucs/device_memory.h"
#include "ucs/error.h"
#include "uct/base/md.h"

#include <cstddef>
#include <cstring>
#include <dlfcn.h>
#include <span>

namespace {

static_assert(offsetof(uct_md_attr_v2_t, gva_mem_types) == 56);
static_assert(offsetof(uct_md_attr_v2_t, component_name) == 112);
static_assert(offsetof(uct_md_attr_v2_t, global_id) == 272);
static_assert(sizeof(uct_md_attr_v2_t) == 536);
static_assert(sizeof(uct_md_mem_reg_params_t) == 32);
static_assert(sizeof(uct_md_mkey_pack_params_t) == 16);

// Programs that call uct_md_query_v2() came with a libucs of their version. Function names tell it:
// the first one is in every version, the second since 1.18.
bool has_old_layout()
{
    return dlsym(RTLD_DEFAULT, "ucs_global_opts_init") &&
           !dlsym(RTLD_DEFAULT, "ucs_string_alloc_path_buffer");
}

template <class T>
void put(const uct_md_attr_v2_t &out, uint64_t bit, T &member, const T &value)
{
    if (out.field_mask & bit) {
        member = value;
    }
}

void fill(uct_md_attr_v2_t &out, const uct_md_attr_t &a)
{
    uint64_t none = 0;
    put(out, UCT_MD_ATTR_FIELD_MAX_ALLOC, out.max_alloc, a.cap.max_alloc);
    put(out, UCT_MD_ATTR_FIELD_MAX_REG, out.max_reg, a.cap.max_reg);
    put(out, UCT_MD_ATTR_FIELD_FLAGS, out.flags, a.cap.flags);
    put(out, UCT_MD_ATTR_FIELD_REG_MEM_TYPES, out.reg_mem_types, a.cap.reg_mem_types);
    put(out, UCT_MD_ATTR_FIELD_REG_NONBLOCK_MEM_TYPES, out.reg_nonblock_mem_types, none);
    put(out, UCT_MD_ATTR_FIELD_CACHE_MEM_TYPES, out.cache_mem_types, a.cap.reg_mem_types);
    put(out, UCT_MD_ATTR_FIELD_GVA_MEM_TYPES, out.gva_mem_types, none);
    put(out, UCT_MD_ATTR_FIELD_DETECT_MEM_TYPES, out.detect_mem_types, a.cap.detect_mem_types);
    put(out, UCT_MD_ATTR_FIELD_ALLOC_MEM_TYPES, out.alloc_mem_types, a.cap.alloc_mem_types);
    put(out, UCT_MD_ATTR_FIELD_ACCESS_MEM_TYPES, out.access_mem_types, a.cap.access_mem_types);
    put(out, UCT_MD_ATTR_FIELD_DMABUF_MEM_TYPES, out.dmabuf_mem_types, none);
    put(out, UCT_MD_ATTR_FIELD_REG_COST, out.reg_cost, a.reg_cost);
    put(out, UCT_MD_ATTR_FIELD_RKEY_PACKED_SIZE, out.rkey_packed_size, a.rkey_packed_size);
    put(out, UCT_MD_ATTR_FIELD_LOCAL_CPUS, out.local_cpus, a.local_cpus);
    put(out, UCT_MD_ATTR_FIELD_EXPORTED_MKEY_PACKED_SIZE, out.exported_mkey_packed_size, none);
    put(out, UCT_MD_ATTR_FIELD_REG_ALIGNMENT, out.reg_alignment, size_t(1));
    if (out.field_mask & UCT_MD_ATTR_FIELD_COMPONENT_NAME) {
        memcpy(out.component_name, a.component_name, sizeof(out.component_name));
    }
    if (out.field_mask & UCT_MD_ATTR_FIELD_GLOBAL_ID) {
        memset(out.global_id, 0, sizeof(out.global_id));
    }
}

} // namespace

extern "C" {

ucs_status_t uct_md_query_v2(uct_md_h md, uct_md_attr_v2_t *md_attr)
{
    UCS_CHECK_ARG(md, "uct_md_query_v2: md must not be NULL");
    UCS_CHECK_ARG(md_attr, "uct_md_query_v2: md_attr must not be NULL");
    return ucs::guard([&] {
        if (has_old_layout()) {
            throw ucs::error(UCS_ERR_UNSUPPORTED,
                             "uct_md_query_v2: the program belongs to a UCX before 1.18, whose "
                             "attributes of memory domains have another layout");
        }
        uct_md_attr_t attr;
        md->query(&attr);
        attr.cap.detect_mem_types |= ucs::device_memory::known_kinds();
        fill(*md_attr, attr);
    });
}

ucs_status_t uct_md_mem_reg_v2(uct_md_h md, void *address, size_t length,
                               const uct_md_mem_reg_params_t *params, uct_mem_h *memh_p)
{
    UCS_CHECK_ARG(params, "uct_md_mem_reg_v2: params must not be NULL");
    uint64_t flags = params->field_mask & UCT_MD_MEM_REG_FIELD_FLAGS ? params->flags : 0;
    bool is_dmabuf = (params->field_mask & UCT_MD_MEM_REG_FIELD_DMABUF_FD) &&
                     params->dmabuf_fd != UCT_DMABUF_FD_INVALID;
    UCS_CHECK_ARG(flags <= UINT32_MAX, "uct_md_mem_reg_v2: flags 0x%lx are not known", flags);
    if (is_dmabuf) {
        if (!(flags & UCT_MD_MEM_FLAG_HIDE_ERRORS)) {
            ucs_error("uct_md_mem_reg_v2: dma-bufs are not supported");
        }
        return UCS_ERR_UNSUPPORTED;
    }
    return uct_md_mem_reg(md, address, length, static_cast<unsigned>(flags), memh_p);
}

ucs_status_t uct_md_mkey_pack_v2(uct_md_h md, uct_mem_h memh, void *address, size_t length,
                                 const uct_md_mkey_pack_params_t *params, void *mkey_buffer)
{
    UCS_CHECK_ARG(params, "uct_md_mkey_pack_v2: params must not be NULL");
    if ((params->field_mask & UCT_MD_MKEY_PACK_FIELD_FLAGS) && params->flags != 0) {
        ucs_error("uct_md_mkey_pack_v2: keys that are revoked or exported are not supported");
        return UCS_ERR_UNSUPPORTED;
    }
    if (md && memh != UCT_MEM_HANDLE_NULL && address) {
        std::span<char> known = md->memory_of(memh);
        auto *begin = static_cast<char *>(address);
        UCS_CHECK_ARG(begin >= known.data() && begin <= known.data() + known.size() &&
                          (length == SIZE_MAX ||
                           length <= static_cast<size_t>(known.data() + known.size() - begin)),
                      "uct_md_mkey_pack_v2: address %p and length %zu are not within memh", address,
                      length);
    }
    return uct_md_mkey_pack(md, memh, mkey_buffer);
}

} // extern "C"
