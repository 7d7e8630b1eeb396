// SPDX-License-Identifier: BSD-3-Clause
// ucs configuration tables: value types, environment precedence, errors, listing.
#include "fabtests-ext/common/printed.h"
#include "ucs/config/config.h"
#include "ucs/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <unistd.h>

namespace {

using namespace ucs::config;

struct sample {
    bool flag;
    int number;
    unsigned count;
    size_t size;
    double timeout;
    std::string name;
    std::vector<std::string> list;
    ternary mode;
};

constexpr field sample_fields[] = {
    {"FLAG", "y", "A switch", offsetof(sample, flag), &bool_},
    {"NUMBER", "-3", "A number", offsetof(sample, number), &int_},
    {"COUNT", "4", "A count", offsetof(sample, count), &uint_},
    {"SIZE", "8k", "A size", offsetof(sample, size), &size_},
    {"TIMEOUT", "10ms", "A time", offsetof(sample, timeout), &time_},
    {"NAME", "none", "A text", offsetof(sample, name), &string_},
    {"LIST", "a,b", "A list", offsetof(sample, list), &string_list_},
    {"MODE", "try", "A mode", offsetof(sample, mode), &ternary_},
};
constexpr table sample_table = {"sample", "SAMPLE_", sample_fields};

class config : public ::testing::Test {
  protected:
    void setenv(const char *name, const char *value)
    {
        ::setenv(name, value, 1);
        names_.push_back(name);
    }
    ~config() override
    {
        for (const char *name : names_) {
            unsetenv(name);
        }
    }
    sample s_{};

