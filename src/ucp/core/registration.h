// SPDX-License-Identifier: BSD-3-Clause
//
// Registrations of users' buffers for one operation. A memory domain that says that registering is
// dear has a cache of them (ucs/rcache); of the others each operation makes its own.
#pragma once

#include "ucs/rcache/region_cache.h"

#include <uct/api/uct.h>

#include <cstdint>
#include <string>

struct ucp_context;

namespace ucp {

struct config;

struct registration {
    uct_mem_h memh = nullptr; // nullptr: none
    ucs::region_cache::region *cached = nullptr;
};

// What a domain has in its cache may be read by peers, and serves local use as well.
class md_regions final : private ucs::region_cache::registrar {
  public:
    md_regions(uct_md_h md, const std::string &domain, const config &values);
    ~md_regions() override;

    ucs::region_cache cache;

  private:
    void *reg(void *address, size_t length) noexcept override;
    void dereg(void *handle) noexcept override;

    const uct_md_h md_;
};

// Whether registrations of a domain with these attributes are worth a cache.
bool is_dear(const uct_md_attr_t &attr) noexcept;

// Gives the domains of the context their caches; throws ucs::error where UCX_RCACHE_ENABLE demands
// what cannot be.
void open_region_caches(ucp_context *context);

// access: UCT_MD_MEM_ACCESS_*, which a cache may exceed.
ucs_status_t make_registration(ucp_context *context, unsigned md_index, void *buffer, size_t length,
                               unsigned access, registration *made) noexcept;
void drop_registration(ucp_context *context, unsigned md_index, const registration &made) noexcept;
// No cache keeps it when it is dropped: the memory is not registered any more then, unless others
// use the same registration.
void forget_registration(ucp_context *context, unsigned md_index,
                         const registration &made) noexcept;

} // namespace ucp
