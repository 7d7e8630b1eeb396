// SPDX-License-Identifier: BSD-3-Clause
// Counters of what goes over each lane and each interface, and of caches of registered memory, for
// UCX_STATS_*. The owner of an interface asks once whether they are wanted and, if so, puts
// functions that count into its table: they cost nothing where they are not wanted. A counter has
// one writer, the thread that has the worker, and any number of readers.
#pragma once

#include "ucs/config/config.h"
#include "ucs/rcache/cache_counts.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ucs::stats {

class counter {
  public:
    void add(uint64_t n) noexcept
    {
        value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
    uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<uint64_t> value_{0};
};

struct traffic {
    void count(size_t length) noexcept
    {
        messages.add(1);
        bytes.add(length);
    }
    counter messages, bytes;
};

// What a lane carries: active messages by their ids, operations of the transport, and memory of the
// peer that this process maps.
enum flow : unsigned {
    am_flows = 32,
    put = am_flows,
    get,
    atomic,
    memory_put,
    memory_get,
    memory_atomic,
    flow_count
};

// Of one endpoint of a transport.
struct lane {
    traffic flows[flow_count];
    counter retries;  // found no room, and was tried again
    counter errors;   // any other refusal
    counter connects; // times that it was ready to send; a transport may suspend it for a fence
};

// How a protocol does what it does.
enum class way : uint8_t { message, native, emulated, memory };

// What a user of an interface calls an active message.
struct flow_name {
    const char *protocol = nullptr;
    way how = way::message;
    uint16_t header = 0; // the bytes in front of the payload
};

struct interface; // registry.h

// Whether counters are wanted. Reads UCX_STATS_* once in a process; throws ucs::error where a value
// does not parse.
bool wanted();

extern const config::table config_table; // of UCX_STATS_*

// The counters of an interface, until it closes; the first one arms the trigger.
interface *open_interface(const void *handle, const char *transport, const char *device);
traffic *received(interface *of) noexcept; // am_flows of them
// Its endpoints are closed. What was counted stays for the report.
void close_interface(interface *closed) noexcept;

// Of an endpoint. A closed one stays for the report, too, and beyond a number its sums only.
lane *open_lane(interface *owner, const void *handle);
void close_lane(const void *handle) noexcept;

// The names of the active messages: am_flows of them, which are never freed.
void name_flows(const void *interface_handle, const flow_name *names);
struct lane_name {
    std::string endpoint, peer, roles;
    std::string target; // the same for each lane of an interface to the same peer
};
// Whose lane it is. Returns its counters, or nullptr when nothing is counted.
lane *name_lane(const void *lane_handle, lane_name name);
// The connection failed: the next lane of the interface to that peer is a reconnect.
void lose_lane(const void *lane_handle) noexcept;

// The cache is asked when a report is made, by any thread, until it closes. What it counted stays
// for the report.
void open_cache(const void *cache, std::string domain, cache_counts (*ask)(const void *cache));
void close_cache(const void *cache) noexcept;

} // namespace ucs::stats
