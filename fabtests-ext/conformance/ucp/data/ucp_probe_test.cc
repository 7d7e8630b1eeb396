// SPDX-License-Identifier: BSD-3-Clause
//
// Probes, cancel, and the calls on requests.
#include "fabtests-ext/common/ucp_pair.h"

namespace {

using namespace ucp_test;
constexpr ucp_tag_t full = ~ucp_tag_t(0);

class ucp_probe : public pair {
  protected:
    ucp_tag_message_h probe(ucp_tag_t tag, bool remove, ucp_tag_recv_info_t *info,
                            ucp_tag_t mask = full)
    {
        ucp_tag_message_h m = nullptr;
        until(
            [&] { return (m = ucp_tag_probe_nb(b().worker, tag, mask, remove, info)) != nullptr; });
        return m;
    }
    ucs_status_ptr_t msg_recv(void *data, size_t n, ucp_tag_message_h m)
    {
        ucp_request_param_t p = {};
        return ucp_tag_msg_recv_nbx(b().worker, data, n, m, &p);
    }
};

const size_t sizes[] = {0, 8, 5000, 50000, 1000000};

TEST_P(ucp_probe, b032_nothing_there_leaves_info_alone)
{
    ucp_tag_recv_info_t info = {0x77, 0x88};
    EXPECT_EQ(nullptr, ucp_tag_probe_nb(b().worker, 1, full, 1, &info));
    EXPECT_EQ(0x77u, info.sender_tag);
    EXPECT_EQ(0x88u, info.length);
}

TEST_P(ucp_probe, b033_b034_probe_keeps_or_removes)
{
    for (size_t n : sizes) {
        for (bool remove : {false, true}) {
            auto out = pattern(n), in = std::vector<char>(n);
            void *s = send_nb(ab, out.data(), n, 0x123456);
            ucp_tag_recv_info_t info = {};
            ucp_tag_message_h m = probe(0x3456, remove, &info, 0xffff);
            ASSERT_NE(nullptr, m) << n;
            EXPECT_EQ(0x123456u, info.sender_tag);
            EXPECT_EQ(n, info.length);
            if (remove) {
                EXPECT_EQ(nullptr, ucp_tag_probe_nb(b().worker, 0, 0, 0, &info));
                EXPECT_EQ(UCS_OK, finish(msg_recv(in.data(), n, m)));
            } else {
                EXPECT_NE(nullptr, ucp_tag_probe_nb(b().worker, 0, 0, 0, &info));
                EXPECT_EQ(UCS_OK, finish(recv_nb(b(), in.data(), n, 0x123456)));
            }
            EXPECT_EQ(UCS_OK, finish(s));
            EXPECT_TRUE(in == out) << n;
        }
    }
}

TEST_P(ucp_probe, b034_short_buffer_truncates)
{
    for (size_t n : {size_t(8), size_t(50000), size_t(1000000)}) {
        auto out = pattern(n), in = std::vector<char>(n / 2);
        void *s = send_nb(ab, out.data(), n, 1);
        ucp_tag_recv_info_t info = {};
        ucp_tag_message_h m = probe(1, true, &info);
        ASSERT_NE(nullptr, m);
        EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, finish(msg_recv(in.data(), in.size(), m)));
        EXPECT_EQ(UCS_OK, finish(s));
    }
}

TEST_P(ucp_probe, b035_two_messages_received_in_reverse)
{
    for (size_t n : sizes) {
        auto x = pattern(n, 1), y = pattern(n, 2), in_x = std::vector<char>(n), in_y = in_x;
        void *s1 = send_nb(ab, x.data(), n, 1), *s2 = send_nb(ab, y.data(), n, 1);
        ucp_tag_recv_info_t info = {};
        ucp_tag_message_h m1 = probe(1, true, &info), m2 = probe(1, true, &info);
        ASSERT_NE(nullptr, m1);
        ASSERT_NE(nullptr, m2);
        EXPECT_EQ(UCS_OK, finish(msg_recv(in_y.data(), n, m2)));
        EXPECT_EQ(UCS_OK, finish(msg_recv(in_x.data(), n, m1)));
        EXPECT_TRUE(in_x == x && in_y == y) << n;
        EXPECT_EQ(UCS_OK, finish(s1));
        EXPECT_EQ(UCS_OK, finish(s2));
    }
}

TEST_P(ucp_probe, b037_sync_send_completes_after_msg_recv)
{
    for (size_t n : sizes) {
        auto out = pattern(n), in = std::vector<char>(n);
        ucp_request_param_t p = {};
        void *s = ucp_tag_send_sync_nbx(ab, out.data(), n, 1, &p);
        ucp_tag_recv_info_t info = {};
        ucp_tag_message_h m = probe(1, true, &info);
        ASSERT_NE(nullptr, m);
        progress_for(0.01);
        EXPECT_TRUE(pending(s));
        EXPECT_EQ(UCS_OK, finish(msg_recv(in.data(), n, m)));
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_TRUE(in == out);
    }
}

