// SPDX-License-Identifier: BSD-3-Clause
// What an epoll descriptor of another library watches, as the kernel tells.
#pragma once

#include <cstdint>
#include <vector>

namespace ucs {

struct epoll_member {
    int fd;
    unsigned events;
    uint64_t data; // by which its owner knows it
};

// None for a descriptor that is no epoll set.
std::vector<epoll_member> members_of(int set);

// What to watch in the place of a set. From libfabric 1.18 on, tcp's queues wait on sets of sets.
// The kernel allows five levels, and above it are the worker's, its caller's and perhaps one more:
// such a set gives what is in it, which does not change. One that has sockets in it, which come and
// go, and what is no set, give themselves.
std::vector<int> without_a_level(int set);

} // namespace ucs
