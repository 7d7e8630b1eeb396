// SPDX-License-Identifier: BSD-3-Clause
//
// Compares the other end of a connection with the host's interfaces.
#include "ucp/connect/locality.h"

#include "ucp/connect/address.h"
#include "ucs/sockaddr.h"

#include <cstring>
#include <ifaddrs.h>
#include <netinet/in.h>

namespace ucp {

namespace {

// An IPv4 address that came through an IPv6 socket is an IPv4 address.
sockaddr_storage unmapped(const sockaddr *address)
{
    sockaddr_storage out = {};
    memcpy(&out, address, ucs::sockaddr_length(address));
    const auto *six = reinterpret_cast<const sockaddr_in6 *>(&out);
    if (out.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        sockaddr_in four = {};
        four.sin_family = AF_INET;
        memcpy(&four.sin_addr, six->sin6_addr.s6_addr + 12, sizeof(four.sin_addr));
        out = {};
        memcpy(&out, &four, sizeof(four));
    }
    return out;
}

} // namespace

bool is_own_address(const sockaddr *address)
{
    sockaddr_storage plain = unmapped(address);
    const auto *wanted = reinterpret_cast<const sockaddr *>(&plain);
    if (ucs::sockaddr_length(wanted) == 0) {
        return false;
    }
    if (ucs::sockaddr_is_loopback(wanted)) {
        return true;
    }
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) != 0) {
        return false;
    }
    bool found = false;
    for (const ifaddrs *i = list; i && !found; i = i->ifa_next) {
        found = i->ifa_addr && ucs::sockaddr_length(i->ifa_addr) != 0 &&
                ucs::sockaddr_same_host(i->ifa_addr, wanted);
    }
    freeifaddrs(list);
    return found;
}

void note_origin(const sockaddr *connection, unpacked_address *peer)
{
    peer->from_here = is_own_address(connection);
}

} // namespace ucp
