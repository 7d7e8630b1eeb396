// SPDX-License-Identifier: BSD-3-Clause
//
// A multicast group that an RDM endpoint has joined. A message to the group goes to each receiving
// member over the connection to it, so it is as reliable and as ordered as any other; who dies or
// leaves is sent to no more.
#pragma once

#include "prov/ucxlike/connect/herald.h"

#include <memory>

namespace ucxlike {

class rdm_endpoint;
struct peer;

class group final : public fid_mc {
  public:
    static int join(fid_ep *f, const void *addr, uint64_t flags, fid_mc **out, void *context);

    struct member {
        peer *who;
        uint64_t id; // of the group, at the member
    };
    // Who gets what is sent.
    const std::vector<member> &receivers() const { return receivers_; }
    bool can_send() const { return (roles_ & wire::notice::sends) && joined_; }
    bool receives() const { return roles_ & wire::notice::receives; }
    uint32_t id() const { return id_; }

    // The following run under the engine's lock.
    void collect(); // what the herald has heard
    void drop(peer *p);
    void check_joined();

    static constexpr fi_addr_t address_bit = 1ULL << 63; // no index of an address vector has it

  private:
    group(rdm_endpoint *ep, const address &at, uint8_t roles, void *context);
    ~group();
    void met(const wire::notice &n);

    static int close(fid_t f);
    static fi_ops fid_ops_;

    rdm_endpoint *ep_;
    uint8_t roles_;
    uint32_t id_;
    bool joined_ = false; // FI_JOIN_COMPLETE was written
    std::vector<member> receivers_;
    std::unique_ptr<herald> herald_;
};

} // namespace ucxlike
