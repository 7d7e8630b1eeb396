// SPDX-License-Identifier: BSD-3-Clause
// Copies of a few bytes without a call: what the headers and payloads of small messages are.
#pragma once

#include "ucs/compiler.h"

#include <cstddef>
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

// As memcpy(), but either pointer may be NULL when length is 0.
UCS_ALWAYS_INLINE void copy_small(void *to, const void *from, size_t length)
{
    char *t = static_cast<char *>(to);
    const char *f = static_cast<const char *>(from);
    if (UCS_UNLIKELY(length > 16)) {
        memcpy(t, f, length);
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

} // namespace ucs
