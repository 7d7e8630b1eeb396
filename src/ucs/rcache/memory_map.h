// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of this process's mappings.
#pragma once

#include <cstdint>

namespace ucs {

// Widens [*begin, *end) to the whole mappings that it lies in. false: part of it is not mapped, or
// is not private anonymous memory. Reads a file of the kernel.
bool widen_to_anonymous_mappings(uintptr_t *begin, uintptr_t *end);

} // namespace ucs
