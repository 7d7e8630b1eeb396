// SPDX-License-Identifier: BSD-3-Clause
// What the core has behind an event queue that passive endpoints are bound to, and its end.
#pragma once

#include "uct/ofi/core/fid.h"
#include "uct/ofi/core/info.h"

#include <cstdint>
#include <sys/socket.h>
#include <vector>

namespace uct::ofi {

// Before an event queue is closed: refuses the requests that nobody took and ends the handshakes
// that have only begun. All endpoints of the queue are closed already, its passive ones are not.
void end_handshakes(const core &c, fid_eq *eq);

// Ends the handshakes of connections to a listener of the queue that have sent no request and
// nothing else for so long. The core waits for one for ever, and does not tell of their begin, so
// each look reads what the queue waits on. It asks only of what is new and, at the next look, of
// what is silent; a socket that has asked for something is not looked at again.
class silent_handshakes {
  public:
    silent_handshakes(fid_eq *eq, uint64_t quiet_ns) : eq_(eq), most_quiet_ns_(quiet_ns) {}
    void look(); // twice in that time

  private:
    struct socket {
        int fd;
        uint64_t file;
    };

    bool is_known(const socket &s) const;
    void came(const socket &s);
    void look_at(const socket &s);

    fid_eq *const eq_;
    const uint64_t most_quiet_ns_;
    std::vector<uint64_t> known_; // files, sorted
    std::vector<socket> listening_;
    std::vector<socket> waiting_; // that have asked for nothing yet
};

// The socket that listens on an address for passive endpoints of the queue; -1 when the core does
// not let it be found.
int listening_socket(fid_eq *eq, const sockaddr *address);

} // namespace uct::ofi
