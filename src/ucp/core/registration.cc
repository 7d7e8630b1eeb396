// SPDX-License-Identifier: BSD-3-Clause
//
// Which domains have a cache, and the way between it and UCT: see registration.h.
#include "ucp/core/registration.h"

#include "ucp/core/context.h"
#include "ucs/error.h"
#include "ucs/log.h"
#include "ucs/stats/stats.h"

#include <memory>

namespace ucp {

namespace {

// A core that keeps a list of regions takes less, one that locks pages or asks its device more.
constexpr double dear_seconds = 5e-6;

} // namespace

md_regions::md_regions(uct_md_h md, const std::string &domain, const config &values)
    : cache(*this, {.bytes = values.rcache_max_size, .regions = values.rcache_max_regions}), md_(md)
{
    if (ucs::stats::wanted()) {
        ucs::stats::open_cache(this, domain, [](const void *self) {
            return static_cast<const md_regions *>(self)->cache.counts();
        });
    }
}

md_regions::~md_regions()
{
    ucs::stats::close_cache(this);
}

void *md_regions::reg(void *address, size_t length) noexcept
{
    uct_mem_h memh = nullptr;
    ucs_status_t status = uct_md_mem_reg(
        md_, address, length, UCT_MD_MEM_ACCESS_REMOTE_GET | UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh);
    return status == UCS_OK ? memh : nullptr;
}

void md_regions::dereg(void *handle) noexcept
{
    uct_md_mem_dereg(md_, handle);
}

bool is_dear(const uct_md_attr_t &attr) noexcept
{
    return attr.cap.flags & UCT_MD_FLAG_REG && attr.reg_cost.c >= dear_seconds;
}

void open_region_caches(ucp_context *context)
{
    using ucs::config::ternary;
    const ternary enable = context->config.rcache_enable;
    for (unsigned i = 0; enable != ternary::no && i < context->mds.size(); ++i) {
        const md &m = context->mds[i];
        if (context->regions[i] || !is_dear(m.attr)) {
            continue;
        }
        std::string why = ucs::memory_watch::why_not();
        if (why.empty()) {
            context->regions[i] = std::make_unique<md_regions>(
                m.md, std::string(m.cmpt_attr.name) + "/" + m.name, context->config);
            ucs_debug("%s: registrations are cached", m.name.c_str());
            continue;
        }
        if (enable == ternary::yes) {
            throw ucs::error(UCS_ERR_UNSUPPORTED, "ucp_init: UCX_RCACHE_ENABLE=y: %s", why.c_str());
        }
        ucs_info("%s: registrations are not cached: %s", m.name.c_str(), why.c_str());
    }
}

ucs_status_t make_registration(ucp_context *context, unsigned md_index, void *buffer, size_t length,
                               unsigned access, registration *made) noexcept
{
    if (md_regions *regions = context->regions[md_index].get()) {
        made->cached = regions->cache.acquire(buffer, length);
        made->memh = made->cached ? made->cached->handle : nullptr;
        return made->cached ? UCS_OK : UCS_ERR_IO_ERROR;
    }
    made->cached = nullptr;
    return uct_md_mem_reg(context->mds[md_index].md, buffer, length,
                          access | UCT_MD_MEM_FLAG_HIDE_ERRORS, &made->memh);
}

void forget_registration(ucp_context *context, unsigned md_index, const registration &made) noexcept
{
    if (made.cached) {
        context->regions[md_index]->cache.forget(made.cached);
    }
}

void drop_registration(ucp_context *context, unsigned md_index, const registration &made) noexcept
{
    if (made.cached) {
        context->regions[md_index]->cache.release(made.cached);
    } else {
        uct_md_mem_dereg(context->mds[md_index].md, made.memh);
    }
}

} // namespace ucp
