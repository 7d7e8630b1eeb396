// SPDX-License-Identifier: BSD-3-Clause
// The connection manager over a core provider with connected endpoints.
#pragma once

#include "uct/cm.h"
#include "uct/component.h"
#include "uct/ofi/info.h"

namespace uct::ofi {

// c outlives the result. Throws ucs::error.
uct_cm *open_cm(const core &c, uct_component &component, uct_worker *worker,
                const uct_cm_config &config);

} // namespace uct::ofi
