// SPDX-License-Identifier: BSD-3-Clause
// The table of exposed regions.
#include "uct/ofi/core/own_regions.h"

#include "ucs/sys.h"

#include <mutex>
#include <sys/types.h>
#include <unistd.h>
#include <unordered_map>
#include <utility>

namespace uct::ofi {

namespace {

struct region {
    std::span<char> memory;
    pid_t owner;
};

struct table {
    std::mutex mutex;
    std::unordered_map<uint64_t, region> regions;

    static table &get()
    {
        static auto *all = new table; // outlives every region
        return *all;
    }
};

} // namespace

own_region::own_region(own_region &&other) noexcept : name_(std::exchange(other.name_, 0)) {}

own_region::~own_region()
{
    if (name_ != 0) {
        table &all = table::get();
        std::lock_guard guard(all.mutex);
        all.regions.erase(name_);
    }
}

uint64_t own_region::expose(char *base, size_t length)
{
    table &all = table::get();
    std::lock_guard guard(all.mutex);
    if (name_ == 0) {
        uint64_t name = ucs::random_u64();
        all.regions[name] = {{base, length}, getpid()};
        name_ = name;
    }
    return name_;
}

std::span<char> find_own_region(uint64_t name)
{
    table &all = table::get();
    std::lock_guard guard(all.mutex);
    auto found = all.regions.find(name);
    return found != all.regions.end() && found->second.owner == getpid() ? found->second.memory
                                                                         : std::span<char>();
}

} // namespace uct::ofi
