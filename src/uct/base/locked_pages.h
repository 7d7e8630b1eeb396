// SPDX-License-Identifier: BSD-3-Clause
// Pages that the kernel may not take away: UCT_MD_MEM_FLAG_LOCK.
#pragma once

#include <cstddef>

namespace uct {

// Locks do not nest in the kernel: ranges that overlap are counted here, so that the pages of one
// stay locked when the other goes.
class locked_pages {
  public:
    locked_pages() = default;
    locked_pages(void *address, size_t length); // throws ucs::error(NO_MEMORY)
    locked_pages(locked_pages &&other) noexcept;
    locked_pages &operator=(locked_pages &&other) noexcept;
    ~locked_pages();

  private:
    char *begin_ = nullptr;
    char *end_ = nullptr;
};

} // namespace uct
