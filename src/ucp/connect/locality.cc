// SPDX-License-Identifier: BSD-3-Clause
//
// Asks the kernel from where it reaches the other end of a connection.
#include "ucp/connect/locality.h"

#include "ucp/connect/address.h"
#include "ucs/sockaddr.h"

#include <cstring>
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

// The kernel reaches an address of this host from that address, and any other from another. Asking
// it costs the same however many addresses the host has.
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
    sockaddr_storage from = {};
    return ucs::sockaddr_source(wanted, &from) &&
           ucs::sockaddr_same_host(reinterpret_cast<const sockaddr *>(&from), wanted);
}

void note_origin(const sockaddr *connection, unpacked_address *peer)
{
    peer->from_here = is_own_address(connection);
}

} // namespace ucp
