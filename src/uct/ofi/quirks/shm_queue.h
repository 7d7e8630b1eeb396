// SPDX-License-Identifier: BSD-3-Clause
// From libfabric 1.19 on, processes write to a queue of the shm core without a lock: each reserves
// an entry, fills it and commits it. One that is killed in between leaves an entry that is never
// committed, and the reader, which takes them in their order, waits at it for ever.
#pragma once

#include <string>

namespace uct::ofi {

// After a death: returns at once when everything in the queues of the region is committed. What
// stays uncommitted for much longer than a living process needs becomes an entry with nothing in
// it. False: it may be that of a process that is stopped; to be called again. Does nothing where
// there is no such region, or where its layout is not known. Any thread, but one at a time.
[[nodiscard]] bool repair_shm_queues(const std::string &name);

} // namespace uct::ofi
