// SPDX-License-Identifier: BSD-3-Clause
// The memory domain of a device of a core provider: one fi_domain. Memory is registered where the
// provider needs it for local use, and always for remote access, because the key names it there.
#pragma once

#include "uct/base/locked_pages.h"
#include "uct/base/md.h"
#include "uct/ofi/core/own_regions.h"
#include "uct/ofi/core/region_target.h"
#include "uct/ofi/fabric/admission.h"
#include "uct/ofi/fabric/info.h"
#include "uct/shared/shared_memory.h"

#include <atomic>
#include <string>

namespace uct::ofi {

// What a uct_mem_h of this domain points to.
struct memory {
    memory() = default;
    memory(memory &&) = default;
    ~memory()
    {
        if (mr && carrier) {
            carrier->close(std::move(mr));
        }
        mr.reset();
    }

    fid_ptr<fid_mr> mr;               // empty for memory of length 0
    region_target *carrier = nullptr; // what it is bound to
    void *desc = nullptr;
    uint64_t key = 0;
    uint64_t base = 0; // address of the first byte
    size_t length = 0;
    std::unique_ptr<shared_memory> shared; // allocated by the domain; goes after mr
    own_region exposed;                    // on-node, when it is not shared
    locked_pages locked;                   // UCT_MD_MEM_FLAG_LOCK
};

// A packed remote key, little endian:
//   0       1       2         4          8          16         24
//   version flags   transport carrier 2  key        base
//                             reserved 2
// flags bit 0: the provider addresses by virtual address, not by offset. transport: hash of the
// component's name, so that a foreign key is refused. carrier: bytes of the address of the endpoint
// that carries the region (region_target.h), which follows; 0: every endpoint does. A key of shm
// goes on with shared_memory_key, whose nonce is the name of an own_region where there is no shared
// memory.
struct packed_rkey {
    uint8_t version;
    uint8_t flags;
    uint16_t transport;
    uint16_t carrier_length;
    uint16_t reserved;
    uint64_t key;
    uint64_t base;
};
static_assert(sizeof(packed_rkey) == 24);

// What a uct_rkey_t of ours points to.
struct rkey {
    uint64_t key;
    uint64_t offset; // subtracted from a remote address
    uint64_t base;   // the memory's first address at its owner
    char *local;     // where it is mapped here, or nullptr
    shared_memory_key mapping;
    std::span<char> own; // memory of this process; empty: it is not
    std::string carrier; // address of the endpoint that carries it; empty: every one of its owner

    // Where a remote address is here; only with local.
    char *at(uint64_t remote) const { return local + (remote - base); }
    // The same of a range; nullptr when it is not mapped here, or not the whole of it.
    char *mapped(uint64_t remote, size_t length) const
    {
        uint64_t from = remote - base;
        return local && from <= mapping.length && length <= mapping.length - from ? local + from
                                                                                  : nullptr;
    }

    // The same of memory of this process.
    char *owned(uint64_t remote, size_t length) const
    {
        uint64_t from = remote - base;
        return from <= own.size() && length <= own.size() - from ? own.data() + from : nullptr;
    }

    static const rkey *of(uct_rkey_t handle) { return reinterpret_cast<const rkey *>(handle); }
};

class component;

class md final : public uct_md {
  public:
    md(ofi::component &owner, const core &c, const device &d, const uct_md_config &config);

    void query(uct_md_attr_t *attr) override;
    std::vector<uct_tl_resource_desc_t> tl_resources() override;
    uct_iface *open_iface(uct_worker *worker, const uct_iface_params_t &params,
                          const uct_iface_config &config) override;
    uct_mem_h reg(void *address, size_t length, unsigned flags) override;
    void dereg(uct_mem_h memh) override;
    void pack_mkey(uct_mem_h memh, void *buffer) override;
    std::span<char> memory_of(uct_mem_h memh) const override;
    bool is_sockaddr_accessible(const sockaddr *address,
                                uct_sockaddr_accessibility_t way) const override;
    uct_mem_h alloc(size_t *length_p, void **address_p, unsigned flags) override;
    void free(uct_mem_h memh) override { dereg(memh); }

    ucs_sys_device_t sys_device() const;
    bool on_node() const { return provider.on_node(); }
    bool has_wait_fd() const { return provider.has_wait_fd(); }

    // Registration for our own buffers; desc nullptr and no mr where local use needs none.
    memory reg_local(void *address, size_t length);

    const core &provider;
    const device &dev;
    const admission admitted;
    const info_ptr info; // first address; caps cut down to what we use
    // Shared with endpoints that outlive their interface (rdm_iface.h).
    const std::shared_ptr<fid_fabric> fabric;
    const std::shared_ptr<fid_domain> domain;
    const bool needs_local;                       // FI_MR_LOCAL
    const std::unique_ptr<region_target> carrier; // FI_MR_ENDPOINT
    std::atomic<bool> exposed = false;            // a peer may have a key

  private:
    uint64_t wanted_key();
    memory do_reg(void *address, size_t length, uint64_t access);
    size_t carrier_length() const { return carrier ? carrier->name().size() : 0; }

    std::atomic<uint64_t> next_key_ = 1;
    const unsigned always_; // UCT_MD_MEM_FLAG_* of every allocation
};

uint16_t transport_hash(const std::string &name);

// A pool's memory, registered where the domain needs that; domain nullptr: it is not.
void *alloc_registered(md *domain, size_t size, size_t align, void **cookie);
void free_registered(void *arg, void *chunk, size_t size, void *cookie);

} // namespace uct::ofi