struct seen {
    int calls = 0;
    ucs_status_t status = UCS_OK;
    static void cb(void *, ucs_status_t status, const ucp_tag_recv_info_t *, void *arg)
    {
        auto *self = static_cast<seen *>(arg);
        ++self->calls;
        self->status = status;
    }
};

TEST_P(ucp_probe, b038_b040_cancel_of_a_waiting_receive)
{
    uint64_t in = 0x55, out = 1;
    seen s;
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv = seen::cb;
    p.user_data = &s;
    void *r = ucp_tag_recv_nbx(b().worker, &in, 8, 1, full, &p);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    ucp_request_cancel(b().worker, r);
    EXPECT_TRUE(until([&] { return s.calls == 1; }));
    EXPECT_EQ(UCS_ERR_CANCELED, s.status);
    ucp_request_cancel(b().worker, r);
    EXPECT_EQ(1, s.calls);
    EXPECT_EQ(0x55u, in);
    ucp_request_free(r);
    ASSERT_EQ(UCS_OK, finish(send_nb(ab, &out, 8, 1)));
    EXPECT_EQ(UCS_OK, finish(recv_nb(b(), &in, 8, 1)))
        << "the message was not taken by the cancelled one";
    EXPECT_EQ(1u, in);
}

TEST_P(ucp_probe, b039_cancel_of_a_matched_receive_does_nothing)
{
    size_t n = 4000000;
    auto out = pattern(n), in = std::vector<char>(n);
    void *r = recv_nb(b(), in.data(), n, 1), *s = send_nb(ab, out.data(), n, 1);
    for (int i = 0; i < 3; ++i) {
        progress();
    }
    ucs_status_t want = UCS_OK;
    ucp_tag_recv_info_t info = {};
    if (ucp_tag_probe_nb(b().worker, 1, full, 0, &info) == nullptr && pending(r) && pending(s)) {
        // matched or not even arrived: either answer is right, but it must be one
        ucp_request_cancel(b().worker, r);
        want = ucp_request_check_status(r) == UCS_ERR_CANCELED ? UCS_ERR_CANCELED : UCS_OK;
    }
    EXPECT_EQ(want, finish(r));
    if (want == UCS_ERR_CANCELED) {
        EXPECT_EQ(UCS_OK, finish(recv_nb(b(), in.data(), n, 1)));
    }
    EXPECT_EQ(UCS_OK, finish(s));
}

TEST_P(ucp_probe, b041_query_describes_the_request)
{
    uint64_t in = 0, out = 0;
    void *r = recv_nb(b(), &in, 8, 1);
    ucp_worker_attr_t wattr = {};
    wattr.field_mask = UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING;
    ASSERT_EQ(UCS_OK, ucp_worker_query(b().worker, &wattr));
    std::vector<char> text(wattr.max_debug_string);
    ucp_request_attr_t attr = {};
    attr.field_mask = UCP_REQUEST_ATTR_FIELD_INFO_STRING | UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE |
                      UCP_REQUEST_ATTR_FIELD_STATUS | UCP_REQUEST_ATTR_FIELD_MEM_TYPE;
    attr.debug_string = text.data();
    attr.debug_string_size = text.size();
    ASSERT_EQ(UCS_OK, ucp_request_query(r, &attr));
    EXPECT_EQ(UCS_INPROGRESS, attr.status);
    EXPECT_EQ(UCS_MEMORY_TYPE_HOST, attr.mem_type);
    EXPECT_NE(nullptr, strstr(text.data(), "recv"));
    EXPECT_NE(nullptr, strstr(text.data(), "host"));
    attr.field_mask = UCP_REQUEST_ATTR_FIELD_INFO_STRING;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_request_query(r, &attr));
    EXPECT_EQ(UCS_OK, finish(send_nb(ab, &out, 8, 1)));
    EXPECT_EQ(UCS_OK, finish(r));
}

TEST_P(ucp_probe, b044_released_request_still_calls_back)
{
    uint64_t in = 0, out = 5;
    seen s;
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv = seen::cb;
    p.user_data = &s;
    void *r = ucp_tag_recv_nbx(b().worker, &in, 8, 1, full, &p);
    ucp_request_release(r);
    EXPECT_EQ(UCS_OK, finish(send_nb(ab, &out, 8, 1)));
    EXPECT_TRUE(until([&] { return s.calls == 1; }));
    r = ucp_tag_recv_nbx(b().worker, &in, 8, 1, full, &p);
    ucp_request_free(r);
    EXPECT_EQ(UCS_OK, finish(send_nb(ab, &out, 8, 1)));
    progress_for(0.02);
    EXPECT_EQ(1, s.calls) << "free drops the callback";
}

