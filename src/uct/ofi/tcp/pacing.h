// SPDX-License-Identifier: BSD-3-Clause
// Pacing of tcp connections within the host. Where the system's congestion control is BBR it keeps
// each connection to the rate that it has measured, with a timer for each packet. That is a third
// of the sender's time on a path where nothing can be congested, so such connections get Reno's,
// which does not pace and which every system has.
#pragma once

#include <rdma/fi_endpoint.h>

namespace uct::ofi {

// Whether the congestion control that new sockets have here paces.
bool system_paces();

// Ends the pacing of a connected endpoint of the tcp core, if its peer is on this host. near: where
// to begin to look for the core's socket, and afterwards where it was found. Where it is not found
// it is paced as before.
void stop_local_pacing(fid_ep *endpoint, int *near);

} // namespace uct::ofi
