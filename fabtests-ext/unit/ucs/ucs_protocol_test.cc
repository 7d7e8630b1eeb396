// SPDX-License-Identifier: BSD-3-Clause
//
// The head of what strangers say to each other.
#include "fabtests-ext/common/warnings.h"
#include "ucs/wire/protocol.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

constexpr ucs::protocol spoken_here = {0x04030201, 7, "the language of tests"};

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

TEST(ucs_protocol, another_version_is_logged_with_both)
{
    kept_warnings lines;
    const uint8_t ours[] = {1, 2, 3, 4, 7}, other[] = {1, 2, 3, 4, 9}, foreign[] = {0, 2, 3, 4, 9};
    EXPECT_FALSE(ucs::is_other_version(spoken_here, ours, sizeof(ours), "a peer"));
    EXPECT_FALSE(ucs::is_other_version(spoken_here, foreign, sizeof(foreign), "a peer"));
    EXPECT_FALSE(ucs::is_other_version(spoken_here, 7, "a peer"));
    EXPECT_TRUE(lines.lines.empty());
    EXPECT_TRUE(ucs::is_other_version(spoken_here, other, sizeof(other), "a peer"));
    EXPECT_TRUE(ucs::is_other_version(spoken_here, 6, "another"));
    EXPECT_EQ((std::vector<std::string>{
                  "a peer speaks version 9 of the language of tests, this library version 7",
                  "another speaks version 6 of the language of tests, this library version 7"}),
              lines.lines);
}

} // namespace