// What waits is taken in by portions, so that a call of progress has an end.
TEST_P(ucp_probe, b036_one_progress_takes_a_bounded_number)
{
    if (is_self()) {
        GTEST_SKIP() << "nothing waits: messages arrive inside the sending call";
    }
    if (opts.tls == "tcp") {
        GTEST_SKIP() << "as many as one read of the socket gives, in UCX, too";
    }
    constexpr unsigned count = 1000;
    std::vector<ucs_status_ptr_t> sends;
    std::vector<unsigned> values(count);
    for (unsigned i = 0; i < count; ++i) {
        values[i] = i;
        sends.push_back(send_nb(ab, &values[i], sizeof(i), 3));
    }
    run_for({&a()}, 0.1); // the receiver does nothing
    unsigned arrived = 0;
    ucp_tag_recv_info_t info;
    auto count_new = [&] {
        unsigned before = arrived;
        while (ucp_tag_message_h m = ucp_tag_probe_nb(b().worker, 3, ~ucp_tag_t(0), 1, &info)) {
            unsigned value = count;
            ucp_request_param_t p = {};
            EXPECT_EQ(UCS_OK,
                      finish(ucp_tag_msg_recv_nbx(b().worker, &value, sizeof(value), m, &p)));
            EXPECT_EQ(arrived, value);
            ++arrived;
        }
        return arrived - before;
    };
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
    while (arrived < count && std::chrono::steady_clock::now() < end) {
        a().progress();
        b().progress();
        EXPECT_LE(count_new(), 128u);
    }
    EXPECT_EQ(count, arrived);
    for (ucs_status_ptr_t s : sends) {
        EXPECT_EQ(UCS_OK, finish(s));
    }
}

UCP_TEST_OVER_ALL(ucp_probe);

TEST(ucp_request_area, b045_requests_that_were_not_freed_are_told_of)
{
    for (bool ignored : {false, true}) {
        options o;
        o.tls = "self";
        testing::internal::CaptureStdout();
        testing::internal::CaptureStderr();
        {
            entity e(o);
            ucp_worker_params_t params = {};
            params.field_mask = UCP_WORKER_PARAM_FIELD_FLAGS;
            params.flags = ignored ? unsigned(UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK) : 0u;
            ucp_worker_h worker = nullptr;
            EXPECT_EQ(UCS_OK, ucp_worker_create(e.context, &params, &worker));
            char in[8];
            ucp_request_param_t p = {};
            EXPECT_TRUE(
                UCS_PTR_IS_PTR(ucp_tag_recv_nbx(worker, in, sizeof(in), 1, ~ucp_tag_t(0), &p)));
            ucp_worker_destroy(worker);
        }
        std::string log = testing::internal::GetCapturedStdout();
        log += testing::internal::GetCapturedStderr();
        EXPECT_EQ(!ignored, log.find("returned to mpool ucp_requests") != std::string::npos) << log;
    }
}

// b046: init once per pool object, user area kept between uses, cleanup for each at the end.
TEST(ucp_request_area, b046_init_once_content_kept_cleanup_at_worker_destroy)
{
    static int inits, cleanups;
    inits = cleanups = 0;
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_REQUEST_SIZE |
                        UCP_PARAM_FIELD_REQUEST_INIT | UCP_PARAM_FIELD_REQUEST_CLEANUP;
    params.features = UCP_FEATURE_TAG;
    params.request_size = 64;
    params.request_init = [](void *r) {
        ++inits;
        memset(r, 0x5a, 64);
    };
    params.request_cleanup = [](void *) { ++cleanups; };
    ucp_context_h context;
    ASSERT_EQ(UCS_OK, ucp_init(&params, nullptr, &context));
    ucp_worker_params_t wp = {};
    ucp_worker_h worker;
    ASSERT_EQ(UCS_OK, ucp_worker_create(context, &wp, &worker));
    uint64_t in = 0;
    ucp_request_param_t p = {};
    for (int i = 0; i < 1000; ++i) {
        auto *r = static_cast<unsigned char *>(
            static_cast<void *>(ucp_tag_recv_nbx(worker, &in, 8, 1, full, &p)));
        ASSERT_TRUE(UCS_PTR_IS_PTR(r));
        EXPECT_EQ(0x5a, r[63]);
        ucp_request_cancel(worker, r);
        ucp_request_free(r);
    }
    EXPECT_GT(inits, 0);
    EXPECT_LE(inits, 256);
    EXPECT_EQ(0, cleanups);
    ucp_worker_destroy(worker);
    EXPECT_EQ(inits, cleanups);
    ucp_cleanup(context);
}

} // namespace
