// SPDX-License-Identifier: BSD-3-Clause
//
// Fixture of the tests of UCX_STATS_*: a report concerns a whole process, so each case has one of
// its own.
#pragma once

#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <map>
#include <sys/wait.h>
#include <unistd.h>

namespace ucp_test {

using nlohmann::json;
using variables = std::map<std::string, std::string>;

inline std::string contents(const std::string &path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

class ucp_stats : public pair {
  protected:
    ucp_stats()
    {
        opts.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
        char name[] = "/tmp/ucxlike_stats_XXXXXX";
        EXPECT_NE(nullptr, mkdtemp(name));
        folder_ = name;
    }
    // As the report calls it.
    std::string transport() const { return opts.tls == "ofi_shm" ? "shm" : opts.tls; }
    ~ucp_stats() override
    {
        unlink(path().c_str());
        unlink(log().c_str());
        EXPECT_EQ(0, rmdir(folder_.c_str())) << "something else is left in " << folder_;
    }
    // The endpoints are those of the other process.
    void SetUp() override {}
    void TearDown() override {}

    std::string path() const { return folder_ + "/report"; }
    std::string log() const { return folder_ + "/log"; }

    // Runs the body in a process that has these variables. The standard error of that process goes
    // to log().
    void in_a_process(const variables &env, const std::function<void()> &body)
    {
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            setenv("UCX_STATS_DEST", ("file:" + path()).c_str(), 1);
            for (const auto &[name, value] : env) {
                setenv(name.c_str(), value.c_str(), 1);
            }
            EXPECT_NE(nullptr, freopen(log().c_str(), "w", stderr));
            body();
            exit(HasFailure() ? 1 : 0);
        }
        int status = -1;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status) << contents(log());
    }

    // What is reported at the end of a process that ran it between the two endpoints.
    json report_of(const std::function<void()> &body, variables env = {})
    {
        env.emplace("UCX_STATS_FORMAT", "json");
        in_a_process(env, [&] {
            start();
            body();
            stop();
        });
        return json::parse(contents(path()), nullptr, false);
    }

    void send(size_t length, int times)
    {
        std::vector<char> from = pattern(length), to(length);
        for (int i = 0; i < times; ++i) {
            ucp_request_param_t p = {};
            ucs_status_ptr_t received =
                ucp_tag_recv_nbx(b().worker, to.data(), length, 1, UINT64_MAX, &p);
            EXPECT_EQ(UCS_OK, finish(ucp_tag_send_nbx(ab, from.data(), length, 1, &p)));
            EXPECT_EQ(UCS_OK, finish(received));
        }
    }
    void put_and_get(const region &r, size_t length, int times)
    {
        std::vector<char> data = pattern(length);
        ucp_request_param_t p = {};
        for (int i = 0; i < times; ++i) {
            EXPECT_EQ(UCS_OK, finish(ucp_put_nbx(ab, data.data(), length, r.at(), r.rkey, &p)));
            EXPECT_EQ(UCS_OK, finish(ucp_ep_flush_nbx(ab, &p)));
            EXPECT_EQ(UCS_OK, finish(ucp_get_nbx(ab, data.data(), length, r.at(), r.rkey, &p)));
        }
    }

  private:
    std::string folder_;
};

struct sum {
    uint64_t messages = 0, bytes = 0, payload = 0;
};

inline void add(sum &to, const json &rows, const std::string &protocol, const std::string &way)
{
    for (const json &row : rows) {
        if (row["protocol"] == protocol && (way.empty() || row["way"] == way)) {
            to.messages += row["messages"].get<uint64_t>();
            to.bytes += row["bytes"].get<uint64_t>();
            to.payload += row["payload_bytes"].get<uint64_t>();
        }
    }
}

inline sum sent(const json &report, const std::string &protocol, const std::string &way = "")
{
    sum all;
    for (const json &i : report["interfaces"]) {
        for (const json &lane : i["lanes"]) {
            add(all, lane["sent"], protocol, way);
        }
    }
    return all;
}

inline sum received(const json &report, const std::string &protocol)
{
    sum all;
    for (const json &i : report["interfaces"]) {
        add(all, i["received"], protocol, "");
    }
    return all;
}
} // namespace ucp_test
