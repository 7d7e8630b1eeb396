// SPDX-License-Identifier: BSD-3-Clause
// The memory domain, whose keys say in which process they are good, and the component that opens
// it.
#include "uct/base/md.h"

#include "ucs/topo.h"
#include "uct/base/locked_pages.h"
#include "uct/self/iface.h"
#include "uct/self/self.h"

#include <cstring>
#include <memory>
#include <unistd.h>

namespace uct::self {

namespace {

// A remote key of self is the process it is good in.
struct packed_rkey {
    uint64_t magic;
    uint64_t process;
};
constexpr uint64_t rkey_magic = 0x31666c6573636375; // "ucc self 1"

class md final : public uct_md {
  public:
    using uct_md::uct_md;

    void query(uct_md_attr_t *attr) override
    {
        memset(attr, 0, sizeof(*attr));
        attr->cap.flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ADVISE;
        attr->cap.max_reg = SIZE_MAX;
        attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr->cap.detect_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr->reg_cost = {.c = 10e-9, .m = 0};
        attr->rkey_packed_size = sizeof(packed_rkey);
        snprintf(attr->component_name, sizeof(attr->component_name), "%s", component.name.c_str());
        ucs::topo::local_cpus(UCS_SYS_DEVICE_ID_UNKNOWN, &attr->local_cpus);
    }

    std::vector<uct_tl_resource_desc_t> tl_resources() override
    {
        return {{.tl_name = "self",
                 .dev_name = "memory",
                 .dev_type = UCT_DEVICE_TYPE_SELF,
                 .sys_device = UCS_SYS_DEVICE_ID_UNKNOWN}};
    }

    uct_iface *open_iface(uct_worker *worker, const uct_iface_params_t &params,
                          const uct_iface_config &config) override
    {
        return new iface(*worker, *this, params, config);
    }

    // Nothing is registered: the handle remembers what it stands for.
    struct region {
        std::span<char> memory;
        locked_pages locked;
    };

    uct_mem_h reg(void *address, size_t length, unsigned flags) override
    {
        auto r = std::make_unique<region>();
        r->memory = {static_cast<char *>(address), length};
        if (flags & UCT_MD_MEM_FLAG_LOCK) {
            r->locked = locked_pages(address, length);
        }
        return r.release();
    }
    void dereg(uct_mem_h memh) override { delete static_cast<region *>(memh); }
    std::span<char> memory_of(uct_mem_h memh) const override
    {
        return static_cast<const region *>(memh)->memory;
    }
    void pack_mkey(uct_mem_h, void *buffer) override
    {
        packed_rkey packed{rkey_magic, static_cast<uint64_t>(getpid())};
        memcpy(buffer, &packed, sizeof(packed));
    }
};

class component final : public uct_component {
  public:
    component() : uct_component("self") {}

    std::vector<std::string> md_names() const override { return {"self"}; }

    uct_md *open_md(const std::string &md_name, const uct_md_config &) override
    {
        if (md_name != "self") {
            throw ucs::error(UCS_ERR_NO_DEVICE, "uct_md_open: self has no memory domain \"%s\"",
                             md_name.c_str());
        }
        return new md(*this);
    }

    ucs_status_t rkey_unpack(const void *buffer, uct_rkey_bundle_t *bundle) override
    {
        packed_rkey packed;
        memcpy(&packed, buffer, sizeof(packed));
        if (packed.magic != rkey_magic) {
            return UCS_ERR_UNSUPPORTED;
        }
        *bundle = {.rkey = 0, .handle = nullptr, .type = this};
        return UCS_OK;
    }

    ucs_status_t rkey_release(const uct_rkey_bundle_t *) override { return UCS_OK; }
};

} // namespace

uct_component *make_component()
{
    return new component;
}

} // namespace uct::self
