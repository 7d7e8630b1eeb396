// SPDX-License-Identifier: BSD-3-Clause
// What the kernel knows about a TCP connection of the tcp core, whose sockets we do not see: how
// often the kernel has sent the same bytes again because no acknowledgement came. That number
// distinguishes a peer with a lost host or link from a peer that is busy.
#pragma once

#include "ucs/owned_fd.h"

#include <cstdint>
#include <optional>
#include <rdma/fi_endpoint.h>
#include <sys/socket.h>

namespace uct::ofi {

// What a connection is known by.
struct tcp_ends {
    sockaddr_storage local, remote;

    const sockaddr *here() const { return reinterpret_cast<const sockaddr *>(&local); }
    const sockaddr *there() const { return reinterpret_cast<const sockaddr *>(&remote); }
};

struct tcp_look {
    unsigned unanswered = 0; // retransmissions in a row without an answer
    bool heard = false;      // something of the peer is unread, or came less than a second ago
};

// Of a connected endpoint of the tcp core; false when the core does not say.
bool ends_of(fid_ep *endpoint, tcp_ends *out);

// The descriptor of this process's socket between the ends; -1: there is none. Descriptors are
// given out from below, so that of a new connection is close to the one of the connection before:
// the search begins at the last that was found, goes up, and then down. Any thread.
int find_socket(const tcp_ends &of);

// Looks at connections of the calling thread's network namespace, one after the other. It asks
// the kernel for the one socket (sock_diag(7)), so that a look does not grow with the sockets that
// there are. Where the kernel does not answer such requests (no tcp_diag module, a filter of system
// calls, another kernel), the descriptor of the socket is found once and asked instead. To be used
// for a round of looks, not to be kept: it holds a descriptor, and has it from the first look on.
class tcp_inquiry {
  public:
    // Also of a connection the kernel does not know, of which it tells nothing.
    // found: the connection's descriptor, as far as it is known; set when it was found.
    tcp_look look(const tcp_ends &of, int *found);

  private:
    bool open();
    std::optional<tcp_look> ask_kernel(const tcp_ends &of);
    tcp_look ask_socket(const tcp_ends &of, int *found);

    ucs::owned_fd netlink_;
    bool refused_ = false;  // the kernel has no such sockets
    bool answered_ = false; // it has told of one: those that it does not know are gone
    bool searched_ = false; // all descriptors, in vain
};

} // namespace uct::ofi
