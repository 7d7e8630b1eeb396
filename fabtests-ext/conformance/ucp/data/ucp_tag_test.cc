// SPDX-License-Identifier: BSD-3-Clause
//
// Tag sends and receives: matching, order, protocols by size, datatypes, completion rules.
#include "fabtests-ext/common/ucp_pair.h"

#include <cstddef>
#include <numeric>

namespace {

using namespace ucp_test;
constexpr ucp_tag_t full = ~ucp_tag_t(0);

class ucp_tag : public pair {
  protected:
    ucs_status_ptr_t send(const void *data, size_t n, ucp_tag_t tag, uint32_t mask = 0)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = mask;
        return ucp_tag_send_nbx(ab, data, n, tag, &p);
    }
    ucs_status_ptr_t sync(const void *data, size_t n, ucp_tag_t tag)
    {
        ucp_request_param_t p = {};
        return ucp_tag_send_sync_nbx(ab, data, n, tag, &p);
    }
    ucs_status_ptr_t recv(void *data, size_t n, ucp_tag_t tag, ucp_tag_t mask = full)
    {
        ucp_request_param_t p = {};
        return ucp_tag_recv_nbx(b().worker, data, n, tag, mask, &p);
    }
    // Receives and returns the info.
    ucs_status_t recv_info(void *data, size_t n, ucp_tag_t tag, ucp_tag_t mask,
                           ucp_tag_recv_info_t *info)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        void *req = ucp_tag_recv_nbx(b().worker, data, n, tag, mask, &p);
        EXPECT_TRUE(UCS_PTR_IS_PTR(req));
        until([&] { return ucp_tag_recv_request_test(req, info) != UCS_INPROGRESS; });
        ucs_status_t status = ucp_tag_recv_request_test(req, info);
        ucp_request_free(req);
        return status;
    }
    // The only message that is not received yet, and all of it.
    void arrive()
    {
        ucp_tag_recv_info_t info;
        EXPECT_TRUE(until([&] { return ucp_tag_probe_nb(b().worker, 0, 0, 0, &info) != nullptr; }));
        progress_for(0.05);
    }
};

const size_t sizes[] = {0,    1,     8,     100,    1000,    4096,   8192,
                        8200, 20000, 65536, 100000, 1148576, 4000000};

TEST_P(ucp_tag, b001_send_recv_unexp)
{
    uint64_t out = 0xdeadbeefdeadbeef, in = 0;
    ASSERT_EQ(UCS_OK, finish(send(&out, sizeof(out), 0x111337)));
    arrive();
    ucp_tag_recv_info_t info = {};
    ASSERT_EQ(UCS_OK, recv_info(&in, sizeof(in), 0x1337, 0xffff, &info));
    EXPECT_EQ(out, in);
    EXPECT_EQ(sizeof(out), info.length);
    EXPECT_EQ(0x111337u, info.sender_tag);
}

TEST_P(ucp_tag, b002_unexpected_message_completes_at_once_with_info)
{
    uint64_t out = 5, in = 0;
    ASSERT_EQ(UCS_OK, finish(send(&out, sizeof(out), 0x99)));
    arrive();
    ucp_tag_recv_info_t info = {};
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO;
    p.recv_info.tag_info = &info;
    void *req = ucp_tag_recv_nbx(b().worker, &in, sizeof(in), 0x99, full, &p);
    if (req == nullptr) {
        EXPECT_EQ(0x99u, info.sender_tag);
        EXPECT_EQ(sizeof(in), info.length);
    }
    EXPECT_EQ(UCS_OK, finish(req));
    EXPECT_EQ(out, in);
}

TEST_P(ucp_tag, b003_request_freed_before_completion_still_receives)
{
    uint64_t out = 77, in = 0;
    void *req = recv(&in, sizeof(in), 3);
    ASSERT_TRUE(UCS_PTR_IS_PTR(req));
    ucp_request_free(req);
    ASSERT_EQ(UCS_OK, finish(send(&out, sizeof(out), 3)));
    EXPECT_TRUE(until([&] { return in == 77; }));
}

