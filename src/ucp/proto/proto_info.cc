// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/proto/proto_info.h"

#include "ucp/core/cost.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/protocols.h"
#include "ucs/log.h"

#include <algorithm>
#include <cmath>
#include <fnmatch.h>

namespace ucp {

namespace {

bool same(const proto_table &a, const proto_table &b)
{
    return a.count == b.count && std::equal(a.ranges, a.ranges + a.count, b.ranges,
                                            [](const proto_range &x, const proto_range &y) {
                                                return x.end == y.end && x.proto == y.proto &&
                                                       x.lane == y.lane;
                                            });
}

uint64_t uses(const titled_table &t, unsigned i)
{
    bool both = t.shared && (i < proto_table::at_once || same(*t.table, *t.shared));
    return t.table->ranges[i].used + (both ? t.shared->ranges[i].used : 0);
}

bool is_used(const titled_table &t)
{
    for (unsigned i = 0; i < t.table->count; ++i) {
        if (uses(t, i) != 0) {
            return true;
        }
    }
    return false;
}

struct operation {
    const char *title;
    const char *side; // "from" or "into"
    const ep_config::tables &tables;
};

void add_operation(std::vector<titled_table> &to, const operation &o)
{
    auto name = [&](const char *flags, const char *memory) {
        return std::string(o.title) + flags + " " + o.side + " " + memory;
    };
    const proto_table &plain = o.tables[MEMORY_PLAIN], &mapped = o.tables[MEMORY_MAPPED];
    const proto_table &fast = o.tables[MEMORY_FAST], &scattered = o.tables[MEMORY_SCATTERED];
    to.push_back({name("", "host memory"), &plain, &mapped});
    if (!same(plain, mapped)) {
        to.push_back({name("", "memory of ucp_mem_map()"), &mapped, &plain});
    }
    if (!same(plain, fast)) {
        to.push_back({name("(fast-completion)", "host memory"), &fast, nullptr});
    }
    if (!same(plain, scattered)) {
        to.push_back({name("", "scattered memory"), &scattered, nullptr});
    }
}

void add_lanes(std::vector<titled_table> &to, const ep_config &config)
{
    for (unsigned i = 0; i < config.key.lane_count; ++i) {
        std::string reached = " memory that lane " + std::to_string(i) + " reaches";
        to.push_back(
            {"remote memory write by ucp_put* to" + reached, &config.lane_put[i], nullptr});
        to.push_back({"remote memory read by ucp_get* of" + reached, &config.lane_get[i], nullptr});
    }
}

bool maps(const ucp_worker &worker, const ep_config &config)
{
    return std::any_of(
        config.key.lanes, config.key.lanes + config.key.lane_count, [&](const iface *lane) {
            const auto &rsc = worker.context->resources[lane->resource];
            return worker.context->mds[rsc.md_index].cmpt_attr.flags & UCT_COMPONENT_FLAG_RKEY_PTR;
        });
}

std::string device(const ucp_worker &worker, const iface *lane)
{
    const auto &desc = worker.context->resources[lane->resource].desc;
    return std::string(desc.tl_name) + "/" + desc.dev_name;
}

// "native tcp/lo", "native 50% on tcp/eth0 and 50% on tcp/eth1"
std::string carrier(const ucp_worker &worker, const ep_config &config, const proto_range &range)
{
    const ep_config_key &key = config.key;
    std::string text = range.proto->native ? "native " : "emulated ";
    bool rma = range.proto == &put_zcopy || range.proto == &get_zcopy;
    bool read = range.proto == tag_messages.read || range.proto == am_messages.read;
    unsigned rails = rma ? key.rma_rail_count : read ? key.rail_count : 0;
    if (rails < 2 || range.lane != key.rails[0]) {
        return text + device(worker, key.lanes[range.lane]);
    }
    double sum = 0;
    for (unsigned i = 0; i < rails; ++i) {
        sum += bandwidth_of(key.lanes[key.rails[i]]->attr);
    }
    for (unsigned i = 0; i < rails; ++i) {
        const iface *lane = key.lanes[key.rails[i]];
        text += (i ? " and " : "") +
                std::to_string(std::lround(100 * bandwidth_of(lane->attr) / sum)) + "% on " +
                device(worker, lane);
    }
    return text;
}

std::string size_range(const proto_table &t, unsigned i)
{
    size_t end = t.ranges[i].end;
    return std::to_string(t.begin(i)) + ".." + (end == SIZE_INF ? "inf" : std::to_string(end - 1));
}

using row = std::vector<std::string>;

std::string line(const std::vector<size_t> &widths)
{
    std::string text = "+";
    for (size_t w : widths) {
        text += std::string(w + 2, '-') + "+";
    }
    return text + "\n";
}

std::string cell(const std::string &text, size_t width, bool right)
{
    std::string room(width - text.size(), ' ');
    return " " + (right ? room + text : text + room) + " |";
}

std::vector<row> rows_of(const ucp_worker &worker, const ep_config &config, const titled_table &t,
                         bool counted)
{
    std::vector<row> rows;
    for (unsigned i = 0; i < t.table->count; ++i) {
        const proto_range &range = t.table->ranges[i];
        if (t.table->empty(i)) {
            continue;
        }
        row r = {size_range(*t.table, i), range.proto->name, carrier(worker, config, range)};
        if (counted) {
            r.insert(r.begin(), std::to_string(uses(t, i)));
        }
        rows.push_back(std::move(r));
    }
    return rows;
}

void print(const ucp_worker &worker, const ep_config &config, bool counted, const char *pattern)
{
    for (const titled_table &t : titled_tables(worker, config)) {
        if (counted ? is_used(t) : !pattern || !fnmatch(pattern, t.title.c_str(), FNM_CASEFOLD)) {
            fputs(proto_box(worker, config, t, counted).c_str(), stdout);
        }
    }
    fflush(stdout);
}

} // namespace

std::vector<titled_table> titled_tables(const ucp_worker &worker, const ep_config &config)
{
    const ucp_context &context = *worker.context;
    std::vector<titled_table> all;
    if (context.has_feature(UCP_FEATURE_TAG)) {
        add_operation(all, {"tagged message by ucp_tag_send*", "from", config.tag});
        add_operation(
            all, {"synchronous tagged message by ucp_tag_send_sync*", "from", config.tag_sync});
    }
    if (context.has_feature(UCP_FEATURE_AM)) {
        add_operation(all, {"active message by ucp_am_send*", "from", config.am});
    }
    if (context.has_feature(UCP_FEATURE_STREAM)) {
        add_operation(all, {"stream by ucp_stream_send*", "from", config.stream});
    }
    if (context.has_feature(UCP_FEATURE_TAG | UCP_FEATURE_AM)) {
        all.push_back({"rendezvous fragments from host memory", &config.rndv_data[MEMORY_PLAIN],
                       &config.rndv_data[MEMORY_FAST]});
    }
    bool mapped = maps(worker, config);
    if (context.has_feature(UCP_FEATURE_RMA)) {
        if (mapped) {
            all.push_back(
                {"remote memory write by ucp_put* to mapped memory", &config.map_put, nullptr});
            all.push_back(
                {"remote memory read by ucp_get* of mapped memory", &config.map_get, nullptr});
        }
        if (config.key.rma_lane != NO_LANE) {
            add_lanes(all, config);
        }
        add_operation(all, {"remote memory write by ucp_put*", "from", config.put});
        add_operation(all, {"remote memory read by ucp_get*", "into", config.get});
    }
    if (context.has_feature(UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64)) {
        if (mapped) {
            all.push_back({"atomic by ucp_atomic* on mapped memory", &config.map_atomic, nullptr});
        }
        all.push_back({"atomic by ucp_atomic*", &config.atomic, nullptr});
    }
    return all;
}

std::string proto_box(const ucp_worker &worker, const ep_config &config, const titled_table &table,
                      bool counted)
{
    std::vector<row> rows = rows_of(worker, config, table, counted);
    size_t columns = counted ? 4 : 3;
    std::vector<size_t> widths(columns);
    for (const row &r : rows) {
        for (size_t i = 0; i < columns; ++i) {
            widths[i] = std::max(widths[i], r[i].size());
        }
    }
    std::string name = worker.context->name + (worker.context->name.empty() ? "" : " ") +
                       "ep_cfg[" + std::to_string(config.index) + "]";
    // The title has the columns of the names and of the devices together.
    size_t left = counted ? widths[0] + 3 + widths[1] : widths[0];
    size_t wider = name.size() - std::min(name.size(), left);
    widths[columns - 3] += wider;
    left += wider;
    size_t right = widths[columns - 2] + 3 + widths[columns - 1];
    widths[columns - 1] += table.title.size() - std::min(table.title.size(), right);
    right = widths[columns - 2] + 3 + widths[columns - 1];

    std::string text = line({left, right});
    text += "|" + cell(name, left, true) + cell(table.title, right, false) + "\n" + line(widths);
    for (const row &r : rows) {
        text += "|";
        for (size_t i = 0; i < columns; ++i) {
            text += cell(r[i], widths[i], i + 2 < columns);
        }
        text += "\n";
    }
    return text + line(widths);
}

void announce_protocols(const ucp_ep &ep)
{
    const std::string &wanted = ep.worker->context->config.proto_info;
    bool by_log = wanted == "auto" && ucs::log::enabled(ucs::log::level::debug);
    if (wanted == "n" || wanted == "used" || (wanted == "auto" && !by_log)) {
        return;
    }
    bool all = wanted == "y" || by_log;
    print(*ep.worker, *ep.config, false, all ? nullptr : wanted.c_str());
}

void announce_used_protocols(const ucp_worker &worker)
{
    if (worker.context->config.proto_info != "used") {
        return;
    }
    for (const auto &config : worker.ep_configs) {
        print(worker, *config, true, nullptr);
    }
}

} // namespace ucp
