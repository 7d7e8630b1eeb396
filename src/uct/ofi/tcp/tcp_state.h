// SPDX-License-Identifier: BSD-3-Clause
// What the kernel knows about a TCP connection of the tcp core, whose sockets we do not see: how
// often it has sent the same bytes again because nobody acknowledged them. That tells a peer whose
// host or link is gone from one that is merely busy with something else.
#pragma once

#include <rdma/fi_endpoint.h>
#include <sys/socket.h>

namespace uct::ofi {

// What a connection is known by.
struct tcp_ends {
    sockaddr_storage local, remote;

    const sockaddr *here() const { return reinterpret_cast<const sockaddr *>(&local); }
    const sockaddr *there() const { return reinterpret_cast<const sockaddr *>(&remote); }
};

// Of a connected endpoint of the tcp core; false when the core does not say.
bool ends_of(fid_ep *endpoint, tcp_ends *out);

// Retransmissions in a row without an answer; 0 also for a connection the kernel does not know.
unsigned unanswered(const tcp_ends &of);

} // namespace uct::ofi