  private:
    std::vector<const char *> names_;
};

TEST_F(config, defaults)
{
    fill(sample_table, &s_, nullptr);
    EXPECT_TRUE(s_.flag);
    EXPECT_EQ(s_.number, -3);
    EXPECT_EQ(s_.count, 4u);
    EXPECT_EQ(s_.size, 8192u);
    EXPECT_DOUBLE_EQ(s_.timeout, 0.01);
    EXPECT_EQ(s_.name, "none");
    EXPECT_EQ(s_.list, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(s_.mode, ternary::try_);
}

TEST_F(config, callers_prefix_wins_over_plain_name)
{
    setenv("UCX_SAMPLE_COUNT", "7");
    fill(sample_table, &s_, "MPI");
    EXPECT_EQ(s_.count, 7u);
    setenv("MPI_UCX_SAMPLE_COUNT", "9");
    fill(sample_table, &s_, "MPI");
    EXPECT_EQ(s_.count, 9u);
    fill(sample_table, &s_, nullptr);
    EXPECT_EQ(s_.count, 7u);
}

TEST_F(config, second_name_wins_over_the_first_of_its_kind)
{
    table both = sample_table;
    both.alias = "UCT_";
    setenv("UCX_SAMPLE_NUMBER", "1");
    fill(both, &s_, "MPI");
    EXPECT_EQ(1, s_.number);
    setenv("UCT_SAMPLE_NUMBER", "2");
    fill(both, &s_, "MPI");
    EXPECT_EQ(2, s_.number);
    setenv("MPI_UCX_SAMPLE_NUMBER", "3");
    fill(both, &s_, "MPI");
    EXPECT_EQ(3, s_.number);
    setenv("UCT_MPI_SAMPLE_NUMBER", "4");
    fill(both, &s_, "MPI");
    EXPECT_EQ(4, s_.number);
    fill(both, &s_, nullptr);
    EXPECT_EQ(2, s_.number);
    fill(sample_table, &s_, nullptr); // has no second name
    EXPECT_EQ(1, s_.number);
}

TEST_F(config, callers_file_wins_over_defaults_and_loses_to_the_environment)
{
    char path[] = "/tmp/ucs_config_test.XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    std::ofstream(path) << "# a comment\n[section]\n UCX_SAMPLE_NUMBER = 5 \nUCX_SAMPLE_COUNT=6\n";
    setenv("UCX_SAMPLE_COUNT", "7");
    fill(sample_table, &s_, nullptr, path);
    EXPECT_EQ(5, s_.number);
    EXPECT_EQ(7u, s_.count);
    fill(sample_table, &s_, nullptr);
    EXPECT_EQ(-3, s_.number);
    std::ofstream(path) << "UCX_SAMPLE_NUMBER=many\n";
    EXPECT_THROW(fill(sample_table, &s_, nullptr, path), ucs::error);
    unlink(path);
    fill(sample_table, &s_, nullptr, path); // gone: ignored
    EXPECT_EQ(-3, s_.number);
}

TEST_F(config, section_counts_where_its_conditions_hold)
{
    struct {
        const char *conditions;
        bool holds;
    } const sections[] = {{"", true},
                          {"CPU vendor=*\n", true},
                          {"CPU vendor=*\nCPU model=*\nProduct name=*\n", true},
                          {"CPU vendor=No such maker\n", false},
                          {"CPU vendor=*\nCPU model=no such model\n", false},
                          {"Product name=no such product\n", false}};
    char path[] = "/tmp/ucs_config_test.XXXXXX";
    int fd = mkstemp(path);
    ASSERT_GE(fd, 0);
    close(fd);
    for (const auto &s : sections) {
        std::ofstream(path) << "UCX_SAMPLE_COUNT=1\n[one]\n"
                            << s.conditions << "UCX_SAMPLE_NUMBER=5\nUCX_SAMPLE_COUNT=6\n"
                            << "[another]\nUCX_SAMPLE_SIZE=9k\n";
        fill(sample_table, &s_, nullptr, path);
        EXPECT_EQ(s.holds ? 5 : -3, s_.number) << s.conditions;
        EXPECT_EQ(s.holds ? 6u : 1u, s_.count) << s.conditions;
        EXPECT_EQ(9u << 10, s_.size) << "the next section";
    }
    unlink(path);
}

TEST_F(config, value_that_does_not_parse_names_the_variable)
{
    setenv("UCX_SAMPLE_SIZE", "8q");
    try {
        fill(sample_table, &s_, nullptr);
        FAIL() << "no error";
    } catch (const ucs::error &e) {
        EXPECT_EQ(e.status(), UCS_ERR_INVALID_PARAM);
        EXPECT_NE(std::string(e.what()).find("UCX_SAMPLE_SIZE='8q'"), std::string::npos)
            << e.what();
    }
}

TEST_F(config, sizes)
{
    size_t value;
    EXPECT_TRUE(size_.parse("-1", &value)); // as UCX takes it
    EXPECT_EQ(value, memunits_inf);
    value = 0;
    EXPECT_TRUE(size_.parse("inf", &value));
    EXPECT_EQ(value, memunits_inf);
    EXPECT_TRUE(size_.parse("auto", &value));
    EXPECT_EQ(value, memunits_auto);
    EXPECT_TRUE(size_.parse("1.5m", &value));
    EXPECT_EQ(value, 1536u * 1024);
    EXPECT_TRUE(size_.parse("2GB", &value));
    EXPECT_EQ(value, size_t(2) << 30);
    EXPECT_EQ(size_.format(&value), "2G");
    for (const char *bad : {"", "-2", "-1k", "k", "8kk", "8k ", "1e30", "nan"}) {
        EXPECT_FALSE(size_.parse(bad, &value)) << bad;
    }
}

TEST_F(config, times)
{
    double value;
    EXPECT_TRUE(time_.parse("inf", &value));
    EXPECT_TRUE(std::isinf(value));
    EXPECT_TRUE(time_.parse("2m", &value));
    EXPECT_DOUBLE_EQ(value, 120);
    EXPECT_TRUE(time_.parse("3us", &value));
    EXPECT_DOUBLE_EQ(value, 3e-6);
    EXPECT_FALSE(time_.parse("3 weeks", &value));
    EXPECT_FALSE(time_.parse("-1s", &value));
}

TEST_F(config, bandwidths_are_in_bytes_or_bits_and_in_units_of_1024)
{
    double value = 1;
    for (auto [text, bytes] : {std::pair("auto", bandwidth_auto),
                               {"100Bps", 100.0},
                               {"80bps", 10.0},
                               {"1KB/s", 1024.0},
                               {"2MBs", 2097152.0},
                               {"1.5GB", 1610612736.0},
                               {"8Gb/s", 1073741824.0},
                               {"1TBps", 1099511627776.0}}) {
        EXPECT_TRUE(bandwidth_.parse(text, &value)) << text;
        EXPECT_EQ(bytes, value) << text;
    }
    for (const char *bad :
         {"", "fast", "100", "0MBps", "-1MBps", "1MBpm", "1XBps", "1M", "infMBps", "inf"}) {
        EXPECT_FALSE(bandwidth_.parse(bad, &value)) << bad;
    }
    value = 10000.0 * 1024 * 1024;
    EXPECT_EQ("10000.00MBps", bandwidth_.format(&value));
    value = bandwidth_auto;
    EXPECT_EQ("auto", bandwidth_.format(&value));
}

TEST_F(config, set_and_get_by_name)
{
    fill(sample_table, &s_, nullptr);
    EXPECT_EQ(set(sample_table, &s_, "SAMPLE_COUNT", "12"), UCS_OK);
    EXPECT_EQ(set(sample_table, &s_, "UCX_SAMPLE_NAME", "x"), UCS_OK);
    EXPECT_EQ(set(sample_table, &s_, "SAMPLE_COUNT", "-1"), UCS_ERR_INVALID_PARAM);
    EXPECT_EQ(set(sample_table, &s_, "SAMPLE_NOTHING", "1"), UCS_ERR_NO_ELEM);
    std::string text;
    EXPECT_EQ(get(sample_table, &s_, "SAMPLE_COUNT", &text), UCS_OK);
    EXPECT_EQ(text, "12");
    EXPECT_EQ(get(sample_table, &s_, "COUNT", &text), UCS_ERR_NO_ELEM);
}

TEST_F(config, listing_without_flags_is_name_value_lines_only)
{
    fill(sample_table, &s_, nullptr);
    EXPECT_EQ(printed([&](FILE *stream) { print(sample_table, &s_, nullptr, 0, stream); }),
              "UCX_SAMPLE_FLAG=y\nUCX_SAMPLE_NUMBER=-3\nUCX_SAMPLE_COUNT=4\n"
              "UCX_SAMPLE_SIZE=8K\nUCX_SAMPLE_TIMEOUT=0.01s\nUCX_SAMPLE_NAME=none\n"
              "UCX_SAMPLE_LIST=a,b\nUCX_SAMPLE_MODE=try\n");
}

} // namespace
