// SPDX-License-Identifier: BSD-3-Clause
// A worker that sleeps until a message comes: see selftest.h.
#include "tools/selftest/selftest.h"

#include <cerrno>
#include <cstring>
#include <poll.h>

namespace selftest::wakeups {
namespace {

constexpr unsigned rounds = 10;
constexpr size_t length = 100;

bool over(ucs_status_ptr_t request)
{
    return ucp_request_check_status(request) != UCS_INPROGRESS;
}

// Armed with nothing in the way; or busy for as often as a core that cannot sleep would be, or
// until the request is over: what progress finds here wakes no thread afterwards.
bool arms(peer &p, ucs_status_ptr_t request)
{
    for (unsigned i = 0; i < 20000; ++i) {
        ucs_status_t status = ucp_worker_arm(p.worker);
        if (status == UCS_OK) {
            return true;
        }
        if (status != UCS_ERR_BUSY) {
            must(status, "ucp_worker_arm");
        }
        ucp_worker_progress(p.worker);
        if (over(request)) {
            return false;
        }
    }
    return false;
}

// The message of one round. Its request is over when it returns.
void sleep_for(peer &p, int fd, ucs_status_ptr_t request)
{
    bool told = false;
    while (UCS_PTR_IS_PTR(request) && !over(request)) {
        bool armed = arms(p, request);
        if (over(request)) {
            break;
        }
        if (!armed && !told) {
            ucp_request_cancel(p.worker, request);
            ucp_request_free(request);
            throw unsupported("the worker answers busy: the core has nothing to wait for");
        }
        if (!std::exchange(told, true)) {
            p.say("asleep"); // and the message is on its way
        }
        if (!armed) {
            continue; // it comes
        }
        pollfd end = {fd, POLLIN, 0};
        int n = poll(&end, 1, static_cast<int>(p.about.limit * 1000));
        if (n == 0) {
            throw failure("the worker slept while a message came");
        }
        while (ucp_worker_progress(p.worker)) {
        }
    }
    if (!told) {
        throw failure("a message came before it was sent");
    }
}

std::string sleeps(peer &p)
{
    int fd;
    ucs_status_t status = ucp_worker_get_efd(p.worker, &fd);
    if (status == UCS_ERR_UNSUPPORTED) {
        throw unsupported("ucp_worker_get_efd: no descriptor");
    }
    must(status, "ucp_worker_get_efd");
    p.meet();
    for (unsigned i = 0; i < rounds; ++i) {
        std::vector<char> data(length);
        ucp_request_param_t param = {};
        ucs_status_ptr_t request =
            ucp_tag_recv_nbx(p.worker, data.data(), length, i, ~0ull, &param);
        sleep_for(p, fd, request);
        p.wait(request, "ucp_tag_recv_nbx");
        compare(data, i, "message that woke the worker");
    }
    return {};
}

std::string wakes(peer &p)
{
    p.meet();
    for (unsigned i = 0; i < rounds; ++i) {
        p.hear();
        std::vector<char> data = filled(length, i);
        ucp_request_param_t param = {};
        p.wait(ucp_tag_send_nbx(p.ep, data.data(), length, i, &param), "ucp_tag_send_nbx");
    }
    return {};
}

} // namespace
} // namespace selftest::wakeups

namespace selftest {

const test sleep_and_wakeup = {"sleep and wakeup", UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP, false,
                               wakeups::wakes, wakeups::sleeps};

} // namespace selftest
