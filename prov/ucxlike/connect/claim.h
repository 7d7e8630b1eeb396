// SPDX-License-Identifier: BSD-3-Clause
//
// A connection that came in and names a peer that this endpoint knows otherwise: one that has come
// back, or a stranger. The endpoint calls the address that the hello names and sends there a random
// word, with the id of the hello: only the process that listens there and has said that hello knows
// what to do with it, and sends the word over its own connection. Until then nothing of the peer
// changes, and what comes over the connection is kept, up to a limit.
//
//    claimant                                         this endpoint
//      hello, messages            -- its link -->     kept
//      (listener)                 <-- a call --       challenge: id of the hello, word
//      proof: word                -- its link -->     the peer has this link; what was kept arrives
#pragma once

#include "prov/ucxlike/engine.h"

namespace ucxlike {

class rdm_endpoint;

struct claim final : conn {
    // Calls. Throws failure, and then the link is as before.
    claim(rdm_endpoint *ep, link *l, const wire::hello &said);
    ~claim() override;
    claim(const claim &) = delete;
    claim &operator=(const claim &) = delete;

    void link_failed(link *l) override;
    void control(const wire::message &m, const void *data, size_t length, link *reply) override;
    bool keep(unsigned am, const wire::message &m, void *data, size_t length,
              const ucp_am_recv_param_t *param, ucs_status_t *status) override;

    const wire::hello said;

  private:
    // What the called address says does not matter, but it may be out of reach.
    struct callee final : conn {
        explicit callee(claim *c) : conn(c->eng), asked_for(c) {}
        void link_failed(link *l) override;
        void control(const wire::message &, const void *, size_t, link *) override {}
        claim *asked_for;
    };

    rdm_endpoint *home_;
    callee callee_;
    uint64_t word_;
    size_t held_ = 0; // bytes that are kept
};

} // namespace ucxlike
