// SPDX-License-Identifier: BSD-3-Clause
// A report as a table and in the text format of Prometheus.
#include "ucs/stats/output.h"
#include "ucs/sys.h"

#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <unistd.h>

namespace ucs::stats {
namespace {

__attribute__((format(printf, 2, 3))) void append(std::string &to, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    to += line;
}

void append_rows(std::string &text, const char *direction, const std::vector<row> &rows)
{
    for (const row &r : rows) {
        append(text,
               "    %-8s %-14s %-8s %12" PRIu64 " messages %16" PRIu64 " bytes %16" PRIu64
               " payload\n",
               direction, r.protocol.c_str(), name_of(r.how), r.messages, r.bytes, r.payload);
    }
}

void append_lane(std::string &text, const lane_report &l)
{
    text += "  lane";
    if (l.id != 0) {
        append(text, " %u", l.id);
    } else {
        append(text, "s, sum of %" PRIu64, l.lanes);
    }
    text += l.endpoint.empty() ? "" : ", endpoint " + l.endpoint;
    text += l.peer.empty() ? "" : ", peer " + l.peer;
    text += l.roles.empty() ? "" : ", for " + l.roles;
    append(text, "%s: %" PRIu64 " retries, %" PRIu64 " errors, %" PRIu64 " reconnects\n",
           l.is_open ? "" : ", closed", l.retries, l.errors, l.reconnects);
    append_rows(text, "sent", l.sent);
}

void append_cache(std::string &text, const cache_report &c)
{
    text += "registrations of " + c.domain;
    if (c.id != 0) {
        append(text, ", cache %u", c.id);
    } else {
        append(text, ", %" PRIu64 " caches", c.caches);
    }
    append(text,
           "%s: %" PRIu64 " hits, %" PRIu64 " registrations, %" PRIu64 " for one use, %" PRIu64
           " evicted, %" PRIu64 " whose memory went; it has %" PRIu64 " regions of %" PRIu64
           " bytes\n",
           c.is_open ? "" : ", closed", c.counts.hits, c.counts.registrations, c.counts.single,
           c.counts.evicted, c.counts.gone, c.counts.regions, c.counts.bytes);
}

// A value of a label.
std::string quoted(const std::string &value)
{
    std::string text = "\"";
    for (char c : value) {
        if (c == '\n') {
            text += "\\n";
            continue;
        }
        text += c == '"' || c == '\\' ? "\\" : "";
        text += c;
    }
    return text + '"';
}

std::string label(const char *name, const std::string &value)
{
    return std::string(name) + "=" + quoted(value);
}

std::string labels_of(const interface_report &i)
{
    return label("host", host_name()) + "," + label("pid", std::to_string(getpid())) + "," +
           label("transport", i.transport) + "," + label("device", i.device) + "," +
           label("interface", std::to_string(i.id));
}

std::string labels_of(const lane_report &l)
{
    return "," + label("lane", std::to_string(l.id)) + "," + label("endpoint", l.endpoint) + "," +
           label("peer", l.peer) + "," + label("roles", l.roles);
}

std::string labels_of(const cache_report &c)
{
    return label("host", host_name()) + "," + label("pid", std::to_string(getpid())) + "," +
           label("domain", c.domain) + "," + label("cache", std::to_string(c.id));
}

std::string labels_of(const row &r)
{
    return "," + label("protocol", r.protocol) + "," + label("way", name_of(r.how));
}

struct row_metric {
    const char *name;
    const char *help;
    uint64_t row::*value;
};
constexpr row_metric row_metrics[] = {
    {"messages", "Messages and operations", &row::messages},
    {"bytes", "Bytes given to the transport", &row::bytes},
    {"payload_bytes", "Bytes without the headers of the protocols", &row::payload},
};

struct lane_metric {
    const char *name;
    const char *help;
    uint64_t lane_report::*value;
};
constexpr lane_metric lane_metrics[] = {
    {"retries", "Operations that found no room", &lane_report::retries},
    {"errors", "Operations that failed", &lane_report::errors},
    {"reconnects", "Lanes in the place of ones that had failed", &lane_report::reconnects},
};

struct cache_metric {
    const char *name;
    const char *help;
    uint64_t cache_counts::*value;
    const char *type;
};
constexpr cache_metric cache_metrics[] = {
    {"registration_cache_hits_total", "Operations that found their memory registered",
     &cache_counts::hits, "counter"},
    {"registration_cache_registrations_total", "Memory that was registered",
     &cache_counts::registrations, "counter"},
    {"registration_cache_single_total", "Registrations for one use", &cache_counts::single,
     "counter"},
    {"registration_cache_evicted_total", "Registrations given back to make room",
     &cache_counts::evicted, "counter"},
    {"registration_cache_gone_total", "Registrations whose memory went", &cache_counts::gone,
     "counter"},
    {"registration_cache_regions", "Registrations that are kept", &cache_counts::regions, "gauge"},
    {"registration_cache_bytes", "Bytes that are kept registered", &cache_counts::bytes, "gauge"},
};

void append_head(std::string &text, const std::string &name, const char *help, const char *more,
                 const char *type = "counter")
{
    text += "# HELP ucxlike_" + name + " " + help + more + ".\n# TYPE ucxlike_" + name + " " +
            type + "\n";
}

void append_value(std::string &text, const std::string &name, const std::string &labels,
                  uint64_t value)
{
    text += "ucxlike_" + name + "{" + labels + "} " + std::to_string(value) + "\n";
}

} // namespace

std::string to_text(const report &whole)
{
    std::string text;
    append(text, "ucxlike statistics of process %d on %s\n", getpid(), host_name().c_str());
    for (const interface_report &i : whole.interfaces) {
        append(text, "%s/%s", i.transport.c_str(), i.device.c_str());
        if (i.id != 0) {
            append(text, ", interface %u%s", i.id, i.is_open ? "" : ", closed");
        }
        text += "\n";
        append_rows(text, "received", i.received);
        for (const lane_report &l : i.lanes) {
            append_lane(text, l);
        }
    }
    for (const cache_report &c : whole.caches) {
        append_cache(text, c);
    }
    return text;
}

std::string to_prometheus(const report &whole)
{
    std::string text;
    for (const row_metric &m : row_metrics) {
        std::string sent = std::string(m.name) + "_sent_total";
        append_head(text, sent, m.help, ", sent");
        for (const interface_report &i : whole.interfaces) {
            for (const lane_report &l : i.lanes) {
                for (const row &r : l.sent) {
                    append_value(text, sent, labels_of(i) + labels_of(l) + labels_of(r),
                                 r.*m.value);
                }
            }
        }
        std::string received = std::string(m.name) + "_received_total";
        append_head(text, received, m.help, ", received");
        for (const interface_report &i : whole.interfaces) {
            for (const row &r : i.received) {
                append_value(text, received, labels_of(i) + labels_of(r), r.*m.value);
            }
        }
    }
    for (const lane_metric &m : lane_metrics) {
        std::string name = std::string(m.name) + "_total";
        append_head(text, name, m.help, "");
        for (const interface_report &i : whole.interfaces) {
            for (const lane_report &l : i.lanes) {
                append_value(text, name, labels_of(i) + labels_of(l), l.*m.value);
            }
        }
    }
    for (const cache_metric &m : cache_metrics) {
        append_head(text, m.name, m.help, "", m.type);
        for (const cache_report &c : whole.caches) {
            append_value(text, m.name, labels_of(c), c.counts.*m.value);
        }
    }
    return text;
}

} // namespace ucs::stats
