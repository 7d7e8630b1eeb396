// SPDX-License-Identifier: BSD-3-Clause
// Reads /proc/self/maps: see memory_map.h. A mapping without a file has the inode 0.
#include "ucs/rcache/memory_map.h"

#include <cstdio>
#include <memory>

namespace ucs {

bool widen_to_anonymous_mappings(uintptr_t *begin, uintptr_t *end)
{
    std::unique_ptr<FILE, int (*)(FILE *)> maps(fopen("/proc/self/maps", "re"), fclose);
    if (!maps) {
        return false;
    }
    uintptr_t first = 0, covered = *begin;
    for (char line[512]; covered < *end && fgets(line, sizeof(line), maps.get());) {
        uintptr_t from = 0, to = 0;
        unsigned long inode = 1;
        char rights[5] = {};
        int n = sscanf(line, "%lx-%lx %4s %*x %*x:%*x %lu", &from, &to, rights, &inode);
        if (n < 2 || to <= covered) {
            continue;
        }
        if (n != 4 || from > covered || rights[3] != 'p' || inode != 0) {
            return false;
        }
        first = first ? first : from;
        covered = to;
    }
    if (covered < *end) {
        return false;
    }
    *begin = first;
    *end = covered;
    return true;
}

} // namespace ucs
