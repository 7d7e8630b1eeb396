// SPDX-License-Identifier: BSD-3-Clause
// The table of mappings of this process.
#include "uct/shared/mappings.h"

#include "uct/shared/mapping_table.h"

namespace uct {

namespace {

mapping_table<shared_memory_key> &table()
{
    static auto *all = new mapping_table<shared_memory_key>; // outlives every key
    return *all;
}

} // namespace

void *acquire_mapping(const shared_memory_key &key, uint64_t hint)
{
    return key.pid == 0 ? nullptr : table().acquire(key, hint);
}

void release_mapping(const shared_memory_key &key) noexcept
{
    table().release(key);
}

} // namespace uct
