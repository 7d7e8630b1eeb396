// SPDX-License-Identifier: BSD-3-Clause
// Programs that end with everything open: libfabric then unloads its providers, whose threads run.
#include "fabtests-ext/common/fabric_app.h"

#include <gtest/gtest.h>

using namespace app;

namespace {

fabric_side *still_open; // and reachable, so that it is no leak

options of_type(fi_ep_type type)
{
    options o;
    o.type = type;
    o.caps = type == FI_EP_MSG ? FI_MSG : FI_TAGGED;
    return o;
}

class prov_exit_test : public testing::TestWithParam<fi_ep_type> {};

TEST_P(prov_exit_test, a_program_may_end_right_after_it_connected)
{
    auto end = [](bool server) {
        return [server](partner &p) {
            setenv("FI_UCXLIKE_TLS", "tcp", 1); // leaves no files of shared memory behind
            still_open = new fabric_side(of_type(GetParam()));
            if (GetParam() == FI_EP_RDM) {
                still_open->open_rdm(p);
            } else if (server) {
                still_open->serve(p);
            } else {
                still_open->dial(p);
            }
            exit(0);
        };
    };
    for (int i = 0; i < 10; ++i) {
        ASSERT_EQ(run_pair(end(true), end(false)), "") << i;
    }
}

INSTANTIATE_TEST_SUITE_P(, prov_exit_test, testing::Values(FI_EP_MSG, FI_EP_RDM),
                         [](const auto &i) {
                             return std::string(i.param == FI_EP_MSG ? "msg" : "rdm");
                         });

} // namespace
