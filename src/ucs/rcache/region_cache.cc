// SPDX-License-Identifier: BSD-3-Clause
//
// See region_cache.h. Nothing is allocated or freed under the lock: a region brings its node of the
// map, and takes it along when it leaves.
#include "ucs/rcache/region_cache.h"

#include "ucs/compiler.h"
#include "ucs/log.h"
#include "ucs/sys.h"

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

namespace ucs {

region_cache::~region_cache()
{
    if (watched_) {
        memory_watch::leave(this);
    }
    while (region *r = idle_.pop_front()) {
        destroy(r);
    }
    destroy(&gone_);
}

region_cache::counters region_cache::counts() const noexcept
{
    std::unique_lock guard(memory_watch::lock(), std::defer_lock);
    if (!memory_watch::is_lost()) {
        guard.lock();
    }
    return {hits_, registrations_, single_, evicted_, invalidated_, regions_.size(), bytes_};
}

// ---- under the lock

region_cache::region::by_begin::iterator region_cache::first_overlap(uintptr_t begin) noexcept
{
    auto at = regions_.upper_bound(begin);
    if (at != regions_.begin() && std::prev(at)->second->end > begin) {
        --at;
    }
    return at;
}

region_cache::region *region_cache::find(uintptr_t begin, uintptr_t end) noexcept
{
    auto at = first_overlap(begin);
    if (at == regions_.end() || at->second->begin > begin || at->second->end < end) {
        return nullptr;
    }
    region *r = at->second;
    if (r->uses++ == 0) {
        idle_.erase(r);
    }
    ++hits_;
    return r;
}

void region_cache::unlist(region *r, region_list *idle_ones) noexcept
{
    r->node = regions_.extract(r->begin);
    r->is_listed = false;
    bytes_ -= r->end - r->begin;
    if (r->uses == 0) {
        idle_.erase(r);
        idle_ones->push_back(r);
    }
}

void region_cache::memory_gone(uintptr_t begin, uintptr_t end) noexcept
{
    for (auto at = first_overlap(begin); at != regions_.end() && at->first < end;) {
        region *r = (at++)->second;
        unlist(r, &gone_);
        ++invalidated_;
    }
    for (claim *c : claims_) {
        c->spoiled = c->spoiled || (c->begin < end && begin < c->end);
    }
}

// To what the regions that it overlaps have, if that is not too much.
void region_cache::widen(claim *c) noexcept
{
    uintptr_t begin = c->begin, end = c->end;
    for (auto at = first_overlap(begin); at != regions_.end() && at->first < c->end; ++at) {
        begin = std::min(begin, at->second->begin);
        end = std::max(end, at->second->end);
    }
    if (end - begin <= limits_.bytes) {
        c->begin = begin;
        c->end = end;
    }
}

void region_cache::make_room(size_t bytes, region_list *unlisted) noexcept
{
    while (!idle_.empty() &&
           (bytes > limits_.bytes - bytes_ || regions_.size() >= limits_.regions)) {
        unlist(idle_.front(), unlisted);
        ++evicted_;
    }
}

// If there is room; returns whether there is.
bool region_cache::list_region(region *r, region_list *unlisted) noexcept
{
    for (auto at = first_overlap(r->begin); at != regions_.end() && at->first < r->end;) {
        region *other = (at++)->second;
        unlist(other, unlisted);
    }
    size_t bytes = r->end - r->begin;
    make_room(bytes, unlisted);
    r->is_listed = bytes <= limits_.bytes - bytes_ && regions_.size() < limits_.regions;
    if (r->is_listed) {
        regions_.insert(std::move(r->node));
        bytes_ += bytes;
    }
    return r->is_listed;
}

// ---- without the lock

void region_cache::destroy(region *r) noexcept
{
    registrar_.dereg(r->handle);
    delete r;
}

void region_cache::destroy(region_list *list) noexcept
{
    while (region *r = list->pop_front()) {
        destroy(r);
    }
}

// With the first use, because the watch has a thread.
bool region_cache::join() noexcept
{
    std::call_once(asked_, [this]() noexcept {
        try {
            watched_ = memory_watch::join(this);
        } catch (const std::bad_alloc &) {
            watched_ = false;
        }
    });
    return watched_ && !memory_watch::is_lost();
}

region_cache::region *region_cache::make(uintptr_t begin, uintptr_t end) noexcept
{
    std::unique_ptr<region> r;
    try {
        region::by_begin one;
        r = std::make_unique<region>();
        one.emplace(begin, r.get());
        r->node = one.extract(one.begin());
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
    r->begin = begin;
    r->end = end;
    r->handle = registrar_.reg(reinterpret_cast<void *>(begin), end - begin);
    if (!r->handle) {
        return nullptr;
    }
    registrations_.fetch_add(1, std::memory_order_relaxed);
    return r.release();
}

// Gives idle registrations back; false: there were none.
bool region_cache::drop_idle() noexcept
{
    region_list dropped;
    {
        std::lock_guard guard(memory_watch::lock());
        while (!idle_.empty()) {
            unlist(idle_.front(), &dropped);
            ++evicted_;
        }
        dropped.splice_back(gone_);
    }
    bool any = !dropped.empty();
    destroy(&dropped);
    return any;
}

region_cache::region *region_cache::make_single(const void *address, size_t length) noexcept
{
    auto begin = reinterpret_cast<uintptr_t>(address);
    region *r = make(begin, begin + length);
    if (!r && !memory_watch::is_lost() && drop_idle()) {
        r = make(begin, begin + length);
    }
    if (r) {
        r->is_single = true;
        single_.fetch_add(1, std::memory_order_relaxed);
    }
    return r;
}

// All that is claimed, else what the caller needs of it.
region_cache::region *region_cache::make_claimed(uintptr_t begin, uintptr_t end, const claim &c,
                                                 bool *watched) noexcept
{
    *watched = memory_watch::cover(c.begin, c.end);
    region *r = *watched ? make(c.begin, c.end) : nullptr;
    if (!r) {
        *watched = memory_watch::cover(begin, end);
        r = make(begin, end);
    }
    return r || !drop_idle() ? r : make(begin, end);
}

region_cache::region *region_cache::add(uintptr_t begin, uintptr_t end, claim *c) noexcept
{
    bool watched = false, is_listed = false;
    region *r = make_claimed(begin, end, *c, &watched);
    region_list unused;
    {
        std::lock_guard guard(memory_watch::lock());
        claims_.erase(c);
        if (r && watched && !c->spoiled) {
            is_listed = list_region(r, &unused);
        }
        unused.splice_back(gone_);
    }
    destroy(&unused);
    if (r && !is_listed) {
        single_.fetch_add(1, std::memory_order_relaxed);
    }
    return r;
}

region_cache::region *region_cache::acquire(const void *address, size_t length) noexcept
{
    const uintptr_t page = page_size();
    const uintptr_t begin = reinterpret_cast<uintptr_t>(address) & ~(page - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(address) + length + page - 1) & ~(page - 1);
    if (UCS_UNLIKELY(!join() || end - begin > limits_.bytes || limits_.regions == 0)) {
        return make_single(address, length);
    }
    claim c{begin, end, false, {}};
    {
        std::lock_guard guard(memory_watch::lock());
        if (region *r = find(begin, end)) {
            return r;
        }
        widen(&c);
        claims_.push_back(&c);
    }
    return add(begin, end, &c);
}

void region_cache::forget(region *r) noexcept
{
    if (r->is_single || memory_watch::is_lost()) {
        return;
    }
    std::lock_guard guard(memory_watch::lock());
    if (r->is_listed) {
        unlist(r, &gone_);
    }
}

void region_cache::release(region *r) noexcept
{
    if (r->is_single) {
        destroy(r);
        return;
    }
    if (memory_watch::is_lost()) {
        return; // the parent has it
    }
    region_list unused;
    {
        std::lock_guard guard(memory_watch::lock());
        if (--r->uses == 0) {
            (r->is_listed ? idle_ : unused).push_back(r);
        }
        unused.splice_back(gone_);
    }
    destroy(&unused);
}

} // namespace ucs
