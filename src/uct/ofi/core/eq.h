// SPDX-License-Identifier: BSD-3-Clause
// What the core has behind an event queue that passive endpoints are bound to, and its end.
#pragma once

#include "uct/ofi/fabric/fid.h"
#include "uct/ofi/fabric/info.h"

#include <cstdint>
#include <sys/socket.h>
#include <sys/types.h>
#include <vector>

namespace uct::ofi {

// Before an event queue is closed: refuses the requests that were not taken and ends the handshakes
// that have only begun. All endpoints of the queue are closed already, its passive ones are not.
void end_handshakes(const core &c, fid_eq *eq) noexcept;

// Ends the handshakes of connections to the listeners of a queue that do not send a request. The
// core waits for one for ever.
class handshake_watch {
  public:
    // Ends those that have been silent for so long, and of the younger ones the oldest, so that
    // they have no more than half of the process's descriptors. Every event of the queue is to be
    // read between two calls.
    void end_silent(fid_eq *eq, uint64_t quiet_ns) noexcept;

  private:
    struct seen {
        int fd;
        ino_t inode;
    };
    void end_those_found(fid_eq *eq, uint64_t quiet_ns);
    void end_lost(const std::vector<int> &known, const std::vector<uint16_t> &ports,
                  uint64_t quiet_ns);

    std::vector<seen> lost_; // at the last search
    uint64_t next_search_ = 0;
};

// The socket that listens on an address for passive endpoints of the queue; -1 when the core does
// not let it be found.
int listening_socket(fid_eq *eq, const sockaddr *address);

} // namespace uct::ofi
