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

// Ends the pacing of a connected endpoint of the tcp core, if its peer is on this host. Where the
// core's socket is not found it is paced as before. Any thread.
void stop_local_pacing(fid_ep *endpoint);

} // namespace uct::ofi
