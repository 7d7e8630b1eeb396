// SPDX-License-Identifier: BSD-3-Clause
//
// Streams: bytes of one endpoint in order, without message boundaries.
#include "fabtests-ext/common/ucp_pair.h"

namespace {

using namespace ucp_test;

class ucp_stream : public pair {
  protected:
    ucp_stream() { opts.features = UCP_FEATURE_STREAM | UCP_FEATURE_TAG; }

    ucs_status_ptr_t send(const void *data, size_t n)
    {
        ucp_request_param_t p = {};
        return ucp_stream_send_nbx(ab, data, n, &p);
    }
    // Of elements of a size; *length is set when complete.
    ucs_status_ptr_t recv(void *data, size_t count, size_t element, size_t *length,
                          unsigned flags = 0)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS |
                         UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.datatype = ucp_dt_make_contig(element);
        p.flags = flags;
        p.cb.recv_stream = [](void *, ucs_status_t status, size_t n, void *arg) {
            if (status == UCS_OK)
                *static_cast<size_t *>(arg) = n;
        };
        p.user_data = length;
        return ucp_stream_recv_nbx(ba, data, count, length, &p);
    }
    void arrive() { progress_for(0.05); }

    // Everything up to a number of bytes, by whatever pieces the library gives.
    std::vector<char> drain(size_t bytes)
    {
        std::vector<char> got;
        until([&] {
            size_t n;
            void *data = ucp_stream_recv_data_nb(ba, &n);
            EXPECT_FALSE(UCS_PTR_IS_ERR(data)) << ucs_status_string(UCS_PTR_STATUS(data));
            if (UCS_PTR_IS_PTR(data)) {
                got.insert(got.end(), static_cast<char *>(data), static_cast<char *>(data) + n);
                ucp_stream_data_release(ba, data);
            }
            return got.size() >= bytes;
        });
        return got;
    }
};

const size_t sizes[] = {1, 8, 100, 5000, 65536, 1000000};

TEST_P(ucp_stream, b086_data_where_it_lies)
{
    for (size_t n : sizes) {
        std::vector<char> data = pattern(n, static_cast<unsigned>(n));
        ucs_status_ptr_t s = send(data.data(), n);
        EXPECT_EQ(data, drain(n)) << n;
        EXPECT_EQ(UCS_OK, finish(s)) << n;
    }
    size_t n;
    EXPECT_EQ(nullptr, ucp_stream_recv_data_nb(ba, &n));
}

TEST_P(ucp_stream, b087_receive_of_what_is_there)
{
    std::vector<char> data = pattern(800), got(800);
    size_t n = 0;
    ASSERT_EQ(UCS_OK, finish(send(data.data(), data.size())));
    arrive();
    size_t total = 0;
    while (total < data.size()) {
        n = 0;
        ASSERT_EQ(UCS_OK, finish(recv(got.data() + total, (800 - total) / 8, 8, &n)));
        ASSERT_GT(n, 0u);
        ASSERT_EQ(0u, n % 8);
        total += n;
    }
    EXPECT_EQ(data, got);
}

TEST_P(ucp_stream, b088_receives_before_sends_complete_in_order)
{
    constexpr size_t count = 50, n = 1000;
    std::vector<char> data = pattern(count * n), got(count * n);
    std::vector<size_t> lengths(count);
    std::vector<ucs_status_ptr_t> requests;
    for (size_t i = 0; i < count; ++i)
        requests.push_back(
            recv(got.data() + i * n, n, 1, &lengths[i], UCP_STREAM_RECV_FLAG_WAITALL));
    for (size_t i = 0; i < count; ++i)
        ASSERT_EQ(UCS_OK, finish(send(data.data() + i * n, n)));
    for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(UCS_OK, finish(requests[i]));
        EXPECT_EQ(n, lengths[i]);
    }
    EXPECT_EQ(data, got);
}

TEST_P(ucp_stream, b091_waitall_completes_once_and_whole)
{
    std::vector<char> data = pattern(300000), got(300000);
    size_t n = 0;
    ucs_status_ptr_t r = recv(got.data(), got.size(), 1, &n, UCP_STREAM_RECV_FLAG_WAITALL);
    ASSERT_EQ(UCS_OK, finish(send(data.data(), 100000)));
    arrive();
    EXPECT_TRUE(pending(r));
    ucs_status_ptr_t s = send(data.data() + 100000, 200000);
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(300000u, n);
    EXPECT_EQ(data, got);
}

