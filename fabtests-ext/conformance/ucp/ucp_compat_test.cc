// SPDX-License-Identifier: BSD-3-Clause
//
// The older calls of ucp_compat.h: they do what the newer ones do, with their own rules about
// requests and callbacks.
#include "fabtests-ext/common/ucp_pair.h"

namespace {

using namespace ucp_test;
constexpr ucp_tag_t full = ~ucp_tag_t(0);
const ucp_datatype_t bytes = ucp_dt_make_contig(1);

// What callbacks saw; they have no user data.
int sends_done, recvs_done;
ucs_status_t last_status;
size_t last_length;

void on_send(void *, ucs_status_t status)
{
    ++sends_done;
    last_status = status;
}

void on_recv(void *, ucs_status_t status, ucp_tag_recv_info_t *info)
{
    ++recvs_done;
    last_status = status;
    last_length = status == UCS_OK ? info->length : 0;
}

class ucp_compat : public pair {
  protected:
    ucp_compat()
    {
        opts.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM | UCP_FEATURE_RMA |
                        UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64;
        sends_done = recvs_done = 0;
    }
};

TEST_P(ucp_compat, tag_send_and_recv)
{
    for (size_t n : {size_t(0), size_t(8), size_t(3000), size_t(1000000)}) {
        sends_done = recvs_done = 0;
        std::vector<char> data = pattern(n), got(n);
        ucs_status_ptr_t r = ucp_tag_recv_nb(b().worker, got.data(), n, bytes, 7, full, on_recv);
        ASSERT_TRUE(UCS_PTR_IS_PTR(r)) << "never NULL";
        ucs_status_ptr_t s = ucp_tag_send_nb(ab, data.data(), n, bytes, 7, on_send);
        bool called = UCS_PTR_IS_PTR(s);
        ASSERT_EQ(UCS_OK, finish(r)) << n;
        ASSERT_EQ(UCS_OK, finish(s)) << n;
        EXPECT_EQ(called ? 1 : 0, sends_done) << n;
        EXPECT_EQ(1, recvs_done) << n;
        EXPECT_EQ(n, last_length);
        EXPECT_EQ(data, got);
    }
}

TEST_P(ucp_compat, recv_of_a_message_that_is_there_calls_back_and_gives_a_request)
{
    ASSERT_EQ(UCS_OK, finish(ucp_tag_send_nb(ab, "early", 5, bytes, 7, on_send)));
    progress_for(0.05);
    char got[8];
    ucs_status_ptr_t r = ucp_tag_recv_nb(b().worker, got, 8, bytes, 7, full, on_recv);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    EXPECT_TRUE(until([&] { return ucp_request_is_completed(r) != 0; }));
    EXPECT_EQ(1, recvs_done);
    EXPECT_EQ(5u, last_length);
    ucp_tag_recv_info_t info = {};
    EXPECT_EQ(UCS_OK, ucp_request_test(r, &info));
    EXPECT_EQ(5u, info.length);
    ucp_request_release(r);
}

TEST_P(ucp_compat, requests_of_the_caller)
{
    ucp_context_attr_t attr = {};
    attr.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
    ASSERT_EQ(UCS_OK, ucp_context_query(a().context, &attr));
    for (size_t n : {size_t(8), size_t(500000)}) {
        std::vector<char> data = pattern(n), got(n);
        std::vector<uint64_t> send_space(attr.request_size / 8 + 8),
            recv_space(attr.request_size / 8 + 8);
        void *sreq = send_space.data() + attr.request_size / 8 + 1;
        void *rreq = recv_space.data() + attr.request_size / 8 + 1;
        ucs_status_t r = ucp_tag_recv_nbr(b().worker, got.data(), n, bytes, 7, full, rreq);
        ASSERT_FALSE(UCS_STATUS_IS_ERR(r)) << ucs_status_string(r);
        ucs_status_t s = ucp_tag_send_nbr(ab, data.data(), n, bytes, 7, sreq);
        ASSERT_TRUE(s == UCS_OK || s == UCS_INPROGRESS) << ucs_status_string(s);
        ASSERT_TRUE(until([&] {
            return ucp_request_check_status(rreq) != UCS_INPROGRESS &&
                   (s == UCS_OK || ucp_request_check_status(sreq) != UCS_INPROGRESS);
        }));
        EXPECT_EQ(UCS_OK, ucp_request_check_status(rreq));
        EXPECT_EQ(data, got);
    }
}

TEST_P(ucp_compat, sync_send_waits_for_the_match)
{
    ucs_status_ptr_t s = ucp_tag_send_sync_nb(ab, "sync", 4, bytes, 7, on_send);
    ASSERT_TRUE(UCS_PTR_IS_PTR(s));
    progress_for(0.05);
    EXPECT_TRUE(pending(s));
    char got[4];
    EXPECT_EQ(UCS_OK, finish(ucp_tag_recv_nb(b().worker, got, 4, bytes, 7, full, on_recv)));
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(1, sends_done);
}

TEST_P(ucp_compat, probed_message)
{
    ASSERT_EQ(UCS_OK, finish(ucp_tag_send_nb(ab, "probed", 6, bytes, 7, on_send)));
    ucp_tag_recv_info_t info = {};
    ucp_tag_message_h message = nullptr;
    ASSERT_TRUE(until([&] {
        message = ucp_tag_probe_nb(b().worker, 7, full, 1, &info);
        return message != nullptr;
    }));
    EXPECT_EQ(6u, info.length);
    char got[6];
    ucs_status_ptr_t r = ucp_tag_msg_recv_nb(b().worker, got, 6, bytes, message, on_recv);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r)) << "never NULL";
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(1, recvs_done);
    EXPECT_EQ(0, memcmp(got, "probed", 6));
}

