// SPDX-License-Identifier: BSD-3-Clause
// What an interface can do and how it does it, by its core and its settings: values, so that no
// operation asks what kind of core it goes over. A core that needs other values than those found
// for any gives a function of its own in its row of the registry.
#pragma once

#include "uct/ofi/core/op.h"

#include <cstddef>
#include <cstdint>
#include <rdma/fi_domain.h>

struct uct_iface_config;

namespace uct::ofi {

class md;

// Masks of UCS_BIT(UCT_ATOMIC_OP_*) that the core carries out.
struct atomic_ops {
    uint64_t post;
    uint64_t fetch;
};

atomic_ops find_atomics(const ofi::md &domain, fi_datatype type); // amo.cc

// Set at open, read by every operation.
struct limits {
    size_t inject;     // largest message the core copies at once
    size_t segment;    // largest active message; the size of every buffer
    size_t prefix;     // before each active message, to put it in order; 0: the core keeps order
    size_t max_short;  // largest am_short and put_short
    size_t max_header; // of am_zcopy
    size_t on_stack;   // largest am_short that goes without a pool buffer
    size_t max_iov;
    size_t batched;     // largest active message that may join others; 0: none
    uint64_t put_flags; // what makes the completion of a write mean that it is done at the target
    uint64_t atomic_flags; // the same of an atomic operation
    bool post_by_fetch;    // an atomic without result is one whose result is dropped
    uint64_t overtaken;    // kinds of operations, by bits, that later ones may overtake
    atomic_ops atomic32;
    atomic_ops atomic64;
    bool rma;
    bool tagged;        // the core matches tags
    bool shared;        // messages share receive buffers
    bool immediate_rma; // a write or read is done when it was posted
    size_t put_inject;  // largest write that is injected, and done then
    size_t inject_run;  // messages injected between two marks (ep.h)
    unsigned copies;    // messages of an endpoint on their way that were copied (ep.h)
    size_t max_peers;   // of an interface
    bool watched;       // the transport tells of deaths: no peer has to be asked whether it lives
    bool own_bandwidth; // each process has the whole; else those of the node share it
    uint64_t atomics;   // what carries them out: UCT_IFACE_FLAG_ATOMIC_DEVICE or _CPU
};

constexpr size_t short_limit = 1024; // of max_short: beyond, a pool buffer costs no more

// Of any core (limits.cc). longest: most bytes of a message that it is to be given.
limits find_limits(const ofi::md &domain, const uct_iface_config &config);
limits find_limits(const ofi::md &domain, const uct_iface_config &config, size_t longest);

// Kinds of operations, by bits.
constexpr uint64_t bit(op::kind kind)
{
    return uint64_t{1} << static_cast<unsigned>(kind);
}
constexpr uint64_t get_kinds = bit(op::kind::get) | bit(op::kind::get_bcopy);
constexpr uint64_t put_kinds = bit(op::kind::put);
constexpr uint64_t atomic_kinds = bit(op::kind::atomic) | bit(op::kind::fetch);

} // namespace uct::ofi
