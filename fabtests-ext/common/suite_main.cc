// SPDX-License-Identifier: BSD-3-Clause
//
// main() of a program that unity.mk links with the cases of several suites: it runs the cases of
// the file that has the program's name, as the program does that is linked with this file alone.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace {

bool is_in(const testing::TestInfo &test, const std::string &suite)
{
    return std::filesystem::path(test.file()).stem() == suite;
}

// Adds to a filter the cases of other files: all of a test suite, or those that are elsewhere. True
// if any is of this file.
bool leave_out_others(std::string &filter, const testing::TestSuite &cases,
                      const std::string &suite)
{
    std::string others;
    bool has_own = false;
    for (int i = 0; i < cases.total_test_count(); ++i) {
        const testing::TestInfo &test = *cases.GetTestInfo(i);
        if (is_in(test, suite)) {
            has_own = true;
        } else {
            others += std::string(":") + cases.name() + "." + test.name();
        }
    }
    filter += has_own ? others : std::string(":") + cases.name() + ".*";
    return has_own;
}

} // namespace

int main(int argc, char **argv)
{
    testing::InitGoogleTest(&argc, argv);
    const std::string suite = std::filesystem::read_symlink("/proc/self/exe").filename();
    std::string &filter = testing::GTEST_FLAG(filter);
    if (filter.find('-') == std::string::npos) {
        filter += '-';
    }
    const testing::UnitTest &all = *testing::UnitTest::GetInstance();
    bool has_cases = false;
    for (int i = 0; i < all.total_test_suite_count(); ++i) {
        has_cases |= leave_out_others(filter, *all.GetTestSuite(i), suite);
    }
    if (!has_cases) {
        fprintf(stderr, "no case of this program is in a file %s.cc\n", suite.c_str());
        return 1;
    }
    return RUN_ALL_TESTS();
}
