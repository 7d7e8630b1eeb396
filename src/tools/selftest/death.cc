// SPDX-License-Identifier: BSD-3-Clause
// The death of the other process is reported: see selftest.h.
#include "tools/selftest/selftest.h"

#include <csignal>
#include <unistd.h>

namespace selftest::deaths {
namespace {

constexpr size_t length = 1000;

void exchange(peer &p, bool first)
{
    std::vector<char> in(length), out = filled(length, first);
    ucp_request_param_t param = {};
    ucs_status_ptr_t receive = ucp_tag_recv_nbx(p.worker, in.data(), length, 1, ~0ull, &param);
    ucs_status_ptr_t send = ucp_tag_send_nbx(p.ep, out.data(), length, 1, &param);
    p.wait(send, "ucp_tag_send_nbx");
    p.wait(receive, "ucp_tag_recv_nbx");
    compare(in, !first, "message before the death");
}

std::string dies(peer &p)
{
    exchange(p, false);
    p.hear();
    kill(getpid(), SIGKILL);
    return {};
}

// A message is sent into the void: some cores tell of a death only then.
std::string survives(peer &p)
{
    exchange(p, true);
    p.expects_death = true;
    p.say("die");
    // What this side has sent may need its progress before the other one gets it.
    p.until([&] { return p.link->has_ended(); }, "end of the other process");
    std::vector<char> data = filled(1 << 20, 3);
    ucp_request_param_t param = {};
    ucs_status_ptr_t request = ucp_tag_send_nbx(p.ep, data.data(), data.size(), 2, &param);
    p.until([&] { return p.failed_with != UCS_OK; }, "report of the death");
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        p.until([&] { return (status = ucp_request_check_status(request)) != UCS_INPROGRESS; },
                "end of a request to the dead process");
        ucp_request_free(request);
    }
    if (status == UCS_OK) {
        throw failure("a rendezvous with the dead process succeeded");
    }
    return ucs_status_string(p.failed_with);
}

} // namespace
} // namespace selftest::deaths

namespace selftest {

const test death_of_peer = {"death of the peer", UCP_FEATURE_TAG, true, deaths::survives,
                            deaths::dies};

} // namespace selftest
