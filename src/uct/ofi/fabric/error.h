// SPDX-License-Identifier: BSD-3-Clause
// libfabric's error numbers as UCX statuses: one table, IO_ERROR for what it does not name.
#pragma once

#include "ucs/error.h"

#include <ucs/type/status.h>

namespace uct::ofi {

// fi_errno: positive or negative; 0 is UCS_OK, FI_EAGAIN is UCS_ERR_NO_RESOURCE.
ucs_status_t status_of(int fi_errno) noexcept;

// Throws ucs::error with the mapped status and "<what>: <text of the error>" when ret is negative.
void check(long ret, const char *what);

} // namespace uct::ofi
