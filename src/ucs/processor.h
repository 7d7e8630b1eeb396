// SPDX-License-Identifier: BSD-3-Clause
// What differs between the processors that this library runs on.
#pragma once

#include "ucs/compiler.h"

#include <cstddef>

namespace ucs {

// What one thread writes and another one reads all the time lies this far from everything else. The
// longest cache line of the processors served (Arm has 64 and 128 bytes); x86 has 64, but fetches
// pairs. It is part of what processes share, so it does not depend on the processor at hand.
constexpr size_t cache_line = 128;

// In a loop that waits for another processor.
UCS_ALWAYS_INLINE void relax()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory"); // yield does nothing on a core that runs one thread
#endif
}

// Whether `rep movsb`, with which the kernel copies, is slow for some addresses: see
// is_slow_for_movsb() in ucs/copy.h.
UCS_ALWAYS_INLINE bool has_slow_movsb() noexcept
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amdfam19h"); // Zen 3 and 4
#else
    return false;
#endif
}

} // namespace ucs
