// SPDX-License-Identifier: BSD-3-Clause
// The log: handlers that programs push, and the file that is kept short and filtered. The file's
// settings are read once in a process, so each of these cases has its own, another run of this
// program.
#include "fabtests-ext/common/emulated.h"
#include "ucs/log.h"

#include <ucs/debug/log_def.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

std::vector<std::string> heard;
ucs_log_func_rc_t answer = UCS_LOG_FUNC_RC_STOP;

std::string text_of(const char *message, va_list ap)
{
    char text[256];
    vsnprintf(text, sizeof(text), message, ap);
    return text;
}

ucs_log_func_rc_t first(const char *, unsigned, const char *function, ucs_log_level_t level,
                        const ucs_log_component_config_t *conf, const char *message, va_list ap)
{
    heard.push_back("first " + std::to_string(level) + " " + conf->name + " " + function + " " +
                    text_of(message, ap));
    return answer;
}

ucs_log_func_rc_t second(const char *, unsigned, const char *, ucs_log_level_t,
                         const ucs_log_component_config_t *, const char *message, va_list ap)
{
    heard.push_back("second " + text_of(message, ap));
    return UCS_LOG_FUNC_RC_CONTINUE;
}

TEST(ucs_log_test, handlers_get_the_librarys_lines_the_last_one_first)
{
    heard.clear();
    answer = UCS_LOG_FUNC_RC_STOP;
    unsigned before = ucs_log_num_handlers();
    ucs_log_push_handler(first);
    ucs_log_push_handler(second);
    EXPECT_EQ(before + 2, ucs_log_num_handlers());
    ucs_warn("number %d", 7);
    ucs_log_pop_handler();
    ucs_warn("number %d", 8);
    ucs_log_pop_handler();
    EXPECT_EQ(before, ucs_log_num_handlers());
    ASSERT_EQ(3u, heard.size());
    EXPECT_EQ("second number 7", heard[0]);
    EXPECT_EQ("first 2 UCX TestBody number 7", heard[1]);
    EXPECT_EQ("first 2 UCX TestBody number 8", heard[2]);
}

TEST(ucs_log_test, a_program_dispatches_lines_of_its_own)
{
    heard.clear();
    answer = UCS_LOG_FUNC_RC_CONTINUE;
    ucs_log_component_config_t own = {UCS_LOG_LEVEL_INFO, "OWN", "*"};
    ucs_log_push_handler(first);
    testing::internal::CaptureStderr();
    ucs_log_dispatch("dir/file.c", 12, "func", UCS_LOG_LEVEL_INFO, &own, "%s", "shown");
    ucs_log_dispatch("dir/file.c", 13, "func", UCS_LOG_LEVEL_DEBUG, &own, "%s", "not shown");
    std::string text = testing::internal::GetCapturedStderr();
    ucs_log_pop_handler();
    EXPECT_EQ(2u, heard.size());
    EXPECT_NE(std::string::npos, text.find("file.c:12   OWN  INFO  shown")) << text;
    EXPECT_EQ(std::string::npos, text.find("not shown")) << text;
}

TEST(ucs_log_test, more_than_the_most_handlers_are_not_taken)
{
    unsigned before = ucs_log_num_handlers();
    unsigned pushed = 0;
    while (pushed < 100 && ucs_log_num_handlers() == before + pushed) {
        ucs_log_push_handler(second);
        ++pushed;
    }
    EXPECT_EQ(32u, ucs_log_num_handlers());
    while (ucs_log_num_handlers() > before) {
        ucs_log_pop_handler();
    }
}

