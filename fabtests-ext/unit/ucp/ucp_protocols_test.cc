// SPDX-License-Identifier: BSD-3-Clause
//
// The tables that choose protocols. What UCX_PROTO_INFO prints is what carries the messages, which
// the counters of UCX_STATS_DEST and of a lane in front of the real one tell; and each variable
// that chooses changes both.
#include "fabtests-ext/common/fake_uct.h"
#include "fabtests-ext/conformance/common/ucp_stats.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto_info.h"

#include <regex>

namespace {

using namespace ucp_test;
using ucs::stats::flow;

struct printed {
    uint64_t count = 0; // of a box with a column for it
    size_t begin = 0, last = 0;
    std::string name, carrier;
    bool endless = false;
};

// The rows of the first box with this title; none: it is not there.
std::vector<printed> box(const std::string &text, const std::string &title)
{
    static const std::regex row(
        R"(\| +(?:(\d+) \| +)?(\d+)\.\.(\d+|inf) \| +(.*?) +\| +(.*?) +\|)");
    std::vector<printed> rows;
    std::istringstream lines(text);
    bool inside = false;
    for (std::string line; std::getline(lines, line);) {
        std::smatch m;
        if (line.find("ep_cfg[") != std::string::npos) {
            if (inside) {
                break;
            }
            inside = line.find("| " + title + " ") != std::string::npos;
        } else if (inside && std::regex_match(line, m, row)) {
            bool endless = m[3] == "inf";
            rows.push_back({m[1].matched ? std::stoull(m[1]) : 0, std::stoull(m[2]),
                            endless ? SIZE_MAX : std::stoull(m[3]), m[4], m[5], endless});
        }
    }
    return rows;
}

bool has(const std::string &text, const char *part)
{
    return text.find(part) != std::string::npos;
}

constexpr const char *tagged = "tagged message by ucp_tag_send* from host memory";

class ucp_protocols : public ucp_stats {
    std::vector<std::unique_ptr<fake_uct::endpoint>> fakes_; // UCP destroys what they stand for

  protected:
    // In a process that counts: what is printed when the endpoints are made is left in `text`.
    void with(std::vector<std::pair<std::string, std::string>> config,
              const std::function<void()> &body)
    {
        opts.config = std::move(config);
        in_a_process({}, [&] {
            testing::internal::CaptureStdout();
            start();
            text = testing::internal::GetCapturedStdout();
            send(8, 1); // connected
            body();
            stop();
        });
    }

    uint64_t count(unsigned what) const
    {
        uint64_t sum = 0;
        for (unsigned i = 0; i < ab->lane_count; ++i) {
            sum += ab->control->counted()[i]->flows[what].messages.value();
        }
        return sum;
    }

    // Every row is complete, and sorted.
    void sound(const std::vector<printed> &rows) const
    {
        ASSERT_FALSE(rows.empty()) << text;
        size_t next = 0;
        for (const printed &r : rows) {
            EXPECT_EQ(next, r.begin) << text;
            EXPECT_TRUE(has(r.carrier, (transport() + "/").c_str())) << r.carrier;
            EXPECT_TRUE(r.carrier.starts_with("native ") || r.carrier.starts_with("emulated "));
            next = r.last + 1;
        }
        EXPECT_TRUE(rows.back().endless) << text;
    }

    static std::vector<size_t> lengths_of(const printed &r)
    {
        return {r.begin, r.endless ? r.begin + 300000 : r.last};
    }

    struct traffic {
        uint64_t eager, first, rts, data;
        unsigned shorts, copies, zcopies;
    };
    traffic seen(const fake_uct::endpoint &lane) const
    {
        return {count(ucp::AM_ID_TAG_EAGER),
                count(ucp::AM_ID_TAG_FIRST),
                count(ucp::AM_ID_RNDV_RTS),
                count(ucp::AM_ID_RNDV_DATA),
                lane.shorts(),
                lane.copies(),
                lane.zcopies()};
    }

    // One message of each end of each range goes the way that is printed.
    void carried(const std::vector<printed> &rows)
    {
        fakes_.push_back(std::make_unique<fake_uct::endpoint>(ab->am_ep));
        fake_uct::endpoint *lane = fakes_.back().get();
        ab->lanes[ab->am_lane_index].ep = ab->am_ep = lane;
        for (const printed &r : rows) {
            for (size_t length : lengths_of(r)) {
                SCOPED_TRACE(r.name + ", " + std::to_string(length) + " bytes");
                traffic before = seen(*lane);
                send(length, 1);
                compare(r, before, seen(*lane));
            }
        }
    }

