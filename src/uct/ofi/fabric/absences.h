// SPDX-License-Identifier: BSD-3-Clause
// What discovery left out, and why: for tools. See info.h.
#pragma once

#include <string>
#include <vector>

namespace uct::ofi {

struct absence {
    std::string provider; // libfabric's name
    std::string device;   // "" when it is the whole provider
    std::string why;      // ends the sentence "it is not used: "
};

// Of this process; complete once info.h's cores() has been asked, which this does.
const std::vector<absence> &absences();

// Versions of libfabric: of the one in the process, of the headers.
std::string fabric_version();
std::string fabric_headers();

} // namespace uct::ofi
