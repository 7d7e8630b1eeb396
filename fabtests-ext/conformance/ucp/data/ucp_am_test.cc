// SPDX-License-Identifier: BSD-3-Clause
//
// Active messages: handlers of both generations, headers, replies, kept data, rendezvous.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <deque>
#include <poll.h>

namespace {

using namespace ucp_test;

class ucp_am : public pair {
  protected:
    struct message {
        std::vector<char> header, data;
        uint64_t attr = 0;
        ucp_ep_h reply_ep = nullptr;
        void *desc = nullptr;
    };

    // What the handler of id 1 does.
    std::deque<message> got;
    ucs_status_t answer = UCS_OK;
    bool receive_inside = false; // a rendezvous is received in the callback
    std::vector<char> landing;
    void *landing_req = nullptr;
    std::function<void(message &)> hook;

    static ucs_status_t handler(void *arg, const void *header, size_t header_length, void *data,
                                size_t length, const ucp_am_recv_param_t *param)
    {
        auto *self = static_cast<ucp_am *>(arg);
        message m;
        const char *h = static_cast<const char *>(header), *d = static_cast<const char *>(data);
        m.header.assign(h, h + header_length);
        m.attr = param->recv_attr;
        m.desc = data;
        if (param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) {
            m.reply_ep = param->reply_ep;
        }
        if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
            m.data.resize(length);
            if (self->receive_inside) {
                self->landing.assign(length, 0);
                ucp_request_param_t p = {};
                self->landing_req =
                    ucp_am_recv_data_nbx(self->b().worker, data, self->landing.data(), length, &p);
                self->got.push_back(m);
                return UCS_INPROGRESS;
            }
        } else {
            m.data.assign(d, d + length);
        }
        if (self->hook) {
            self->hook(m);
        }
        self->got.push_back(m);
        return self->answer;
    }

    void set(unsigned id = 1, uint32_t flags = 0, ucp_worker_h worker = nullptr,
             ucp_am_recv_callback_t cb = handler)
    {
        ucp_am_handler_param_t p = {};
        p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
        p.id = id;
        p.cb = cb;
        p.arg = this;
        p.flags = flags;
        ASSERT_EQ(UCS_OK, ucp_worker_set_am_recv_handler(worker ? worker : b().worker, &p));
    }

    // What was sent stays until the end: a send may be pending.
    std::deque<std::vector<char>> sent_;

    ucs_status_ptr_t send(std::vector<char> h, std::vector<char> d, uint32_t flags = 0,
                          unsigned id = 1)
    {
        const auto &header = sent_.emplace_back(std::move(h));
        const auto &data = sent_.emplace_back(std::move(d));
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = flags;
        return ucp_am_send_nbx(ab, id, header.data(), header.size(), data.data(), data.size(), &p);
    }

    bool arrived(size_t n = 1)
    {
        return until([&] { return got.size() >= n; });
    }
};

const size_t sizes[] = {0, 1, 8, 100, 3000, 8100, 8192, 20000, 65536, 100000, 1000000};

TEST_P(ucp_am, b055_b059_headers_and_data_of_all_sizes_arrive)
{
    set();
    for (size_t h : {size_t(0), size_t(8), size_t(100), size_t(1000)}) {
        for (size_t n : sizes) {
            for (uint32_t flags :
                 {0u, uint32_t(UCP_AM_SEND_FLAG_EAGER), uint32_t(UCP_AM_SEND_FLAG_REPLY),
                  uint32_t(UCP_AM_SEND_FLAG_EAGER | UCP_AM_SEND_FLAG_REPLY)}) {
                auto header = pattern(h, 9), data = pattern(n, static_cast<unsigned>(n));
                receive_inside = true;
                void *s = send(header, data, flags);
                ASSERT_TRUE(arrived()) << h << " " << n << " " << flags;
                message m = got.front();
                got.clear();
                EXPECT_TRUE(m.header == header) << h << " " << n;
                if (m.attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
                    EXPECT_FALSE(flags & UCP_AM_SEND_FLAG_EAGER) << "b061";
                    ASSERT_EQ(UCS_OK, finish(landing_req)) << n;
                    EXPECT_TRUE(landing == data) << n;
                } else {
                    EXPECT_TRUE(m.data == data) << n;
                }
                EXPECT_EQ(bool(flags & UCP_AM_SEND_FLAG_REPLY), m.reply_ep != nullptr) << "b060";
                ASSERT_EQ(UCS_OK, finish(s));
            }
        }
    }
}

