// SPDX-License-Identifier: BSD-3-Clause
// All bytes of a copy arrive, and nothing beside them changes.
#include "ucs/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
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

// From an address, to one that begins so many bytes later in its page.
void expect_exact_after(size_t later, size_t length)
{
    constexpr size_t page = 4096;
    constexpr char untouched = 0x5a;
    std::vector<char> memory(2 * (length + 2 * page), untouched);
    char *from = memory.data() + (page - reinterpret_cast<uintptr_t>(memory.data()) % page);
    char *to = from + (length / page + 1) * page + later;
    for (size_t i = 0; i < length; ++i) {
        from[i] = static_cast<char>(i * 7 + i / 251);
    }
    std::vector<char> sent(from, from + length);
    ucs::copy(to, from, length);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), to));
    EXPECT_EQ(untouched, to[-1]);
    EXPECT_EQ(untouched, to[length]);
}

TEST(copy, copies_so_many_bytes_and_no_more_wherever_they_lie)
{
    for (size_t later : {0, 1, 24, 31, 32, 4095}) {
        for (size_t length : {0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 6145, 70001, 600000}) {
            SCOPED_TRACE(std::to_string(later) + " later, " + std::to_string(length) + " bytes");
            expect_exact_after(later, length);
        }
    }
}

TEST(copy, knows_what_some_processors_copy_slowly)
{
    constexpr size_t least = 2049, most = 512 << 10;
    alignas(4096) static char memory[3 * 4096];
    char *at = memory + 4096;
    for (ptrdiff_t from = 0; from < 200; from += 8) {
        EXPECT_FALSE(ucs::copies_slowly(at + from - 1, at + from, least));
        EXPECT_FALSE(ucs::copies_slowly(at + from, at + from, least));
        for (ptrdiff_t page : {-4096, 0, 4096}) {
            char *to = at + from + page;
            EXPECT_TRUE(ucs::copies_slowly(to + 1, at + from, least));
            EXPECT_TRUE(ucs::copies_slowly(to + 31, at + from, most));
            EXPECT_FALSE(ucs::copies_slowly(to + 32, at + from, least));
            EXPECT_FALSE(ucs::copies_slowly(to + 8, at + from, 0));
            EXPECT_FALSE(ucs::copies_slowly(to + 8, at + from, least - 1));
            EXPECT_FALSE(ucs::copies_slowly(to + 8, at + from, most + 1));
        }
    }
}

TEST(copy_small, takes_null_when_there_is_nothing_to_copy)
{
    ucs::copy_small(nullptr, nullptr, 0);
}

} // namespace
