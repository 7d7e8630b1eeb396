// SPDX-License-Identifier: BSD-3-Clause
//
// Which transport resources a context may use: UCX_TLS with its aliases and negation, and
// UCX_NET_DEVICES.
#pragma once

#include "ucp/core/context.h"

#include <set>
#include <string>
#include <vector>

namespace ucp {

tl_class classify(const uct_tl_resource_desc_t &desc) noexcept;

bool is_all(const std::vector<std::string> &list) noexcept;

// What decides between two resources, the first difference first.
struct resource_rank {
    tl_class cls = tl_class::other;
    bool loopback = false;      // reaches this host alone
    double distance = 0;        // from our processors, seconds; see rank_of()
    bool default_route = false; // the device that the host itself prefers
};
bool better(const resource_rank &a, const resource_rank &b) noexcept;

// default_device: what default_route_device() says.
resource_rank rank_of(const tl_resource &rsc, const std::string &default_device);

// The network device that the kernel's default route names, or "".
std::string default_route_device();

// A network interface with an address that other hosts may reach: not the loopback, not one with
// link-local addresses alone, and no software switch of this host, whose address may exist on other
// hosts, too.
bool reaches_beyond(const std::string &device);

// IP addresses at which other processes may call this host, of 4 or 16 bytes, the best first: those
// of the default route's device, then those of others; the loopback's where there are no others.
std::vector<std::vector<uint8_t>> addresses_of_this_host(size_t most);

// Whether something says at which ports peers find this process (UCX_TCP_PORT_RANGE), or may: a
// file is read when the transport is opened.
bool ports_are_chosen(const ucp_context &context);

// How many devices one operation may use.
unsigned most_rails(const config &config) noexcept;

class selection {
  public:
    explicit selection(const config &config);

    // Whether the component is worth opening.
    bool component_listed(const char *name) const;
    // libfabric's provider shm is opened only where it is named, or where no resource is there that
    // stands_in_for_spare().
    bool is_spare(const char *name) const;
    static bool stands_in_for_spare(const tl_resource &rsc);
    bool allows(const tl_resource &rsc);
    // Whether something was asked for that no resource has which allows() has seen, those of
    // uct::own_components().
    bool needs_cores() const;
    // What was asked for and no resource has, a sentence a variable; complete after allows() has
    // seen every resource.
    std::vector<std::string> unmatched() const;

  private:
    struct entry {
        std::string name;
        bool matched = false;
    };
    bool tl_listed(const tl_resource &rsc);
    bool device_listed(const tl_resource &rsc);

    std::vector<entry> tls_;
    std::vector<entry> devices_;
    std::set<std::string> known_tls_; // of the resources seen
    std::set<std::string> known_devices_;
    const char *tls_variable_;
    const char *devices_variable_;
    bool negate_ = false;
};

} // namespace ucp