TEST_P(ucp_am, b049_reply_ep_sends_from_inside_the_callback)
{
    set();
    int back = 0;
    ucp_am_handler_param_t p = {};
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                   UCP_AM_HANDLER_PARAM_FIELD_ARG;
    p.id = 2;
    p.arg = &back;
    p.cb = [](void *arg, const void *, size_t, void *data, size_t length,
              const ucp_am_recv_param_t *) {
        *static_cast<int *>(arg) += length == 4 && memcmp(data, "pong", 4) == 0;
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, ucp_worker_set_am_recv_handler(a().worker, &p));
    std::vector<void *> sent;
    hook = [&](message &m) {
        ucp_request_param_t none = {};
        sent.push_back(ucp_am_send_nbx(m.reply_ep, 2, nullptr, 0, "pong", 4, &none));
    };
    ASSERT_EQ(UCS_OK, finish(send({}, pattern(8), UCP_AM_SEND_FLAG_REPLY)));
    EXPECT_TRUE(until([&] { return back == 1; }));
    for (void *s : sent) {
        EXPECT_EQ(UCS_OK, finish(s));
    }
}

TEST_P(ucp_am, b050_b051_handlers_may_be_sparse_replaced_and_removed)
{
    set(1000);
    set(0);
    ASSERT_EQ(UCS_OK, finish(send({}, pattern(5), 0, 1000)));
    ASSERT_EQ(UCS_OK, finish(send({}, pattern(6), 0, 0)));
    ASSERT_TRUE(arrived(2));
    ucp_am_handler_param_t p = {};
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
    p.id = 1000;
    EXPECT_EQ(UCS_OK, ucp_worker_set_am_recv_handler(b().worker, &p));
    EXPECT_EQ(UCS_OK, finish(send({}, pattern(5), 0, 1000))) << "b076: dropped with a warning";
    ASSERT_EQ(UCS_OK, finish(send({}, pattern(7), 0, 0)));
    ASSERT_TRUE(arrived(3));
    EXPECT_EQ(3u, got.size());
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_CB;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_set_am_recv_handler(b().worker, &p));
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_set_am_recv_handler(b().worker, &p));
    p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                   UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    p.flags = 1u << 15;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_set_am_recv_handler(b().worker, &p));
    p.flags = 0;
    p.id = 0x10000;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_worker_set_am_recv_handler(b().worker, &p)) << "b052";
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(send({}, pattern(1), 0, 0x10000)));
}

TEST_P(ucp_am, b053_b054_b055_header_limit)
{
    ucp_worker_attr_t attr = {};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
    ASSERT_EQ(UCS_OK, ucp_worker_query(a().worker, &attr));
    ASSERT_GE(attr.max_am_header, 64u);
    set();
    for (uint32_t flags : {0u, uint32_t(UCP_AM_SEND_FLAG_RNDV)}) {
        auto header = pattern(attr.max_am_header, 4);
        void *s = send(header, {}, flags);
        ASSERT_TRUE(arrived());
        EXPECT_TRUE(got.front().header == header);
        EXPECT_EQ(UCS_OK, finish(s));
        got.clear();
    }
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, UCS_PTR_STATUS(send(pattern(attr.max_am_header + 1), {})));
}

TEST_P(ucp_am, b056_b057_persistent_data_survives_until_released)
{
    set(1, UCP_AM_FLAG_PERSISTENT_DATA);
    answer = UCS_INPROGRESS;
    std::vector<size_t> lens = {1, 8, 500, 2000, 5000, 8000, 30000, 60000};
    for (int round = 0; round < 20; ++round) {
        for (size_t n : lens) {
            ASSERT_EQ(UCS_OK, finish(send({}, pattern(n, static_cast<unsigned>(round)),
                                          UCP_AM_SEND_FLAG_EAGER)));
        }
    }
    ASSERT_TRUE(arrived(20 * lens.size()));
    for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(got[i].attr & UCP_AM_RECV_ATTR_FLAG_DATA);
        auto *p = static_cast<char *>(got[i].desc);
        auto want = pattern(lens[i % lens.size()], static_cast<unsigned>(i / lens.size()));
        EXPECT_EQ(0, memcmp(p, want.data(), want.size())) << i;
    }
    for (size_t i = got.size(); i-- > 0;) {
        ucp_am_data_release(b().worker, got[i].desc);
    }
}

