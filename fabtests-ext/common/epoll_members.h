// SPDX-License-Identifier: BSD-3-Clause
//
// What the kernel says of a set of this process that epoll(7) watches.
#pragma once

#include <fstream>
#include <string>
#include <vector>

// The descriptors that are in it.
inline std::vector<int> epoll_members(int set)
{
    std::ifstream info("/proc/self/fdinfo/" + std::to_string(set));
    std::vector<int> members;
    for (std::string word; info >> word;) {
        int member;
        if (word == "tfd:" && info >> member) {
            members.push_back(member);
        }
    }
    return members;
}
