// SPDX-License-Identifier: BSD-3-Clause
// Fabric and domain of a device, memory registration, remote keys.
#include "uct/ofi/core/md.h"

#include "ucs/sockaddr.h"
#include "ucs/sys.h"
#include "ucs/topo.h"
#include "uct/ofi/core/component.h"
#include "uct/ofi/fabric/error.h"
#include "uct/ofi/fabric/route.h"
#include "uct/shared/mappings.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace uct::ofi {

namespace {

constexpr uint8_t rkey_version = 2;
constexpr uint8_t rkey_virtual = 1;

// Capabilities we do not use cost time in some cores (directed receive, source addresses).
constexpr uint64_t used_caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_SEND | FI_RECV | FI_READ |
                               FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE | FI_LOCAL_COMM |
                               FI_REMOTE_COMM;

bool is_link_local(const fi_info *info)
{
    auto *own = static_cast<const sockaddr_in6 *>(info->src_addr);
    return own && own->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&own->sin6_addr);
}

// The way to open a device by an address of the family, one that hosts beyond the link reach before
// others; nullptr: there is none.
const fi_info *of_family(const device &d, sa_family_t family)
{
    uint32_t format = family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    const fi_info *found = nullptr;
    for (const fi_info *info : d.infos) {
        if (info->addr_format == format &&
            (!found || (is_link_local(found) && !is_link_local(info)))) {
            found = info;
        }
    }
    return found;
}

// By the first family asked for that the device has. Nothing asked: the best way.
const fi_info *preferred(const device &d, const families &asked)
{
    if (asked[0] == AF_UNSPEC) {
        return d.infos.front();
    }
    for (sa_family_t family : asked) {
        const fi_info *info = family == AF_UNSPEC ? nullptr : of_family(d, family);
        if (info) {
            return info;
        }
    }
    throw ucs::error(UCS_ERR_NO_DEVICE, "UCX_TCP_AF_PRIO: %s has no address of this family",
                     d.name.c_str());
}

info_ptr cut_down(const core &c, info_ptr info)
{
    uint64_t used =
        used_caps | (c.msg() ? 0 : FI_TAGGED) | (c.msg() || c.on_node() ? 0 : FI_MULTI_RECV);
    info->caps &= used;
    info->tx_attr->caps &= used;
    info->rx_attr->caps &= used;
    info->tx_attr->op_flags = 0;
    info->rx_attr->op_flags = 0;
    info->domain_attr->threading = FI_THREAD_COMPLETION;
    return info;
}

std::shared_ptr<fid_fabric> open_fabric(const fi_info *info)
{
    fid_fabric *fabric = nullptr;
    check(fi_fabric(info->fabric_attr, &fabric, nullptr), "fi_fabric");
    return {fabric, fid_closer()};
}

info_ptr find_info(const core &c, const device &d, const families &asked, const admission &how)
{
    return cut_down(c, how.key.empty() ? dup_info(preferred(d, asked)) : admitted_info(c, d, how));
}

std::shared_ptr<fid_domain> open_domain(fid_fabric *fabric, fi_info *info, const admission &how,
                                        const device &d)
{
    fid_domain *domain = nullptr;
    how.check(fi_domain(fabric, info, &domain, nullptr), "fi_domain", d.name);
    return {domain, fid_closer()};
}

} // namespace

uint16_t transport_hash(const std::string &name)
{
    uint32_t hash = 2166136261u;
    for (char c : name) {
        hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    }
    return static_cast<uint16_t>(hash ^ (hash >> 16));
}

md::md(ofi::component &owner, const core &c, const device &d, const uct_md_config &config)
    : uct_md(owner), provider(c), dev(d),
      admitted(find_admission(c, d.name, config.v.auth_key, config.prefix)),
      info(find_info(c, d, config.v.families, admitted)), fabric(open_fabric(info.get())),
      domain(open_domain(fabric.get(), info.get(), admitted, d)),
      needs_local((info->domain_attr->mr_mode & FI_MR_LOCAL) != 0),
      carrier(info->domain_attr->mr_mode & FI_MR_ENDPOINT
                  ? std::make_unique<region_target>(domain.get(), info.get(), admitted, d.name)
                  : nullptr),
      always_(config.v.reg_nonblock ? UCT_MD_MEM_FLAG_NONBLOCK : 0)
{
    owner.expect_carrier(carrier_length());
}

