// SPDX-License-Identifier: BSD-3-Clause
// When a report is made.
#pragma once

namespace ucs::stats {

// From here on the report is made as UCX_STATS_TRIGGER says; a second call does nothing.
void arm_trigger();

} // namespace ucs::stats
