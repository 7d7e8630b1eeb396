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
            if (status == UCS_OK) {
                *static_cast<size_t *>(arg) = n;
            }
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
    for (size_t i = 0; i < count; ++i) {
        requests.push_back(
            recv(got.data() + i * n, n, 1, &lengths[i], UCP_STREAM_RECV_FLAG_WAITALL));
    }
    for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(UCS_OK, finish(send(data.data() + i * n, n)));
    }
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
    ssize_t found = 0;
    ASSERT_TRUE(until([&] {
        found = ucp_stream_worker_poll(b().worker, polled, 4, 0);
        return found != 0;
    }));
    ASSERT_EQ(1, found);
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
    if (is_self()) {
        GTEST_SKIP() << "needs a second endpoint";
    }
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
    if (is_self()) {
        GTEST_SKIP() << "needs a second endpoint";
    }
    std::vector<char> data = pattern(50000);
    ucs_status_ptr_t s = send(data.data(), data.size());
    arrive();
    EXPECT_EQ(UCS_OK, finish(close_nb(ba)));
    ba = nullptr;
    (void)finish(s);
}

TEST_P(ucp_stream, b097_completion_flags)
{
    auto data = pattern(100000);
    int calls = 0;
    for (uint32_t flags :
         {0u, uint32_t(UCP_OP_ATTR_FLAG_NO_IMM_CMPL), uint32_t(UCP_OP_ATTR_FLAG_FAST_CMPL),
          uint32_t(UCP_OP_ATTR_FLAG_MULTI_SEND), uint32_t(UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL)}) {
        for (size_t n : {size_t(8), size_t(3000), data.size()}) {
            ucp_request_param_t p = {};
            p.op_attr_mask = flags | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
            p.cb.send = [](void *request, ucs_status_t status, void *arg) {
                EXPECT_EQ(UCS_OK, status);
                ++*static_cast<int *>(arg);
                ucp_request_free(request);
            };
            p.user_data = &calls;
            int before = calls;
            ucs_status_ptr_t s = ucp_stream_send_nbx(ab, data.data(), n, &p);
            if (flags == UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL) {
                ASSERT_FALSE(UCS_PTR_IS_PTR(s));
                if (s != nullptr) {
                    ASSERT_EQ(UCS_ERR_NO_RESOURCE, UCS_PTR_STATUS(s));
                    n = 0;
                }
            } else {
                ASSERT_FALSE(UCS_PTR_IS_ERR(s));
            }
            if (flags == UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
                EXPECT_NE(nullptr, s);
            }
            std::vector<char> got = drain(n);
            ASSERT_EQ(n, got.size());
            ASSERT_TRUE(std::equal(got.begin(), got.end(), data.begin()));
            int expected = before + (s != nullptr && n != 0 ? 1 : 0);
            EXPECT_TRUE(until([&] { return calls == expected; })) << n << " " << flags;
        }
    }
}

// What does not suffice is left for the next receive.
TEST_P(ucp_stream, forced_receive_of_everything_takes_all_or_nothing)
{
    std::vector<char> data = pattern(100), got(100);
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL | UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_STREAM_RECV_FLAG_WAITALL;
    size_t n = 0;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              UCS_PTR_STATUS(ucp_stream_recv_nbx(ba, got.data(), got.size(), &n, &p)));
    ASSERT_EQ(UCS_OK, finish(send(data.data(), 60)));
    arrive();
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              UCS_PTR_STATUS(ucp_stream_recv_nbx(ba, got.data(), got.size(), &n, &p)));
    ASSERT_TRUE(until([&] { return ucp_stream_recv_nbx(ba, got.data(), 40, &n, &p) == nullptr; }));
    EXPECT_EQ(40u, n);
    ASSERT_EQ(UCS_OK, finish(send(data.data() + 60, 40)));
    EXPECT_EQ(UCS_OK, finish(recv(got.data() + 40, 60, 1, &n, UCP_STREAM_RECV_FLAG_WAITALL)));
    EXPECT_EQ(60u, n);
    EXPECT_EQ(data, got);
}

