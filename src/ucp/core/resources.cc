// SPDX-License-Identifier: BSD-3-Clause
//
// Filtering of transport resources by the configuration.
#include "ucp/core/resources.h"

#include "ucs/log.h"
#include "ucs/sockaddr.h"
#include "ucs/topo.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string_view>
#include <strings.h>
#include <unistd.h>

namespace ucp {

namespace {

struct alias {
    const char *name;
    tl_class cls;
};

// UCX's names for classes of transports.
constexpr alias aliases[] = {
    {"sm", tl_class::shm},       {"shm", tl_class::shm},       {"mm", tl_class::shm},
    {"posix", tl_class::shm},    {"sysv", tl_class::shm},      {"cma", tl_class::shm},
    {"xpmem", tl_class::shm},    {"knem", tl_class::shm},      {"ib", tl_class::rdma},
    {"rc", tl_class::rdma},      {"rc_v", tl_class::rdma},     {"rc_x", tl_class::rdma},
    {"ud", tl_class::rdma},      {"ud_v", tl_class::rdma},     {"ud_x", tl_class::rdma},
    {"dc", tl_class::rdma},      {"dc_x", tl_class::rdma},     {"rc_verbs", tl_class::rdma},
    {"rc_mlx5", tl_class::rdma}, {"ud_verbs", tl_class::rdma}, {"ud_mlx5", tl_class::rdma},
    {"dc_mlx5", tl_class::rdma}, {"self", tl_class::self},     {"loopback", tl_class::self},
};

// Transports that may be excluded on machines without them.
constexpr const char *others[] = {"cuda",      "cuda_copy",  "cuda_ipc", "gdr_copy", "rocm",
                                  "rocm_copy", "rocm_ipc",   "rocm_gdr", "ugni",     "rdmacm",
                                  "sockcm",    "ze",         "ze_copy",  "ze_ipc",   "gaudi_gdr",
                                  "srd",       "tcp_sockcm", "efa",      "cxi",      "opx",
                                  "psm3",      "tcprdm",     "verbs",    "tcp"};

// UCX's "shm" is any shared memory; this is libfabric's provider of that name, and nothing else.
constexpr const char *core_shm = "ofi_shm";
constexpr const char *exact_core_shm = "\\shm";

bool is_transport(const std::string &name)
{
    return name == exact_core_shm || name == "\\sm" ||
           std::any_of(std::begin(aliases), std::end(aliases),
                       [&](const alias &a) { return name == a.name; }) ||
           std::any_of(std::begin(others), std::end(others),
                       [&](const char *o) { return name == o; });
}

// \sm: the transport of that name, and no other that it is an alias of.
bool is_exact(const std::string &name)
{
    return name.starts_with('\\');
}

template <class List>
std::string joined(const List &names)
{
    std::string text;
    for (const std::string &name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text.empty() ? "none" : text;
}

std::string not_found(const char *variable, const char *what, const std::vector<std::string> &names,
                      const std::set<std::string> &existing)
{
    return std::string(variable) + ": no " + what + " here: " + joined(names) +
           "; what exists: " + joined(existing);
}

} // namespace

tl_class classify(const uct_tl_resource_desc_t &desc) noexcept
{
    switch (desc.dev_type) {
    case UCT_DEVICE_TYPE_SELF:
        return tl_class::self;
    case UCT_DEVICE_TYPE_SHM:
        return tl_class::shm;
    case UCT_DEVICE_TYPE_NET:
        return strcmp(desc.tl_name, "tcp") == 0 || strcmp(desc.tl_name, "tcprdm") == 0 ||
                       strcmp(desc.tl_name, "sockets") == 0 || strcmp(desc.tl_name, "udp") == 0
                   ? tl_class::net
                   : tl_class::rdma;
    default:
        return tl_class::other;
    }
}

bool is_all(const std::vector<std::string> &list) noexcept
{
    return list.empty() || std::find(list.begin(), list.end(), "all") != list.end();
}

bool better(const resource_rank &a, const resource_rank &b) noexcept
{
    if (a.cls != b.cls) {
        return a.cls > b.cls;
    }
    if (a.loopback != b.loopback) {
        return b.loopback;
    }
    return a.distance != b.distance ? a.distance < b.distance : a.default_route && !b.default_route;
}

resource_rank rank_of(const tl_resource &rsc, const std::string &default_device)
{
    // A device of no known place is taken for farther than any other.
    constexpr double nowhere = 1;
    bool known = rsc.desc.sys_device != UCS_SYS_DEVICE_ID_UNKNOWN;
    return {rsc.cls, strcmp(rsc.desc.dev_name, "lo") == 0,
            known ? ucs::topo::distance_from_cpu(rsc.desc.sys_device).latency : nowhere,
            default_device == rsc.desc.dev_name};
}

unsigned most_rails(const config &config) noexcept
{
    return std::max({config.max_rndv_rails, config.max_rma_rails, 1u});
}

namespace {

bool is_link_local(const sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const auto *in = reinterpret_cast<const sockaddr_in *>(address);
        return ntohl(in->sin_addr.s_addr) >> 16 == 0xa9fe; // 169.254
    }
    return IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

} // namespace

bool reaches_beyond(const std::string &device)
{
    ifaddrs *list = nullptr;
    if (access(("/sys/class/net/" + device + "/bridge").c_str(), F_OK) == 0 ||
        getifaddrs(&list) != 0) {
        return false;
    }
    bool found = false;
    for (const ifaddrs *i = list; i && !found; i = i->ifa_next) {
        found = i->ifa_addr && device == i->ifa_name &&
                (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6) &&
                !(i->ifa_flags & IFF_LOOPBACK) && !is_link_local(i->ifa_addr);
    }
    freeifaddrs(list);
    return found;
}

std::vector<std::vector<uint8_t>> addresses_of_this_host(size_t most)
{
    std::vector<std::vector<uint8_t>> best, others, loopback;
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) != 0) {
        return {};
    }
    std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> held(list, freeifaddrs);
    const std::string route = default_route_device();
    for (const ifaddrs *i = list; i; i = i->ifa_next) {
        const sockaddr *a = i->ifa_addr;
        if (!a || !(i->ifa_flags & IFF_UP) || ucs::sockaddr_length(a) == 0 || is_link_local(a)) {
            continue;
        }
        const auto *bytes = a->sa_family == AF_INET
                                ? reinterpret_cast<const uint8_t *>(
                                      &reinterpret_cast<const sockaddr_in *>(a)->sin_addr)
                                : reinterpret_cast<const uint8_t *>(
                                      &reinterpret_cast<const sockaddr_in6 *>(a)->sin6_addr);
        size_t length = a->sa_family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
        auto &kind = i->ifa_flags & IFF_LOOPBACK ? loopback : i->ifa_name == route ? best : others;
        kind.emplace_back(bytes, bytes + length);
    }
    best.insert(best.end(), others.begin(), others.end());
    best = best.empty() ? loopback : best;
    best.resize(std::min(best.size(), most));
    return best;
}

