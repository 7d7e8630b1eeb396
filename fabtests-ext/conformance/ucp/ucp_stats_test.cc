// SPDX-License-Identifier: BSD-3-Clause
//
// What UCX_STATS_DEST counts of each protocol.
#include "fabtests-ext/conformance/common/ucp_stats.h"

namespace {

using namespace ucp_test;

TEST_P(ucp_stats, eager_tags)
{
    json report = report_of([&] {
        send(8, 10);
        send(100, 5);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    sum s = sent(report, "tag eager"), r = received(report, "tag eager");
    EXPECT_EQ(15u, s.messages);
    EXPECT_EQ(10u * 8 + 5 * 100, s.payload);
    EXPECT_EQ(s.payload + 15 * sizeof(ucp_tag_t), s.bytes);
    EXPECT_EQ(15u, r.messages);
    EXPECT_EQ(s.bytes, r.bytes);
    EXPECT_EQ(s.payload, r.payload);
}

TEST_P(ucp_stats, lanes_name_their_transport_and_their_endpoint)
{
    json report = report_of([&] { send(8, 1); });
    ASSERT_TRUE(report.is_object()) << contents(path());
    size_t with_messages = 0;
    for (const json &i : report["interfaces"]) {
        for (const json &lane : i["lanes"]) {
            sum s;
            add(s, lane["sent"], "tag eager", "message");
            if (s.messages == 0) {
                continue;
            }
            ++with_messages;
            EXPECT_EQ(transport(), i["transport"].get<std::string>());
            EXPECT_NE("", lane["endpoint"]);
            EXPECT_NE("", lane["peer"]);
            EXPECT_EQ(0u, lane["roles"].get<std::string>().find("am"));
            EXPECT_EQ(0, lane["reconnects"]);
            EXPECT_EQ(0, lane["errors"]);
        }
    }
    EXPECT_EQ(1u, with_messages);
}

TEST_P(ucp_stats, rendezvous_that_reads)
{
    constexpr size_t length = 1 << 20;
    json report = report_of([&] { send(length, 3); });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(3u, sent(report, "rndv rts").messages);
    EXPECT_EQ(3 * length, sent(report, "get", "native").payload);
    EXPECT_EQ(0u, sent(report, "rndv data").messages);
    EXPECT_EQ(3u, received(report, "rndv ats").messages);
}

TEST_P(ucp_stats, rendezvous_in_messages)
{
    constexpr size_t length = 1 << 20;
    opts.config = {{"RNDV_SCHEME", "am"}};
    json report = report_of([&] { send(length, 3); });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(3u, sent(report, "rndv rts").messages);
    EXPECT_EQ(3u, sent(report, "rndv rtr").messages);
    EXPECT_EQ(3 * length, sent(report, "rndv data", "emulated").payload);
    EXPECT_EQ(3 * length, received(report, "rndv data").payload);
    EXPECT_EQ(0u, sent(report, "get").messages);
}

TEST_P(ucp_stats, active_messages)
{
    static int arrived;
    arrived = 0;
    json report = report_of([&] {
        auto on_message = [](void *, const void *, size_t, void *, size_t,
                             const ucp_am_recv_param_t *) -> ucs_status_t {
            ++arrived;
            return UCS_OK;
        };
        ASSERT_EQ(UCS_OK, set_am_handler(b().worker, 3, on_message));
        std::vector<char> data = pattern(64);
        ucp_request_param_t p = {};
        for (int i = 0; i < 7; ++i) {
            EXPECT_EQ(UCS_OK, finish(ucp_am_send_nbx(ab, 3, "head", 4, data.data(), 64, &p)));
        }
        EXPECT_TRUE(until([&] { return arrived == 7; }));
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(7u, sent(report, "am single").messages);
    EXPECT_EQ(7u * (4 + 64), sent(report, "am single").payload);
    EXPECT_EQ(7u * (4 + 64), received(report, "am single").payload);
}

TEST_P(ucp_stats, puts_and_gets)
{
    constexpr size_t small = 64, large = 100000;
    json report = report_of([&] {
        region r(b(), ab, nullptr, large);
        put_and_get(r, small, 4);
        put_and_get(r, large, 2);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    if (!is_self() && opts.tls != "sm" && opts.tls != "ofi_shm") {
        // Over sockets a message is cheaper than the transport's own put.
        const unsigned as_messages =
            opts.tls == "tcp" || opts.tls == "tcprdm" || opts.tls == "sockets" ? 4 : 0;
        EXPECT_EQ(as_messages, sent(report, "put", "emulated").messages);
        EXPECT_EQ(as_messages * small, sent(report, "put", "emulated").payload);
        EXPECT_EQ((4 - as_messages) * small + 2 * large, sent(report, "put", "native").payload);
        EXPECT_EQ(4 * small + 2 * large,
                  sent(report, "get", "native").payload + sent(report, "get reply").payload);
    } else {
        const char *way = is_self() ? "native" : "memory";
        EXPECT_EQ(6u, sent(report, "put", way).messages);
        EXPECT_EQ(4 * small + 2 * large, sent(report, "put", way).payload);
        EXPECT_EQ(6u, sent(report, "get", way).messages);
        EXPECT_EQ(4 * small + 2 * large, sent(report, "get", way).payload);
        EXPECT_EQ(6u, sent(report, "put").messages);
        EXPECT_EQ(6u, sent(report, "get").messages);
    }
}

TEST_P(ucp_stats, puts_of_the_transport)
{
    constexpr size_t length = 100000;
    std::vector<char> target(length);
    json report = report_of([&] {
        region r(b(), ab, target.data(), length); // which no other process can map
        put_and_get(r, length, 3);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(3 * length, sent(report, "put", "native").payload);
    EXPECT_EQ(3 * length, sent(report, "put").payload);
    EXPECT_EQ(3 * length, sent(report, "get", "native").payload);
}

TEST_P(ucp_stats, atomics)
{
    json report = report_of([&] {
        region r(b(), ab, nullptr, sizeof(uint64_t));
        uint64_t one = 1;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_contig(sizeof(one));
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(UCS_OK, finish(ucp_atomic_op_nbx(ab, UCP_ATOMIC_OP_ADD, &one, 1, r.at(),
                                                       r.rkey, &p)));
        }
        ucp_request_param_t flush = {};
        EXPECT_EQ(UCS_OK, finish(ucp_ep_flush_nbx(ab, &flush)));
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    bool mapped = opts.tls == "sm" || opts.tls == "ofi_shm";
    EXPECT_EQ(5u, sent(report, "atomic", mapped ? "memory" : "emulated").messages);
    EXPECT_EQ(5u, sent(report, "atomic").messages);
}
UCP_TEST_OVER(ucp_stats, "self", "sm", "ofi_shm", "tcp");

// Over one transport.
class ucp_stats_retries : public ucp_stats {};

TEST_P(ucp_stats_retries, retries_are_counted)
{
    json report = report_of([&] {
        constexpr int count = 20000;
        uint64_t data = 0;
        std::vector<ucs_status_ptr_t> requests;
        ucp_request_param_t p = {};
        for (int i = 0; i < count; ++i) {
            requests.push_back(ucp_tag_send_nbx(ab, &data, sizeof(data), 1, &p));
        }
        for (int i = 0; i < count; ++i) {
            EXPECT_EQ(UCS_OK,
                      finish(ucp_tag_recv_nbx(b().worker, &data, sizeof(data), 1, UINT64_MAX, &p)));
        }
        for (ucs_status_ptr_t r : requests) {
            EXPECT_EQ(UCS_OK, finish(r));
        }
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    uint64_t retries = 0;
    for (const json &i : report["interfaces"]) {
        for (const json &lane : i["lanes"]) {
            retries += lane["retries"].get<uint64_t>();
        }
    }
    EXPECT_GT(retries, 0u);
    EXPECT_EQ(20000u, sent(report, "tag eager").messages);
    EXPECT_EQ(20000u, received(report, "tag eager").messages);
}

UCP_TEST_OVER(ucp_stats_retries, "sm", "ofi_shm");

} // namespace
