// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a connection comes from this host. What arrives over one from elsewhere may claim to be
// of this host all the same: shared memory is not looked for on such a word.
#pragma once

#include <sys/socket.h>

namespace ucp {

struct unpacked_address;

// One of this host's own addresses, in this network namespace. The kernel drops packets from
// elsewhere that say so.
bool is_own_address(const sockaddr *address);

// Notes in a worker's address whence it came.
void note_origin(const sockaddr *connection, unpacked_address *peer);

} // namespace ucp