TEST_P(ucp_compat, released_request_still_calls_back)
{
    char got[4];
    ucs_status_ptr_t r = ucp_tag_recv_nb(b().worker, got, 4, bytes, 7, full, on_recv);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    ucp_request_release(r);
    ASSERT_EQ(UCS_OK, finish(ucp_tag_send_nb(ab, "data", 4, bytes, 7, on_send)));
    EXPECT_TRUE(until([&] { return recvs_done == 1; }));
}

TEST_P(ucp_compat, active_message)
{
    struct seen {
        std::vector<char> data;
        ucp_ep_h reply = nullptr;
        int count = 0;
    } got;
    auto handler = [](void *arg, void *data, size_t length, ucp_ep_h reply, unsigned) {
        auto *s = static_cast<seen *>(arg);
        s->data.assign(static_cast<char *>(data), static_cast<char *>(data) + length);
        s->reply = reply;
        ++s->count;
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK,
              ucp_worker_set_am_handler(b().worker, 3, handler, &got, UCP_AM_FLAG_WHOLE_MSG));
    for (size_t n : {size_t(8), size_t(5000), size_t(100000)}) {
        std::vector<char> data = pattern(n);
        int before = got.count;
        ucs_status_ptr_t s =
            ucp_am_send_nb(ab, 3, data.data(), n, bytes, on_send, UCP_AM_SEND_REPLY);
        EXPECT_TRUE(until([&] { return got.count == before + 1; })) << n;
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_EQ(data, got.data);
        EXPECT_NE(nullptr, got.reply);
    }
}

// Each message begins with its number.
TEST_P(ucp_compat, active_messages_of_all_sizes_are_handled_in_the_order_of_sending)
{
    std::vector<uint32_t> order;
    auto handler = [](void *arg, void *data, size_t length, ucp_ep_h, unsigned) {
        auto &out = *static_cast<std::vector<uint32_t> *>(arg);
        const auto *p = static_cast<const char *>(data);
        uint32_t number;
        memcpy(&number, p, sizeof(number));
        std::vector<char> sent = pattern(length, number);
        EXPECT_TRUE(std::equal(sent.begin() + 4, sent.end(), p + 4)) << number << " " << length;
        out.push_back(number);
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, ucp_worker_set_am_handler(b().worker, 3, handler, &order, 0));
    std::vector<std::vector<char>> messages;
    for (size_t n : {8, 70000, 8, 20000, 8, 300000, 100, 1000000, 8, 3000, 5000000, 8}) {
        auto number = static_cast<uint32_t>(messages.size());
        messages.push_back(pattern(n, number));
        memcpy(messages.back().data(), &number, sizeof(number));
    }
    std::vector<ucs_status_ptr_t> sends;
    for (auto &m : messages) {
        unsigned flags = sends.size() % 3 == 2 ? UCP_AM_SEND_REPLY : 0;
        sends.push_back(ucp_am_send_nb(ab, 3, m.data(), m.size(), bytes, on_send, flags));
    }
    ASSERT_TRUE(until([&] { return order.size() == messages.size(); }));
    for (uint32_t i = 0; i < order.size(); ++i) {
        EXPECT_EQ(i, order[i]);
        EXPECT_EQ(UCS_OK, finish(sends[i]));
    }
}

