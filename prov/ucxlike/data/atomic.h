// SPDX-License-Identifier: BSD-3-Clause
//
// The table of atomic operations: which go with which type, and their execution at the target.
#pragma once

#include "prov/ucxlike/prov.h"

namespace ucxlike {

enum class atomic_form : uint8_t { write, fetch, compare };

size_t atomic_size(fi_datatype type); // 0: not a type
bool atomic_valid(fi_datatype type, fi_op op, atomic_form form);
// old gets what was there before. The caller holds the lock that makes this atomic.
void atomic_execute(fi_datatype type, fi_op op, size_t count, void *at, const void *operand,
                    const void *compare, void *old);

} // namespace ucxlike
