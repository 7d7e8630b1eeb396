// SPDX-License-Identifier: BSD-3-Clause
//
// Lists of mappings and their views: see mem_table.h.
#include "ucp/mem/mem_table.h"

#include "ucs/compiler.h"

#include <algorithm>
#include <new>
#include <sched.h>

namespace ucp {

mem_list::entries::const_iterator mem_list::above(const entries &in, uint64_t key) const noexcept
{
    return std::upper_bound(in.begin(), in.end(), key,
                            [this](uint64_t k, const mapping &m) { return k < key_(m); });
}

mapping mem_list::last_not_above(const entries &in, uint64_t key) const noexcept
{
    auto it = above(in, key);
    return it != in.begin() ? *--it : mapping{};
}

void mem_list::add(const mapping &m)
{
    std::lock_guard guard(mutex_);
    entries_.insert(above(entries_, key_(m)), m);
    generation_.fetch_add(1, std::memory_order_release);
}

void mem_list::remove(uint64_t key) noexcept
{
    {
        std::lock_guard guard(mutex_);
        auto it = above(entries_, key);
        if (it == entries_.begin() || key_(*--it) != key) {
            return;
        }
        entries_.erase(it);
        generation_.fetch_add(1);
    }
    await_accesses();
}

// An access lasts as long as one message is copied.
void mem_list::await_accesses() noexcept
{
    std::lock_guard guard(views_mutex_);
    for (const mem_view *view : views_) {
        uint64_t now = view->accesses_.load();
        while (now % 2 != 0 && view->accesses_.load(std::memory_order_acquire) == now) {
            sched_yield();
        }
    }
}

mem_view::mem_view(mem_list &list) : list_(list)
{
    std::lock_guard guard(list_.views_mutex_);
    list_.views_.push_back(this);
}

mem_view::~mem_view()
{
    std::lock_guard guard(list_.views_mutex_);
    std::erase(list_.views_, this);
}

mapping mem_view::find(uint64_t key) noexcept
{
    if (UCS_UNLIKELY(list_.generation_.load() != seen_)) {
        return renew_and_find(key);
    }
    return list_.last_not_above(copy_, key);
}

mapping mem_view::renew_and_find(uint64_t key) noexcept
{
    std::lock_guard guard(list_.mutex_);
    try {
        copy_ = list_.entries_;
        seen_ = list_.generation_.load(std::memory_order_relaxed);
    } catch (const std::bad_alloc &) { // the view stays old: the next message tries again
        return list_.last_not_above(list_.entries_, key);
    }
    return list_.last_not_above(copy_, key);
}

} // namespace ucp
