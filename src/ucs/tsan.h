// SPDX-License-Identifier: BSD-3-Clause
// For the thread sanitizer, and nothing else: shared memory that a process has mapped twice. What
// one thread writes at one address and another reads at the other is ordered by what they
// synchronize on there, which the sanitizer takes for two different things. A release and an
// acquire with the same key tell it.
#pragma once

#include <atomic>
#include <cstdint>

#ifdef __SANITIZE_THREAD__
extern "C" void __tsan_acquire(void *address);
extern "C" void __tsan_release(void *address);
#endif

namespace ucs {

#ifdef __SANITIZE_THREAD__
inline char tsan_places[1021];

inline void tsan_release(uint64_t key)
{
    __tsan_release(&tsan_places[key % sizeof(tsan_places)]);
}

inline void tsan_acquire(const std::atomic<uint64_t> &key)
{
    __tsan_acquire(&tsan_places[key.load(std::memory_order_relaxed) % sizeof(tsan_places)]);
}
#else
inline void tsan_release(uint64_t) {}
inline void tsan_acquire(const std::atomic<uint64_t> &) {}
#endif

} // namespace ucs
