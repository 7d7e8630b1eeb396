// SPDX-License-Identifier: BSD-3-Clause
// The memory of other processes that is mapped here. Several keys of one memory share a mapping,
// and one that no key uses any more stays for a while: the key of a rendezvous lives for one
// message, and the next message often comes out of the same memory.
#pragma once

#include "uct/shared/shared_memory.h"

namespace uct {

// Where the memory is mapped here, with `hint` for a new mapping; nullptr when it cannot be. To be
// released once for each time.
void *acquire_mapping(const shared_memory_key &key, uint64_t hint);
void release_mapping(const shared_memory_key &key) noexcept;

} // namespace uct
