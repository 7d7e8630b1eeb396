// SPDX-License-Identifier: BSD-3-Clause
//
// Lists of mappings and their views: see mem_table.h.
#include "ucp/core/mem_table.h"

#include "ucs/compiler.h"
#include "ucs/error.h"

#include <algorithm>
#include <new>
#include <sched.h>

namespace ucp {

mapping mem_list::last_not_above(const entries &in, uint64_t key) noexcept
{
    auto it = in.upper_bound(key);
    return it != in.begin() ? (--it)->second : mapping{};
}

bool mem_list::remove_last(entries &from, uint64_t key) noexcept
{
    auto it = from.upper_bound(key);
    if (it == from.begin() || (--it)->first != key) {
        return false;
    }
    from.erase(it);
    return true;
}

void mem_list::apply(entries &to, const change &c)
{
    if (c.added.mem) {
        to.emplace(c.key, c.added);
    } else {
        remove_last(to, c.key);
    }
}

// The entries have this change already.
void mem_list::note(const change &c) noexcept
{
    uint64_t now = generation_.load(std::memory_order_relaxed) + 1;
    if (changes_.size() >= std::max(entries_.size(), changes_min)) {
        changes_.clear();
        forgotten_ = now - 1;
    }
    if (ucs::guard([&] { changes_.push_back(c); }) != UCS_OK) {
        changes_.clear();
        forgotten_ = now;
    }
    generation_.store(now);
}

void mem_list::add(const mapping &m)
{
    std::lock_guard guard(mutex_);
    change c = {key_(m), m};
    apply(entries_, c);
    note(c);
}

void mem_list::remove(uint64_t key) noexcept
{
    {
        std::lock_guard guard(mutex_);
        if (!remove_last(entries_, key)) {
            return;
        }
        note({key, {}});
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

void mem_view::renew()
{
    uint64_t now = list_.generation_.load(std::memory_order_relaxed);
    if (seen_ < list_.forgotten_) {
        copy_ = list_.entries_;
        renewed_ += copy_.size();
        seen_ = now;
    }
    for (; seen_ < now; ++seen_) {
        list_.apply(copy_, list_.changes_[seen_ - list_.forgotten_]);
        ++renewed_;
    }
}

mapping mem_view::renew_and_find(uint64_t key) noexcept
{
    std::lock_guard guard(list_.mutex_);
    try {
        renew();
    } catch (const std::bad_alloc &) { // the view stays old: the next message tries again
        return list_.last_not_above(list_.entries_, key);
    }
    return list_.last_not_above(copy_, key);
}

} // namespace ucp