bool ports_are_chosen(const ucp_context &context)
{
    constexpr std::string_view what = "PORT_RANGE";
    for (char **variable = environ; *variable; ++variable) {
        std::string_view text = *variable;
        if (text.starts_with("UCX_") && text.substr(0, text.find('=')).ends_with(what)) {
            return true;
        }
    }
    return context.source.file() ||
           std::any_of(context.overrides.begin(), context.overrides.end(),
                       [&](const auto &o) { return o.first.ends_with(what); });
}

std::string default_route_device()
{
    FILE *file = fopen("/proc/net/route", "re");
    if (!file) {
        return {};
    }
    char line[256], device[64];
    unsigned long destination, gateway, flags;
    std::string found;
    while (found.empty() && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%63s %lx %lx %lx", device, &destination, &gateway, &flags) == 4 &&
            destination == 0 && (flags & 1)) {
            found = device;
        }
    }
    fclose(file);
    return found;
}

selection::selection(const config &config)
    : tls_variable_(config.tls_by_program ? "TLS of ucp_config_modify()" : "UCX_TLS"),
      devices_variable_(config.net_devices_by_program ? "NET_DEVICES of ucp_config_modify()"
                                                      : "UCX_NET_DEVICES")
{
    for (std::string name : config.tls) {
        if (tls_.empty() && !name.empty() && name[0] == '^') {
            negate_ = true;
            name.erase(0, 1);
        }
        tls_.push_back({strcasecmp(name.c_str(), core_shm) == 0 ? exact_core_shm : name});
    }
    for (const std::string &name : config.net_devices) {
        devices_.push_back({name});
    }
}

