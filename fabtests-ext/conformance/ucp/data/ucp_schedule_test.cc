// SPDX-License-Identifier: BSD-3-Clause
//
// Random schedules of two workers against a model of what ucp.h promises: tagged messages of each
// size and datatype, synchronous ones, receives with masks and short buffers, probe with and
// without removal, cancel, puts and gets, streams, active messages, flush, close, also in
// callbacks, and with a second thread that has endpoints of its own.
#include "fabtests-ext/common/schedule_runner.h"
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/ucp_model.h"
#include "fabtests-ext/conformance/common/ucp_model_beside.h"

#include <sys/prctl.h>
#include <sys/wait.h>

namespace {

using namespace ucp_model;

const bool found_by_path = use_strict_cores();

void carry_out(const options &o, const schedule::schedules &all, std::atomic<size_t> *done)
{
    side a(o), b(o);
    std::optional<schedule::second_thread<beside>> other;
    if (o.thread_mode == UCS_THREAD_MODE_MULTI) {
        other.emplace(o, a.self(), b.self());
    }
    for (const schedule::steps &steps : all) {
        side::meet(a, b);
        schedule::carry_out(steps, a, b);
        side::leave(a, b);
        ++*done;
    }
}

std::string run(const options &o, const schedule::schedules &all, std::atomic<size_t> *done)
{
    fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        carry_out(o, all, done);
        fflush(nullptr);
        _exit(testing::Test::HasFailure());
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        return "no process";
    }
    return status == 0 ? "" : "status " + std::to_string(status) + "; ";
}

class ucp_schedule : public testing::TestWithParam<const char *> {
  protected:
    environment quick{"FI_STRICT_DESCRIPTOR", "0"};

    static void check(const char *threshold, const char *scheme,
                      ucs_thread_mode_t mode = UCS_THREAD_MODE_SINGLE)
    {
        options o;
        o.tls = GetParam();
        o.thread_mode = mode;
        o.features |= UCP_FEATURE_RMA | UCP_FEATURE_STREAM;
        o.config = {{"RNDV_THRESH", threshold}, {"RNDV_SCHEME", scheme}};
        schedule::check(schedule::wanted(kinds), [&](const auto &all, std::atomic<size_t> *done) {
            return run(o, all, done);
        });
    }
};

TEST_P(ucp_schedule, by_the_usual_protocols)
{
    check("auto", "auto");
}

TEST_P(ucp_schedule, by_two_threads)
{
    check("8000", "auto", UCS_THREAD_MODE_MULTI);
}

TEST_P(ucp_schedule, by_rendezvous_that_reads)
{
    check("0", "get_zcopy");
}

TEST_P(ucp_schedule, by_rendezvous_that_sends)
{
    check("0", "am");
}

UCP_TEST_OVER(ucp_schedule, "sm", "ofi_shm", "tcp", "cxi", "efa", "opx", "psm3", "worst");

} // namespace
