// SPDX-License-Identifier: BSD-3-Clause
// What the core has behind an event queue that passive endpoints are bound to, and its end.
#pragma once

#include "uct/ofi/core/fid.h"
#include "uct/ofi/core/info.h"

#include <cstdint>
#include <sys/socket.h>

namespace uct::ofi {

// Before an event queue is closed: refuses the requests that nobody took and ends the handshakes
// that have only begun. All endpoints of the queue are closed already, its passive ones are not.
void end_handshakes(const core &c, fid_eq *eq);

// Ends the handshakes of connections to a listener of the queue that have begun so long ago and
// have not sent a request, and of the younger ones the oldest, so that they have no more than half
// of the process's descriptors. The core waits for a request for ever.
void end_silent_handshakes(fid_eq *eq, uint64_t quiet_ns);

// The socket that listens on an address for passive endpoints of the queue; -1 when the core does
// not let it be found.
int listening_socket(fid_eq *eq, const sockaddr *address);

} // namespace uct::ofi
