// SPDX-License-Identifier: BSD-3-Clause
// What the language leaves to the compiler: branch hints, inlining, symbol visibility.
#pragma once

#define UCS_LIKELY(x) __builtin_expect(!!(x), 1)
#define UCS_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define UCS_NOINLINE __attribute__((noinline, cold))
#define UCS_ALWAYS_INLINE inline __attribute__((always_inline))
#define UCS_EXPORT __attribute__((visibility("default")))