    static void compare(const printed &r, const traffic &a, const traffic &b)
    {
        bool rendezvous = has(r.name, "rendezvous"), fragments = has(r.name, "multi-frag");
        EXPECT_EQ(r.name == "eager short", b.shorts > a.shorts);
        EXPECT_EQ(has(r.name, "eager zero-copy"), !rendezvous && b.zcopies > a.zcopies);
        EXPECT_EQ(has(r.name, "eager copy-in") || rendezvous, b.copies > a.copies);
        EXPECT_EQ(rendezvous, b.rts == a.rts + 1);
        EXPECT_EQ(r.name == "rendezvous fragments copy-in copy-out", b.data > a.data);
        EXPECT_EQ(!rendezvous, b.eager + b.first == a.eager + a.first + 1);
        if (fragments) {
            EXPECT_EQ(a.first + 1, b.first);
        }
    }

    // What is printed with these settings, which is sound and true.
    std::vector<printed> ranges(std::vector<std::pair<std::string, std::string>> config,
                                const std::function<void(const std::vector<printed> &)> &check)
    {
        config.emplace_back("PROTO_INFO", "y");
        std::vector<printed> rows;
        with(config, [&] {
            rows = box(text, tagged);
            sound(rows);
            carried(rows);
            check(rows);
        });
        return rows;
    }

    static const printed *find(const std::vector<printed> &rows, const char *name)
    {
        for (const printed &r : rows) {
            if (has(r.name, name)) {
                return &r;
            }
        }
        return nullptr;
    }
    static void begins(const std::vector<printed> &rows, const char *name, size_t at)
    {
        const printed *r = find(rows, name);
        ASSERT_NE(nullptr, r) << name;
        EXPECT_EQ(at, r->begin) << name;
    }

    static bool is_native(const std::vector<printed> &rows, size_t length)
    {
        for (const printed &r : rows) {
            if (length >= r.begin && length <= r.last) {
                return r.carrier.starts_with("native");
            }
        }
        ADD_FAILURE() << length << " is in no range";
        return false;
    }

    void check_put_and_get(const region &r, const std::vector<printed> &puts,
                           const std::vector<printed> &gets, size_t length)
    {
        SCOPED_TRACE(std::to_string(length) + " bytes");
        uint64_t put = count(flow::put), put_message = count(ucp::AM_ID_RMA_PUT);
        uint64_t get = count(flow::get), get_message = count(ucp::AM_ID_RMA_GET);
        put_and_get(r, length, 1);
        EXPECT_EQ(is_native(puts, length), count(flow::put) > put);
        EXPECT_EQ(is_native(gets, length), count(flow::get) > get);
        EXPECT_EQ(!is_native(puts, length), count(ucp::AM_ID_RMA_PUT) > put_message);
        EXPECT_EQ(!is_native(gets, length), count(ucp::AM_ID_RMA_GET) > get_message);
    }

    bool on_node() const { return opts.tls != "tcp"; }

