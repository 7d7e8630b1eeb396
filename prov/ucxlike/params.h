// SPDX-License-Identifier: BSD-3-Clause
//
// The check of the administrator's parameters, which prov.h reads.
#pragma once

namespace ucxlike {

// Once in a process: hands the engine's log to libfabric's and reports FI_UCXLIKE_ variables that
// are unknown or have no valid value. -FI_ENODATA where FI_UCXLIKE_STRICT makes them errors.
int check_params();

} // namespace ucxlike
