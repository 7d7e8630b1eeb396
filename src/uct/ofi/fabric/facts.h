// SPDX-License-Identifier: BSD-3-Clause
// What each core that is used offers, and what is supplied for it, in words: for tools. See info.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace uct::ofi {

struct core_facts {
    std::string transport;
    std::string device;
    std::string provider;                                     // libfabric's name
    size_t max_message;                                       // bytes
    std::vector<std::pair<std::string, std::string>> offered; // what, how much of it
    std::vector<std::string> supplied;                        // one line each
};

// Of every device of every core, by the info that is used.
std::vector<core_facts> facts_of_cores();

} // namespace uct::ofi
