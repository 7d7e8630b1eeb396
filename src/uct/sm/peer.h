// SPDX-License-Identifier: BSD-3-Clause
// A remote interface that this one sends to: endpoints of one interface to the same peer share its
// place in the peer's inbox.
#pragma once

#include "uct/sm/bell.h"
#include "uct/sm/ep.h"

#include <atomic>
#include <memory>

namespace uct::sm {

// Inboxes of this process by their nonce. "This process" is never believed of an address.
class local_inboxes {
  public:
    static void add(const std::shared_ptr<inbox> &own);
    static void remove(uint64_t nonce);
    static std::shared_ptr<inbox> find(uint64_t nonce); // empty: not of this process
};

enum class memory_access : uint8_t { unknown, allowed, forbidden }; // by cross-memory attach

// So long other senders believe a sender that it has seen the receiver.
constexpr uint64_t look_validity = 200'000'000;

struct peer {
    // Throws ucs::error: the peer cannot be reached, or takes no more senders.
    peer(const iface_address &to, pid_t pid, uint32_t birth);
    peer(const peer &) = delete;
    peer &operator=(const peer &) = delete;

    bool there() const noexcept
    {
        return local ? local_inboxes::find(about.nonce) != nullptr : is_there(about);
    }
    // One of the senders on the node looks and tells the others, by a stamp in the inbox: if each
    // of hundreds looked at each, that alone would keep a processor busy.
    bool seen_lately(uint64_t now) const noexcept
    {
        return now - box->seen().load(std::memory_order_relaxed) < look_validity;
    }
    bool look(uint64_t now) const noexcept
    {
        bool found = there();
        if (found) {
            box->seen().store(now, std::memory_order_relaxed);
        }
        return found;
    }
    UCS_NOINLINE void ring()
    {
        if (bell.ring()) {
            box->rung();
        }
    }

    const iface_address about;
    std::shared_ptr<inbox> local; // in the same process: it stays until no endpoint sends to it
    std::unique_ptr<outbox> box;
    remote_bell bell;
    ucs::list<ep, &ep::sibling> eps; // those that have not failed
    size_t refs = 0;                 // endpoints and operations
    memory_access access = memory_access::unknown;
    bool answered = false;          // to its requests, which counts as a reference
    bool failed = false;            // and its endpoints with it
    std::atomic<bool> gone = false; // as the life watch saw it
};

} // namespace uct::sm