class log_file : public testing::Test {
  protected:
    void SetUp() override
    {
        SKIP_IF_EMULATED("no program is executed");
        ASSERT_TRUE(mkdtemp(folder_));
    }
    ~log_file() override
    {
        for (const char *end : {"", ".1", ".2", ".3", ".out", ".err"}) {
            unlink((path() + end).c_str());
        }
        rmdir(folder_);
    }
    std::string path() const { return std::string(folder_) + "/log"; }
    std::string content(const char *end) const
    {
        std::ifstream in(path() + end);
        std::stringstream text;
        text << in.rdbuf();
        return text.str();
    }
    using variables = std::vector<std::pair<const char *, const char *>>;
    // Runs writer, below, with these settings.
    void write(const variables &settings) const
    {
        pid_t child = fork();
        if (child == 0) {
            setenv("UCX_LOG_FILE", path().c_str(), 1);
            int streams[] = {open((path() + ".out").c_str(), O_WRONLY | O_CREAT, 0600),
                             open((path() + ".err").c_str(), O_WRONLY | O_CREAT, 0600)};
            dup2(streams[0], STDOUT_FILENO);
            dup2(streams[1], STDERR_FILENO);
            for (auto &s : settings) {
                setenv(s.first, s.second, 1);
            }
            execl("/proc/self/exe", "ucs_log_test", "--gtest_filter=writer.*",
                  "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
            _exit(1);
        }
        int status;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status);
    }

  private:
    char folder_[32] = "/tmp/ucs_log_test.XXXXXX";
};

TEST(writer, DISABLED_writes_lines)
{
    ucs_log_component_config_t own = {UCS_LOG_LEVEL_INFO, "OWN", "*"};
    ucs_log_dispatch("dir/other.c", 12, "func", UCS_LOG_LEVEL_INFO, &own, "from there");
    for (int i = 0; i < 100; ++i) {
        ucs_warn("line %03d of a hundred", i);
    }
}

TEST_F(log_file, is_kept_short_and_the_newest_files_before_it_are_kept)
{
    write({{"UCX_LOG_FILE_SIZE", "1k"}, {"UCX_LOG_FILE_ROTATE", "2"}});
    for (const char *end : {"", ".1", ".2"}) {
        EXPECT_LT(0u, content(end).size()) << end;
        EXPECT_GE(1024u, content(end).size()) << end;
    }
    EXPECT_NE(0, access((path() + ".3").c_str(), F_OK));
    EXPECT_NE(std::string::npos, content("").find("line 099"));
    EXPECT_EQ(std::string::npos, (content("") + content(".1") + content(".2")).find("line 000"));
}

TEST_F(log_file, without_files_to_keep_begins_anew)
{
    write({{"UCX_LOG_FILE_SIZE", "1k"}});
    EXPECT_GE(1024u, content("").size());
    EXPECT_NE(std::string::npos, content("").find("line 099"));
    EXPECT_NE(0, access((path() + ".1").c_str(), F_OK));
}

TEST_F(log_file, has_the_lines_of_chosen_sources_only)
{
    write({{"UCX_LOG_FILE_FILTER", "*other*"}});
    EXPECT_EQ(std::string::npos, content("").find("of a hundred"));
    EXPECT_NE(std::string::npos, content("").find("from there"));
}

TEST_F(log_file, has_every_line_without_these_settings)
{
    write({});
    EXPECT_NE(std::string::npos, content("").find("line 000"));
    EXPECT_NE(std::string::npos, content("").find("line 099"));
    EXPECT_NE(std::string::npos, content("").find("from there"));
}

// As UCX takes them: no file has the name of a stream, and a size is for files alone.
TEST_F(log_file, may_be_a_stream_of_the_process)
{
    for (const char *stream : {"stdout", "stderr"}) {
        write({{"UCX_LOG_FILE", stream}, {"UCX_LOG_FILE_SIZE", "1k"}});
        bool out = !strcmp(stream, "stdout");
        EXPECT_NE(std::string::npos, content(out ? ".out" : ".err").find("line 000"));
        EXPECT_NE(std::string::npos, content(out ? ".out" : ".err").find("line 099"));
        EXPECT_EQ(std::string::npos, content(out ? ".err" : ".out").find("of a hundred"));
        EXPECT_NE(0, unlink(stream)) << "a file has this name";
        unlink((path() + ".out").c_str());
        unlink((path() + ".err").c_str());
    }
}

TEST_F(log_file, may_be_named_with_its_kind)
{
    write({{"UCX_LOG_FILE", ("file:" + path()).c_str()}});
    EXPECT_NE(std::string::npos, content("").find("line 099"));
}

} // namespace
