// SPDX-License-Identifier: BSD-3-Clause
// Reading /proc/net/route and /proc/net/ipv6_route.
#include "uct/ofi/fabric/routes.h"

#include <bit>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <sys/socket.h>

namespace uct::ofi {

namespace {

constexpr unsigned long route_up = 1;
constexpr unsigned long route_reject = 0x200;

bool usable(unsigned long flags)
{
    return (flags & route_up) && !(flags & route_reject);
}

// Iface Destination Gateway Flags RefCnt Use Metric Mask ..., addresses as the kernel holds them.
void read_v4(const std::string &device, std::vector<routes::prefix> &out)
{
    std::ifstream file("/proc/net/route");
    for (std::string line; std::getline(file, line);) {
        char name[64];
        unsigned destination, gateway, mask;
        unsigned long flags;
        if (sscanf(line.c_str(), "%63s %x %x %lx %*d %*u %*d %x", name, &destination, &gateway,
                   &flags, &mask) != 5 ||
            device != name || !usable(flags)) {
            continue;
        }
        routes::prefix p{AF_INET, {}, static_cast<unsigned>(std::popcount(mask))};
        memcpy(p.ip, &destination, 4);
        out.push_back(p);
    }
}

// destination(32 hex) bits(hex) source bits next-hop metric refcnt use flags device
void read_v6(const std::string &device, std::vector<routes::prefix> &out)
{
    std::ifstream file("/proc/net/ipv6_route");
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string destination, bits, skip, flags, name;
        words >> destination >> bits >> skip >> skip >> skip >> skip >> skip >> skip >> flags >>
            name;
        if (name != device || destination.size() != 32 ||
            !usable(strtoul(flags.c_str(), nullptr, 16))) {
            continue;
        }
        routes::prefix p{AF_INET6, {}, static_cast<unsigned>(strtoul(bits.c_str(), nullptr, 16))};
        for (unsigned i = 0; i < 16; ++i) {
            p.ip[i] =
                static_cast<uint8_t>(strtoul(destination.substr(2 * i, 2).c_str(), nullptr, 16));
        }
        out.push_back(p);
    }
}

bool covers(const routes::prefix &p, const uint8_t (&ip)[16])
{
    unsigned whole = p.bits / 8;
    unsigned rest = p.bits % 8;
    if (memcmp(p.ip, ip, whole) != 0) {
        return false;
    }
    return rest == 0 || ((p.ip[whole] ^ ip[whole]) >> (8 - rest)) == 0;
}

} // namespace

routes::routes(const std::string &device)
{
    read_v4(device, prefixes_);
    read_v6(device, prefixes_);
}

bool routes::reach(int family, const uint8_t (&ip)[16]) const
{
    bool known = false;
    for (const prefix &p : prefixes_) {
        if (p.family == family) {
            known = true;
            if (covers(p, ip)) {
                return true;
            }
        }
    }
    return !known;
}

} // namespace uct::ofi
