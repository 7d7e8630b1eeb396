// SPDX-License-Identifier: BSD-3-Clause
// The records behind the counters, and what the reports are made from.
#pragma once

#include "ucs/stats/stats.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ucs::stats {

// What was counted of one protocol.
struct row {
    std::string protocol;
    way how;
    uint64_t messages, bytes, payload;
};

struct lane_report {
    unsigned id; // unique in the process; 0: a sum
    bool is_open;
    uint64_t lanes; // that are in the sum, or 1
    std::string endpoint, peer, roles;
    uint64_t retries, errors, reconnects;
    std::vector<row> sent;
};

struct interface_report {
    unsigned id; // 0: a sum
    bool is_open;
    std::string transport, device;
    std::vector<row> received;
    std::vector<lane_report> lanes;
};

struct cache_report {
    unsigned id; // 0: a sum of closed ones
    bool is_open;
    uint64_t caches; // that are in the sum, or 1
    std::string domain;
    cache_counts counts;
};

struct report {
    std::vector<interface_report> interfaces;
    std::vector<cache_report> caches;
};

std::vector<cache_report> take_caches(); // caches.cc
void add_up(std::vector<cache_report> &caches);

// A copy of all counters of the process; rows of nothing are left out.
report take_report();

// With one lane for each interface, or moreover one interface for each device and one cache for
// each domain.
report add_up(report whole, bool interfaces);

// Only rows whose protocol matches one of the patterns of a shell.
void filter(report &whole, const std::vector<std::string> &patterns);

const char *name_of(way how) noexcept;

} // namespace ucs::stats