TEST_P(ucp_am, b061_rndv_flag_forces_rendezvous_at_any_length)
{
    set();
    receive_inside = true;
    for (size_t n : {size_t(0), size_t(8), size_t(5000)}) {
        auto data = pattern(n);
        void *s = send(pattern(16), data, UCP_AM_SEND_FLAG_RNDV);
        ASSERT_TRUE(arrived());
        EXPECT_TRUE(got.front().attr & UCP_AM_RECV_ATTR_FLAG_RNDV);
        got.clear();
        EXPECT_EQ(UCS_OK, finish(landing_req));
        EXPECT_TRUE(landing == data);
        EXPECT_EQ(UCS_OK, finish(s));
    }
    void *s = send({}, pattern(8), UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_EAGER);
    ASSERT_TRUE(arrived());
    EXPECT_FALSE(got.front().attr & UCP_AM_RECV_ATTR_FLAG_RNDV) << "EAGER wins";
    EXPECT_EQ(UCS_OK, finish(s));
}

// Over shared memory a rendezvous of the receiver's own reading pays sooner than one by the kernel.
TEST_P(ucp_am, rendezvous_begins_sooner_for_memory_that_the_peer_can_map)
{
    set();
    receive_inside = true;
    constexpr size_t between = 8000, above = 200000;
    region mapped(a(), ab, nullptr, above);
    std::vector<char> plain = pattern(above);
    memcpy(mapped.data, plain.data(), above);
    auto is_rendezvous = [&](const char *from, size_t n) {
        ucp_request_param_t p = {};
        void *s = ucp_am_send_nbx(ab, 1, nullptr, 0, from, n, &p);
        EXPECT_TRUE(arrived());
        message m = got.front();
        got.clear();
        bool rendezvous = m.attr & UCP_AM_RECV_ATTR_FLAG_RNDV;
        if (rendezvous) {
            EXPECT_EQ(UCS_OK, finish(landing_req));
        }
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_EQ(0, memcmp(from, (rendezvous ? landing : m.data).data(), n)) << n;
        return rendezvous;
    };
    EXPECT_TRUE(is_rendezvous(plain.data(), above));
    EXPECT_TRUE(is_rendezvous(mapped.data, above));
    bool over_shm = opts.tls.starts_with("ofi_shm") || opts.tls.starts_with("sm");
    bool over_sockets = opts.tls.starts_with("tcp") || opts.tls == "sockets";
    size_t eager = 0, first = above; // of plain memory
    while (eager + 1 < first) {
        size_t middle = eager + (first - eager) / 2;
        (is_rendezvous(plain.data(), middle) ? first : eager) = middle;
    }
    EXPECT_TRUE(!over_sockets || first > 65536) << first;
    EXPECT_TRUE(!over_shm || first < (opts.tls.starts_with("sm") ? 131072 : 65536)) << first;
    EXPECT_EQ(over_shm,
              is_rendezvous(mapped.data, between) && !is_rendezvous(plain.data(), between));
}

TEST_P(ucp_am, b063_b067_deferred_receive_and_wrong_descriptors)
{
    set();
    answer = UCS_INPROGRESS;
    for (size_t n : {size_t(0), size_t(100), size_t(1000000)}) {
        auto data = pattern(n), in = std::vector<char>(n);
        void *s = send({}, data, UCP_AM_SEND_FLAG_RNDV);
        ASSERT_TRUE(arrived());
        void *desc = got.front().desc;
        got.clear();
        progress_for(0.01);
        EXPECT_TRUE(pending(s));
        ucp_request_param_t p = {};
        size_t length = 1;
        p.op_attr_mask = UCP_OP_ATTR_FIELD_RECV_INFO;
        p.recv_info.length = &length;
        void *r = ucp_am_recv_data_nbx(b().worker, desc, in.data(), n, &p);
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  UCS_PTR_STATUS(ucp_am_recv_data_nbx(b().worker, desc, in.data(), n, &p)));
        if (r == nullptr) {
            EXPECT_EQ(n, length) << "b068";
        }
        EXPECT_EQ(UCS_OK, finish(r));
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_TRUE(in == data);
    }
}

TEST_P(ucp_am, b064_b065_b066_refused_rendezvous)
{
    set();
    answer = UCS_OK;
    EXPECT_EQ(UCS_OK, finish(send({}, pattern(100000), UCP_AM_SEND_FLAG_RNDV))) << "b064";
    for (ucs_status_t status : {UCS_ERR_REJECTED, UCS_ERR_NO_MEMORY}) {
        answer = status;
        EXPECT_EQ(status, finish(send({}, pattern(100000), UCP_AM_SEND_FLAG_RNDV)));
    }
    got.clear();
    answer = UCS_INPROGRESS;
    void *s = send({}, pattern(100000), UCP_AM_SEND_FLAG_RNDV);
    ASSERT_TRUE(arrived());
    ucp_am_data_release(b().worker, got.front().desc);
    EXPECT_EQ(UCS_OK, finish(s)) << "b066";
}