TEST_P(ucp_tag, b004_b009_b014_b015_b018_all_sizes_expected_and_unexpected)
{
    for (size_t n : sizes) {
        for (bool expected : {true, false}) {
            auto out = pattern(n + 1, static_cast<unsigned>(n)), in = std::vector<char>(n + 1);
            void *r = nullptr, *s;
            if (expected) {
                r = recv(in.data(), n, 7);
                ASSERT_TRUE(UCS_PTR_IS_PTR(r)) << "nothing was sent yet";
                s = send(out.data(), n, 7);
            } else {
                s = send(out.data(), n, 7);
                arrive();
                r = recv(in.data(), n, 7);
            }
            ASSERT_EQ(UCS_OK, finish(r)) << n << " expected " << expected;
            ASSERT_EQ(UCS_OK, finish(s)) << n;
            in[n] = out[n];
            ASSERT_TRUE(out == in) << n << " expected " << expected;
        }
    }
}

TEST_P(ucp_tag, b007_wildcard_from_mixed_sizes_does_not_mix)
{
    std::vector<size_t> lens = {3000000, 10, 200000, 8, 30000, 3000000};
    std::vector<std::vector<char>> outs;
    std::vector<void *> reqs;
    for (size_t i = 0; i < lens.size(); ++i) {
        outs.push_back(pattern(lens[i], static_cast<unsigned>(i)));
        reqs.push_back(send(outs[i].data(), lens[i], 100 + i));
    }
    for (size_t i = 0; i < lens.size(); ++i) {
        std::vector<char> in(3000000);
        ucp_tag_recv_info_t info = {};
        ASSERT_EQ(UCS_OK, recv_info(in.data(), in.size(), 0, 0, &info));
        EXPECT_EQ(100 + i, info.sender_tag) << "posting order, whatever the protocol (b029)";
        size_t k = info.sender_tag - 100;
        ASSERT_EQ(lens[k], info.length);
        in.resize(info.length);
        EXPECT_TRUE(in == outs[k]);
    }
    for (void *r : reqs) {
        EXPECT_EQ(UCS_OK, finish(r));
    }
}

TEST_P(ucp_tag, b008_receive_posted_while_fragments_arrive)
{
    size_t n = 50000;
    for (int steps = 0; steps < 12; ++steps) {
        auto out = pattern(n, 3), in = std::vector<char>(n);
        void *s = send(out.data(), n, 4);
        for (int i = 0; i < steps; ++i) {
            progress();
        }
        void *r = recv(in.data(), n, 4);
        ASSERT_EQ(UCS_OK, finish(r));
        ASSERT_EQ(UCS_OK, finish(s));
        ASSERT_TRUE(in == out);
    }
}

TEST_P(ucp_tag, b010_request_released_inside_its_callback)
{
    struct result {
        int calls = 0;
        size_t length = 0;
        static void cb(void *req, ucs_status_t, const ucp_tag_recv_info_t *info, void *arg)
        {
            auto *self = static_cast<result *>(arg);
            ++self->calls;
            self->length = info->length;
            ucp_request_free(req);
        }
    } seen;
    uint64_t out = 1, in = 0;
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv = result::cb;
    p.user_data = &seen;
    void *req = ucp_tag_recv_nbx(b().worker, &in, sizeof(in), 1, full, &p);
    ASSERT_TRUE(UCS_PTR_IS_PTR(req));
    ASSERT_EQ(UCS_OK, finish(send(&out, sizeof(out), 1)));
    EXPECT_TRUE(until([&] { return seen.calls == 1; }));
    EXPECT_EQ(sizeof(out), seen.length);
}

TEST_P(ucp_tag, b011_b016_short_receive_is_truncated_and_the_next_unaffected)
{
    for (size_t n : sizes) {
        if (n == 0) {
            continue;
        }
        for (bool expected : {true, false}) {
            auto out = pattern(n), in = std::vector<char>(n, 0x55), same = in;
            void *r = nullptr, *s;
            if (expected) {
                r = recv(in.data(), n / 2, 5);
            }
            s = send(out.data(), n, 5);
            if (!expected) {
                arrive();
                r = recv(in.data(), n / 2, 5);
            }
            EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, finish(r)) << n;
            EXPECT_EQ(UCS_OK, finish(s)) << n;
            EXPECT_TRUE(std::equal(in.begin() + static_cast<long>(n / 2), in.end(), same.begin()))
                << n;
            uint64_t x = n, y = 0;
            r = recv(&y, 8, 6);
            EXPECT_EQ(UCS_OK, finish(send(&x, 8, 6)));
            EXPECT_EQ(UCS_OK, finish(r));
            EXPECT_EQ(x, y);
        }
    }
}

