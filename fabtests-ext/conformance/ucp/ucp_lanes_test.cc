// SPDX-License-Identifier: BSD-3-Clause
//
// Which transports carry an endpoint, as a program can ask (ucp_ep_query, ucp_ep_print_info) and as
// the log tells (UCX_LOG_LEVEL=info).
#include "fabtests-ext/common/printed.h"
#include "fabtests-ext/common/ucp_lanes.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <cstdio>
#include <filesystem>
#include <regex>

#if UCP_API_VERSION >= UCP_VERSION(1, 14)

namespace {

using namespace ucp_test;
using names = std::vector<std::string>;

class ucp_lanes : public pair {
  protected:
    static std::string info_of(ucp_ep_h ep)
    {
        return printed([&](FILE *stream) { ucp_ep_print_info(ep, stream); });
    }

    // The first group of each place that matches.
    static names found(const std::string &text, const char *pattern)
    {
        std::regex wanted(pattern);
        names all;
        for (std::sregex_iterator i(text.begin(), text.end(), wanted), end; i != end; ++i) {
            all.push_back((*i)[1]);
        }
        return all;
    }

    static std::string joined(const names &all)
    {
        std::string text;
        for (const std::string &name : all) {
            text += " " + name;
        }
        return text;
    }
};

TEST_P(ucp_lanes, the_query_names_those_that_were_asked_for)
{
    names lanes = transports_of(ab);
    ASSERT_FALSE(lanes.empty());
    std::string asked = "," + opts.tls + ",";
    if (size_t at = asked.find("ofi_shm"); at != std::string::npos) {
        asked.replace(at, strlen("ofi_shm"), "shm");
    }
    for (const std::string &lane : lanes) {
        std::string transport = lane.substr(0, lane.find('/'));
        EXPECT_NE(std::string::npos, asked.find("," + transport + ",")) << lane;
        EXPECT_NE(transport.size() + 1, lane.size()) << "no device: " << lane;
    }
}

TEST_P(ucp_lanes, the_printed_text_has_each_and_what_it_is_for)
{
    std::string text = info_of(ab);
    EXPECT_EQ(transports_of(ab), found(text, "lane\\[\\d+\\]: +\\d+:(\\S+/\\S+) ")) << text;
    EXPECT_EQ(1u, found(text, "lane\\[\\d+\\]: .*->.*( am)\\b").size()) << text;
    names roles = found(text, "lane\\[\\d+\\]: .*->(.*)\n");
    EXPECT_EQ(transports_of(ab).size(), roles.size()) << text;
    for (const std::string &role : roles) {
        EXPECT_NE("", role) << text;
    }
}

// Run by the next one, in a process with another UCX_LOG_LEVEL.
TEST_P(ucp_lanes, DISABLED_says_what_the_query_says)
{
    for (ucp_ep_h ep : {ab, ba}) {
        printf("queried:%s\n", joined(transports_of(ep)).c_str());
    }
}

TEST_P(ucp_lanes, the_log_has_one_line_for_each_connection)
{
    std::string program = std::filesystem::read_symlink("/proc/self/exe");
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    for (bool info : {false, true}) {
        std::string command = std::string("UCX_LOG_LEVEL=") + (info ? "info " : "warn ") + program +
                              " --gtest_also_run_disabled_tests --gtest_filter='*DISABLED_says*" +
                              name.substr(name.find('/')) + "' 2>&1";
        FILE *run = popen(command.c_str(), "r");
        ASSERT_NE(nullptr, run);
        std::string text;
        char chunk[4096];
        for (size_t n; (n = fread(chunk, 1, sizeof(chunk), run)) > 0;) {
            text.append(chunk, n);
        }
        ASSERT_EQ(0, pclose(run)) << text;
        names wanted = found(text, "queried:(.*)\n");
        ASSERT_EQ(2u, wanted.size()) << text;
        wanted.resize(!info ? 0 : is_self() ? 1 : 2);
        names lines = found(text, " INFO  ep 0x[0-9a-f]+: lanes:(.*); peer \\S+:\\d+");
        for (std::string &line : lines) {
            line = joined(found(line, " (\\S+/\\S+)"));
        }
        EXPECT_EQ(wanted, lines) << text;
    }
}

UCP_TEST_OVER(ucp_lanes, "self", "sm", "ofi_shm", "tcp", "ofi_shm,tcp");

} // namespace

#endif