TEST_P(ucp_compat, stream)
{
    char got[6] = "";
    size_t n = 0;
    ucs_status_ptr_t r = ucp_stream_recv_nb(
        ba, got, 6, bytes, [](void *, ucs_status_t, size_t) {}, &n, UCP_STREAM_RECV_FLAG_WAITALL);
    ASSERT_EQ(UCS_OK, finish(ucp_stream_send_nb(ab, "bytes", 6, bytes, on_send, 0)));
    if (UCS_PTR_IS_PTR(r)) {
        EXPECT_TRUE(until([&] { return ucp_stream_recv_request_test(r, &n) != UCS_INPROGRESS; }));
    }
    EXPECT_EQ(6u, n);
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_STREQ("bytes", got);
}

TEST_P(ucp_compat, flush_with_callback)
{
    ucs_status_ptr_t e = ucp_ep_flush_nb(ab, 0, on_send);
    int expected = UCS_PTR_IS_PTR(e) ? 1 : 0;
    EXPECT_EQ(UCS_OK, finish(e));
    ucs_status_ptr_t w = ucp_worker_flush_nb(a().worker, 0, on_send);
    expected += UCS_PTR_IS_PTR(w) ? 1 : 0;
    EXPECT_EQ(UCS_OK, finish(w));
    EXPECT_EQ(expected, sends_done);
}

TEST_P(ucp_compat, request_alloc_gives_nothing)
{
    EXPECT_EQ(nullptr, ucp_request_alloc(a().worker));
}

TEST_P(ucp_compat, blocking_calls_on_own_memory)
{
    if (!is_self()) {
        GTEST_SKIP() << "nobody progresses the peer while a call blocks";
    }
    alignas(8) uint64_t target = 5;
    ucp_mem_map_params_t params = {};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    params.address = &target;
    params.length = sizeof(target);
    ucp_mem_h memh;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a().context, &params, &memh));
    void *packed;
    size_t length;
    ASSERT_EQ(UCS_OK, ucp_rkey_pack(a().context, memh, &packed, &length));
    ucp_rkey_h rkey;
    ASSERT_EQ(UCS_OK, ucp_ep_rkey_unpack(ab, packed, &rkey));
    ucp_rkey_buffer_release(packed);
    auto at = reinterpret_cast<uint64_t>(&target);
    uint64_t value = 100, got = 0;
    EXPECT_EQ(UCS_OK, ucp_put(ab, &value, 8, at, rkey));
    EXPECT_EQ(UCS_OK, ucp_ep_flush(ab));
    EXPECT_EQ(100u, target);
    EXPECT_EQ(UCS_OK, ucp_get(ab, &got, 8, at, rkey));
    EXPECT_EQ(100u, got);
    EXPECT_EQ(UCS_OK, ucp_atomic_add64(ab, 1, at, rkey));
    EXPECT_EQ(UCS_OK, ucp_worker_flush(a().worker));
    EXPECT_EQ(101u, target);
    EXPECT_EQ(UCS_OK, ucp_atomic_fadd64(ab, 9, at, rkey, &got));
    EXPECT_EQ(101u, got);
    EXPECT_EQ(UCS_OK, ucp_atomic_swap64(ab, 7, at, rkey, &got));
    EXPECT_EQ(110u, got);
    EXPECT_EQ(UCS_OK, ucp_atomic_cswap64(ab, 7, 8, at, rkey, &got));
    EXPECT_EQ(7u, got);
    EXPECT_EQ(8u, target);
    uint32_t small = 0;
    EXPECT_EQ(UCS_OK, ucp_atomic_add32(ab, 2, at, rkey));
    EXPECT_EQ(UCS_OK, ucp_worker_flush(a().worker));
    EXPECT_EQ(UCS_OK, ucp_atomic_fadd32(ab, 1, at, rkey, &small));
    EXPECT_EQ(10u, small);
    EXPECT_EQ(UCS_OK, ucp_atomic_swap32(ab, 3, at, rkey, &small));
    EXPECT_EQ(11u, small);
    EXPECT_EQ(UCS_OK, ucp_atomic_cswap32(ab, 4, 5, at, rkey, &small));
    EXPECT_EQ(3u, small);
    EXPECT_EQ(3u, target);
    ucp_rkey_destroy(rkey);
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a().context, memh));
}

UCP_TEST_OVER_ALL(ucp_compat);

} // namespace