void md::query(uct_md_attr_t *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->cap.flags = UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_ADVISE;
    if (provider.msg()) {
        attr->cap.flags |= UCT_MD_FLAG_SOCKADDR;
    }
    if (needs_local) {
        attr->cap.flags |= UCT_MD_FLAG_NEED_MEMH;
    }
    if (on_node()) {
        attr->cap.flags |= UCT_MD_FLAG_ALLOC | UCT_MD_FLAG_FIXED;
        attr->cap.max_alloc = SIZE_MAX;
        attr->cap.alloc_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    }
    attr->cap.max_reg = SIZE_MAX;
    attr->cap.reg_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.access_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    attr->cap.detect_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    // Pages are locked, or a device is asked for a key.
    bool is_dear = needs_local || carrier;
    attr->reg_cost.c = is_dear ? 50e-6 : 1e-6;
    attr->reg_cost.m = is_dear ? 0.05e-9 : 0;
    snprintf(attr->component_name, sizeof(attr->component_name), "%s",
             uct_md::component.name.c_str());
    attr->rkey_packed_size =
        sizeof(packed_rkey) + carrier_length() + (on_node() ? sizeof(shared_memory_key) : 0);
    ucs::topo::local_cpus(sys_device(), &attr->local_cpus);
}

// The PCI function behind the device: as the core says, else as the kernel's name of it says.
ucs_sys_device_t md::sys_device() const
{
    if (on_node()) {
        return UCS_SYS_DEVICE_ID_UNKNOWN;
    }
    const fid_nic *nic = info->nic;
    if (nic && nic->bus_attr && nic->bus_attr->bus_type == FI_BUS_PCI) {
        const fi_pci_attr &pci = nic->bus_attr->attr.pci;
        ucs_sys_device_t device = ucs::topo::device_by_bus_id({.domain = pci.domain_id,
                                                               .bus = pci.bus_id,
                                                               .slot = pci.device_id,
                                                               .function = pci.function_id});
        if (device != UCS_SYS_DEVICE_ID_UNKNOWN) {
            return device;
        }
    }
    return ucs::topo::device_by_name(dev.name);
}

std::vector<uct_tl_resource_desc_t> md::tl_resources()
{
    uct_tl_resource_desc_t resource{};
    snprintf(resource.tl_name, sizeof(resource.tl_name), "%s", provider.transport.c_str());
    snprintf(resource.dev_name, sizeof(resource.dev_name), "%s", dev.name.c_str());
    resource.dev_type = on_node() ? UCT_DEVICE_TYPE_SHM : UCT_DEVICE_TYPE_NET;
    resource.sys_device = sys_device();
    return {resource};
}

std::span<char> md::memory_of(uct_mem_h memh) const
{
    auto *m = static_cast<const memory *>(memh);
    return {reinterpret_cast<char *>(m->base), m->length};
}

bool md::is_sockaddr_accessible(const sockaddr *address, uct_sockaddr_accessibility_t way) const
{
    if (!provider.msg()) {
        return false;
    }
    if (way == UCT_SOCKADDR_ACC_LOCAL) {
        return ucs::sockaddr_is_any(address) || device_with_address(provider, address) == dev.name;
    }
    try {
        return find_route(provider, address, nullptr).device == dev.name;
    } catch (const ucs::error &e) {
        ucs_debug("%s", e.what());
        return false;
    }
}

uct_iface *md::open_iface(uct_worker *worker, const uct_iface_params_t &params,
                          const uct_iface_config &config)
{
    return static_cast<ofi::component &>(uct_md::component)
        .open_iface(*worker, *this, params, config);
}

// Where regions have the keys that we ask for. One that a peer cannot guess from another needs all
// 64 bits.
uint64_t md::wanted_key()
{
    if (info->domain_attr->mr_mode & FI_MR_PROV_KEY) {
        return 0;
    }
    return info->domain_attr->mr_key_size < sizeof(uint64_t) ? next_key_++ : ucs::random_u64();
}

memory md::do_reg(void *address, size_t length, uint64_t access)
{
    memory m;
    m.base = reinterpret_cast<uint64_t>(address);
    m.length = length;
    if (length == 0) {
        return m;
    }
    fid_mr *mr = nullptr;
    check(fi_mr_reg(domain.get(), address, length, access, 0, wanted_key(), 0, &mr, nullptr),
          "fi_mr_reg");
    m.mr.reset(mr);
    if (carrier) {
        m.carrier = carrier.get();
        carrier->enable(mr);
    }
    m.desc = fi_mr_desc(mr);
    m.key = fi_mr_key(mr);
    return m;
}

uct_mem_h md::reg(void *address, size_t length, unsigned flags)
{
    uint64_t access = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
    if (flags & (UCT_MD_MEM_ACCESS_REMOTE_GET | UCT_MD_MEM_ACCESS_REMOTE_ATOMIC)) {
        access |= FI_REMOTE_READ;
    }
    if (flags & (UCT_MD_MEM_ACCESS_REMOTE_PUT | UCT_MD_MEM_ACCESS_REMOTE_ATOMIC)) {
        access |= FI_REMOTE_WRITE;
    }
    auto m = std::make_unique<memory>(do_reg(address, length, access));
    // Cores that want memory registered for local use pin it themselves.
    if ((flags & UCT_MD_MEM_FLAG_LOCK) && !needs_local) {
        m->locked = locked_pages(address, length);
    }
    return m.release();
}

