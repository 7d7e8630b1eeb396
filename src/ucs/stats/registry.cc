// SPDX-License-Identifier: BSD-3-Clause
// Records of interfaces and lanes: see stats.h and registry.h.
#include "ucs/stats/registry.h"

#include "ucs/error.h"
#include "ucs/stats/trigger.h"

#include <algorithm>
#include <fnmatch.h>
#include <list>
#include <memory>
#include <mutex>
#include <unistd.h>
#include <unordered_map>

namespace ucs::stats {
namespace {

// Closed lanes of an interface, and closed interfaces, that are told one by one; and its peers that
// were lost and have not come back.
constexpr size_t most_closed_lanes = 1000;
constexpr size_t most_lost_peers = 1000;
constexpr size_t most_closed_interfaces = 100;

constexpr flow_name operation_names[] = {{"put", way::native},    {"get", way::native},
                                         {"atomic", way::native}, {"put", way::memory},
                                         {"get", way::memory},    {"atomic", way::memory}};
static_assert(am_flows + std::size(operation_names) == flow_count);

} // namespace

struct lane_record {
    lane counters;
    unsigned id = 0;
    const void *handle = nullptr; // nullptr: closed
    interface *owner = nullptr;
    bool replaces_lost = false; // one to the same peer
    lane_name name;
};

struct interface {
    unsigned id = 0;
    const void *handle = nullptr; // nullptr: closed
    std::string transport, device;
    const flow_name *names = nullptr;
    traffic received[am_flows];
    std::list<lane_record> lanes;
    size_t closed = 0;
    lane earlier; // the sums of those that are forgotten
    uint64_t earlier_count = 0, earlier_reconnects = 0;
    std::unordered_map<std::string, size_t> lost; // lanes, by their targets
};

namespace {

struct registry {
    std::mutex mutex;
    pid_t process = 0;
    unsigned last_id = 0;
    std::list<std::unique_ptr<interface>> interfaces;
    std::unordered_map<const void *, lane_record *> lanes;
};

registry &all()
{
    // Never destroyed: interfaces may outlive static destruction.
    static registry &r = *new registry;
    return r;
}

void add(traffic &to, const traffic &from)
{
    to.messages.add(from.messages.value());
    to.bytes.add(from.bytes.value());
}

void add(lane &to, const lane &from)
{
    for (unsigned i = 0; i < flow_count; ++i) {
        add(to.flows[i], from.flows[i]);
    }
    to.retries.add(from.retries.value());
    to.errors.add(from.errors.value());
}

// A lane that never came up has reconnected nothing.
uint64_t reconnects_of(const lane_record &l)
{
    return l.replaces_lost && l.counters.connects.value() > 0;
}

void forget_lane(interface &i, std::list<lane_record>::iterator which)
{
    add(i.earlier, which->counters);
    i.earlier_reconnects += reconnects_of(*which);
    ++i.earlier_count;
    i.lanes.erase(which);
}

void forget_oldest_lane(interface &i)
{
    for (auto it = i.lanes.begin(); it != i.lanes.end(); ++it) {
        if (!it->handle) {
            --i.closed;
            return forget_lane(i, it);
        }
    }
}

// The closed interface becomes part of an older closed one of the same device, if there is one.
void merge_closed(registry &r, interface &closed)
{
    for (auto &older : r.interfaces) {
        if (older.get() != &closed && !older->handle && older->transport == closed.transport &&
            older->device == closed.device && older->names == closed.names) {
            while (!closed.lanes.empty()) {
                r.lanes.erase(closed.lanes.front().handle);
                forget_lane(closed, closed.lanes.begin());
            }
            add(older->earlier, closed.earlier);
            older->earlier_count += closed.earlier_count;
            older->earlier_reconnects += closed.earlier_reconnects;
            for (unsigned i = 0; i < am_flows; ++i) {
                add(older->received[i], closed.received[i]);
            }
            r.interfaces.remove_if([&](const auto &i) { return i.get() == &closed; });
            return;
        }
    }
}

flow_name flow_of(const interface &i, unsigned flow)
{
    if (flow >= am_flows) {
        return operation_names[flow - am_flows];
    }
    return i.names ? i.names[flow] : flow_name{};
}

std::vector<row> rows_of(const interface &i, const traffic *counted, unsigned count)
{
    std::vector<row> rows;
    for (unsigned flow = 0; flow < count; ++flow) {
        uint64_t messages = counted[flow].messages.value(), bytes = counted[flow].bytes.value();
        if (messages == 0) {
            continue;
        }
        flow_name name = flow_of(i, flow);
        uint64_t headers = messages * name.header;
        rows.push_back({name.protocol ? name.protocol : "am id " + std::to_string(flow), name.how,
                        messages, bytes, bytes > headers ? bytes - headers : 0});
    }
    return rows;
}

lane_report report_of(const interface &i, const lane_record &l)
{
    const lane &c = l.counters;
    return {l.id,
            l.handle != nullptr,
            1,
            l.name.endpoint,
            l.name.peer,
            l.name.roles,
            c.retries.value(),
            c.errors.value(),
            reconnects_of(l),
            rows_of(i, c.flows, flow_count)};
}

void add(std::vector<row> &to, const std::vector<row> &from)
{
    for (const row &r : from) {
        auto same = std::find_if(to.begin(), to.end(), [&](const row &t) {
            return t.protocol == r.protocol && t.how == r.how;
        });
        if (same == to.end()) {
            to.push_back(r);
        } else {
            same->messages += r.messages;
            same->bytes += r.bytes;
            same->payload += r.payload;
        }
    }
}

void add(lane_report &to, const lane_report &from)
{
    to.is_open |= from.is_open;
    to.lanes += from.lanes;
    to.retries += from.retries;
    to.errors += from.errors;
    to.reconnects += from.reconnects;
    add(to.sent, from.sent);
}

} // namespace

interface *open_interface(const void *handle, const char *transport, const char *device)
{
    registry &r = all();
    interface *opened;
    {
        std::lock_guard lock(r.mutex);
        if (r.process != getpid()) {
            // After a fork the records are those of the parent. The interfaces that the child has
            // inherited may still point to them.
            for (auto &inherited : r.interfaces) {
                (void)inherited.release();
            }
            r.interfaces.clear();
            r.lanes.clear();
            r.process = getpid();
        }
        r.interfaces.push_back(std::make_unique<interface>());
        opened = r.interfaces.back().get();
        opened->id = ++r.last_id;
        opened->handle = handle;
        opened->transport = transport;
        opened->device = device;
    }
    arm_trigger();
    return opened;
}

traffic *received(interface *of) noexcept
{
    return of->received;
}

void close_interface(interface *closed) noexcept
{
    registry &r = all();
    std::lock_guard lock(r.mutex);
    closed->handle = nullptr;
    size_t count = 0;
    for (const auto &i : r.interfaces) {
        count += !i->handle;
    }
    if (count > most_closed_interfaces) {
        merge_closed(r, *closed);
    }
}

lane *open_lane(interface *owner, const void *handle)
{
    registry &r = all();
    std::lock_guard lock(r.mutex);
    lane_record &record = owner->lanes.emplace_back();
    record.id = ++r.last_id;
    record.handle = handle;
    record.owner = owner;
    r.lanes[handle] = &record;
    return &record.counters;
}

void close_lane(const void *handle) noexcept
{
    registry &r = all();
    std::lock_guard lock(r.mutex);
    auto it = r.lanes.find(handle);
    if (it == r.lanes.end()) {
        return; // of the parent
    }
    lane_record &record = *it->second;
    r.lanes.erase(it);
    record.handle = nullptr;
    if (++record.owner->closed > most_closed_lanes) {
        forget_oldest_lane(*record.owner);
    }
}

void name_flows(const void *interface_handle, const flow_name *names)
{
    registry &r = all();
    std::lock_guard lock(r.mutex);
    for (auto &i : r.interfaces) {
        if (i->handle == interface_handle) {
            i->names = names;
        }
    }
}

lane *name_lane(const void *lane_handle, lane_name name)
{
    registry &r = all();
    std::lock_guard lock(r.mutex);
    auto it = r.lanes.find(lane_handle);
    if (it == r.lanes.end()) {
        return nullptr;
    }
    lane_record &record = *it->second;
    record.name = std::move(name);
    auto &lost = record.owner->lost;
    if (auto before = lost.find(record.name.target); before != lost.end()) {
        record.replaces_lost = true;
        if (--before->second == 0) {
            lost.erase(before);
        }
    }
    return &record.counters;
}

void lose_lane(const void *lane_handle) noexcept
{
    registry &r = all();
    std::lock_guard lock(r.mutex);
    auto it = r.lanes.find(lane_handle);
    if (it == r.lanes.end()) {
        return;
    }
    lane_record &record = *it->second;
    auto &lost = record.owner->lost;
    if (lost.size() < most_lost_peers || lost.contains(record.name.target)) {
        (void)guard([&] { ++lost[record.name.target]; });
    }
}

report take_report()
{
    registry &r = all();
    report whole;
    whole.caches = take_caches();
    std::lock_guard lock(r.mutex);
    if (r.process != getpid()) {
        return whole;
    }
    for (const auto &i : r.interfaces) {
        interface_report told = {i->id,
                                 i->handle != nullptr,
                                 i->transport,
                                 i->device,
                                 rows_of(*i, i->received, am_flows),
                                 {}};
        for (const lane_record &l : i->lanes) {
            told.lanes.push_back(report_of(*i, l));
        }
        if (i->earlier_count > 0) {
            told.lanes.push_back({0, false, i->earlier_count, "earlier", "", "",
                                  i->earlier.retries.value(), i->earlier.errors.value(),
                                  i->earlier_reconnects,
                                  rows_of(*i, i->earlier.flows, flow_count)});
        }
        whole.interfaces.push_back(std::move(told));
    }
    return whole;
}

report add_up(report whole, bool interfaces)
{
    std::vector<interface_report> sums;
    for (interface_report &i : whole.interfaces) {
        lane_report sum = {0, false, 0, "all", "", "", 0, 0, 0, {}};
        for (const lane_report &l : i.lanes) {
            add(sum, l);
        }
        auto same = std::find_if(sums.begin(), sums.end(), [&](const interface_report &s) {
            return interfaces && s.transport == i.transport && s.device == i.device;
        });
        if (same == sums.end()) {
            i.id = interfaces ? 0 : i.id;
            i.lanes = {sum};
            sums.push_back(std::move(i));
        } else {
            same->is_open |= i.is_open;
            add(same->received, i.received);
            add(same->lanes[0], sum);
        }
    }
    if (interfaces) {
        add_up(whole.caches);
    }
    return {std::move(sums), std::move(whole.caches)};
}

void filter(report &whole, const std::vector<std::string> &patterns)
{
    auto is_unwanted = [&](const row &r) {
        return std::none_of(patterns.begin(), patterns.end(), [&](const std::string &p) {
            return fnmatch(p.c_str(), r.protocol.c_str(), 0) == 0;
        });
    };
    for (interface_report &i : whole.interfaces) {
        std::erase_if(i.received, is_unwanted);
        for (lane_report &l : i.lanes) {
            std::erase_if(l.sent, is_unwanted);
        }
    }
}

const char *name_of(way how) noexcept
{
    switch (how) {
    case way::native:
        return "native";
    case way::emulated:
        return "emulated";
    case way::memory:
        return "memory";
    case way::message:
        break;
    }
    return "message";
}

} // namespace ucs::stats
