// SPDX-License-Identifier: BSD-3-Clause
// Asking the kernel for the source address.
#include "uct/ofi/fabric/route.h"

#include "ucs/error.h"
#include "ucs/sockaddr.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace uct::ofi {

void set_address(void **out, size_t *length, const sockaddr *address)
{
    free(*out);
    *length = ucs::sockaddr_length(address);
    *out = malloc(*length); // fi_freeinfo frees it
    if (!*out) {
        throw std::bad_alloc();
    }
    memcpy(*out, address, *length);
}

std::string device_with_address(const core &c, const sockaddr *address)
{
    const std::string *loopback = nullptr;
    for (const device &d : devices(c)) {
        for (const fi_info *info : d.infos) {
            auto *own = static_cast<const sockaddr *>(info->src_addr);
            if (!own) {
                continue;
            }
            if (ucs::sockaddr_same_host(own, address)) {
                return d.name;
            }
            if (ucs::sockaddr_is_loopback(own)) {
                loopback = &d.name;
            }
        }
    }
    // 127.0.0.0/8 is one device with one listed address.
    return loopback && ucs::sockaddr_is_loopback(address) ? *loopback : std::string();
}

namespace {

// What an address of this host is reached from: itself. The kernel need not be asked.
bool is_own(const core &c, const sockaddr *remote, route *found)
{
    for (const device &d : devices(c)) {
        for (const fi_info *info : d.infos) {
            auto *own = static_cast<const sockaddr *>(info->src_addr);
            if (own && ucs::sockaddr_same_host(own, remote)) {
                memcpy(&found->source, own, ucs::sockaddr_length(own));
                ucs::sockaddr_set_port(reinterpret_cast<sockaddr *>(&found->source), 0);
                found->device = d.name;
                return true;
            }
        }
    }
    return false;
}

} // namespace

route find_route(const core &c, const sockaddr *remote, const sockaddr *local)
{
    route found{};
    if (!local && is_own(c, remote, &found)) {
        return found;
    }
    if (local && !ucs::sockaddr_is_any(local)) {
        memcpy(&found.source, local, ucs::sockaddr_length(local));
    } else if (!ucs::sockaddr_source(remote, &found.source)) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "no route to %s: %s",
                         ucs::sockaddr_string(remote).c_str(), strerror(errno));
    }
    auto *source = reinterpret_cast<sockaddr *>(&found.source);
    ucs::sockaddr_set_port(source, 0);
    found.device = device_with_address(c, source);
    if (found.device.empty()) {
        throw ucs::error(UCS_ERR_UNREACHABLE, "%s: %s is reached from %s, which is no device of it",
                         c.transport.c_str(), ucs::sockaddr_string(remote).c_str(),
                         ucs::sockaddr_string(source).c_str());
    }
    return found;
}

} // namespace uct::ofi
