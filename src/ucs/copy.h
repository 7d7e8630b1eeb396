// SPDX-License-Identifier: BSD-3-Clause
// Copies of payloads: of a few bytes without a call, and of many without the instruction that
// memcpy() takes for them.
#pragma once

#include "ucs/compiler.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ucs {

namespace detail {

// Of sizeof(T) to twice as many bytes: the first and the last ones, which may overlap.
template <class T>
UCS_ALWAYS_INLINE void copy_ends(char *to, const char *from, size_t length)
{
    T first, last;
    memcpy(&first, from, sizeof(T));
    memcpy(&last, from + length - sizeof(T), sizeof(T));
    memcpy(to, &first, sizeof(T));
    memcpy(to + length - sizeof(T), &last, sizeof(T));
}

} // namespace detail

// Without a call, in pieces of 16 bytes: where `to` is a multiple of 16, none but the last crosses
// two cache lines, which a processor writes slowly. length: 16 at least.
UCS_ALWAYS_INLINE void copy_pieces(void *to, const void *from, size_t length)
{
    using piece = long __attribute__((vector_size(16)));
    char *t = static_cast<char *>(to);
    const char *f = static_cast<const char *>(from);
    size_t last = length - sizeof(piece);
    piece next, end;
    memcpy(&end, f + last, sizeof(end));
    for (size_t at = 0; at < last; at += sizeof(piece)) {
        memcpy(&next, f + at, sizeof(next));
        memcpy(t + at, &next, sizeof(next));
    }
    memcpy(t + last, &end, sizeof(end));
}

// AMD's Zen 3 takes 20 times as long for `rep movsb` when the destination begins 1 to 31 bytes
// after the source, modulo this. That is so when a payload comes from the beginning of a page and
// goes to the place after a header.
constexpr uintptr_t movsb_period = 4096;

inline bool is_slow_for_movsb(uintptr_t to, uintptr_t from) noexcept
{
    uintptr_t later = (to - from) % movsb_period;
    return later > 0 && later < 32;
}

// memcpy() copies 2 KiB to 512 KiB with `rep movsb` if the processor says that this is fast. Zen 3
// says so. Other processors are not asked for: copy_pieces() costs them little.
inline bool copies_slowly(const void *to, const void *from, size_t length) noexcept
{
    return length > 2048 && length <= 512 << 10 &&
           is_slow_for_movsb(reinterpret_cast<uintptr_t>(to), reinterpret_cast<uintptr_t>(from));
}

// As memcpy(), of payloads that may be long. A hot function of its own, because GCC replaces a call
// of memcpy() by `rep movsb` where it expects to come seldom.
[[gnu::hot, gnu::noinline]] inline void copy(void *to, const void *from, size_t length) noexcept
{
    if (UCS_UNLIKELY(copies_slowly(to, from, length))) {
        copy_pieces(to, from, length);
    } else {
        memcpy(to, from, length);
    }
}

// As memcpy(), but either pointer may be NULL when length is 0.
UCS_ALWAYS_INLINE void copy_small(void *to, const void *from, size_t length)
{
    char *t = static_cast<char *>(to);
    const char *f = static_cast<const char *>(from);
    if (UCS_UNLIKELY(length > 16)) {
        copy(t, f, length);
    } else if (length >= 8) {
        detail::copy_ends<unsigned long>(t, f, length);
    } else if (length >= 4) {
        detail::copy_ends<unsigned>(t, f, length);
    } else if (length > 0) {
        char middle = f[length / 2];
        char last = f[length - 1];
        t[0] = f[0];
        t[length / 2] = middle;
        t[length - 1] = last;
    }
}

} // namespace ucs
