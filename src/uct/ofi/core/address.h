// SPDX-License-Identifier: BSD-3-Clause
// What travels between processes so that they can reach each other: device addresses say where a
// device is, interface addresses which interface listens there. Little endian; each begins with a
// version and a kind, and its length is checked against what arrived before anything else is read.
//
//   0       1     2          4        8
//   version kind  transport  length   ...
//
// transport: hash of the transport's name; length: of the whole, in bytes.
#pragma once

#include "ucs/sockaddr.h"
#include "uct/shared/identity.h"

#include <uct/api/uct.h>

#include <cstdint>
#include <cstring>
#include <netinet/in.h>
#include <string>

namespace uct::ofi {

constexpr uint8_t address_version = 9;

// rdm_numbered: messages begin with numbers that put them in order (sequence.h). rdm_entry: a
// sender has to take an entry of the interface first (shm/entries.h).
enum class address_kind : uint8_t { device = 1, rdm = 2, msg = 3, rdm_numbered = 4, rdm_entry = 5 };

struct address_header {
    uint8_t version;
    uint8_t kind;
    uint16_t transport;
    uint32_t length;
};
static_assert(sizeof(address_header) == 8);

// host: equal where memory can be shared (shm) or where the loopback network is the same (inet).
// family: AF_INET, AF_INET6 in the host's numbering of Linux, or 0; ip: the address, network order.
struct device_address {
    address_header header;
    uint64_t host;
    uint16_t family;
    uint8_t loopback;
    uint8_t reserved[5];
    uint8_t ip[16];
};
static_assert(sizeof(device_address) == 40);

// What a peer must know to wake an interface of shm (doorbell.h).
struct bell_address {
    uint32_t pid;
    uint32_t page_fd;
    uint32_t pipe_fd;
    uint32_t fence; // 1: the sleeper cannot fence for the sender
    uint64_t nonce; // of the page
};

// Of an interface over connectionless endpoints; followed by the core's own address.
struct rdm_address {
    address_header header;
    uint64_t id;       // of the interface, random
    uint64_t birth;    // when the process started, so that a reused pid is noticed
    bell_address bell; // how to wake it; unused off-node, but for the pid

    size_t name_length() const { return header.length - sizeof(*this); }
};
static_assert(sizeof(rdm_address) == 48);

// Of an interface over connected endpoints: where it listens on its device.
struct msg_address {
    address_header header;
    uint64_t id;
    uint16_t port;
    uint16_t reserved;
    uint32_t segment; // the largest message it takes
};
static_assert(sizeof(msg_address) == 24);

// Reads a fixed part. available: bytes that arrived, or SIZE_MAX when the caller does not know;
// false when they are not ours.
template <class Address>
bool read_address(const void *from, size_t available, address_kind kind, uint16_t transport,
                  Address *out)
{
    if (available < sizeof(Address)) {
        return false;
    }
    memcpy(out, from, sizeof(Address));
    const address_header &h = out->header;
    return h.version == address_version && h.kind == static_cast<uint8_t>(kind) &&
           h.transport == transport && h.length >= sizeof(Address) && h.length <= available;
}

// Why a device or interface address cannot be read, for the message of an error. what: the
// argument.
std::string address_problem(const char *what, const void *from, size_t available,
                            const std::string &transport);

inline address_header make_header(address_kind kind, uint16_t transport, size_t length)
{
    return {address_version, static_cast<uint8_t>(kind), transport, static_cast<uint32_t>(length)};
}

// Family, address and host of a device on an internet.
inline void set_inet(const sockaddr_storage &own, device_address *device)
{
    device->host = network_identity();
    device->family = own.ss_family;
    device->loopback = ucs::sockaddr_is_loopback(reinterpret_cast<const sockaddr *>(&own));
    if (own.ss_family == AF_INET) {
        memcpy(device->ip, &reinterpret_cast<const sockaddr_in &>(own).sin_addr, 4);
    } else if (own.ss_family == AF_INET6) {
        memcpy(device->ip, &reinterpret_cast<const sockaddr_in6 &>(own).sin6_addr, 16);
    }
}

// Whether packets can go from own to there: loopback devices reach only themselves.
inline bool inet_reachable(const device_address &there, const sockaddr_storage &own)
{
    bool loopback = ucs::sockaddr_is_loopback(reinterpret_cast<const sockaddr *>(&own));
    return there.family == own.ss_family && there.loopback == loopback &&
           (!loopback || there.host == network_identity());
}

} // namespace uct::ofi