TEST_P(ucp_am, b069_b070_receive_from_kept_eager_data)
{
    set(1, UCP_AM_FLAG_PERSISTENT_DATA);
    answer = UCS_INPROGRESS;
    auto data = pattern(600);
    for (size_t n : {size_t(600), size_t(1000), size_t(100)}) {
        got.clear();
        ASSERT_EQ(UCS_OK, finish(send({}, data)));
        ASSERT_TRUE(arrived());
        std::vector<char> in(n);
        ucp_request_param_t p = {};
        void *r = ucp_am_recv_data_nbx(b().worker, got.front().desc, in.data(), n, &p);
        if (n < 600) {
            EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, finish(r));
        } else {
            EXPECT_EQ(UCS_OK, finish(r));
            EXPECT_EQ(0, memcmp(in.data(), data.data(), 600));
        }
    }
}

TEST_P(ucp_am, b070_short_rendezvous_receive_is_truncated)
{
    set();
    answer = UCS_INPROGRESS;
    void *s = send({}, pattern(100000), UCP_AM_SEND_FLAG_RNDV);
    ASSERT_TRUE(arrived());
    std::vector<char> in(10);
    ucp_request_param_t p = {};
    void *r = ucp_am_recv_data_nbx(b().worker, got.front().desc, in.data(), in.size(), &p);
    EXPECT_EQ(UCS_ERR_MESSAGE_TRUNCATED, finish(r));
    EXPECT_EQ(UCS_OK, finish(s));
}

TEST_P(ucp_am, b071_datatypes_of_sender_and_receiver)
{
    set();
    answer = UCS_INPROGRESS;
    for (size_t n : {size_t(0), size_t(999), size_t(100001), size_t(1000000)}) {
        for (int sd = 0; sd < 3; ++sd) {
            for (int rd = 0; rd < 3; ++rd) {
                auto out = pattern(n), in = std::vector<char>(n);
                ucp_dt_iov_t siov[] = {{out.data(), n / 3}, {out.data() + n / 3, n - n / 3}};
                ucp_dt_iov_t riov[] = {{in.data(), n / 2}, {in.data() + n / 2, n - n / 2}};
                generic_type sg, rg;
                ucp_request_param_t sp = {}, rp = {};
                sp.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_FLAGS;
                sp.flags = UCP_AM_SEND_FLAG_RNDV;
                rp.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
                ucp_datatype_t sdt[] = {ucp_dt_make_contig(1), ucp_dt_make_iov(), sg.dt};
                ucp_datatype_t rdt[] = {ucp_dt_make_contig(1), ucp_dt_make_iov(), rg.dt};
                sp.datatype = sdt[sd];
                rp.datatype = rdt[rd];
                void *s = ucp_am_send_nbx(ab, 1, nullptr, 0, sd == 1 ? (void *)siov : out.data(),
                                          sd == 1 ? 2 : n, &sp);
                ASSERT_TRUE(arrived());
                void *r =
                    ucp_am_recv_data_nbx(b().worker, got.front().desc,
                                         rd == 1 ? (void *)riov : in.data(), rd == 1 ? 2 : n, &rp);
                ASSERT_EQ(UCS_OK, finish(r)) << n << sd << rd;
                ASSERT_EQ(UCS_OK, finish(s)) << n << sd << rd;
                EXPECT_TRUE(in == out) << n << sd << rd;
                EXPECT_EQ(sg.starts, sg.finishes);
                EXPECT_EQ(rg.starts, rg.finishes);
                got.clear();
            }
        }
    }
}

#if UCP_API_VERSION >= UCP_VERSION(1, 14)
TEST_P(ucp_am, b073_copied_header_may_be_reused_at_once)
{
    set();
    // Enough to fill any lane, so that some wait with their header.
    std::vector<void *> reqs;
    auto data = pattern(4000);
    uint64_t header = 0;
    for (uint64_t i = 0; i < 500; ++i) {
        header = i;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_AM_SEND_FLAG_COPY_HEADER;
        reqs.push_back(ucp_am_send_nbx(ab, 1, &header, 8, data.data(), data.size(), &p));
    }
    header = ~uint64_t(0);
    ASSERT_TRUE(arrived(500));
    for (uint64_t i = 0; i < 500; ++i) {
        EXPECT_EQ(0, memcmp(got[i].header.data(), &i, 8)) << "b079: in order";
    }
    for (void *r : reqs) {
        EXPECT_EQ(UCS_OK, finish(r));
    }
}
#endif

