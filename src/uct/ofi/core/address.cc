// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/core/address.h"

namespace uct::ofi {

std::string address_problem(const char *what, const void *from, size_t available,
                            const std::string &transport)
{
    address_header header;
    if (from && available >= sizeof(header)) {
        memcpy(&header, from, sizeof(header));
        if (header.version != address_version) {
            return std::string(what) + " has version " + std::to_string(header.version) +
                   " of addresses, this library reads version " + std::to_string(address_version);
        }
    }
    return std::string(what) + " is not an address of " + transport;
}

} // namespace uct::ofi
