// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/info.h"

#include "prov/ucxlike/prov.h"
#include "ucs/sockaddr.h"

#include <arpa/inet.h>
#include <cstdlib>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <set>
#include <string>

namespace ucxlike {

int resolve(const char *node, const char *service, uint64_t flags, int family, address *out)
{
    addrinfo hints = {};
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    if (flags & FI_NUMERICHOST) {
        hints.ai_flags |= AI_NUMERICHOST;
    }
    if (flags & FI_SOURCE) {
        hints.ai_flags |= AI_PASSIVE;
    }
    addrinfo *list = nullptr;
    int error = getaddrinfo(node, service, &hints, &list);
    if (error) {
        PROV_INFO(CORE, "%s:%s: %s\n", node ? node : "", service ? service : "",
                  gai_strerror(error));
        return -FI_ENODATA;
    }
    *out = address();
    for (addrinfo *a = list; a && out->empty(); a = a->ai_next) {
        *out = address::from(a->ai_addr, a->ai_addrlen);
    }
    freeaddrinfo(list);
    return out->empty() ? -FI_ENODATA : 0;
}

bool is_any(const address &a)
{
    if (a.sa.sa_family == AF_INET) {
        return a.in4.sin_addr.s_addr == htonl(INADDR_ANY);
    }
    return a.sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a.in6.sin6_addr);
}

address source_for(const address &to)
{
    address from;
    sockaddr_storage source;
    if (ucs::sockaddr_source(&to.sa, &source)) {
        from = address::from(&source, sizeof(source));
    }
    return from;
}

static bool is_loopback(const address &a)
{
    if (a.sa.sa_family == AF_INET) {
        return (ntohl(a.in4.sin_addr.s_addr) >> 24) == 127;
    }
    return IN6_IS_ADDR_LOOPBACK(&a.in6.sin6_addr);
}

static std::string interfaces()
{
    std::set<std::string> names;
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) == 0) {
        for (ifaddrs *i = list; i; i = i->ifa_next) {
            names.insert(i->ifa_name);
        }
        freeifaddrs(list);
    }
    std::string text;
    for (const std::string &name : names) {
        text += (text.empty() ? "" : ", ") + name;
    }
    return text;
}

// FI_UCXLIKE_IFACE is an address or the name of an interface.
static address configured_source(int family, const std::string &wanted)
{
    address a;
    if (inet_pton(AF_INET, wanted.c_str(), &a.in4.sin_addr) == 1) {
        a.in4.sin_family = AF_INET;
        return a;
    }
    if (inet_pton(AF_INET6, wanted.c_str(), &a.in6.sin6_addr) == 1) {
        a.in6.sin6_family = AF_INET6;
        return a;
    }
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) == 0) {
        for (ifaddrs *i = list; i && a.empty(); i = i->ifa_next) {
            if (i->ifa_addr && wanted == i->ifa_name && i->ifa_addr->sa_family == family) {
                a = address::from(i->ifa_addr, sizeof(sockaddr_in6));
            }
        }
        freeifaddrs(list);
    }
    if (a.empty()) {
        PROV_WARN(
            CORE,
            "FI_UCXLIKE_IFACE: \"%s\" is neither an address nor an interface with one of this "
            "family; what exists: %s\n",
            wanted.c_str(), interfaces().c_str());
    }
    return a;
}

address default_source(int family)
{
    if (std::string wanted = param_string("iface"); !wanted.empty()) {
        address a = configured_source(family, wanted);
        if (!a.empty() && a.sa.sa_family == family) {
            return a;
        }
        if (param_bool("strict")) {
            throw failure{FI_ENODATA};
        }
    }
    // Where the default route leads; no packet is sent.
    address far;
    if (family == AF_INET) {
        far.in4.sin_family = AF_INET;
        far.in4.sin_addr.s_addr = htonl(0x08080808);
    } else {
        far.in6.sin6_family = AF_INET6;
        inet_pton(AF_INET6, "2001:4860:4860::8888", &far.in6.sin6_addr);
    }
    address a = source_for(far);
    if (!a.empty()) {
        return a;
    }
    // Without one, the first interface that is up, loopback last.
    address loopback;
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) == 0) {
        for (ifaddrs *i = list; i && a.empty(); i = i->ifa_next) {
            if (!i->ifa_addr || i->ifa_addr->sa_family != family || !(i->ifa_flags & IFF_UP)) {
                continue;
            }
            std::string_view name(i->ifa_name);
            if (name.starts_with("docker") || name.starts_with("veth") || name.starts_with("br-") ||
                name.starts_with("virbr")) {
                continue;
            }
            address found = address::from(i->ifa_addr, sizeof(sockaddr_in6));
            if (family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&found.in6.sin6_addr)) {
                continue;
            }
            if (is_loopback(found)) {
                loopback = found;
            } else {
                a = found;
            }
        }
        freeifaddrs(list);
    }
    return a.empty() ? loopback : a;
}

int copy_address(const address &a, void *to, size_t *length, bool strict)
{
    size_t room = *length;
    size_t have = a.length();
    if (room && to) {
        memcpy(to, &a.sa, room < have ? room : have);
    }
    *length = have;
    return strict && room < have ? -FI_ETOOSMALL : 0;
}

void set_address(void **to, size_t *length, const address &a)
{
    if (a.empty()) {
        return;
    }
    *to = malloc(a.length());
    if (!*to) {
        throw failure{FI_ENOMEM};
    }
    memcpy(*to, &a.sa, a.length());
    *length = a.length();
}

} // namespace ucxlike
