// SPDX-License-Identifier: BSD-3-Clause
// The interfaces of this process, by which peers in it hear of each other's end.
#pragma once

#include "uct/ofi/core/address.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <unistd.h>
#include <vector>

namespace uct::ofi {

struct peer;

// The open interfaces of this process, with the peers that stand for them on others of its
// interfaces, possibly of other threads.
struct local_interfaces {
    std::mutex mutex;
    struct entry {
        pid_t process; // a forked one has the table, and not the interfaces
        std::vector<peer *> watchers;
    };
    std::map<uint64_t, entry> by_id; // of the interface

    // With the mutex held; nullptr: it is not of this process.
    entry *find(uint64_t id)
    {
        auto found = by_id.find(id);
        return found != by_id.end() && found->second.process == getpid() ? &found->second : nullptr;
    }

    static local_interfaces &get()
    {
        static auto *all = new local_interfaces; // outlives every interface
        return *all;
    }
};

} // namespace uct::ofi
