// SPDX-License-Identifier: BSD-3-Clause
// The memory of this process that others may have keys of. A key that comes back to its own process
// is recognised by this table, not by what the key says of its process: only what was registered
// here is reached at its own address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uct::ofi {

// An entry of the table, once it was exposed.
class own_region {
  public:
    own_region() = default;
    own_region(own_region &&other) noexcept;
    ~own_region();

    // The region's name, which is random and does not change. Any thread.
    uint64_t expose(char *base, size_t length);

  private:
    uint64_t name_ = 0; // 0: not in the table
};

// The region of that name in this process; empty: there is none, though the process that this one
// was forked from may have it.
std::span<char> find_own_region(uint64_t name);

} // namespace uct::ofi
