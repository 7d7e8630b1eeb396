// SPDX-License-Identifier: BSD-3-Clause
// How many descriptors this process holds, and may hold.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

// Without those of /proc: the helper thread reads about a peer there at any time, for a moment, and
// nothing keeps such a descriptor.
inline size_t open_files()
{
    size_t count = 0;
    DIR *all = opendir("/proc/self/fd");
    while (const dirent *entry = all ? readdir(all) : nullptr) {
        char target[64];
        ssize_t length = readlinkat(dirfd(all), entry->d_name, target, sizeof(target) - 1);
        target[length > 0 ? length : 0] = '\0';
        count += length > 0 && strncmp(target, "/proc/", 6) != 0;
    }
    if (all) {
        closedir(all);
    }
    return count;
}

// Whether this process may hold so many from now on.
inline bool may_open(rlim_t count)
{
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return false;
    }
    limit.rlim_cur = std::max(limit.rlim_cur, count);
    limit.rlim_max = std::max(limit.rlim_max, count); // root may raise it
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}