memory md::reg_local(void *address, size_t length)
{
    return needs_local ? do_reg(address, length, FI_SEND | FI_RECV | FI_READ | FI_WRITE) : memory();
}

void *alloc_registered(md *domain, size_t size, size_t align, void **cookie)
{
    void *chunk = std::aligned_alloc(align, (size + align - 1) / align * align);
    *cookie = nullptr;
    if (chunk && domain && domain->needs_local) {
        ucs_status_t status =
            ucs::guard([&] { *cookie = new memory(domain->reg_local(chunk, size)); });
        if (status != UCS_OK) {
            std::free(chunk);
            return nullptr;
        }
    }
    return chunk;
}

void free_registered(void *, void *chunk, size_t, void *cookie)
{
    delete static_cast<memory *>(cookie);
    std::free(chunk);
}

void md::dereg(uct_mem_h memh)
{
    delete static_cast<memory *>(memh);
}

void md::pack_mkey(uct_mem_h memh, void *buffer)
{
    auto *m = static_cast<memory *>(memh);
    exposed.store(true, std::memory_order_relaxed);
    packed_rkey packed{};
    packed.version = rkey_version;
    packed.flags = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? rkey_virtual : 0;
    packed.transport = transport_hash(uct_md::component.name);
    packed.carrier_length = static_cast<uint16_t>(carrier_length());
    packed.key = m->key;
    packed.base = m->base;
    memcpy(buffer, &packed, sizeof(packed));
    if (carrier) {
        memcpy(static_cast<char *>(buffer) + sizeof(packed), carrier->name().data(),
               carrier_length());
    }
    if (on_node()) {
        shared_memory_key mapping{};
        if (m->shared) {
            mapping = m->shared->key();
        } else if (m->length > 0) {
            mapping.nonce = m->exposed.expose(reinterpret_cast<char *>(m->base), m->length);
        }
        memcpy(static_cast<char *>(buffer) + sizeof(packed), &mapping, sizeof(mapping));
    }
}

uct_mem_h md::alloc(size_t *length_p, void **address_p, unsigned flags)
{
    flags |= always_;
    auto shared =
        std::make_unique<shared_memory>(*length_p, *address_p, (flags & UCT_MD_MEM_FLAG_FIXED) != 0,
                                        (flags & UCT_MD_MEM_FLAG_NONBLOCK) == 0);
    auto *m =
        static_cast<memory *>(reg(shared->address, shared->length, flags | UCT_MD_MEM_ACCESS_ALL));
    *length_p = shared->length;
    *address_p = shared->address;
    m->shared = std::move(shared);
    return m;
}

ucs_status_t component::rkey_unpack(const void *buffer, uct_rkey_bundle_t *bundle)
{
    packed_rkey packed;
    memcpy(&packed, buffer, sizeof(packed));
    // Keys have no length of their own: the caller has made sure that this one is as long as
    // ours are.
    if (packed.version != rkey_version || packed.transport != transport_hash(name) ||
        packed.carrier_length != carrier_length_.load(std::memory_order_relaxed)) {
        // Not logged: callers try the components of a peer's list in turn.
        return UCS_ERR_UNSUPPORTED;
    }
    auto unpacked = std::make_unique<rkey>();
    unpacked->key = packed.key;
    unpacked->base = packed.base;
    unpacked->offset = packed.flags & rkey_virtual ? 0 : packed.base;
    unpacked->carrier.assign(static_cast<const char *>(buffer) + sizeof(packed),
                             packed.carrier_length);
    if (core_.on_node()) {
        memcpy(&unpacked->mapping, static_cast<const char *>(buffer) + sizeof(packed),
               sizeof(unpacked->mapping));
        unpacked->local = static_cast<char *>(acquire_mapping(unpacked->mapping, packed.base));
        std::span<char> own = find_own_region(unpacked->mapping.nonce);
        if (reinterpret_cast<uint64_t>(own.data()) == packed.base) {
            unpacked->own = own;
        }
    }
    bundle->rkey = reinterpret_cast<uct_rkey_t>(unpacked.release());
    bundle->handle = nullptr;
    bundle->type = this;
    return UCS_OK;
}

ucs_status_t component::rkey_release(const uct_rkey_bundle_t *bundle)
{
    const rkey *unpacked = rkey::of(bundle->rkey);
    if (unpacked->local) {
        release_mapping(unpacked->mapping);
    }
    delete unpacked;
    return UCS_OK;
}

ucs_status_t component::rkey_ptr(const uct_rkey_bundle_t *bundle, uint64_t remote, void **address_p)
{
    const rkey *unpacked = rkey::of(bundle->rkey);
    if (!unpacked->local) {
        return UCS_ERR_UNREACHABLE; // not logged: callers ask to find out
    }
    if (remote < unpacked->base || remote - unpacked->base >= unpacked->mapping.length) {
        return UCS_ERR_INVALID_ADDR;
    }
    *address_p = unpacked->at(remote);
    return UCS_OK;
}

} // namespace uct::ofi
