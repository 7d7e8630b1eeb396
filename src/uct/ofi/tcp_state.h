// SPDX-License-Identifier: BSD-3-Clause
// What the kernel knows about a TCP connection of the tcp core, whose sockets we do not see: how
// often it has sent the same bytes again because nobody acknowledged them. That tells a peer whose
// host or link is gone from one that is merely busy with something else.
#pragma once

#include <sys/socket.h>

namespace uct::ofi {

// Retransmissions in a row without an answer; 0 also for a connection the kernel does not know.
unsigned unanswered(const sockaddr_storage &local, const sockaddr_storage &remote);

} // namespace uct::ofi
