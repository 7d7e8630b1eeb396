// SPDX-License-Identifier: BSD-3-Clause
// What libfabric 1.17's shm keeps in a region of each peer: the peer's name, and the index that the
// peer has given us. It forgets to clear that when the peer is removed, so that the next peer of
// the entry counts as connected with the index of the removed one, and the answers to atomic
// operations go to another peer. Later versions have the same defect and other layouts: there, no
// peer is removed.
#pragma once

#include <string>

namespace uct::ofi {

class shm_peers {
  public:
    // Whether peers can be removed.
    static bool are_removable();

    // Of our own endpoint. Before the removal: the entry that has the name; -1: none has it.
    static int find(const std::string &own, const std::string &peer);
    // After it.
    static void clear(const std::string &own, int entry);
};

} // namespace uct::ofi
