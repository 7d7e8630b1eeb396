// SPDX-License-Identifier: BSD-3-Clause
// What differs over shm from the limits of any core, by its version and by what the kernel allows.
#pragma once

#include "uct/ofi/core/limits.h"

namespace uct::ofi {

limits shm_limits(const md &domain, const uct_iface_config &config);

} // namespace uct::ofi
