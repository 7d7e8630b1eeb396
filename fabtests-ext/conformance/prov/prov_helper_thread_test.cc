// SPDX-License-Identifier: BSD-3-Clause
//
// Threads that the provider starts: one for the process, whatever is open.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/threads.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>

using namespace app;

namespace {

options automatic(fi_ep_type type)
{
    options o;
    o.type = type;
    o.caps = FI_MSG | FI_RMA;
    o.with_eq = true;
    o.progress = FI_PROGRESS_AUTO;
    if (type == FI_EP_RDM) {
        o.caps |= FI_MULTICAST;
    }
    return o;
}

fid_mc *join(fabric_side &s)
{
    sockaddr_in at = group_address();
    fid_mc *mc = nullptr;
    REQUIRE_EQ(fi_join(s.ep, &at, 0, &mc, nullptr), 0);
    uint32_t type = 0;
    fi_eq_entry e = {};
    REQUIRE_EQ(fi_eq_sread(s.eq, &type, &e, sizeof(e), patience_ms, 0),
               static_cast<ssize_t>(sizeof(e)));
    REQUIRE_EQ(type, static_cast<uint32_t>(FI_JOIN_COMPLETE));
    return mc;
}

void count_threads(int, crew &)
{
    size_t before = threads_now();
    {
        char memory[2][4096];
        fabric_side a(automatic(FI_EP_RDM)), b(automatic(FI_EP_RDM)), c(automatic(FI_EP_MSG));
        for (fabric_side *s : {&a, &b, &c}) {
            s->open_active(s->info);
        }
        a.expose(memory[0], sizeof(memory[0]), FI_REMOTE_READ, 1);
        b.expose(memory[1], sizeof(memory[1]), FI_REMOTE_READ, 1);
        fid_mc *first = join(a), *second = join(b);
        REQUIRE_EQ(threads_now(), before + 1);
        REQUIRE_EQ(fi_close(&first->fid), 0);
        REQUIRE_EQ(fi_close(&second->fid), 0);
    }
    REQUIRE_EQ(threads_down_to(before), before);
}

TEST(prov_helper_thread_test, one_progresses_domains_and_finds_groups)
{
    EXPECT_EQ(run_crew(1, count_threads), "");
}

} // namespace