    std::string text;
};

TEST_P(ucp_protocols, the_box_is_what_carries_messages)
{
    ranges({}, [](const std::vector<printed> &rows) {
        EXPECT_EQ("eager short", rows.front().name);
        EXPECT_EQ("rendezvous zero-copy read from remote", rows.back().name);
    });
}

TEST_P(ucp_protocols, rndv_thresh_moves_the_rendezvous)
{
    ranges({{"RNDV_THRESH", "3000"}}, [](const auto &rows) { begins(rows, "rendezvous", 3000); });
    ranges({{"RNDV_THRESH", "0"}}, [](const auto &rows) { EXPECT_EQ(1u, rows.size()); });
    ranges({{"RNDV_THRESH", "inf"}},
           [](const auto &rows) { EXPECT_EQ(nullptr, find(rows, "rendezvous")); });
    ranges({{"RNDV_THRESH", "intra:2000,inter:5k"}},
           [this](const auto &rows) { begins(rows, "rendezvous", on_node() ? 2000 : 5120); });
}

TEST_P(ucp_protocols, zcopy_thresh_moves_what_is_not_copied)
{
    ranges({{"RNDV_THRESH", "inf"}, {"ZCOPY_THRESH", "100"}}, [this](const auto &rows) {
        if (opts.tls == "tcp") {
            begins(rows, "zero-copy", 100);
            EXPECT_EQ(2u, rows.size());
        }
    });
    ranges({{"RNDV_THRESH", "inf"}, {"ZCOPY_THRESH", "inf"}},
           [](const auto &rows) { EXPECT_EQ(nullptr, find(rows, "zero-copy")); });
}

TEST_P(ucp_protocols, bcopy_thresh_moves_what_is_copied)
{
    ranges({{"BCOPY_THRESH", "64"}}, [](const auto &rows) {
        begins(rows, "copy-in", 64);
        EXPECT_EQ(63u, rows.front().last);
    });
    ranges({{"BCOPY_THRESH", "inf"}}, [this](const auto &rows) {
        if (opts.tls == "tcp") {
            EXPECT_EQ(nullptr, find(rows, "copy-in"));
            EXPECT_NE(nullptr, find(rows, "eager zero-copy"));
        }
    });
}

TEST_P(ucp_protocols, bcopy_bw_and_rndv_perf_diff_move_what_is_expected_to_pay)
{
    size_t rndv = on_node() ? 107000 : 96000, zcopy = 8000; // about, by default
    auto is = [&](const char *name, std::pair<std::string, std::string> setting, size_t least,
                  size_t most) {
        ranges({std::move(setting)}, [&](const auto &rows) {
            const printed *r = find(rows, name);
            ASSERT_NE(nullptr, r) << text;
            EXPECT_LE(least, r->begin) << text;
            EXPECT_GE(most, r->begin) << text;
        });
    };
    is("rendezvous", {"BCOPY_BW", "auto"}, rndv * 9 / 10, rndv * 11 / 10);
    is("rendezvous", {"BCOPY_BW", "5000MBps"}, 1, rndv * 3 / 4);
    is("rendezvous", {"BCOPY_BW", "160Gb/s"}, rndv * 5 / 4, SIZE_MAX);
    is("rendezvous", {"RNDV_PERF_DIFF", "30"}, 1, rndv * 3 / 4);
    if (!on_node()) {
        is("eager zero-copy", {"BCOPY_BW", "5000MBps"}, 1, zcopy * 3 / 4);
        is("eager zero-copy", {"BCOPY_BW", "160Gb/s"}, zcopy * 5 / 4, SIZE_MAX);
    }
}

TEST_P(ucp_protocols, rndv_scheme_chooses_the_rendezvous)
{
    for (const char *scheme :
         {"auto", "get_zcopy", "get_ppln", "rkey_ptr", "put_zcopy", "put_ppln", "am"}) {
        bool pushed = scheme[0] == 'p' || !strcmp(scheme, "am");
        ranges({{"RNDV_SCHEME", scheme}}, [&](const auto &rows) {
            EXPECT_EQ(pushed ? "rendezvous fragments copy-in copy-out"
                             : "rendezvous zero-copy read from remote",
                      rows.back().name)
                << scheme;
            EXPECT_TRUE(rows.back().carrier.starts_with(pushed ? "emulated" : "native"));
        });
    }
}

TEST_P(ucp_protocols, the_box_is_what_carries_puts_and_gets)
{
    with({{"PROTO_INFO", "y"}}, [&] {
        std::vector<char> target(500000);
        region r(b(), ab, target.data(), target.size());
        put_and_get(r, 8, 1); // resolved
        const std::string reached = "memory that lane " + std::to_string(r.rkey->first.lane);
        auto puts = box(text, "remote memory write by ucp_put* to " + reached + " reaches");
        auto gets = box(text, "remote memory read by ucp_get* of " + reached + " reaches");
        sound(puts);
        sound(gets);
        for (const auto &rows : {puts, gets}) {
            for (const printed &row : rows) {
                for (size_t length : lengths_of(row)) {
                    check_put_and_get(r, puts, gets, std::max<size_t>(length, 1));
                }
            }
        }
    });
}

TEST_P(ucp_protocols, used_prints_how_often_when_the_worker_ends)
{
    opts.config = {{"PROTO_INFO", "used"}};
    in_a_process({}, [&] {
        testing::internal::CaptureStdout();
        start();
        send(8, 5);
        send(300000, 3);
        stop();
        text = testing::internal::GetCapturedStdout();
        std::vector<printed> rows = box(text, tagged);
        ASSERT_FALSE(rows.empty()) << text;
        EXPECT_EQ(5u, rows.front().count) << text;
        EXPECT_EQ(3u, rows.back().count) << text;
        uint64_t sum = 0;
        for (const printed &r : rows) {
            sum += r.count;
        }
        EXPECT_EQ(8u, sum) << text;
        EXPECT_FALSE(has(text, "ucp_am_send*")) << "not used: " << text;
    });
}

TEST_P(ucp_protocols, others_print_what_they_say)
{
    with({{"PROTO_INFO", "n"}}, [&] { EXPECT_EQ("", text); });
    with({{"PROTO_INFO", "auto"}}, [&] { EXPECT_EQ("", text); });
    with({{"PROTO_INFO", "*UCP_AM_SEND*host*"}}, [&] {
        EXPECT_TRUE(has(text, "active message by ucp_am_send* from host memory"));
        EXPECT_FALSE(has(text, "ucp_tag_send"));
    });
}

TEST_P(ucp_protocols, endpoints_with_the_same_lanes_share_a_configuration)
{
    with({{"PROTO_INFO", "y"}}, [&] {
        ucp_ep_h second = nullptr;
        testing::internal::CaptureStdout();
        ASSERT_EQ(UCS_OK, create_ep(a(), b().address(), &second));
        EXPECT_EQ("", testing::internal::GetCapturedStdout());
        EXPECT_EQ(ab->config, second->config);
        EXPECT_EQ(1u, a().worker->ep_configs.size());
        EXPECT_EQ(UCS_OK, finish(close_nb(second)));
    });
}

UCP_TEST_OVER(ucp_protocols, "sm", "tcp");

} // namespace
