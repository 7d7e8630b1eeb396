// SPDX-License-Identifier: BSD-3-Clause
// Records of caches of registered memory: see stats.h.
#include "ucs/error.h"
#include "ucs/stats/registry.h"
#include "ucs/stats/trigger.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <unistd.h>
#include <utility>

namespace ucs::stats {
namespace {

struct open_record {
    const void *cache;
    unsigned id;
    std::string domain;
    cache_counts (*ask)(const void *);
};

struct cache_registry {
    std::mutex mutex;
    pid_t process = 0;
    unsigned last_id = 0;
    std::vector<open_record> open;
    std::vector<cache_report> closed; // one for each domain
};

cache_registry &all_caches()
{
    // Never destroyed: caches may outlive static destruction.
    static cache_registry &r = *new cache_registry;
    return r;
}

void add(cache_report &to, const cache_report &from)
{
    to.is_open |= from.is_open;
    to.caches += from.caches;
    to.counts.hits += from.counts.hits;
    to.counts.registrations += from.counts.registrations;
    to.counts.single += from.counts.single;
    to.counts.evicted += from.counts.evicted;
    to.counts.gone += from.counts.gone;
    to.counts.regions += from.counts.regions;
    to.counts.bytes += from.counts.bytes;
}

// To that of its domain in the list, or as the first one.
void add(std::vector<cache_report> &to, cache_report from)
{
    auto same = std::find_if(to.begin(), to.end(),
                             [&](const cache_report &c) { return c.domain == from.domain; });
    if (same == to.end()) {
        from.id = 0;
        to.push_back(std::move(from));
    } else {
        add(*same, from);
    }
}

} // namespace

void open_cache(const void *cache, std::string domain, cache_counts (*ask)(const void *))
{
    cache_registry &r = all_caches();
    {
        std::lock_guard lock(r.mutex);
        if (r.process != getpid()) { // after a fork the records are those of the parent
            r.open.clear();
            r.closed.clear();
            r.process = getpid();
        }
        r.open.push_back({cache, ++r.last_id, std::move(domain), ask});
    }
    arm_trigger();
}

void close_cache(const void *cache) noexcept
{
    cache_registry &r = all_caches();
    std::lock_guard lock(r.mutex);
    auto found = std::find_if(r.open.begin(), r.open.end(),
                              [&](const open_record &o) { return o.cache == cache; });
    if (found == r.open.end()) {
        return; // of the parent
    }
    cache_report last = {0, false, 1, std::move(found->domain), found->ask(cache)};
    r.open.erase(found);
    last.counts.regions = last.counts.bytes = 0;
    (void)guard([&] { add(r.closed, std::move(last)); });
}

std::vector<cache_report> take_caches()
{
    cache_registry &r = all_caches();
    std::lock_guard lock(r.mutex);
    if (r.process != getpid()) {
        return {};
    }
    std::vector<cache_report> list;
    for (const open_record &o : r.open) {
        list.push_back({o.id, true, 1, o.domain, o.ask(o.cache)});
    }
    list.insert(list.end(), r.closed.begin(), r.closed.end());
    return list;
}

void add_up(std::vector<cache_report> &caches)
{
    for (cache_report &c : std::exchange(caches, {})) {
        add(caches, std::move(c));
    }
}

} // namespace ucs::stats