TEST_P(ucp_tag, b012_thousand_unexpected_messages_in_order)
{
    std::vector<void *> reqs;
    std::vector<uint64_t> outs(1000);
    std::iota(outs.begin(), outs.end(), 0);
    for (uint64_t i = 0; i < 1000; ++i) {
        reqs.push_back(send(&outs[i], 8, 9));
    }
    progress_for(0.1);
    for (uint64_t i = 0; i < 1000; ++i) {
        uint64_t in = ~uint64_t(0);
        ASSERT_EQ(UCS_OK, finish(recv(&in, 8, 9)));
        ASSERT_EQ(i, in);
    }
    for (void *r : reqs) {
        ASSERT_EQ(UCS_OK, finish(r));
    }
}

TEST_P(ucp_tag, b013_b015_sync_completes_after_the_match)
{
    for (size_t n : sizes) {
        auto out = pattern(n), in = std::vector<char>(n);
        void *s = sync(out.data(), n, 8);
        ASSERT_TRUE(UCS_PTR_IS_PTR(s)) << n;
        progress_for(0.01);
        EXPECT_TRUE(pending(s)) << n;
        void *r = recv(in.data(), n, 8);
        EXPECT_EQ(UCS_OK, finish(r));
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_TRUE(in == out) << n;
        r = recv(in.data(), n, 8);
        s = sync(out.data(), n, 8);
        EXPECT_EQ(UCS_OK, finish(r));
        EXPECT_EQ(UCS_OK, finish(s));
    }
}

TEST_P(ucp_tag, b014_zero_length_with_bogus_buffers)
{
    void *r = recv(reinterpret_cast<void *>(0xdead), 0, 2);
    EXPECT_EQ(UCS_OK, finish(send(reinterpret_cast<void *>(0xbeef), 0, 2)));
    EXPECT_EQ(UCS_OK, finish(r));
}

TEST_P(ucp_tag, b017_longer_receive_leaves_the_tail)
{
    for (size_t n : sizes) {
        auto out = pattern(n), in = std::vector<char>(n + 1000, 0x55);
        void *s = send(out.data(), n, 5);
        ucp_tag_recv_info_t info = {};
        ASSERT_EQ(UCS_OK, recv_info(in.data(), in.size(), 5, full, &info));
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_EQ(n, info.length);
        EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
        EXPECT_TRUE(std::all_of(in.begin() + static_cast<long>(n), in.end(),
                                [](char c) { return c == 0x55; }));
    }
}

TEST_P(ucp_tag, b019_both_sides_send_large_at_once)
{
    if (is_self()) {
        GTEST_SKIP() << "one worker";
    }
    const size_t lens[] = {1000, 100000, 2000000};
    for (size_t n : lens) {
        auto x = pattern(n, 1), y = pattern(n, 2), in_a = std::vector<char>(n),
             in_b = std::vector<char>(n);
        ucp_request_param_t p = {};
        void *reqs[] = {ucp_tag_recv_nbx(a().worker, in_a.data(), n, 1, full, &p),
                        ucp_tag_recv_nbx(b().worker, in_b.data(), n, 1, full, &p),
                        ucp_tag_send_nbx(ab, x.data(), n, 1, &p),
                        ucp_tag_send_nbx(ba, y.data(), n, 1, &p)};
        for (void *r : reqs) {
            ASSERT_EQ(UCS_OK, finish(r));
        }
        EXPECT_TRUE(in_a == y);
        EXPECT_TRUE(in_b == x);
    }
}

enum class shape { contig, iov, generic };

