// SPDX-License-Identifier: BSD-3-Clause
// A report as JSON.
#include "ucs/stats/output.h"
#include "ucs/sys.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

namespace ucs::stats {
namespace {

using json = nlohmann::ordered_json;

json rows_as_json(const std::vector<row> &rows)
{
    json list = json::array();
    for (const row &r : rows) {
        list.push_back({{"protocol", r.protocol},
                        {"way", name_of(r.how)},
                        {"messages", r.messages},
                        {"bytes", r.bytes},
                        {"payload_bytes", r.payload}});
    }
    return list;
}

json lane_as_json(const lane_report &l)
{
    return {{"id", l.id},
            {"open", l.is_open},
            {"lanes", l.lanes},
            {"endpoint", l.endpoint},
            {"peer", l.peer},
            {"roles", l.roles},
            {"retries", l.retries},
            {"errors", l.errors},
            {"reconnects", l.reconnects},
            {"sent", rows_as_json(l.sent)}};
}

json cache_as_json(const cache_report &c)
{
    return {{"id", c.id},
            {"open", c.is_open},
            {"caches", c.caches},
            {"domain", c.domain},
            {"hits", c.counts.hits},
            {"registrations", c.counts.registrations},
            {"for_one_use", c.counts.single},
            {"evicted", c.counts.evicted},
            {"memory_gone", c.counts.gone},
            {"regions", c.counts.regions},
            {"bytes", c.counts.bytes}};
}

} // namespace

std::string to_json(const report &whole)
{
    json interfaces = json::array();
    for (const interface_report &i : whole.interfaces) {
        json lanes = json::array();
        for (const lane_report &l : i.lanes) {
            lanes.push_back(lane_as_json(l));
        }
        interfaces.push_back({{"id", i.id},
                              {"open", i.is_open},
                              {"transport", i.transport},
                              {"device", i.device},
                              {"received", rows_as_json(i.received)},
                              {"lanes", lanes}});
    }
    json caches = json::array();
    for (const cache_report &c : whole.caches) {
        caches.push_back(cache_as_json(c));
    }
    json all = {{"host", host_name()},
                {"pid", getpid()},
                {"interfaces", interfaces},
                {"registration_caches", caches}};
    // Names of peers are whatever the peers said.
    return all.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

} // namespace ucs::stats
