// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ucs/stats/stats.h"

namespace ucp {

// ucs::stats::am_flows names, by the ids of am_id.h.
const ucs::stats::flow_name *stats_names() noexcept;

} // namespace ucp