TEST_P(ucp_tag, b005_b021_b024_datatype_matrix)
{
    for (size_t n : sizes) {
        for (shape sd : {shape::contig, shape::iov, shape::generic}) {
            for (shape rd : {shape::contig, shape::iov, shape::generic}) {
                for (bool expected : {true, false}) {
                    for (bool sy : {true, false}) {
                        if (n > 2000000 && sd != shape::iov) {
                            continue;
                        }
                        auto out = pattern(n), in = std::vector<char>(n);
                        size_t third = n / 3;
                        ucp_dt_iov_t siov[] = {{nullptr, 0},
                                               {out.data(), third},
                                               {out.data() + third, n - third},
                                               {nullptr, 0}};
                        ucp_dt_iov_t riov[] = {
                            {in.data(), n / 2}, {nullptr, 0}, {in.data() + n / 2, n - n / 2}};
                        generic_type sg, rg;
                        ucp_request_param_t sp = {}, rp = {};
                        sp.op_attr_mask = rp.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
                        const void *sb = out.data();
                        void *rb = in.data();
                        size_t sc = n, rc = n;
                        sp.datatype = rp.datatype = ucp_dt_make_contig(1);
                        if (sd == shape::iov) {
                            sp.datatype = ucp_dt_make_iov(), sb = siov, sc = 4;
                        } else if (sd == shape::generic) {
                            sp.datatype = sg.dt;
                        }
                        if (rd == shape::iov) {
                            rp.datatype = ucp_dt_make_iov(), rb = riov, rc = 3;
                        } else if (rd == shape::generic) {
                            rp.datatype = rg.dt;
                        }
                        void *r = nullptr;
                        if (expected) {
                            r = ucp_tag_recv_nbx(b().worker, rb, rc, 1, full, &rp);
                        }
                        void *s = sy ? ucp_tag_send_sync_nbx(ab, sb, sc, 1, &sp)
                                     : ucp_tag_send_nbx(ab, sb, sc, 1, &sp);
                        if (!expected) {
                            for (int i = 0; i < 100; ++i) {
                                progress();
                            }
                            r = ucp_tag_recv_nbx(b().worker, rb, rc, 1, full, &rp);
                        }
                        ASSERT_EQ(UCS_OK, finish(r)) << n << int(sd) << int(rd) << expected << sy;
                        ASSERT_EQ(UCS_OK, finish(s)) << n << int(sd) << int(rd) << expected << sy;
                        ASSERT_TRUE(in == out) << n << int(sd) << int(rd) << expected << sy;
                        ASSERT_EQ(sg.starts, sg.finishes);
                        ASSERT_EQ(rg.starts, rg.finishes);
                    }
                }
            }
        }
    }
}

TEST_P(ucp_tag, b022_generic_unpack_error_is_the_status)
{
    for (size_t n : {size_t(100), size_t(100000), size_t(1000000)}) {
        for (bool expected : {true, false}) {
            for (bool sy : {true, false}) {
                generic_type g;
                g.unpack_status = UCS_ERR_NO_MEMORY;
                auto out = pattern(n), in = std::vector<char>(n);
                ucp_request_param_t rp = {};
                rp.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
                rp.datatype = g.dt;
                void *r = nullptr;
                if (expected) {
                    r = ucp_tag_recv_nbx(b().worker, in.data(), n, 1, full, &rp);
                }
                void *s = sy ? sync(out.data(), n, 1) : send(out.data(), n, 1);
                if (!expected) {
                    arrive();
                    r = ucp_tag_recv_nbx(b().worker, in.data(), n, 1, full, &rp);
                }
                EXPECT_EQ(UCS_ERR_NO_MEMORY, finish(r)) << n;
                EXPECT_EQ(UCS_OK, finish(s)) << n;
                EXPECT_EQ(1, g.finishes);
            }
        }
    }
}

