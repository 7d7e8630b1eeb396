// SPDX-License-Identifier: BSD-3-Clause
// Providers that are libraries of their own, in the folders of FI_PROVIDER_PATH. libfabric passes
// over those that do not load, and tells of it in its own log alone.
#pragma once

#include <string>
#include <vector>

namespace uct::ofi {

struct broken_module {
    std::string file; // its name, without the folder
    std::string why;  // names the folder, too
};

// Once libfabric has loaded its providers.
std::vector<broken_module> broken_modules();

} // namespace uct::ofi
