// SPDX-License-Identifier: BSD-3-Clause
//
// An internet socket address in normal form (no padding, no flow label), so that equal addresses
// have equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>

namespace ucxlike {

struct address {
    union {
        sockaddr sa;
        sockaddr_in in4;
        sockaddr_in6 in6;
    };

    address() { memset(static_cast<void *>(this), 0, sizeof(*this)); }

    // Anything but an internet address of sufficient length gives an empty one.
    static address from(const void *bytes, size_t length)
    {
        address a;
        sa_family_t family = AF_UNSPEC;
        if (bytes && length >= sizeof(sa_family_t)) {
            memcpy(&family, bytes, sizeof(family));
        }
        if (family == AF_INET && length >= sizeof(sockaddr_in)) {
            sockaddr_in in;
            memcpy(&in, bytes, sizeof(in));
            a.in4.sin_family = AF_INET;
            a.in4.sin_port = in.sin_port;
            a.in4.sin_addr = in.sin_addr;
        } else if (family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
            sockaddr_in6 in;
            memcpy(&in, bytes, sizeof(in));
            a.in6.sin6_family = AF_INET6;
            a.in6.sin6_port = in.sin6_port;
            a.in6.sin6_addr = in.sin6_addr;
            a.in6.sin6_scope_id = in.sin6_scope_id;
        }
        return a;
    }

    bool empty() const { return sa.sa_family == AF_UNSPEC; }
    socklen_t length() const
    {
        return sa.sa_family == AF_INET ? sizeof(in4) : sa.sa_family == AF_INET6 ? sizeof(in6) : 0;
    }
    uint16_t port() const { return ntohs(sa.sa_family == AF_INET ? in4.sin_port : in6.sin6_port); }
    void set_port(uint16_t port)
    {
        (sa.sa_family == AF_INET ? in4.sin_port : in6.sin6_port) = htons(port);
    }
    bool same_host(const address &other) const
    {
        address a = *this, b = other;
        a.set_port(0);
        b.set_port(0);
        return a == b;
    }
    std::string_view bytes() const { return {reinterpret_cast<const char *>(this), sizeof(*this)}; }
    bool operator==(const address &other) const { return bytes() == other.bytes(); }

    struct hash {
        size_t operator()(const address &a) const
        {
            return std::hash<std::string_view>()(a.bytes());
        }
    };
};

} // namespace ucxlike
