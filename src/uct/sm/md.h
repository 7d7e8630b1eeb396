// SPDX-License-Identifier: BSD-3-Clause
// The memory domain of `sm`. Any memory can be registered: a key is a random number in a table of
// this domain, against which the requests of peers are checked. Memory that the domain allocates is
// a memfd that peers map.
#pragma once

#include "uct/base/component.h"
#include "uct/base/locked_pages.h"
#include "uct/base/md.h"
#include "uct/shared/shared_memory.h"

#include <memory>
#include <mutex>
#include <unordered_map>

namespace uct::sm {

// What a uct_mem_h of this domain points to.
struct region {
    std::span<char> memory;
    uint64_t key;
    locked_pages locked;                   // UCT_MD_MEM_FLAG_LOCK
    std::unique_ptr<shared_memory> shared; // allocated by the domain
};

// A packed key, little endian:
//   0      8    16    24      32
//   magic  key  base  length  shared_memory_key, whose pid is 0 for memory that is not ours
struct packed_rkey {
    uint64_t magic;
    uint64_t key;
    uint64_t base;
    uint64_t length;
    shared_memory_key mapping;
};
static_assert(sizeof(packed_rkey) == 72);
constexpr uint64_t rkey_magic = 0x31206d7320636375; // "ucc sm 1": the last digit is the version

// What a uct_rkey_t of ours points to.
struct rkey {
    uint64_t key;
    uint64_t base;
    uint64_t length;
    char *local; // where it is mapped here, or nullptr
    shared_memory_key mapping;

    bool covers(uint64_t remote, size_t size) const
    {
        return remote - base <= length && size <= length - (remote - base);
    }
    // Where a range is here; nullptr when it is not mapped here, or not the whole of it.
    char *mapped(uint64_t remote, size_t size) const
    {
        return local && covers(remote, size) ? local + (remote - base) : nullptr;
    }

    static const rkey *of(uct_rkey_t handle) { return reinterpret_cast<const rkey *>(handle); }
};

class md final : public uct_md {
  public:
    md(uct_component &component, const uct_md_config &config);

    void query(uct_md_attr_t *attr) override;
    std::vector<uct_tl_resource_desc_t> tl_resources() override;
    uct_iface *open_iface(uct_worker *worker, const uct_iface_params_t &params,
                          const uct_iface_config &config) override;
    uct_mem_h reg(void *address, size_t length, unsigned flags) override;
    void dereg(uct_mem_h memh) override;
    void pack_mkey(uct_mem_h memh, void *buffer) override;
    std::span<char> memory_of(uct_mem_h memh) const override;
    uct_mem_h alloc(size_t *length_p, void **address_p, unsigned flags) override;
    void free(uct_mem_h memh) override { dereg(memh); }

    // A range of registered memory, which stays registered while `use` runs. False: the key does
    // not cover it.
    template <class Use>
    bool with_memory(uint64_t key, uint64_t address, size_t length, Use &&use)
    {
        std::lock_guard guard(mutex_);
        auto found = regions_.find(key);
        if (found == regions_.end() || !covers(*found->second, address, length)) {
            return false;
        }
        use(reinterpret_cast<char *>(address));
        return true;
    }

  private:
    static bool covers(const region &r, uint64_t address, size_t length);
    region *add(std::unique_ptr<region> r);

    std::mutex mutex_;
    std::unordered_map<uint64_t, region *> regions_; // by key
    uint64_t next_key_;
    const unsigned always_; // UCT_MD_MEM_FLAG_* of every allocation
};

} // namespace uct::sm
