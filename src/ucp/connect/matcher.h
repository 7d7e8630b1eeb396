// SPDX-License-Identifier: BSD-3-Clause
//
// Which endpoints of two workers pair: the n-th of one to the other with the other's n-th. The
// sender of a request may name any worker and any number. So a number may have several endpoints,
// one for each id by which a sender names itself, and no request changes the endpoint of another
// id. Whether the sender can be the worker of a given address is decided by its lanes: leads_to().
#pragma once

#include "ucp/connect/address.h"
#include "ucp/connect/postponed.h"

#include <cstdint>
#include <unordered_map>

struct ucp_ep;
struct ucp_worker;

namespace ucp {

// Endpoints by peer and number.
struct matcher {
    struct peer {
        uint32_t next_sn = 0;
        std::unordered_multimap<uint32_t, ucp_ep *> by_sn;
    };
    std::unordered_map<uint64_t, peer> peers;
    size_t peers_own = 0; // endpoints that answer a peer, and that the program does not have
    postponed_requests postponed;

    // One that fits(const ucp_ep &); nullptr: there is none.
    template <class F>
    ucp_ep *find(uint64_t uuid, uint32_t sn, F &&fits) const
    {
        auto p = peers.find(uuid);
        if (p == peers.end()) {
            return nullptr;
        }
        auto [at, end] = p->second.by_sn.equal_range(sn);
        while (at != end && !fits(*at->second)) {
            ++at;
        }
        return at == end ? nullptr : at->second;
    }
    void add(uint64_t uuid, uint32_t sn, ucp_ep *ep);
    void remove(ucp_ep *ep) noexcept;
    // The program gets an endpoint that answers a peer, or gives it back.
    void hand_out(ucp_ep *ep) noexcept;
    void take_back(ucp_ep *ep) noexcept;

  private:
    void one_less(ucp_worker *worker) noexcept;
};

// Whether a peer may make one endpoint more (UCX_MAX_PEER_EPS).
bool has_room_for_a_peer(const ucp_worker *worker) noexcept;

// Whether the lanes of an endpoint from the matcher lead to the worker of this address, which is
// intact and was unpacked to `peer`: it has the remote end of each of them. An address for networks
// alone says nothing of shared memory, over which only the trust domain comes. Throws bad_alloc.
bool leads_to(const ucp_ep &ep, const void *address, const unpacked_address &peer);

// The number of the endpoint there that pairs with ours of this number, and the other way round.
uint32_t partner_sn(const ucp_worker *worker, uint64_t uuid, uint32_t sn) noexcept;

} // namespace ucp
