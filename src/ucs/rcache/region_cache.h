// SPDX-License-Identifier: BSD-3-Clause
//
// Memory that stays registered after its use, so that the next use finds it. Regions do not
// overlap: one that is asked for with a piece of others takes their place. The least recently used
// idle ones are dropped when there are too many. When memory is unmapped (memory_watch.h), its
// region is not found any more, and the next call to the cache deregisters it once it is not used.
//
// A hit takes one lock and makes no system call. What cannot be watched is registered for one use.
// Any thread may call.
#pragma once

#include "ucs/list.h"
#include "ucs/rcache/cache_counts.h"
#include "ucs/rcache/memory_watch.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace ucs {

class region_cache final : private memory_watch::listener {
  public:
    // How memory is registered. Called without locks, by several threads.
    class registrar {
      public:
        virtual ~registrar() = default;
        virtual void *reg(void *address, size_t length) noexcept = 0; // nullptr: refused
        virtual void dereg(void *handle) noexcept = 0;
    };

    struct limits {
        size_t bytes = SIZE_MAX;
        size_t regions = SIZE_MAX;
    };

    struct region {
        void *handle = nullptr; // the registrar's

      private:
        friend class region_cache;
        using by_begin = std::map<uintptr_t, region *>;

        uintptr_t begin = 0;
        uintptr_t end = 0;
        unsigned uses = 1;
        bool is_single = false; // for one use, and never in the map
        bool is_listed = false; // in the map
        by_begin::node_type node;
        list_node link; // idle or gone
    };

    using counters = cache_counts;

    region_cache(registrar &how, const limits &most) : registrar_(how), limits_(most) {}
    ~region_cache(); // no region is in use
    region_cache(const region_cache &) = delete;
    region_cache &operator=(const region_cache &) = delete;

    // A region with this memory, until release(). nullptr: it cannot be registered.
    region *acquire(const void *address, size_t length) noexcept;
    void release(region *r) noexcept;
    // r, which is in use, is not found any more: it is deregistered when its last use ends.
    void forget(region *r) noexcept;

    counters counts() const noexcept;

  private:
    using region_list = list<region, &region::link>;

    // A region that is being registered, without a lock. Its memory may go meanwhile, where it is
    // more than the caller asked for.
    struct claim {
        uintptr_t begin, end;
        bool spoiled = false;
        list_node link;
    };

    void memory_gone(uintptr_t begin, uintptr_t end) noexcept override;

    region *find(uintptr_t begin, uintptr_t end) noexcept;
    region::by_begin::iterator first_overlap(uintptr_t begin) noexcept;
    void widen(claim *c) noexcept;
    bool join() noexcept;
    region *make(uintptr_t begin, uintptr_t end) noexcept;
    region *make_single(const void *address, size_t length) noexcept;
    region *make_claimed(uintptr_t begin, uintptr_t end, const claim &c, bool *watched) noexcept;
    region *add(uintptr_t begin, uintptr_t end, claim *c) noexcept;
    bool list_region(region *r, region_list *unlisted) noexcept;
    void make_room(size_t bytes, region_list *unlisted) noexcept;
    void unlist(region *r, region_list *idle_ones) noexcept;
    bool drop_idle() noexcept;
    void destroy(region_list *list) noexcept;
    void destroy(region *r) noexcept;

    registrar &registrar_;
    const limits limits_;
    std::once_flag asked_;
    bool watched_ = false;
    std::atomic<uint64_t> registrations_{0};
    std::atomic<uint64_t> single_{0};
    // Under memory_watch::lock().
    region::by_begin regions_;
    region_list idle_; // listed; the least recently used first
    region_list gone_; // idle, to be deregistered
    list<claim, &claim::link> claims_;
    size_t bytes_ = 0;
    uint64_t hits_ = 0;
    uint64_t evicted_ = 0;
    uint64_t invalidated_ = 0;
};

} // namespace ucs
