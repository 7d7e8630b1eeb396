// SPDX-License-Identifier: BSD-3-Clause
// Which local address and device lead to a remote address, as the kernel's routing table says.
#pragma once

#include "uct/ofi/fabric/info.h"

#include <netinet/in.h>
#include <string>

namespace uct::ofi {

struct route {
    sockaddr_storage source; // port 0
    std::string device;      // of the transport
};

// local: the address the user wants to come from, or nullptr. Throws ucs::error(UNREACHABLE).
route find_route(const core &c, const sockaddr *remote, const sockaddr *local);

// The device that has the address; empty when there is none.
std::string device_with_address(const core &c, const sockaddr *address);

// Puts a copy of an address where an info has one.
void set_address(void **out, size_t *length, const sockaddr *address);

} // namespace uct::ofi