TEST_P(ucp_stream, b092_whole_elements_only)
{
    uint64_t data[2] = {0x0102030405060708, 0x1112131415161718}, got[2] = {};
    size_t n = 0;
    ucs_status_ptr_t r = recv(got, 2, 8, &n);
    ASSERT_EQ(UCS_OK, finish(send(data, 12)));
    arrive();
    EXPECT_TRUE(pending(r));
    ASSERT_EQ(UCS_OK, finish(send(reinterpret_cast<char *>(data) + 12, 4)));
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(16u, n);
    EXPECT_EQ(data[0], got[0]);
    EXPECT_EQ(data[1], got[1]);
}

TEST_P(ucp_stream, b096_no_message_boundaries)
{
    const char *text = "two halves";
    ASSERT_EQ(UCS_OK, finish(send(text, 4)));
    ASSERT_EQ(UCS_OK, finish(send(text + 4, 7)));
    char got[11] = "";
    size_t n = 0;
    ASSERT_EQ(UCS_OK, finish(recv(got, 11, 1, &n, UCP_STREAM_RECV_FLAG_WAITALL)));
    EXPECT_EQ(11u, n);
    EXPECT_STREQ(text, got);
}

TEST_P(ucp_stream, b089_both_ways_of_receiving)
{
    std::vector<char> data = pattern(100000);
    ucs_status_ptr_t s = send(data.data(), data.size());
    std::vector<char> got = drain(1);
    ASSERT_LE(got.size(), data.size());
    size_t have = got.size();
    got.resize(data.size());
    if (have < data.size()) {
        size_t n = 0;
        ASSERT_EQ(UCS_OK, finish(recv(got.data() + have, data.size() - have, 1, &n,
                                      UCP_STREAM_RECV_FLAG_WAITALL)));
    }
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(data, got);
}

TEST_P(ucp_stream, b090_lists_with_empty_entries)
{
    char first[] = "first ", second[] = "second";
    ucp_dt_iov_t out[4] = {{first, 6}, {nullptr, 0}, {second, 6}, {nullptr, 0}};
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    p.datatype = ucp_dt_make_iov();
    ASSERT_EQ(UCS_OK, finish(ucp_stream_send_nbx(ab, out, 4, &p)));
    std::vector<char> got = drain(12);
    EXPECT_EQ("first second", std::string(got.begin(), got.end()));
}

TEST_P(ucp_stream, b086_generic_type)
{
    generic_type type;
    std::vector<char> data = pattern(20000);
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    p.datatype = type.dt;
    ucs_status_ptr_t s = ucp_stream_send_nbx(ab, data.data(), data.size(), &p);
    EXPECT_EQ(data, drain(data.size()));
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(type.starts, type.finishes);
}

TEST_P(ucp_stream, b094_poll_tells_which_endpoints_have_data)
{
    ucp_stream_poll_ep_t polled[4];
    EXPECT_EQ(0, ucp_stream_worker_poll(b().worker, polled, 4, 0));
    ASSERT_EQ(UCS_OK, finish(send("news", 4)));
    arrive();
    ASSERT_EQ(1, ucp_stream_worker_poll(b().worker, polled, 4, 0));
    EXPECT_EQ(ba, polled[0].ep);
    EXPECT_EQ(4u, drain(4).size());
    EXPECT_EQ(0, ucp_stream_worker_poll(b().worker, polled, 4, 0));
}

TEST_P(ucp_stream, b098_cancel_leaves_a_receive_alone)
{
    char got[4];
    size_t n = 0;
    ucs_status_ptr_t r = recv(got, 4, 1, &n, UCP_STREAM_RECV_FLAG_WAITALL);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    ucp_request_cancel(b().worker, r);
    EXPECT_TRUE(pending(r));
    ASSERT_EQ(UCS_OK, finish(send("data", 4)));
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(4u, n);
}

TEST_P(ucp_stream, b084_close_ends_receives)
{
    if (is_self())
        GTEST_SKIP() << "needs a second endpoint";
    char got[4];
    size_t n = 0;
    ucs_status_ptr_t r = recv(got, 4, 1, &n);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    ucs_status_ptr_t close = close_nb(ba);
    ba = nullptr;
    EXPECT_EQ(UCS_ERR_CANCELED, finish(r));
    EXPECT_EQ(UCS_OK, finish(close));
}

TEST_P(ucp_stream, b093_data_of_a_closed_endpoint_is_dropped)
{
    if (is_self())
        GTEST_SKIP() << "needs a second endpoint";
    std::vector<char> data = pattern(50000);
    ucs_status_ptr_t s = send(data.data(), data.size());
    arrive();
    EXPECT_EQ(UCS_OK, finish(close_nb(ba)));
    ba = nullptr;
    (void)finish(s);
}

UCP_TEST_OVER_ALL(ucp_stream);

} // namespace
