// SPDX-License-Identifier: BSD-3-Clause
//
// Telling which transport carries what of a new endpoint.
#pragma once

#include <string>

struct ucp_ep;

namespace ucp {

// What a lane of the endpoint is for: " am rma".
std::string roles_of(const ucp_ep &ep, unsigned lane);

// As the user named it, or else where it is.
std::string name_of(const ucp_ep &ep);

// Tells the log, and gives the counters of the lanes their names.
void announce_ep(const ucp_ep &ep);

} // namespace ucp