struct old_state {
    std::vector<std::vector<char>> got;
    std::vector<void *> kept;
    bool keep = false;
    ucp_worker_h worker = nullptr;

    static ucs_status_t cb(void *arg, void *data, size_t length, ucp_ep_h, unsigned flags)
    {
        auto *self = static_cast<old_state *>(arg);
        auto *p = static_cast<char *>(data);
        self->got.emplace_back(p, p + length);
        if (self->keep && flags & UCP_CB_PARAM_FLAG_DATA) {
            self->kept.push_back(data);
            return UCS_INPROGRESS;
        }
        return UCS_OK;
    }
};

TEST_P(ucp_am, b047_b048_old_calls_get_whole_messages)
{
    old_state st;
    ASSERT_EQ(UCS_OK,
              ucp_worker_set_am_handler(b().worker, 5, old_state::cb, &st, UCP_AM_FLAG_WHOLE_MSG));
    for (bool keep : {false, true}) {
        for (size_t n : {size_t(0), size_t(1), size_t(32768), size_t(200000), size_t(3000000)}) {
            st.keep = keep;
            st.got.clear();
            auto data = pattern(n);
            ucp_dt_iov_t iov[] = {{data.data(), n / 2}, {data.data() + n / 2, n - n / 2}};
            void *s = ucp_am_send_nb(
                ab, 5, iov, 2, ucp_dt_make_iov(), [](void *, ucs_status_t) {}, 0);
            ASSERT_TRUE(until([&] { return !st.got.empty(); })) << n;
            EXPECT_TRUE(st.got.front() == data) << n;
            EXPECT_EQ(UCS_OK, finish(s));
        }
    }
    for (void *data : st.kept) {
        ucp_am_data_release(b().worker, data);
    }
}

TEST_P(ucp_am, b080_every_handler_gets_whole_messages)
{
    old_state st; // without UCP_AM_FLAG_WHOLE_MSG
    ASSERT_EQ(UCS_OK, ucp_worker_set_am_handler(b().worker, 5, old_state::cb, &st, 0));
    set();
    for (size_t n : sizes) {
        auto data = pattern(n);
        void *s = ucp_am_send_nb(
            ab, 5, data.data(), n, ucp_dt_make_contig(1), [](void *, ucs_status_t) {}, 0);
        ASSERT_TRUE(until([&] { return !st.got.empty(); })) << n;
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_TRUE(st.got.front() == data) << n;
        st.got.clear();
        s = send({}, data, UCP_AM_SEND_FLAG_EAGER);
        ASSERT_TRUE(arrived()) << n;
        EXPECT_EQ(UCS_OK, finish(s));
        EXPECT_TRUE(got.front().data == data) << n;
        got.clear();
    }
    progress_for(0.01);
    EXPECT_TRUE(st.got.empty());
    EXPECT_TRUE(got.empty());
}

TEST_P(ucp_am, b081_workers_have_handlers_of_their_own)
{
    if (is_self()) {
        GTEST_SKIP() << "an endpoint reaches its own worker alone";
    }
    ucp_worker_h other = b().second_worker(opts);
    ucp_worker_attr_t attr = {};
    attr.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS;
    ASSERT_EQ(UCS_OK, ucp_worker_query(other, &attr));
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    params.address = attr.address;
    ucp_ep_h to_other = nullptr;
    ASSERT_EQ(UCS_OK, ucp_ep_create(a().worker, &params, &to_other));
    ucp_worker_release_address(other, attr.address);
    set();
    int others = 0; // of the same id
    auto on_message = [](void *arg, const void *, size_t, void *, size_t,
                         const ucp_am_recv_param_t *) {
        ++*static_cast<int *>(arg);
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, set_am_handler(other, 1, on_message, &others));
    ucp_request_param_t none = {};
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(UCS_OK, finish(ucp_am_send_nbx(to_other, 1, nullptr, 0, "other", 5, &none)));
    }
    EXPECT_EQ(UCS_OK, finish(send({}, pattern(9))));
    ASSERT_TRUE(until([&] { return others == 3 && got.size() == 1; }));
    EXPECT_EQ(pattern(9), got.front().data);
    EXPECT_EQ(UCS_OK, finish(close_nb(to_other)));
}

TEST_P(ucp_am, b083_cancel_leaves_a_receive_alone)
{
    set();
    answer = UCS_INPROGRESS;
    auto data = pattern(2000000);
    void *s = send({}, data, UCP_AM_SEND_FLAG_RNDV);
    ASSERT_TRUE(arrived());
    std::vector<char> in(data.size());
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    void *r = ucp_am_recv_data_nbx(b().worker, got.front().desc, in.data(), in.size(), &p);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    ucp_request_cancel(b().worker, r);
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_TRUE(in == data);
}

