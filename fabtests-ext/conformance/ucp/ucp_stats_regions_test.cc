// SPDX-License-Identifier: BSD-3-Clause
//
// Caches of registered memory in the reports of UCX_STATS_*, over a core where registering is dear.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/conformance/common/ucp_stats.h"
#include "ucs/rcache/memory_watch.h"

#include <csignal>
#include <regex>

namespace {

using namespace ucp_test;

const bool found_by_path = use_strict_cores();

constexpr size_t size = 1 << 20;

class ucp_stats_regions : public ucp_stats {
  protected:
    environment quick{"FI_STRICT_DESCRIPTOR", "0"};

    void SetUp() override
    {
        std::string why = ucs::memory_watch::why_not();
        if (!why.empty()) {
            GTEST_SKIP() << why;
        }
    }

    // The sender registers its buffer, the receiver none.
    void send_ten()
    {
        start();
        send(size, 10);
        stop();
    }
};

TEST_P(ucp_stats_regions, json_has_what_closed_caches_did)
{
    in_a_process({{"UCX_STATS_FORMAT", "json"}}, [&] { send_ten(); });
    json report = json::parse(contents(path()), nullptr, false);
    ASSERT_TRUE(report.is_object()) << contents(path());
    // Whether the buffer's memory goes while the caches are open is the allocator's matter.
    json &gone = report["registration_caches"][0]["memory_gone"];
    EXPECT_TRUE(gone == 0 || gone == 1) << gone;
    json wanted = {{"id", 0},
                   {"open", false},
                   {"caches", 2},
                   {"domain", "cxi/cxi0"},
                   {"hits", 9},
                   {"evicted", 0},
                   {"for_one_use", 0},
                   {"registrations", 1},
                   {"memory_gone", gone},
                   {"regions", 0},
                   {"bytes", 0}};
    EXPECT_EQ(json::array({wanted}), report["registration_caches"]);
}

TEST_P(ucp_stats_regions, text_and_prometheus_have_it)
{
    for (const char *format : {"full", "summary"}) {
        in_a_process({{"UCX_STATS_FORMAT", format}}, [&] { send_ten(); });
        std::regex line(
            "\nregistrations of cxi/cxi0, 2 caches, closed: 9 hits, 1 registrations, 0 for "
            "one use, 0 evicted, [01] whose memory went; it has 0 regions of 0 bytes\n");
        EXPECT_TRUE(std::regex_search(contents(path()), line)) << contents(path());
    }
    in_a_process({{"UCX_STATS_FORMAT", "prometheus"}}, [&] { send_ten(); });
    std::regex sample("# TYPE ucxlike_registration_cache_hits_total counter\n"
                      "ucxlike_registration_cache_hits_total\\{[^\n]*,domain=\"cxi/cxi0\","
                      "cache=\"0\"\\} 9\n");
    EXPECT_TRUE(std::regex_search(contents(path()), sample)) << contents(path());
}

TEST_P(ucp_stats_regions, open_caches_say_what_they_have)
{
    for (const char *format : {"json", "summary"}) {
        in_a_process({{"UCX_STATS_TRIGGER", "signal:USR1"}, {"UCX_STATS_FORMAT", format}}, [&] {
            start();
            std::vector<char> from = pattern(size), to(size);
            ucp_request_param_t p = {};
            ucs_status_ptr_t received =
                ucp_tag_recv_nbx(b().worker, to.data(), size, 1, UINT64_MAX, &p);
            EXPECT_EQ(UCS_OK, finish(ucp_tag_send_nbx(ab, from.data(), size, 1, &p)));
            EXPECT_EQ(UCS_OK, finish(received));
            raise(SIGUSR1);
            EXPECT_TRUE(until([&] { return access(path().c_str(), F_OK) == 0; }));
            stop();
        });
        if (strcmp(format, "summary") == 0) {
            std::regex line("\nregistrations of cxi/cxi0, 2 caches: 0 hits, 1 registrations");
            EXPECT_TRUE(std::regex_search(contents(path()), line)) << contents(path());
            continue;
        }
        json report = json::parse(contents(path()), nullptr, false);
        ASSERT_TRUE(report.is_object()) << contents(path());
        unlink(path().c_str());
        json caches = report["registration_caches"];
        ASSERT_EQ(2u, caches.size()) << report;
        EXPECT_NE(caches[0]["id"], caches[1]["id"]);
        uint64_t bytes = 0, regions = 0;
        for (const json &c : caches) {
            EXPECT_EQ(true, c["open"]);
            bytes += c["bytes"].get<uint64_t>();
            regions += c["regions"].get<uint64_t>();
        }
        EXPECT_EQ(1u, regions);
        EXPECT_LE(size, bytes);
    }
}

UCP_TEST_OVER(ucp_stats_regions, "cxi");

} // namespace