TEST_P(ucp_tag, b025_external_request_holds_the_result)
{
    ucp_context_attr_t attr = {};
    attr.field_mask = UCP_ATTR_FIELD_REQUEST_SIZE;
    ASSERT_EQ(UCS_OK, ucp_context_query(b().context, &attr));
    std::vector<std::max_align_t> memory(attr.request_size / sizeof(std::max_align_t) + 1);
    memset(memory.data(), 0xa5, memory.size() * sizeof(memory[0]));
    void *request = reinterpret_cast<char *>(memory.data()) + attr.request_size;
    for (bool expected : {true, false}) {
        uint64_t out = 42, in = 0;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_REQUEST;
        p.request = request;
        void *r = nullptr;
        if (expected) {
            r = ucp_tag_recv_nbx(b().worker, &in, 8, 1, full, &p);
            EXPECT_EQ(request, r);
        }
        ASSERT_EQ(UCS_OK, finish(send(&out, 8, 1)));
        if (!expected) {
            arrive();
            r = ucp_tag_recv_nbx(b().worker, &in, 8, 1, full, &p);
        }
        EXPECT_TRUE(until([&] { return ucp_request_check_status(request) != UCS_INPROGRESS; }));
        ucp_tag_recv_info_t info = {};
        EXPECT_EQ(UCS_OK, ucp_request_test(request, &info));
        EXPECT_EQ(8u, info.length);
        EXPECT_EQ(42u, in);
    }
}

TEST_P(ucp_tag, b030_expected_queue_is_fifo_over_wildcard_and_exact)
{
    uint64_t wild = 0, exact = 0, out1 = 1, out2 = 2;
    void *r1 = recv(&wild, 8, 0, 0);
    void *r2 = recv(&exact, 8, 5);
    ASSERT_EQ(UCS_OK, finish(send(&out1, 8, 5)));
    ASSERT_EQ(UCS_OK, finish(send(&out2, 8, 5)));
    ASSERT_EQ(UCS_OK, finish(r1));
    ASSERT_EQ(UCS_OK, finish(r2));
    EXPECT_EQ(1u, wild);
    EXPECT_EQ(2u, exact);
}

TEST_P(ucp_tag, b031_completion_flags)
{
    uint64_t out = 1, in = 0;
    void *warm = recv(&in, 8, 1);
    ASSERT_EQ(UCS_OK, finish(send(&out, 8, 1)));
    ASSERT_EQ(UCS_OK, finish(warm));
    void *r = recv(&in, 8, 1);
    void *s = send(&out, 8, 1, UCP_OP_ATTR_FLAG_NO_IMM_CMPL);
    EXPECT_TRUE(UCS_PTR_IS_PTR(s));
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(UCS_OK, finish(r));
    s = send(&out, 8, 1, UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
    EXPECT_TRUE(s == nullptr || UCS_PTR_STATUS(s) == UCS_ERR_NO_RESOURCE);
    if (s == nullptr) {
        EXPECT_EQ(UCS_OK, finish(recv(&in, 8, 1)));
    }
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE,
              UCS_PTR_STATUS(ucp_tag_recv_nbx(b().worker, &in, 8, 1, full, &p)));
}

// The callback must not run inside the posting call, unless NO_IMM_CMPL was given.
struct guard {
    bool inside = false, early = false;
    int calls = 0;
    static void cb(void *req, ucs_status_t, void *arg)
    {
        auto *g = static_cast<guard *>(arg);
        ++g->calls;
        g->early |= g->inside;
        ucp_request_free(req);
    }
};

TEST_P(ucp_tag, callbacks_run_in_progress_only_and_once)
{
    for (size_t n : sizes) {
        auto out = pattern(n), in = std::vector<char>(n);
        guard g;
        void *r = recv(in.data(), n, 1);
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.cb.send = guard::cb;
        p.user_data = &g;
        g.inside = true;
        void *s = ucp_tag_send_nbx(ab, out.data(), n, 1, &p);
        g.inside = false;
        ASSERT_EQ(UCS_OK, finish(r));
        if (s == nullptr) {
            EXPECT_EQ(0, g.calls);
        } else {
            EXPECT_TRUE(until([&] { return g.calls == 1; })) << n;
        }
        progress_for(0.002);
        EXPECT_LE(g.calls, 1);
        EXPECT_FALSE(g.early);
    }
}