TEST_P(ucp_am, b072_registered_on_both_sides)
{
    set();
    answer = UCS_INPROGRESS;
    for (size_t n : {size_t(100), size_t(9000), size_t(300000)}) {
        for (uint32_t flags : {0u, uint32_t(UCP_AM_SEND_FLAG_RNDV)}) {
            auto out = pattern(n), in = std::vector<char>(n);
            region from(a(), ab, out.data(), n), to(b(), ab, in.data(), n);
            ucp_request_param_t sp = {}, rp = {};
            sp.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH | UCP_OP_ATTR_FIELD_FLAGS;
            sp.memh = from.memh;
            sp.flags = flags;
            rp.op_attr_mask = UCP_OP_ATTR_FIELD_MEMH;
            rp.memh = to.memh;
            void *s = ucp_am_send_nbx(ab, 1, nullptr, 0, out.data(), n, &sp);
            ASSERT_TRUE(arrived());
            message m = got.front();
            got.clear();
            if (m.attr & UCP_AM_RECV_ATTR_FLAG_RNDV) {
                EXPECT_EQ(UCS_OK,
                          finish(ucp_am_recv_data_nbx(b().worker, m.desc, in.data(), n, &rp)));
                EXPECT_TRUE(in == out) << n;
            } else {
                EXPECT_TRUE(m.data == out) << n;
                if (m.attr & UCP_AM_RECV_ATTR_FLAG_DATA) {
                    ucp_am_data_release(b().worker, m.desc);
                }
            }
            EXPECT_EQ(UCS_OK, finish(s));
        }
    }
}

// Data that may be kept stands where the worker was asked to put it.
TEST_P(ucp_am, b077_kept_data_is_aligned)
{
    for (size_t alignment : {size_t(1), size_t(8), size_t(64), size_t(512), size_t(4096)}) {
        stop();
        opts.am_alignment = alignment;
        start();
        set(1, UCP_AM_FLAG_PERSISTENT_DATA);
        answer = UCS_INPROGRESS;
        size_t i = 0;
        for (size_t n : {1, 100, 1500, 3000, 8000, 60000}) {
            for (size_t header : {0, 3, 32}) {
                void *s = send(pattern(header), pattern(n), UCP_AM_SEND_FLAG_EAGER);
                ASSERT_TRUE(arrived(++i));
                EXPECT_EQ(UCS_OK, finish(s));
                EXPECT_EQ(pattern(n), got.back().data);
                EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(got.back().desc) % alignment)
                    << n << " bytes, alignment " << alignment;
            }
        }
        for (message &m : got) {
            ucp_am_data_release(b().worker, m.desc);
        }
        got.clear();
    }
}

UCP_TEST_OVER_ALL(ucp_am);

// Receives of a rendezvous that call back from progress alone, though the bytes may have arrived
// when ucp_am_recv_data_nbx() returns.
class ucp_am_later : public ucp_am {
  protected:
    void SetUp() override
    {
        ucp_am::SetUp();
        set();
        answer = UCS_INPROGRESS;
    }

    void *receive(ucp_worker_h worker)
    {
        in.assign(data.size(), 0);
        calls.clear();
        auto callback = [](void *request, ucs_status_t status, size_t, void *arg) {
            auto *self = static_cast<ucp_am_later *>(arg);
            self->calls.push_back(status);
            if (self->frees) {
                ucp_request_free(request);
            }
        };
        ucp_request_param_t p = called_later(callback, this);
        void *r = ucp_am_recv_data_nbx(worker, got.front().desc, in.data(), in.size(), &p);
        got.clear();
        return r;
    }

    const std::vector<char> data = pattern(100000);
    std::vector<char> in;
    bool frees = false; // the callback gives the request back
    std::vector<ucs_status_t> calls;
    const std::vector<ucs_status_t> once{UCS_OK};
};

// UCXX takes a callback inside of the call for an error.
TEST_P(ucp_am_later, calls_back_from_progress)
{
    for (int round = 0; round < 3; ++round) {
        void *s = send({}, data, UCP_AM_SEND_FLAG_RNDV);
        ASSERT_TRUE(arrived());
        void *r = receive(b().worker);
        ASSERT_TRUE(UCS_PTR_IS_PTR(r));
        EXPECT_TRUE(calls.empty()) << "it was called inside of the call";
        EXPECT_EQ(UCS_INPROGRESS, ucp_request_check_status(r));
        ASSERT_TRUE(until([&] { return !calls.empty(); }));
        EXPECT_EQ(once, calls);
        EXPECT_TRUE(in == data);
        EXPECT_EQ(UCS_OK, finish(r));
        EXPECT_EQ(UCS_OK, finish(s));
    }
}