// What arrives while the worker goes is received, and the callback closes the endpoint that brings
// it.
TEST_P(ucp_stream, an_endpoint_may_be_closed_by_force_while_its_worker_is_destroyed)
{
    if (is_self()) {
        GTEST_SKIP() << "needs a second endpoint";
    }
    entity c(opts);
    auto d = std::make_unique<entity>(opts);
    errors seen_by_c, seen_by_d;
    ucp_ep_h cd = nullptr;
    struct closer {
        ucp_ep_h ep = nullptr;
        int calls = 0;
    } dc;
    ASSERT_EQ(UCS_OK, create_ep(c, d->address(), &cd, &seen_by_c));
    ASSERT_EQ(UCS_OK, create_ep(*d, c.address(), &dc.ep, &seen_by_d));
    ping(c, cd, *d);
    ping(*d, dc.ep, c);
    char first[4];
    size_t length = 0;
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv_stream = [](void *request, ucs_status_t, size_t, void *arg) {
        auto *self = static_cast<closer *>(arg);
        ++self->calls;
        ucs_status_ptr_t closing = close_nb(self->ep, true);
        if (UCS_PTR_IS_PTR(closing)) {
            ucp_request_free(closing);
        }
        ucp_request_free(request);
    };
    p.user_data = &dc;
    ASSERT_TRUE(UCS_PTR_IS_PTR(ucp_stream_recv_nbx(dc.ep, first, sizeof(first), &length, &p)));
    ucp_request_param_t none = {};
    std::vector<char> out = pattern(3000);
    EXPECT_EQ(UCS_OK, wait({&c}, ucp_stream_send_nbx(cd, out.data(), out.size(), &none)));
    d.reset();
    EXPECT_EQ(1, dc.calls);
    EXPECT_EQ(UCS_OK, wait({&c}, close_nb(cd, true)));
}

UCP_TEST_OVER_ALL(ucp_stream);

// ---- data from many, and before it is asked for

class ucp_stream_peers : public testing::TestWithParam<const char *> {
  protected:
    static options with_tls()
    {
        options o;
        o.tls = GetParam();
        o.features = UCP_FEATURE_STREAM;
        return o;
    }
    // An endpoint with user data.
    static ucp_ep_h endpoint(entity &from, const entity &to, void *user_data)
    {
        std::vector<char> address = to.address();
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_USER_DATA;
        params.address = reinterpret_cast<const ucp_address_t *>(address.data());
        params.user_data = user_data;
        ucp_ep_h ep = nullptr;
        EXPECT_EQ(UCS_OK, ucp_ep_create(from.worker, &params, &ep));
        return ep;
    }
    static void take(ucp_ep_h ep, std::vector<char> *into)
    {
        size_t n;
        void *data;
        while (UCS_PTR_IS_PTR(data = ucp_stream_recv_data_nb(ep, &n))) {
            into->insert(into->end(), static_cast<char *>(data), static_cast<char *>(data) + n);
            ucp_stream_data_release(ep, data);
        }
        EXPECT_EQ(nullptr, data);
    }
};

TEST_P(ucp_stream_peers, b085_data_waits_for_the_endpoint)
{
    entity a(with_tls()), b(with_tls());
    ucp_ep_h ab = endpoint(a, b, nullptr);
    std::vector<char> data = pattern(5000), got;
    ucp_request_param_t none = {};
    ucs_status_ptr_t s = ucp_stream_send_nbx(ab, data.data(), data.size(), &none);
    ASSERT_FALSE(UCS_PTR_IS_ERR(s));
    run_for({&a, &b}, 0.05);
    ucp_stream_poll_ep_t polled[2];
    EXPECT_EQ(0, ucp_stream_worker_poll(b.worker, polled, 2, 0));
    ucp_ep_h ba = endpoint(b, a, nullptr);
    EXPECT_TRUE(run_until({&a, &b}, [&] {
        take(ba, &got);
        return got.size() >= data.size();
    }));
    EXPECT_EQ(data, got);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, s));
    ucs_status_ptr_t x = close_nb(ab), y = close_nb(ba);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, x));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, y));
}

