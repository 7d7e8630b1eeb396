// SPDX-License-Identifier: BSD-3-Clause
// Which addresses the kernel's routing table reaches through one network device, as of the time it
// was read. Two devices of two hosts are a pair only where such a route exists: an address alone
// says nothing about the wire behind it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uct::ofi {

class routes {
  public:
    routes() = default;
    explicit routes(const std::string &device);

    // True also for a device that the table does not know: other rules decide there.
    bool reach(int family, const uint8_t (&ip)[16]) const;

    struct prefix {
        int family;
        uint8_t ip[16];
        unsigned bits;
    };

  private:
    std::vector<prefix> prefixes_;
};

} // namespace uct::ofi
