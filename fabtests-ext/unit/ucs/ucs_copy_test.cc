// SPDX-License-Identifier: BSD-3-Clause
// Copies of a few bytes: all of them arrive, and nothing beside them changes.
#include "ucs/copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace {

constexpr size_t longest = 70;

template <class Copy>
void expect_exact(size_t shortest, Copy &&copy)
{
    for (size_t length = shortest; length <= longest; ++length) {
        // Of exactly that size, so that the sanitizer sees a read beyond.
        std::unique_ptr<char[]> from(new char[length]);
        for (size_t i = 0; i < length; ++i) {
            from[i] = static_cast<char>(i + 1);
        }
        constexpr char untouched = 0x5a;
        std::vector<char> to(longest + 2, untouched);
        copy(to.data() + 1, from.get(), length);
        EXPECT_EQ(untouched, to[0]) << length;
        for (size_t i = 0; i < length; ++i) {
            EXPECT_EQ(from[i], to[i + 1]) << length;
        }
        EXPECT_EQ(untouched, to[length + 1]) << length;
    }
}

TEST(copy_small, copies_so_many_bytes_and_no_more)
{
    expect_exact(0, [](char *to, const char *from, size_t n) { ucs::copy_small(to, from, n); });
}

TEST(copy_pieces, copies_so_many_bytes_and_no_more)
{
    expect_exact(16, [](char *to, const char *from, size_t n) { ucs::copy_pieces(to, from, n); });
}

TEST(copy_small, takes_null_when_there_is_nothing_to_copy)
{
    ucs::copy_small(nullptr, nullptr, 0);
}

} // namespace
