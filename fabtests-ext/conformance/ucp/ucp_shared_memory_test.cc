// SPDX-License-Identifier: BSD-3-Clause
//
// Which shared memory serves on a node: sm, and libfabric's shm where sm does not open or where it
// is named. Two sides that have not opened the same one use tcp.
#include "fabtests-ext/common/printed.h"
#include "fabtests-ext/common/ucp_entity.h"
#include "fabtests-ext/common/ucp_lanes.h"

#include <optional>
#include <sys/prctl.h>
#include <sys/resource.h>

using namespace ucp_test;

namespace {

// While it exists, other processes may not look at this one, so sm does not open.
class hidden {
  public:
    hidden() : before_(prctl(PR_GET_DUMPABLE))
    {
        EXPECT_EQ(1, before_);
        EXPECT_EQ(0, prctl(PR_SET_DUMPABLE, 0));
    }
    ~hidden() { prctl(PR_SET_DUMPABLE, before_); }
    hidden(const hidden &) = delete;
    hidden &operator=(const hidden &) = delete;

  private:
    int before_;
};

// While it exists, no file may become as large as an inbox of sm.
class small_files {
  public:
    small_files()
    {
        EXPECT_EQ(0, getrlimit(RLIMIT_FSIZE, &before_));
        rlimit low = {.rlim_cur = 64 << 10, .rlim_max = before_.rlim_max};
        EXPECT_EQ(0, setrlimit(RLIMIT_FSIZE, &low));
    }
    ~small_files() { setrlimit(RLIMIT_FSIZE, &before_); }
    small_files(const small_files &) = delete;
    small_files &operator=(const small_files &) = delete;

  private:
    rlimit before_ = {};
};

options over(const char *tls)
{
    options o;
    o.tls = tls;
    return o;
}

// What carries messages from the one to the other; "" without a way. It is tried.
std::string way(entity &from, entity &to)
{
    ucp_ep_h ep = nullptr;
    if (create_ep(from, to.address(), &ep) != UCS_OK) {
        return "";
    }
    std::string names;
    for (const std::string &lane : transports_of(ep)) {
        names += (names.empty() ? "" : ",") + lane.substr(0, lane.find('/'));
    }
    for (size_t length : {8, 5000, 300000}) {
        ping(from, ep, to, length);
    }
    EXPECT_EQ(UCS_OK, wait({&from, &to}, close_nb(ep)));
    return names;
}

std::string both_ways(entity &a, entity &b)
{
    std::string there = way(a, b), back = way(b, a);
    return there == back ? there : there + " and back " + back;
}

std::string way_over(const char *tls)
{
    entity a(over(tls)), b(over(tls));
    return both_ways(a, b);
}

TEST(ucp_shared_memory, sm_serves_by_default_and_by_the_names_of_ucx)
{
    for (const char *tls : {"sm", "\\sm", "shm", "mm", "posix", "sysv", "cma", "knem", "xpmem",
                            "sm,tcp", "shm,tcp", "^self", "^ofi_shm,self", "^\\shm,self"}) {
        EXPECT_EQ("sm", way_over(tls)) << tls;
    }
    entity a({}), b({});
    EXPECT_EQ("sm", both_ways(a, b)) << "all";
}

TEST(ucp_shared_memory, the_core_serves_where_it_is_named)
{
    for (const char *tls : {"ofi_shm", "\\shm", "ofi_shm,tcp", "^\\sm,self"}) {
        EXPECT_EQ("shm", way_over(tls)) << tls;
    }
    EXPECT_EQ("sm", way_over("sm,ofi_shm"));
}

TEST(ucp_shared_memory, sides_that_name_both_meet_those_that_name_one)
{
    entity both(over("sm,ofi_shm")), own(over("sm")), core(over("ofi_shm"));
    EXPECT_EQ("sm", both_ways(both, own));
    EXPECT_EQ("shm", both_ways(both, core));
    EXPECT_EQ("", both_ways(own, core));
}

TEST(ucp_shared_memory, the_core_serves_where_sm_does_not_open)
{
    for (const char *tls : {"all", "shm", "sm", "posix,tcp"}) {
        std::optional<hidden> unseen(std::in_place);
        entity a(over(tls)), b(over(tls));
        unseen.reset();
        EXPECT_EQ("shm", both_ways(a, b)) << tls;
    }
}

TEST(ucp_shared_memory, sm_does_not_open_where_its_memory_is_not_to_be_had)
{
    ucp_config_t *config = nullptr;
    ASSERT_EQ(UCS_OK, ucp_config_read(nullptr, nullptr, &config));
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    entity usual({});
    ucp_context_h context = nullptr;
    {
        small_files limit;
        ASSERT_EQ(UCS_OK, ucp_init(&params, config, &context));
    }
    ucp_config_release(config);
    std::string text = printed([&](FILE *stream) { ucp_context_print_info(context, stream); });
    EXPECT_EQ(std::string::npos, text.find("sm/memory")) << text;
    EXPECT_NE(std::string::npos, text.find("shm/memory")) << text;
    ucp_cleanup(context);
}

TEST(ucp_shared_memory, tcp_serves_where_only_one_side_opens_sm)
{
    std::optional<hidden> unseen(std::in_place);
    entity without({}), without_by_alias(over("shm,tcp")), alone(over("shm"));
    unseen.reset();
    entity with({}), with_alone(over("shm"));
    EXPECT_EQ("tcp", both_ways(without, with));
    EXPECT_EQ("tcp", both_ways(without_by_alias, with));
    EXPECT_EQ("shm", both_ways(without, alone));
    EXPECT_EQ("", both_ways(alone, with_alone));
}

TEST(ucp_shared_memory, nothing_stands_in_for_what_is_excluded)
{
    hidden unseen;
    EXPECT_EQ("tcp", way_over("^ofi_shm,self"));
    EXPECT_EQ("tcp", way_over("\\sm,tcp"));
}

} // namespace
