// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel says of a set of this process that epoll(7) watches.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

// The descriptors that are in it, and the events that each is watched for.
inline std::vector<std::pair<int, uint32_t>> epoll_masks(int set)
{
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(set));
    std::vector<std::pair<int, uint32_t>> members;
    for (std::string word; info >> word;) {
        int member;
        uint32_t events;
        if (word == "tfd:" && info >> member >> word >> std::hex >> events >> std::dec) {
            members.emplace_back(member, events);
        }
    }
    return members;
}

// The descriptors alone.
inline std::vector<int> epoll_members(int set)
{
    std::vector<int> members;
    for (auto [member, events] : epoll_masks(set)) {
        members.push_back(member);
    }
    return members;
}
