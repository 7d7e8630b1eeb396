// SPDX-License-Identifier: BSD-3-Clause
//
// UCX's own libraries call themselves and each other by names that ours have, too. Where ours are
// linked with the program, or were opened first and for all to see (RTLD_GLOBAL), the dynamic
// linker gives them ours: their structures and ours then meet, and the process ends. The calls that
// everything begins with refuse such a caller.
#pragma once

#include <ucs/type/status.h>

namespace ucs {

// UCS_ERR_UNSUPPORTED, and a line in the log, if `call` returns to the libucp or libuct of a UCX.
ucs_status_t refuse_other_ucx(const char *call, const void *return_address) noexcept;

// Whether the code at `address` is that of the libucs of a UCX.
bool is_other_ucs(const void *address) noexcept;

} // namespace ucs
