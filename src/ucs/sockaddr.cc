// SPDX-License-Identifier: BSD-3-Clause
#include "ucs/sockaddr.h"

#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <unistd.h>

namespace ucs {
namespace {

const sockaddr_in *as4(const sockaddr *a)
{
    return reinterpret_cast<const sockaddr_in *>(a);
}
const sockaddr_in6 *as6(const sockaddr *a)
{
    return reinterpret_cast<const sockaddr_in6 *>(a);
}

} // namespace

size_t sockaddr_length(const sockaddr *address)
{
    switch (address->sa_family) {
    case AF_INET:
        return sizeof(sockaddr_in);
    case AF_INET6:
        return sizeof(sockaddr_in6);
    default:
        return 0;
    }
}

uint16_t sockaddr_port(const sockaddr *address)
{
    switch (address->sa_family) {
    case AF_INET:
        return ntohs(as4(address)->sin_port);
    case AF_INET6:
        return ntohs(as6(address)->sin6_port);
    default:
        return 0;
    }
}

void sockaddr_set_port(sockaddr *address, uint16_t port)
{
    if (address->sa_family == AF_INET) {
        reinterpret_cast<sockaddr_in *>(address)->sin_port = htons(port);
    } else if (address->sa_family == AF_INET6) {
        reinterpret_cast<sockaddr_in6 *>(address)->sin6_port = htons(port);
    }
}

bool sockaddr_is_any(const sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return as4(address)->sin_addr.s_addr == htonl(INADDR_ANY);
    }
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&as6(address)->sin6_addr);
}

bool sockaddr_is_loopback(const sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        return ntohl(as4(address)->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as6(address)->sin6_addr);
}

bool sockaddr_same_host(const sockaddr *a, const sockaddr *b)
{
    if (a->sa_family != b->sa_family) {
        return false;
    }
    if (a->sa_family == AF_INET) {
        return as4(a)->sin_addr.s_addr == as4(b)->sin_addr.s_addr;
    }
    return a->sa_family == AF_INET6 &&
           !memcmp(&as6(a)->sin6_addr, &as6(b)->sin6_addr, sizeof(in6_addr));
}

bool sockaddr_equal(const sockaddr *a, const sockaddr *b)
{
    return sockaddr_same_host(a, b) && sockaddr_port(a) == sockaddr_port(b);
}

bool sockaddr_source(const sockaddr *to, sockaddr_storage *from)
{
    int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    sockaddr_storage target = {};
    memcpy(&target, to, sockaddr_length(to));
    auto *at = reinterpret_cast<sockaddr *>(&target);
    if (sockaddr_port(at) == 0) {
        sockaddr_set_port(at, 9); // a datagram socket wants one
    }
    auto *source = reinterpret_cast<sockaddr *>(from);
    socklen_t length = sizeof(*from);
    bool found = connect(fd, at, static_cast<socklen_t>(sockaddr_length(to))) == 0 &&
                 getsockname(fd, source, &length) == 0;
    int why = errno;
    close(fd);
    errno = why;
    if (found) {
        sockaddr_set_port(source, 0);
    }
    return found;
}

std::string sockaddr_string(const sockaddr *address)
{
    char text[INET6_ADDRSTRLEN] = "?";
    if (address->sa_family == AF_INET) {
        inet_ntop(AF_INET, &as4(address)->sin_addr, text, sizeof(text));
        return std::string(text) + ":" + std::to_string(sockaddr_port(address));
    }
    if (address->sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &as6(address)->sin6_addr, text, sizeof(text));
        return "[" + std::string(text) + "]:" + std::to_string(sockaddr_port(address));
    }
    return "<address family " + std::to_string(address->sa_family) + ">";
}

} // namespace ucs
