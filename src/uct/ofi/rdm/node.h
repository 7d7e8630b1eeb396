// SPDX-License-Identifier: BSD-3-Clause
// What a core whose peers are on the node needs besides: names for its endpoints, a watch over its
// peers, because shared memory says nothing when the process behind it dies, and a way to sleep,
// because it has no descriptor. The folder of such a core has it made when an interface is opened
// (shm/node.h); interfaces to other hosts have none.
#pragma once

#include "uct/ofi/core/address.h"
#include "uct/ofi/core/sleeper.h"

#include <atomic>
#include <functional>
#include <memory>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <string>

namespace uct::ofi {

class md;

// A peer's.
class neighbour {
  public:
    neighbour() = default;
    neighbour(const neighbour &) = delete;
    neighbour &operator=(const neighbour &) = delete;
    virtual ~neighbour() = default;

    // Endpoints lead to it, which may have to wake it. Throws ucs::error.
    virtual void begin() = 0;
    // None does any more; its death is still watched for.
    virtual void rest() = 0;
    virtual sleeper *bell() = 0;           // nullptr while it rests
    virtual fi_addr_t address() const = 0; // the core's handle
};

class node {
  public:
    node() = default;
    node(const node &) = delete;
    node &operator=(const node &) = delete;
    virtual ~node() = default;

    // The core's endpoint: before it is made, and when it has its address.
    virtual void name_endpoint(fi_info *info) = 0;
    virtual void opened(const std::string &core_address, fid_av *av) = 0;

    // Whether the process that the address names has such an endpoint.
    virtual bool has(const rdm_address &about, const std::string &core_address) const = 0;
    // Whether meet() has room for it.
    virtual bool has_room(const rdm_address &about, const std::string &core_address) const = 0;
    // Whether any process has it.
    virtual bool is_open(const std::string &core_address) const = 0;
    // Makes the peer known to the core. died: called once, by another thread, when the process
    // dies. Empty: it is this one. Throws ucs::error, UCS_ERR_EXCEEDS_LIMIT where the core knows as
    // many as it can.
    virtual std::unique_ptr<neighbour>
    meet(const rdm_address &about, const std::string &core_address, std::function<void()> died) = 0;
    // The process died: what it has left behind goes.
    virtual void clear_away(const std::string &core_address) = 0;
    // The core forgets a peer that is gone.
    virtual void forget(const std::string &core_address) = 0;
    // How many peers that are gone may stay known: their memory stays as long.
    static constexpr size_t usually_kept = 16;
    virtual size_t gone_kept() const = 0;

    // Not 0: peers of which the interface has not asked anything came, went or were refused.
    virtual const std::atomic<uint32_t> &news() const = 0;
    // To be called then: before the core is polled, and with everything taken out of its queue.
    virtual void greet() = 0;
    virtual void hear() = 0;

    // Sleeping: how others wake us, and what is readable then. What is sent after arm() has
    // returned rings.
    virtual bell_address address() const = 0;
    virtual int fd() const = 0;
    virtual void arm() = 0;
    virtual void disarm() = 0;
    virtual void ring() = 0; // from any thread
};

using make_node = std::unique_ptr<node>(const md &); // throws ucs::error

} // namespace uct::ofi
