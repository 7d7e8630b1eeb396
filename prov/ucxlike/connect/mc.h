// SPDX-License-Identifier: BSD-3-Clause
//
// A multicast group that an RDM endpoint has joined. A message to the group goes to each receiving
// member over the connection to it, so it is as reliable and as ordered as any other; a member that
// dies or leaves is sent to no more.
#pragma once

#include "prov/ucxlike/connect/herald.h"

#include <memory>

namespace ucxlike {

class rdm_endpoint;
struct peer;

class group final : public fid_mc {
  public:
    static int join(fid_ep *f, const void *addr, uint64_t flags, fid_mc **out, void *context);

    // What is known of a receiver. A notice is believed when it names a new one. That a known one
    // has left, or has another id, is asked of it over the connection.
    enum class standing : uint8_t {
        sure,
        doubted, // to be asked when it has answered our hello
        asked,
        asked_twice, // another notice came in the meantime: to be asked again
    };
    struct member {
        peer *receiver;
        uint64_t id; // of the group, at the member
        standing state = standing::sure;
        bool moved = false; // it is said to have another id: what is sent waits for its answer
    };
    // The members that get what is sent.
    const std::vector<member> &receivers() const { return receivers_; }
    bool can_send() const { return (roles_ & wire::notice::sends) && joined_; }
    bool must_wait() const;
    bool receives() const { return roles_ & wire::notice::receives; }
    uint32_t id() const { return id_; }
    uint64_t wire_id() const { return wire_id_; }
    const address &at() const { return at_; }
    bool is_at(const wire::membership &m) const;

    // The following run under the engine's lock.
    void collect(); // what the herald has heard
    void drop(peer *p);
    void peer_ready(); // one has answered our hello
    void answered(const peer *p, const wire::membership &m);

    static constexpr fi_addr_t address_bit = 1ULL << 63; // no index of an address vector has it

  private:
    group(rdm_endpoint *ep, const address &at, uint8_t roles, void *context);
    ~group();
    void met(const wire::notice &n);
    void met_again(member &m, const wire::notice &n);
    bool trusts_another() const;
    void doubt(member &m);
    void check_joined();
    member *find(const peer *p);

    static int close(fid_t f);
    static fi_ops fid_ops_;

    rdm_endpoint *ep_;
    address at_;
    uint8_t roles_;
    uint64_t wire_id_;
    uint32_t id_;
    bool joined_ = false; // FI_JOIN_COMPLETE was written
    std::vector<member> receivers_;
    std::unique_ptr<herald> herald_;
};

} // namespace ucxlike
