// SPDX-License-Identifier: BSD-3-Clause
// mlock() with a list of what is locked.
#include "uct/base/locked_pages.h"

#include "ucs/error.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <utility>
#include <vector>

namespace uct {

namespace {

struct locked_list {
    std::mutex mutex;
    std::vector<std::pair<char *, char *>> ranges;

    static locked_list &get()
    {
        static auto *all = new locked_list; // outlives every domain
        return *all;
    }
};

} // namespace

locked_pages::locked_pages(void *address, size_t length)
{
    auto first = reinterpret_cast<uintptr_t>(address) & ~(ucs::page_size() - 1);
    locked_list &all = locked_list::get();
    std::lock_guard guard(all.mutex);
    if (mlock(reinterpret_cast<char *>(first),
              length + reinterpret_cast<uintptr_t>(address) - first) != 0) {
        throw ucs::error(UCS_ERR_NO_MEMORY, "cannot lock %zu bytes at %p in memory: %s", length,
                         address, strerror(errno));
    }
    begin_ = reinterpret_cast<char *>(first);
    end_ = static_cast<char *>(address) + length;
    all.ranges.emplace_back(begin_, end_);
}

locked_pages::locked_pages(locked_pages &&other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), end_(std::exchange(other.end_, nullptr))
{
}

locked_pages &locked_pages::operator=(locked_pages &&other) noexcept
{
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    return *this;
}

locked_pages::~locked_pages()
{
    if (!begin_) {
        return;
    }
    locked_list &all = locked_list::get();
    std::lock_guard guard(all.mutex);
    all.ranges.erase(std::find(all.ranges.begin(), all.ranges.end(), std::pair(begin_, end_)));
    munlock(begin_, static_cast<size_t>(end_ - begin_));
    for (const auto &[begin, end] : all.ranges) {
        if (begin < end_ && begin_ < end) {
            mlock(begin, static_cast<size_t>(end - begin)); // they were, so they can be
        }
    }
}

} // namespace uct