TEST_P(ucp_am_later, two_received_in_callbacks_of_each_other)
{
    void *sends[] = {send({}, data, UCP_AM_SEND_FLAG_RNDV), send({}, data, UCP_AM_SEND_FLAG_RNDV)};
    ASSERT_TRUE(arrived(2));
    struct second {
        ucp_worker_h worker;
        void *desc;
        std::vector<char> in;
        void *request = nullptr;
        bool is_outside = true;
        int calls = 0;
    } next{b().worker, got.back().desc, std::vector<char>(data.size())};
    auto receives_second = [](void *, ucs_status_t, size_t, void *arg) {
        auto *n = static_cast<second *>(arg);
        auto counts = [](void *, ucs_status_t status, size_t, void *to) {
            static_cast<second *>(to)->calls += status == UCS_OK;
        };
        ucp_request_param_t q = called_later(counts, n);
        n->request = ucp_am_recv_data_nbx(n->worker, n->desc, n->in.data(), n->in.size(), &q);
        n->is_outside = n->calls == 0;
    };
    in.assign(data.size(), 0);
    ucp_request_param_t p = called_later(receives_second, &next);
    void *r = ucp_am_recv_data_nbx(b().worker, got.front().desc, in.data(), in.size(), &p);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    ASSERT_TRUE(until([&] { return next.calls != 0; }));
    EXPECT_TRUE(next.is_outside);
    EXPECT_EQ(1, next.calls);
    EXPECT_TRUE(in == data && next.in == data);
    for (void *request : {r, next.request, sends[0], sends[1]}) {
        EXPECT_EQ(UCS_OK, finish(request));
    }
}

TEST_P(ucp_am_later, the_end_of_the_worker_ends_it)
{
    entity first(opts), second(opts);
    entity &to = is_self() ? first : second;
    ucp_ep_h ep;
    ASSERT_EQ(UCS_OK, create_ep(first, to.address(), &ep));
    set(1, 0, to.worker);
    ucp_request_param_t p = {};
    p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    p.flags = UCP_AM_SEND_FLAG_RNDV;
    void *s = ucp_am_send_nbx(ep, 1, nullptr, 0, data.data(), data.size(), &p);
    ASSERT_TRUE(run_until({&first, &second}, [&] { return !got.empty(); }));
    frees = true;
    ASSERT_TRUE(UCS_PTR_IS_PTR(receive(to.worker)) && UCS_PTR_IS_PTR(s));
    ucp_request_free(s);
    ASSERT_TRUE(calls.empty());
    ucp_worker_destroy(to.worker);
    to.worker = nullptr;
    ASSERT_EQ(1u, calls.size());
    // A device that reads may have read all while the worker was closed.
    EXPECT_TRUE(calls[0] == UCS_ERR_CANCELED || (calls[0] == UCS_OK && in == data)) << calls[0];
}

UCP_TEST_OVER_ALL(ucp_am_later);

class ucp_am_asleep : public ucp_am_later {
  protected:
    // Arming is not to answer busy for another reason.
    ucp_am_asleep()
    {
        opts.features |= UCP_FEATURE_WAKEUP;
        opts.config = {{"ARM_POLL_TIME", "0"}};
    }
};

// Nothing else will happen: what was read already keeps the worker from sleeping.
TEST_P(ucp_am_asleep, a_program_that_only_waits_for_the_descriptor_is_called)
{
    int fd;
    ASSERT_EQ(UCS_OK, ucp_worker_get_efd(b().worker, &fd));
    for (int round = 0; round < 3; ++round) {
        void *s = send({}, data, UCP_AM_SEND_FLAG_RNDV);
        ASSERT_TRUE(arrived());
        progress_for(0); // what the message has left
        void *r = receive(b().worker);
        ASSERT_TRUE(UCS_PTR_IS_PTR(r));
        while (calls.empty()) {
            ucs_status_t status = ucp_worker_arm(b().worker);
            if (status == UCS_OK) {
                pollfd p = {fd, POLLIN, 0};
                ASSERT_TRUE(is_self() ? poll(&p, 1, int(patience * 1000)) == 1
                                      : run_until({&a()}, [&] { return poll(&p, 1, 0) == 1; }))
                    << "nothing wakes it";
            } else {
                ASSERT_EQ(UCS_ERR_BUSY, status);
            }
            ucp_worker_progress(b().worker);
        }
        EXPECT_EQ(once, calls);
        EXPECT_EQ(UCS_OK, finish(r));
        EXPECT_EQ(UCS_OK, finish(s));
    }
}

