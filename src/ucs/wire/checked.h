// SPDX-License-Identifier: BSD-3-Clause
//
// Arithmetic on sizes that another process has sent. Each function says whether the result can be
// represented; when it cannot, the output is unchanged.
#pragma once

#include <cstddef>

namespace ucs {

// *sum_p = a + b + ...
template <class... T>
[[nodiscard]] constexpr bool checked_sum(size_t *sum_p, size_t a, T... more) noexcept
{
    size_t sum = a;
    if ((... || __builtin_add_overflow(sum, static_cast<size_t>(more), &sum))) {
        return false;
    }
    *sum_p = sum;
    return true;
}

// *rounded_p = the next multiple of `unit`, which is not 0.
[[nodiscard]] constexpr bool checked_round_up(size_t *rounded_p, size_t value, size_t unit) noexcept
{
    size_t sum = 0;
    if (!checked_sum(&sum, value, unit - 1)) {
        return false;
    }
    *rounded_p = sum / unit * unit;
    return true;
}

} // namespace ucs
