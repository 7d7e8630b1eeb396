// SPDX-License-Identifier: BSD-3-Clause
// The memory that a list of uct_iov_t names: of each entry `count` blocks of `length` bytes, whose
// starts are `stride` bytes apart. Blocks without a gap between them are one piece; empty ones are
// none.
#pragma once

#include "ucs/compiler.h"
#include "ucs/copy.h"

#include <uct/api/uct.h>

#include <cstring>

namespace uct {

// Callers may give NULL for an empty payload, memcpy() may not get it.
inline void copy_bytes(void *to, const void *from, size_t length)
{
    if (UCS_LIKELY(length > 0)) {
        ucs::copy(to, from, length);
    }
}

inline size_t iov_length(const uct_iov_t *iov, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; ++i) {
        length += iov[i].length * iov[i].count;
    }
    return length;
}

// Calls visit(address, bytes, entry) for each piece in the order of the list, until it returns
// false.
template <class Visit>
void for_each_piece(const uct_iov_t *iov, size_t count, Visit &&visit)
{
    for (const uct_iov_t *entry = iov; entry != iov + count; ++entry) {
        size_t length = entry->length;
        size_t blocks = length > 0 ? entry->count : 0;
        if (UCS_LIKELY(blocks <= 1) || entry->stride == length) {
            length *= blocks;
            blocks = length > 0;
        }
        char *at = static_cast<char *>(entry->buffer);
        for (size_t n = 0; n < blocks; ++n, at += entry->stride) {
            if (!visit(at, length, *entry)) {
                return;
            }
        }
    }
}

inline size_t piece_count(const uct_iov_t *iov, size_t count)
{
    size_t pieces = 0;
    for_each_piece(iov, count, [&](char *, size_t, const uct_iov_t &) {
        ++pieces;
        return true;
    });
    return pieces;
}

// The list's memory to `to`, one piece behind the other. Returns the number of bytes.
inline size_t gather(void *to, const uct_iov_t *iov, size_t count)
{
    char *end = static_cast<char *>(to);
    for_each_piece(iov, count, [&](const char *from, size_t length, const uct_iov_t &) {
        ucs::copy(end, from, length);
        end += length;
        return true;
    });
    return static_cast<size_t>(end - static_cast<char *>(to));
}

// The bytes at `from` to the list's memory.
inline void scatter(const uct_iov_t *iov, size_t count, const void *from)
{
    const char *next = static_cast<const char *>(from);
    for_each_piece(iov, count, [&](char *to, size_t length, const uct_iov_t &) {
        ucs::copy(to, next, length);
        next += length;
        return true;
    });
}

} // namespace uct
