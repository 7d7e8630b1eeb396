// SPDX-License-Identifier: BSD-3-Clause
//
// The number that a caller left in a field of enum type, which may be none of its values.
#pragma once

#include <cstring>

namespace ucp {

template <class E>
unsigned raw_value(const E &field) noexcept
{
    static_assert(sizeof(E) == sizeof(unsigned));
    unsigned value;
    memcpy(&value, &field, sizeof(value));
    return value;
}

} // namespace ucp
