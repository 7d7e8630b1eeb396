// SPDX-License-Identifier: BSD-3-Clause
//
// Which transport resources a context may use: UCX_TLS with its aliases and negation, and
// UCX_NET_DEVICES.
#pragma once

#include "ucp/context.h"

#include <string>
#include <vector>

namespace ucp {

tl_class classify(const uct_tl_resource_desc_t &desc) noexcept;

bool is_all(const std::vector<std::string> &list) noexcept;

// The network device that the kernel's default route names, or "".
std::string default_route_device();

class selection {
  public:
    explicit selection(const config &config);

    bool allows(const tl_resource &rsc);
    // One warning for the names that no resource had.
    void warn_unmatched() const;

  private:
    struct entry {
        std::string name;
        bool matched = false;
    };
    bool tl_listed(const tl_resource &rsc);
    bool device_listed(const tl_resource &rsc);

    std::vector<entry> tls_;
    std::vector<entry> devices_;
    bool negate_ = false;
};

} // namespace ucp
