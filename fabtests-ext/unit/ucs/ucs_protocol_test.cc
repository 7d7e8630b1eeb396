// SPDX-License-Identifier: BSD-3-Clause
//
// The head of what strangers say to each other.
#include "fabtests-ext/common/warnings.h"
#include "ucs/wire/protocol.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

constexpr ucs::protocol spoken_here = {0x04030201, 7, "the language of tests"};
constexpr ucs::protocol spoken_within = {0, 7, "what another language carries"};

TEST(ucs_protocol, needs_magic_and_version)
{
    const uint8_t right[] = {1, 2, 3, 4, 7};
    EXPECT_EQ(ucs::spoken::ours, ucs::which_protocol(spoken_here, right, sizeof(right)));
    for (size_t length = 0; length < sizeof(right); ++length) {
        EXPECT_EQ(ucs::spoken::foreign, ucs::which_protocol(spoken_here, right, length));
    }
    for (size_t i = 0; i < sizeof(right); ++i) {
        uint8_t wrong[sizeof(right)];
        memcpy(wrong, right, sizeof(right));
        ++wrong[i];
        EXPECT_EQ(i < 4 ? ucs::spoken::foreign : ucs::spoken::other_version,
                  ucs::which_protocol(spoken_here, wrong, sizeof(wrong)));
    }
}

TEST(ucs_protocol, within_another_the_version_comes_first)
{
    const uint8_t right[] = {7}, other[] = {8};
    EXPECT_EQ(ucs::spoken::ours, ucs::which_protocol(spoken_within, right, sizeof(right)));
    EXPECT_EQ(ucs::spoken::other_version, ucs::which_protocol(spoken_within, other, sizeof(other)));
    EXPECT_EQ(ucs::spoken::foreign, ucs::which_protocol(spoken_within, nullptr, 0));
}

TEST(ucs_protocol, a_structure_is_read_whole_or_not_at_all)
{
    struct said {
        uint8_t bytes[8];
    };
    said right = {{1, 2, 3, 4, 7, 10, 11, 12}}, out = {};
    for (size_t length = 0; length < sizeof(right); ++length) {
        EXPECT_EQ(ucs::spoken::foreign, ucs::read(spoken_here, &right, length, &out)) << length;
    }
    right.bytes[4] = 8;
    EXPECT_EQ(ucs::spoken::other_version, ucs::read(spoken_here, &right, sizeof(right), &out));
    EXPECT_EQ(ucs::spoken::other_version, ucs::read(spoken_here, &right, 5, &out))
        << "what another version has behind it may be shorter";
    EXPECT_EQ(0, out.bytes[0]);
    right.bytes[4] = 7;
    EXPECT_EQ(ucs::spoken::ours, ucs::read(spoken_here, &right, sizeof(right), &out));
    EXPECT_EQ(0, memcmp(&right, &out, sizeof(out)));
}

TEST(ucs_protocol, another_version_is_logged_with_both)
{
    kept_warnings lines;
    const uint8_t ours[] = {1, 2, 3, 4, 7}, other[] = {1, 2, 3, 4, 9}, foreign[] = {0, 2, 3, 4, 9};
    EXPECT_FALSE(ucs::is_other_version(spoken_here, ours, sizeof(ours), "a peer"));
    EXPECT_FALSE(ucs::is_other_version(spoken_here, foreign, sizeof(foreign), "a peer"));
    EXPECT_TRUE(lines.lines.empty());
    EXPECT_TRUE(ucs::is_other_version(spoken_here, other, sizeof(other), "a peer"));
    const uint8_t within[] = {6};
    EXPECT_TRUE(ucs::is_other_version(spoken_within, within, sizeof(within), "another"));
    EXPECT_EQ(
        (std::vector<std::string>{
            "a peer speaks version 9 of the language of tests, this library version 7",
            "another speaks version 6 of what another language carries, this library version 7"}),
        lines.lines);
}

} // namespace
