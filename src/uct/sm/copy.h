// SPDX-License-Identifier: BSD-3-Clause
// Cross-memory attach: the kernel copies between this process and a peer. A number of a process is
// used again, so every copy first proves that the process still is the interface's: it reads the
// random number that the address tells of. A read does so in the same call. Between the proof and a
// write the process can end and another one can take its number; that takes a whole round of the
// kernel's process numbers between two system calls.
#pragma once

#include "uct/sm/address.h"

#include <cstddef>
#include <sys/uio.h>

namespace uct::sm {

enum class copied {
    done,
    forbidden, // by the system, for this peer
    gone,      // it is another process now, or none
    fault,     // there is no such memory
};

// Whether the peer can be reached this way.
copied probe(const iface_address &peer) noexcept;
// One piece each. remote: in the peer's process.
copied read_from(const iface_address &peer, void *to, uint64_t remote, size_t length) noexcept;
copied write_to(const iface_address &peer, const void *from, uint64_t remote,
                size_t length) noexcept;

} // namespace uct::sm