bool selection::tl_listed(const tl_resource &rsc)
{
    bool listed = false;
    for (entry &e : tls_) {
        bool exact = is_exact(e.name);
        std::string name = e.name.substr(exact);
        bool match = name == "all" || strcasecmp(name.c_str(), rsc.desc.tl_name) == 0;
        for (const alias &a : aliases) {
            match = match || (!exact && name == a.name && a.cls == rsc.cls);
        }
        e.matched = e.matched || match;
        listed = listed || match;
    }
    return tls_.empty() || listed != negate_;
}

// Opt-in: tcprdm and sockets reach the same peers as tcp, but slower.
constexpr const char *opt_in[] = {"tcprdm", "sockets"};

bool selection::component_listed(const char *name) const
{
    bool by_name = std::any_of(std::begin(opt_in), std::end(opt_in),
                               [&](const char *o) { return strcmp(name, o) == 0; });
    return !by_name || (!negate_ && std::any_of(tls_.begin(), tls_.end(), [&](const entry &e) {
        return strcasecmp(e.name.c_str() + is_exact(e.name), name) == 0;
    }));
}

bool selection::is_spare(const char *name) const
{
    return strcmp(name, "shm") == 0 &&
           (negate_ || std::none_of(tls_.begin(), tls_.end(), [](const entry &e) {
                return strcasecmp(e.name.c_str(), exact_core_shm) == 0;
            }));
}

bool selection::stands_in_for_spare(const tl_resource &rsc)
{
    return strcmp(rsc.desc.tl_name, "sm") == 0;
}

bool selection::device_listed(const tl_resource &rsc)
{
    bool listed = devices_.empty();
    for (entry &e : devices_) {
        std::string bare = e.name.substr(0, e.name.find(':'));
        bool match = e.name == "all" || e.name == rsc.desc.dev_name || bare == rsc.desc.dev_name;
        e.matched = e.matched || match;
        listed = listed || match;
    }
    return listed;
}

bool selection::allows(const tl_resource &rsc)
{
    bool net = rsc.cls == tl_class::net || rsc.cls == tl_class::rdma;
    known_tls_.insert(rsc.desc.tl_name);
    if (net) {
        known_devices_.insert(rsc.desc.dev_name);
    }
    return tl_listed(rsc) && (!net || device_listed(rsc));
}

bool selection::needs_cores() const
{
    return tls_.empty() || negate_ || std::any_of(tls_.begin(), tls_.end(), [](const entry &e) {
               return !e.matched || e.name == "all";
           });
}

std::vector<std::string> selection::unmatched() const
{
    std::vector<std::string> texts, tls, devices;
    for (const entry &e : tls_) {
        if (!e.matched && e.name != "all" && !(negate_ && is_transport(e.name))) {
            tls.push_back(e.name);
        }
    }
    for (const entry &e : devices_) {
        if (!e.matched && e.name != "all") {
            devices.push_back(e.name);
        }
    }
    if (!tls.empty()) {
        texts.push_back(not_found(tls_variable_, "such transport", tls, known_tls_));
    }
    if (!devices.empty()) {
        texts.push_back(not_found(devices_variable_, "such device", devices, known_devices_));
    }
    return texts;
}

} // namespace ucp
