// SPDX-License-Identifier: BSD-3-Clause
// What a core whose peers are on the node needs besides: names for its endpoints, a watch over its
// peers, because shared memory says nothing when the process behind it dies, and a way to sleep,
// because it has no descriptor. The folder of such a core has it made when an interface is opened
// (shm/node.h); interfaces to other hosts have none.
#pragma once

#include "uct/ofi/core/address.h"
#include "uct/ofi/core/sleeper.h"

#include <functional>
#include <memory>
#include <rdma/fabric.h>
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
    virtual sleeper *bell() = 0; // nullptr while it rests
};

class node {
  public:
    node() = default;
    node(const node &) = delete;
    node &operator=(const node &) = delete;
    virtual ~node() = default;

    // The core's endpoint: before it is made, and when it has its address.
    virtual void name_endpoint(fi_info *info) = 0;
    virtual void opened(const std::string &core_address) = 0;

    // Whether the process that the address names has such an endpoint.
    virtual bool has(const rdm_address &about, const std::string &core_address) const = 0;
    // Whether anybody has it.
    virtual bool is_open(const std::string &core_address) const = 0;
    // died: called once, by another thread, when the process dies. Empty: it is this one. Throws
    // ucs::error.
    virtual std::unique_ptr<neighbour>
    meet(const rdm_address &about, const std::string &core_address, std::function<void()> died) = 0;
    // The process died: what it has left behind goes.
    virtual void clear_away(const std::string &core_address) = 0;

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