UCP_TEST_OVER_ALL(ucp_am_asleep);

// ---- messages to an endpoint that its owner has closed

class ucp_am_closed : public ucp_am {
  protected:
    ucp_am_closed() { opts.config = {{"KEEPALIVE_INTERVAL", "0.5s"}}; }

    void SetUp() override
    {
        if (is_self()) {
            GTEST_SKIP() << "both ends are one";
        }
        ucp_am::SetUp();
        // With error handling, so that neither side waits for the other when that is gone.
        EXPECT_EQ(UCS_OK, finish(close_nb(ba)));
        ba = nullptr;
        EXPECT_EQ(UCS_OK, finish(close_nb(ab)));
        ab = nullptr;
        ASSERT_EQ(UCS_OK, create_ep(a(), b().address(), &ab, &seen_by_a));
        ASSERT_EQ(UCS_OK, create_ep(b(), a().address(), &ba, &seen_by_b));
        ping(a(), ab, b());
        ping(b(), ba, a());
        set();
    }
    void TearDown() override
    {
        if (ab) {
            EXPECT_EQ(UCS_OK, finish(close_nb(ab, true)));
            ab = nullptr;
        }
        ucp_am::TearDown();
    }
    void close_receiver()
    {
        ucs_status_ptr_t close = close_nb(ba);
        ba = nullptr;
        EXPECT_EQ(UCS_OK, finish(close));
    }

    errors seen_by_a, seen_by_b;
};

TEST_P(ucp_am_closed, b074_short_message_arrives_and_one_with_a_reply_endpoint_does_not)
{
    // On their way when the endpoint goes.
    void *s = send({}, pattern(8));
    void *with_reply = send({}, pattern(9), UCP_AM_SEND_FLAG_REPLY);
    close_receiver();
    EXPECT_TRUE(arrived());
    progress_for(0.02);
    EXPECT_EQ(1u, got.size());
    EXPECT_EQ(pattern(8), got.front().data);
    EXPECT_NE(UCS_INPROGRESS, finish(s));
    EXPECT_NE(UCS_INPROGRESS, finish(with_reply));
}

TEST_P(ucp_am_closed, b075_what_needs_an_answer_ends_all_the_same)
{
    std::vector<void *> sends;
    receive_inside = true;
    for (size_t n : {size_t(30000), size_t(1000000)}) {
        for (uint32_t flags : {uint32_t(UCP_AM_SEND_FLAG_EAGER), uint32_t(UCP_AM_SEND_FLAG_RNDV),
                               uint32_t(UCP_AM_SEND_FLAG_RNDV | UCP_AM_SEND_FLAG_REPLY)}) {
            sends.push_back(send({}, pattern(n), flags));
        }
    }
    close_receiver();
    for (void *s : sends) {
        EXPECT_NE(UCS_INPROGRESS, finish(s));
    }
    // What had not been sent when the endpoint went may have brought a new one with it.
    for (const message &m : got) {
        if (m.reply_ep) {
            EXPECT_EQ(UCS_OK, finish(flush_nb(m.reply_ep)));
        }
    }
}

// Its bytes have come, its callback has not.
TEST_P(ucp_am_closed, a_received_rendezvous_ends_with_the_endpoint_that_is_closed_by_force)
{
    answer = UCS_INPROGRESS;
    void *s = send({}, pattern(100000), UCP_AM_SEND_FLAG_RNDV);
    ASSERT_TRUE(arrived());
    int calls = 0;
    landing.assign(100000, 0);
    auto counts = [](void *, ucs_status_t, size_t, void *arg) { ++*static_cast<int *>(arg); };
    ucp_request_param_t p = called_later(counts, &calls);
    void *r =
        ucp_am_recv_data_nbx(b().worker, got.front().desc, landing.data(), landing.size(), &p);
    ASSERT_TRUE(UCS_PTR_IS_PTR(r));
    EXPECT_EQ(0, calls);
    void *close = close_nb(ba, true);
    ba = nullptr;
    EXPECT_EQ(UCS_OK, finish(close));
    EXPECT_EQ(UCS_ERR_CANCELED, finish(r));
    progress_for(0.02);
    EXPECT_EQ(1, calls);
    EXPECT_NE(UCS_INPROGRESS, finish(s));
}

UCP_TEST_OVER_ALL(ucp_am_closed);

} // namespace