TEST_P(ucp_tag, old_calls_pass_status_and_info)
{
    static int sent, received;
    static size_t length;
    sent = received = 0;
    uint64_t out = 3, in = 0;
    void *r = ucp_tag_recv_nb(b().worker, &in, 1, ucp_dt_make_contig(8), 4, full,
                              [](void *, ucs_status_t, ucp_tag_recv_info_t *info) {
                                  ++received;
                                  length = info->length;
                              });
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    void *s = ucp_tag_send_nb(ab, &out, 1, ucp_dt_make_contig(8), 4,
                              [](void *, ucs_status_t) { ++sent; });
    EXPECT_TRUE(until([&] { return received == 1; }));
    EXPECT_EQ(8u, length);
    ucp_request_release(r);
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_LE(sent, 1);
    s = ucp_tag_send_sync_nb(ab, &out, 1, ucp_dt_make_contig(8), 4, [](void *, ucs_status_t) {});
    arrive();
    r = ucp_tag_recv_nb(b().worker, &in, 1, ucp_dt_make_contig(8), 4, full,
                        [](void *, ucs_status_t, ucp_tag_recv_info_t *) { ++received; });
    ASSERT_TRUE(UCS_PTR_IS_PTR(r)) << "never NULL";
    EXPECT_EQ(2, received) << "NO_IMM_CMPL: inside the call";
    ucp_request_release(r);
    EXPECT_EQ(UCS_OK, finish(s));
}

TEST_P(ucp_tag, wrong_arguments_are_refused)
{
    ucp_request_param_t p = {};
    uint64_t x = 0;
    auto status = [](void *ptr) { return UCS_PTR_STATUS(ptr); };
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status(ucp_tag_send_nbx(nullptr, &x, 8, 1, &p)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status(ucp_tag_send_nbx(ab, &x, 8, 1, nullptr)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status(ucp_tag_send_nbx(ab, nullptr, 8, 1, &p)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status(ucp_tag_recv_nbx(nullptr, &x, 8, 1, full, &p)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status(ucp_tag_recv_nbx(b().worker, nullptr, 8, 1, full, &p)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status(ucp_tag_msg_recv_nbx(b().worker, &x, 8, nullptr, &p)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, status(ucp_stream_send_nbx(ab, &x, 8, &p)))
        << "feature not asked for (b099)";
}

TEST_P(ucp_tag, b144_what_a_type_packs_is_what_is_sent)
{
    generic_type type;
    type.pack_limit = 3;
    char out[] = "1234567", in[8] = "xxxxxxx";
    ucp_tag_recv_info_t info = {};
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    p.cb.recv = [](void *, ucs_status_t, const ucp_tag_recv_info_t *got, void *arg) {
        *static_cast<ucp_tag_recv_info_t *>(arg) = *got;
    };
    p.user_data = &info;
    ucs_status_ptr_t r = ucp_tag_recv_nbx(b().worker, in, 7, 1, ~ucp_tag_t(0), &p);
    ucp_request_param_t sp = {};
    sp.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    sp.datatype = type.dt;
    EXPECT_EQ(UCS_OK, finish(ucp_tag_send_nbx(ab, out, 7, 1, &sp)));
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(3u, info.length);
    EXPECT_STREQ("123xxxx", in);
    EXPECT_EQ(type.starts, type.finishes);
}

TEST_P(ucp_tag, b145_b146_types_for_one_operation_each)
{
    for (size_t n : {size_t(8), size_t(5000), size_t(500000)}) {
        for (unsigned i = 0; i < 10; ++i) {
            auto out = pattern(n, i), in = std::vector<char>(n);
            {
                generic_type from, to;
                ucp_request_param_t sp = {}, rp = {};
                sp.op_attr_mask = rp.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
                sp.datatype = from.dt;
                rp.datatype = to.dt;
                ucs_status_ptr_t r =
                    ucp_tag_recv_nbx(b().worker, in.data(), n, 1, ~ucp_tag_t(0), &rp);
                ucs_status_ptr_t s = ucp_tag_send_nbx(ab, out.data(), n, 1, &sp);
                EXPECT_EQ(UCS_OK, finish(r));
                EXPECT_EQ(UCS_OK, finish(s));
                EXPECT_EQ(1, from.starts);
                EXPECT_EQ(1, from.finishes);
                EXPECT_EQ(1, to.starts);
                EXPECT_EQ(1, to.finishes);
                EXPECT_EQ(0, from.foreign_calls + to.foreign_calls) << "by the calling thread";
            }
            EXPECT_TRUE(out == in) << n;
        }
    }
}

UCP_TEST_OVER_ALL(ucp_tag);

} // namespace
