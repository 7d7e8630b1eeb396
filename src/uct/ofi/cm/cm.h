// SPDX-License-Identifier: BSD-3-Clause
// The connection manager over a core provider with connected endpoints.
#pragma once

#include "uct/base/cm.h"
#include "uct/base/component.h"
#include "uct/ofi/core/info.h"

namespace uct::ofi {

// c outlives the result. Throws ucs::error.
uct_cm *open_cm(const core &c, uct_component &component, uct_worker *worker,
                const uct_cm_config &config);

} // namespace uct::ofi
