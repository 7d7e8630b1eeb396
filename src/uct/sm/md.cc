// SPDX-License-Identifier: BSD-3-Clause
// Registration, keys, and the component.
#include "uct/sm/md.h"

#include "ucs/sys.h"
#include "ucs/topo.h"
#include "uct/shared/foreign_fd.h"
#include "uct/shared/mappings.h"
#include "uct/sm/iface.h"
#include "uct/sm/sm.h"

#include <cstdio>
#include <cstring>
#include <sys/prctl.h>
#include <unistd.h>

namespace uct::sm {

namespace {

// Of splitmix64: keys that follow each other do not look so.
uint64_t scramble(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
    return value ^ (value >> 31);
}

} // namespace

md::md(uct_component &component, const uct_md_config &config)
    : uct_md(component), next_key_(ucs::random_u64()),
      always_(config.v.reg_nonblock ? UCT_MD_MEM_FLAG_NONBLOCK : 0)
{
}

void md::query(uct_md_attr_t *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->cap.flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ADVISE |
                      UCT_MD_FLAG_ALLOC | UCT_MD_FLAG_FIXED;
    attr->cap.max_alloc = SIZE_MAX;
    attr->cap.alloc_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.max_reg = SIZE_MAX;
    attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.detect_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->reg_cost = {.c = 100e-9, .m = 0};
    attr->rkey_packed_size = sizeof(packed_rkey);
    snprintf(attr->component_name, sizeof(attr->component_name), "%s", component.name.c_str());
    ucs::topo::local_cpus(UCS_SYS_DEVICE_ID_UNKNOWN, &attr->local_cpus);
}

std::vector<uct_tl_resource_desc_t> md::tl_resources()
{
    return {{.tl_name = "sm",
             .dev_name = "memory",
             .dev_type = UCT_DEVICE_TYPE_SHM,
             .sys_device = UCS_SYS_DEVICE_ID_UNKNOWN}};
}

uct_iface *md::open_iface(uct_worker *worker, const uct_iface_params_t &params,
                          const uct_iface_config &config)
{
    return new iface(*worker, *this, params, config);
}

bool md::covers(const region &r, uint64_t address, size_t length)
{
    uint64_t from = address - reinterpret_cast<uint64_t>(r.memory.data());
    return from <= r.memory.size() && length <= r.memory.size() - from;
}

region *md::add(std::unique_ptr<region> r)
{
    std::lock_guard guard(mutex_);
    r->key = scramble(next_key_++);
    regions_.emplace(r->key, r.get());
    return r.release();
}

uct_mem_h md::reg(void *address, size_t length, unsigned flags)
{
    auto r = std::make_unique<region>();
    r->memory = {static_cast<char *>(address), length};
    if (flags & UCT_MD_MEM_FLAG_LOCK) {
        r->locked = locked_pages(address, length);
    }
    return add(std::move(r));
}

void md::dereg(uct_mem_h memh)
{
    std::unique_ptr<region> r(static_cast<region *>(memh));
    std::lock_guard guard(mutex_);
    regions_.erase(r->key);
}

std::span<char> md::memory_of(uct_mem_h memh) const
{
    return static_cast<const region *>(memh)->memory;
}

void md::pack_mkey(uct_mem_h memh, void *buffer)
{
    auto *r = static_cast<const region *>(memh);
    packed_rkey packed{.magic = rkey_magic,
                       .key = r->key,
                       .base = reinterpret_cast<uint64_t>(r->memory.data()),
                       .length = r->memory.size(),
                       .mapping = {}};
    if (r->shared) {
        packed.mapping = r->shared->key();
    }
    memcpy(buffer, &packed, sizeof(packed));
}

uct_mem_h md::alloc(size_t *length_p, void **address_p, unsigned flags)
{
    flags |= always_;
    auto r = std::make_unique<region>();
    r->shared =
        std::make_unique<shared_memory>(*length_p, *address_p, (flags & UCT_MD_MEM_FLAG_FIXED) != 0,
                                        (flags & UCT_MD_MEM_FLAG_NONBLOCK) == 0);
    r->memory = {static_cast<char *>(r->shared->address), r->shared->length};
    if (flags & UCT_MD_MEM_FLAG_LOCK) {
        r->locked = locked_pages(r->shared->address, r->shared->length);
    }
    *length_p = r->memory.size();
    *address_p = r->memory.data();
    return add(std::move(r));
}

namespace {

// The descriptors of a process that is not dumpable belong to root, so no peer can open them.
bool peers_may_look()
{
    return prctl(PR_GET_DUMPABLE) == 1;
}

// Makes what an interface needs, and opens it as a peer does. If that fails here, it would fail for
// the interface or for its peers, when it is too late to choose another transport.
void try_interface()
{
    inbox box;
    bell b;
    ::close(open_memory({static_cast<uint32_t>(getpid()), static_cast<uint32_t>(box.fd())},
                        box.nonce(), inbox::size()));
}

class component final : public uct_component {
  public:
    component() : uct_component("sm") {}

    uint64_t flags() const override { return UCT_COMPONENT_FLAG_RKEY_PTR; }
    std::vector<std::string> md_names() const override
    {
        return peers_may_look() ? std::vector<std::string>{"sm"} : std::vector<std::string>{};
    }

    uct_md *open_md(const std::string &md_name, const uct_md_config &config) override
    {
        if (md_name != "sm") {
            throw ucs::error(UCS_ERR_NO_DEVICE, "uct_md_open: sm has no memory domain \"%s\"",
                             md_name.c_str());
        }
        try_interface();
        return new md(*this, config);
    }

    ucs_status_t rkey_unpack(const void *buffer, uct_rkey_bundle_t *bundle) override
    {
        packed_rkey packed;
        memcpy(&packed, buffer, sizeof(packed.magic));
        if (packed.magic != rkey_magic) {
            return UCS_ERR_UNSUPPORTED; // not logged: callers try the components in turn
        }
        memcpy(&packed, buffer, sizeof(packed));
        auto unpacked = std::make_unique<rkey>();
        *unpacked = {.key = packed.key,
                     .base = packed.base,
                     .length = packed.length,
                     .local = nullptr,
                     .mapping = packed.mapping};
        if (packed.mapping.pid != 0 && packed.length <= packed.mapping.length) {
            unpacked->local = static_cast<char *>(acquire_mapping(packed.mapping, packed.base));
        }
        *bundle = {.rkey = reinterpret_cast<uct_rkey_t>(unpacked.release()),
                   .handle = nullptr,
                   .type = this};
        return UCS_OK;
    }

    ucs_status_t rkey_release(const uct_rkey_bundle_t *bundle) override
    {
        const rkey *unpacked = rkey::of(bundle->rkey);
        if (unpacked->local) {
            release_mapping(unpacked->mapping);
        }
        delete unpacked;
        return UCS_OK;
    }

    ucs_status_t rkey_ptr(const uct_rkey_bundle_t *bundle, uint64_t remote,
                          void **address_p) override
    {
        const rkey *unpacked = rkey::of(bundle->rkey);
        if (!unpacked->local) {
            return UCS_ERR_UNREACHABLE; // not logged: callers ask to find out
        }
        char *at = unpacked->mapped(remote, 1);
        if (!at) {
            return UCS_ERR_INVALID_ADDR;
        }
        *address_p = at;
        return UCS_OK;
    }
};

} // namespace

uct_component *make_component()
{
    return new component;
}

} // namespace uct::sm