TEST_P(ucp_stream_peers, b094_b095_many_senders_to_one)
{
    constexpr size_t count = 6, n = 40000, rounds = 3;
    entity to(with_tls());
    std::vector<std::unique_ptr<entity>> from;
    std::vector<ucp_ep_h> out, in;
    std::vector<std::vector<char>> sent(count), got(count);
    for (size_t i = 0; i < count; ++i) {
        from.push_back(std::make_unique<entity>(with_tls()));
        out.push_back(endpoint(*from[i], to, nullptr));
        in.push_back(endpoint(to, *from[i], &got[i]));
    }
    auto progress = [&] {
        to.progress();
        for (auto &e : from) {
            e->progress();
        }
    };
    generic_type type;
    std::vector<std::vector<char>> data;
    ucp_dt_iov_t lists[count][2]; // as the data, read until the send is complete
    std::vector<ucs_status_ptr_t> sends;
    for (size_t round = 0; round < rounds; ++round) { // contiguous, a list, a type of the user
        for (size_t i = 0; i < count; ++i) {
            data.push_back(pattern(n, static_cast<unsigned>(10 * round + i)));
            std::vector<char> &d = data.back();
            if (round == 1) {
                lists[i][0] = {d.data(), n / 3};
                lists[i][1] = {d.data() + n / 3, n - n / 3};
            }
            ucp_request_param_t p = {};
            p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
            p.datatype = round == 0   ? ucp_dt_make_contig(1)
                         : round == 1 ? ucp_dt_make_iov()
                                      : type.dt;
            sends.push_back(
                ucp_stream_send_nbx(out[i], round == 1 ? static_cast<void *>(lists[i]) : d.data(),
                                    round == 1 ? 2 : n, &p));
            ASSERT_FALSE(UCS_PTR_IS_ERR(sends.back()));
            sent[i].insert(sent[i].end(), d.begin(), d.end());
            progress();
        }
    }
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
    while (got != sent && std::chrono::steady_clock::now() < end) {
        progress();
        ucp_stream_poll_ep_t polled[count];
        ssize_t ready = ucp_stream_worker_poll(to.worker, polled, count, 0);
        ASSERT_GE(ready, 0);
        for (ssize_t i = 0; i < ready; ++i) {
            auto *into = static_cast<std::vector<char> *>(polled[i].user_data);
            size_t which = static_cast<size_t>(into - got.data());
            ASSERT_LT(which, count);
            EXPECT_EQ(in[which], polled[i].ep);
            size_t before = into->size();
            take(polled[i].ep, into);
            EXPECT_LT(before, into->size()) << "ready means data";
        }
    }
    EXPECT_EQ(sent, got);
    std::vector<ucs_status_ptr_t> all = sends;
    for (size_t i = 0; i < count; ++i) {
        all.push_back(close_nb(out[i]));
        all.push_back(close_nb(in[i]));
    }
    for (ucs_status_ptr_t p : all) {
        while (UCS_PTR_IS_PTR(p) && ucp_request_check_status(p) == UCS_INPROGRESS &&
               std::chrono::steady_clock::now() < end) {
            progress();
        }
        EXPECT_EQ(UCS_OK, UCS_PTR_IS_PTR(p) ? ucp_request_check_status(p) : UCS_PTR_STATUS(p));
        if (UCS_PTR_IS_PTR(p)) {
            ucp_request_free(p);
        }
    }
}

UCP_TEST_OVER(ucp_stream_peers, "sm", "ofi_shm", "tcp", "ofi_shm,tcp");

} // namespace
