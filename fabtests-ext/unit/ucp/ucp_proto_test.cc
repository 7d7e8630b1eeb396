// SPDX-License-Identifier: BSD-3-Clause
//
// The protocols' error paths on a scripted lane: no room, late and reordered completions, failures.
// Every request completes exactly once, and not before the transport is done with its buffer.
#include "fabtests-ext/common/fake_uct.h"
#include "fabtests-ext/common/ucp_pair.h"
#include "ucp/connect/address.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto.h"

#include <deque>

namespace {

using namespace ucp_test;
constexpr ucp_tag_t full = ~ucp_tag_t(0);

struct counted {
    int calls = 0;
    ucs_status_t status = UCS_INPROGRESS;
    static void send(void *req, ucs_status_t status, void *arg)
    {
        auto *self = static_cast<counted *>(arg);
        ++self->calls;
        self->status = status;
        ucp_request_free(req);
    }
    static void recv(void *req, ucs_status_t status, const ucp_tag_recv_info_t *, void *arg)
    {
        send(req, status, arg);
    }
};

class ucp_proto : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        options o;
        o.tls = GetParam();
        a = std::make_unique<entity>(o);
        b = std::make_unique<entity>(o);
        ASSERT_EQ(UCS_OK, create_ep(*a, b->address(), &ab, &errors_a));
        ASSERT_EQ(UCS_OK, create_ep(*b, a->address(), &ba, &errors_b));
        ping(*a, ab, *b);
        ping(*b, ba, *a);
        lane = replace(ab);
        back = replace(ba);
    }

    void TearDown() override
    {
        for (ucp_ep_h ep : {ab, ba}) {
            if (ep) {
                ucs_status_ptr_t p = close_nb(ep, true);
                wait({a.get(), b.get()}, p);
            }
        }
        b.reset();
        a.reset();
    }

    // Outlives the requests, which TearDown may complete.
    counted &count() { return counters.emplace_back(); }

    // Puts a scripted endpoint in front of the active-message lane.
    fake_uct::endpoint *replace(ucp_ep_h ep)
    {
        ucp::lane &l = ep->lanes[ep->am_lane_index];
        fakes.push_back(std::make_unique<fake_uct::endpoint>(l.ep));
        l.ep = fakes.back().get();
        ep->am_ep = l.ep;
        return fakes.back().get();
    }

    // The thresholds of the contexts from now on.
    void choose(size_t rndv, size_t zcopy = ucp::SIZE_AUTO)
    {
        for (ucp_ep_h ep : {ab, ba}) {
            ucp::config &config = ep->worker->context->config;
            config.rndv_thresh = {rndv, rndv};
            config.zcopy_thresh = zcopy;
            reconfigure(ep);
        }
    }

    void reconfigure(ucp_ep_h ep)
    {
        configs.push_back(std::make_unique<ucp::ep_config>(*ep, ep->config->key.max_message));
        ep->config = configs.back().get();
    }

    void *send(const std::vector<char> &data, counted *c, ucp_tag_t tag = 1, bool sync = false)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.cb.send = counted::send;
        p.user_data = c;
        return sync ? ucp_tag_send_sync_nbx(ab, data.data(), data.size(), tag, &p)
                    : ucp_tag_send_nbx(ab, data.data(), data.size(), tag, &p);
    }

    void *recv(std::vector<char> &data, counted *c, ucp_tag_t tag = 1)
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
        p.cb.recv = counted::recv;
        p.user_data = c;
        return ucp_tag_recv_nbx(b->worker, data.data(), data.size(), tag, full, &p);
    }

    bool until(const std::function<bool()> &done) { return run_until({a.get(), b.get()}, done); }
    void progress() { run_for({a.get(), b.get()}, 0.01); }

    std::deque<counted> counters;
    std::unique_ptr<entity> a, b;
    ucp_ep_h ab = nullptr, ba = nullptr;
    errors errors_a, errors_b;
    std::vector<std::unique_ptr<fake_uct::endpoint>> fakes;
    std::vector<std::unique_ptr<ucp::ep_config>> configs;
    fake_uct::endpoint *lane = nullptr, *back = nullptr;
};

TEST_P(ucp_proto, an_address_whose_messages_have_no_room_for_headers_is_refused)
{
    size_t &most = a->worker->ifaces.front()->attr.cap.am.max_bcopy;
    size_t before = most;
    ucp::unpacked_address out;
    most = ucp::LEAST_MAX_MESSAGE;
    std::vector<uint8_t> good = ucp::pack_address(*a->worker, false);
    EXPECT_EQ(UCS_OK, ucp::unpack_address(good.data(), good.size(), &out));
    EXPECT_EQ(most, out.resources.front().max_message);
    most = ucp::LEAST_MAX_MESSAGE - 1;
    std::vector<uint8_t> bad = ucp::pack_address(*a->worker, false);
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, ucp::unpack_address(bad.data(), bad.size(), &out));
    most = before;
}

TEST_P(ucp_proto, sends_that_find_no_room_keep_their_order)
{
    lane->refuse_after(0);
    std::vector<std::vector<char>> outs, ins;
    std::vector<counted> sent(40), got(40);
    for (size_t i = 0; i < 40; ++i) {
        outs.push_back(pattern(i % 4 == 3   ? 20000
                               : i % 4 == 2 ? 200000
                                            : i * 10,
                               static_cast<unsigned>(i)));
        ins.emplace_back(outs[i].size());
    }
    for (size_t i = 0; i < 40; ++i) {
        ASSERT_TRUE(UCS_PTR_IS_PTR(send(outs[i], &sent[i]))) << "queued";
    }
    progress();
    for (const counted &c : sent) {
        EXPECT_EQ(0, c.calls);
    }
    for (size_t i = 0; i < 40; ++i) {
        recv(ins[i], &got[i]);
    }
    lane->release();
    ASSERT_TRUE(until([&] { return got[39].calls == 1 && sent[39].calls == 1; }));
    ASSERT_TRUE(until(
        [&] { return std::all_of(got.begin(), got.end(), [](auto &c) { return c.calls == 1; }); }));
    for (size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(UCS_OK, got[i].status);
        EXPECT_TRUE(outs[i] == ins[i]) << i;
    }
    EXPECT_TRUE(until([&] {
        return std::all_of(sent.begin(), sent.end(), [](auto &c) { return c.calls == 1; });
    }));
}

TEST_P(ucp_proto, fast_completion_copies_what_would_hold_the_buffer)
{
    choose(ucp::SIZE_INF, 1000);
    lane->hold_completions(true);
    auto out = pattern(20000);
    auto on_message = [](void *arg, const void *, size_t, void *, size_t,
                         const ucp_am_recv_param_t *) {
        ++*static_cast<int *>(arg);
        return UCS_OK;
    };
    int arrived = 0;
    ASSERT_EQ(UCS_OK, set_am_handler(b->worker, 1, on_message, &arrived));
    for (bool fast : {true, false}) {
        ucp_request_param_t p = {};
        p.op_attr_mask = fast ? UCP_OP_ATTR_FLAG_FAST_CMPL : 0;
        void *sent[] = {ucp_tag_send_nbx(ab, out.data(), out.size(), 1, &p),
                        ucp_am_send_nbx(ab, 1, nullptr, 0, out.data(), out.size(), &p)};
        std::vector<char> in(out.size());
        counted got;
        recv(in, &got);
        int before = arrived;
        ASSERT_TRUE(until([&] { return got.calls == 1 && arrived > before; }));
        EXPECT_EQ(out, in);
        for (void *s : sent) {
            EXPECT_EQ(fast, s == nullptr || ucp_request_is_completed(s));
        }
        EXPECT_TRUE(until([&] {
            while (lane->held() != 0) {
                lane->complete(0);
            }
            return std::all_of(std::begin(sent), std::end(sent),
                               [](void *s) { return s == nullptr || ucp_request_is_completed(s); });
        }));
        for (void *s : sent) {
            EXPECT_EQ(UCS_OK, wait({a.get(), b.get()}, s));
        }
    }
}

// Whether they fit into one piece is not known while the endpoint has no lanes.
TEST_P(ucp_proto, synchronous_sends_posted_before_the_lanes_arrive_whole)
{
    choose(ucp::SIZE_INF);
    const size_t room = ab->limits().max_bcopy;
    for (size_t length = room - 64; length <= room; length += 4) {
        auto out = pattern(length), in = std::vector<char>(length);
        counted &s = count(), &r = count();
        recv(in, &r);
        const ucp::ep_config *chosen = ab->config;
        ab->config = &ucp::no_lanes;
        ab->sendable = false;
        ab->control->draining = true;
        ASSERT_TRUE(UCS_PTR_IS_PTR(send(out, &s, 1, true)));
        ab->config = chosen;
        ab->control->draining = false;
        ucp::ep_drain(ab);
        ASSERT_TRUE(until([&] { return s.calls == 1 && r.calls == 1; })) << length;
        EXPECT_EQ(UCS_OK, s.status);
        EXPECT_EQ(UCS_OK, r.status);
        EXPECT_EQ(out, in);
    }
}

TEST_P(ucp_proto, fragments_stop_and_go_on_where_the_lane_filled)
{
    for (size_t zcopy : {ucp::SIZE_INF, size_t(1000)}) {
        choose(ucp::SIZE_INF, zcopy);
        for (unsigned room = 0; room < 8; ++room) {
            auto out = pattern(60000, room), in = std::vector<char>(60000);
            counted &s = count(), &r = count();
            recv(in, &r);
            lane->refuse_after(room);
            ASSERT_TRUE(UCS_PTR_IS_PTR(send(out, &s)));
            progress();
            EXPECT_EQ(0, s.calls);
            lane->release();
            ASSERT_TRUE(until([&] { return s.calls == 1 && r.calls == 1; }));
            EXPECT_EQ(UCS_OK, s.status);
            EXPECT_EQ(UCS_OK, r.status);
            EXPECT_TRUE(in == out);
        }
    }
}

TEST_P(ucp_proto, zcopy_completes_once_after_all_pieces_in_any_order)
{
    choose(ucp::SIZE_INF, 1000);
    for (bool backwards : {false, true}) {
        for (ucs_status_t one : {UCS_OK, UCS_ERR_IO_ERROR}) {
            auto out = pattern(50000), in = std::vector<char>(50000);
            counted &s = count(), &r = count();
            recv(in, &r);
            lane->hold_completions(true);
            ASSERT_TRUE(UCS_PTR_IS_PTR(send(out, &s)));
            ASSERT_TRUE(until([&] { return r.calls == 1; }));
            EXPECT_TRUE(in == out);
            ASSERT_GT(lane->held(), 1u);
            bool first = true;
            while (lane->held() > 0) {
                EXPECT_EQ(0, s.calls);
                lane->complete(backwards ? lane->held() - 1 : 0, first ? one : UCS_OK);
                first = false;
            }
            EXPECT_EQ(1, s.calls);
            EXPECT_EQ(one, s.status);
        }
    }
}

TEST_P(ucp_proto, b193_failed_ep_completes_a_zcopy_send_only_when_the_lane_let_go)
{
    choose(ucp::SIZE_INF, 1000);
    auto out = pattern(50000);
    counted &s = count();
    lane->hold_completions(true);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send(out, &s)));
    ab->set_failed(UCS_ERR_ENDPOINT_TIMEOUT);
    ASSERT_TRUE(until([&] { return errors_a.count == 1; }));
    EXPECT_EQ(0, s.calls) << "the transport may still read the buffer";
    while (lane->held() > 0) {
        lane->complete(0, UCS_ERR_CANCELED);
    }
    EXPECT_EQ(1, s.calls);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, s.status);
    EXPECT_EQ(1, errors_a.count);
}

TEST_P(ucp_proto, what_the_end_of_a_lane_cancels_has_the_error_of_the_endpoint)
{
    choose(ucp::SIZE_INF, 1000);
    auto out = pattern(50000);
    counted &s = count();
    lane->hold_completions(true);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send(out, &s)));
    ab->set_failed(UCS_ERR_ENDPOINT_TIMEOUT);
    while (lane->held() > 0) { // before the endpoint's requests are aborted
        lane->complete(0, UCS_ERR_CANCELED);
    }
    EXPECT_EQ(1, s.calls);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, s.status);
    ASSERT_TRUE(until([&] { return errors_a.count == 1; }));
    EXPECT_EQ(1, s.calls);
}

TEST_P(ucp_proto, failed_ep_aborts_what_waits_once)
{
    lane->refuse_after(0);
    counted s[4];
    auto small = pattern(8), large = pattern(1000000), middle = pattern(20000);
    send(small, &s[0]);
    send(large, &s[1]);
    send(middle, &s[2]);
    send(small, &s[3], 1, true);
    ab->set_failed(UCS_ERR_CONNECTION_RESET);
    EXPECT_TRUE(until(
        [&] { return s[0].calls && s[1].calls && s[2].calls && s[3].calls && errors_a.count; }));
    progress();
    for (const counted &c : s) {
        EXPECT_EQ(1, c.calls);
        EXPECT_EQ(UCS_ERR_CONNECTION_RESET, c.status);
    }
    EXPECT_EQ(1, errors_a.count);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, UCS_PTR_STATUS(send(small, &s[0]))) << "b188";
}

TEST_P(ucp_proto, b193_sender_of_an_unmatched_rendezvous_completes_when_the_peer_dies)
{
    auto out = pattern(1000000), small = pattern(8);
    counted &s = count(), &sync = count();
    ASSERT_TRUE(UCS_PTR_IS_PTR(send(out, &s, 5)));
    ASSERT_TRUE(UCS_PTR_IS_PTR(send(small, &sync, 6, true)));
    progress();
    EXPECT_EQ(0, s.calls + sync.calls);
    ab->set_failed(UCS_ERR_CONNECTION_RESET);
    EXPECT_TRUE(until([&] { return s.calls == 1 && sync.calls == 1; }));
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, s.status);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, sync.status);
}

TEST_P(ucp_proto, b193_receiver_of_a_rendezvous_completes_once_when_the_sender_dies)
{
    auto out = pattern(1000000), in = std::vector<char>(1000000);
    back->fail_gets_with(UCS_ERR_IO_ERROR);
    back->hold_completions(true);
    counted &s = count(), &r = count();
    recv(in, &r, 5);
    ASSERT_TRUE(UCS_PTR_IS_PTR(send(out, &s, 5)));
    if (!until([&] { return back->held() > 0 || r.calls; }) || r.calls) {
        GTEST_SKIP() << "this lane does not get";
    }
    ba->set_failed(UCS_ERR_ENDPOINT_TIMEOUT);
    ASSERT_TRUE(until([&] { return errors_b.count == 1; }));
    EXPECT_EQ(0, r.calls) << "the transport may still write the buffer";
    while (back->held() > 0) {
        back->complete(0, UCS_ERR_CANCELED);
    }
    EXPECT_EQ(1, r.calls);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, r.status);
}

TEST_P(ucp_proto, the_scheme_says_who_moves_the_data_of_a_rendezvous)
{
    for (auto scheme : {ucp::rndv_scheme::auto_, ucp::rndv_scheme::get_zcopy,
                        ucp::rndv_scheme::put_zcopy, ucp::rndv_scheme::am}) {
        bool reads = scheme == ucp::rndv_scheme::auto_ || scheme == ucp::rndv_scheme::get_zcopy;
        ab->worker->context->config.scheme = scheme;
        reconfigure(ab);
        auto out = pattern(1000000), in = std::vector<char>(1000000);
        counted &s = count(), &r = count();
        unsigned before = back->gets();
        recv(in, &r);
        send(out, &s);
        ASSERT_TRUE(until([&] { return s.calls == 1 && r.calls == 1; }));
        EXPECT_EQ(out, in);
        EXPECT_EQ(reads, back->gets() > before);
    }
}

TEST_P(ucp_proto, a_rendezvous_offers_the_users_registration_and_makes_none_beside_it)
{
    auto out = pattern(200000), in = std::vector<char>(out.size());
    ucp_mem_map_params_t map = {};
    map.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
    map.address = out.data();
    map.length = out.size();
    ucp_mem_h users = nullptr;
    ASSERT_EQ(UCS_OK, ucp_mem_map(a->context, &map, &users));
    for (ucp_mem_h memh : {users, ucp_mem_h(nullptr)}) {
        ucp_request_param_t p = {};
        p.op_attr_mask = memh ? UCP_OP_ATTR_FIELD_MEMH : 0;
        p.memh = memh;
        void *s = ucp_tag_send_nbx(ab, out.data(), out.size(), 1, &p);
        ASSERT_TRUE(UCS_PTR_IS_PTR(s));
        const auto &offered = static_cast<ucp::data_request *>(ucp_request::from_user(s))->memory;
        uct_mem_h own = memh ? memh->memh[ab->lanes[ab->rma_lane_index()].md_index] : nullptr;
        EXPECT_NE(nullptr, offered.zmemh);
        EXPECT_EQ(memh != nullptr, offered.zmemh == own);
        EXPECT_EQ(memh == nullptr, offered.reg.memh == offered.zmemh);
        counted &r = count();
        recv(in, &r);
        EXPECT_EQ(UCS_OK, wait({a.get(), b.get()}, s));
        EXPECT_TRUE(until([&] { return r.calls == 1; }));
        EXPECT_EQ(out, in);
    }
    EXPECT_EQ(UCS_OK, ucp_mem_unmap(a->context, users));
}

TEST_P(ucp_proto, rendezvous_falls_back_to_fragments_when_get_fails)
{
    for (bool late : {false, true}) {
        auto out = pattern(1000000), in = std::vector<char>(1000000);
        back->fail_gets_with(UCS_ERR_IO_ERROR);
        back->hold_completions(late);
        counted &s = count(), &r = count();
        recv(in, &r);
        send(out, &s);
        if (late) {
            until([&] { return back->held() > 0 || r.calls; });
            while (back->held() > 0) {
                back->complete(0, UCS_ERR_IO_ERROR);
            }
        }
        ASSERT_TRUE(until([&] { return s.calls == 1 && r.calls == 1; }));
        EXPECT_EQ(UCS_OK, s.status);
        EXPECT_EQ(UCS_OK, r.status);
        EXPECT_TRUE(in == out);
    }
}

TEST_P(ucp_proto, answers_that_find_no_room_are_sent_later)
{
    auto out = pattern(1000000), in = std::vector<char>(1000000);
    counted &s = count(), &r = count();
    back->refuse_after(0);
    recv(in, &r);
    send(out, &s);
    progress();
    EXPECT_EQ(0, s.calls);
    back->release();
    ASSERT_TRUE(until([&] { return s.calls == 1 && r.calls == 1; }));
    EXPECT_EQ(UCS_OK, s.status);
    EXPECT_TRUE(in == out);
}

TEST_P(ucp_proto, stale_and_damaged_messages_are_dropped_and_counted)
{
    uint64_t before = b->worker->stale_messages;
    const ucp::wire::answer_hdr answer = {ab->remote_id, 0x1234500000077ull, UCS_OK};
    for (uint8_t id : {ucp::AM_ID_ACK, ucp::AM_ID_RNDV_ATS, ucp::AM_ID_RNDV_DATA}) {
        EXPECT_EQ(UCS_OK, uct_ep_am_short(lane, id, answer.ep, &answer.req, 16));
    }
    EXPECT_EQ(UCS_OK, uct_ep_am_short(lane, ucp::AM_ID_RNDV_RTS, 0, nullptr, 0));
    EXPECT_EQ(UCS_OK, uct_ep_am_short(lane, ucp::AM_ID_TAG_FIRST, 0, nullptr, 0));
    EXPECT_EQ(UCS_OK, uct_ep_am_short(lane, ucp::AM_ID_RMA_PUT, 1, nullptr, 0));
    const uint64_t too_long[2] = {0xffffffff00000000ull, 0};
    EXPECT_EQ(UCS_OK, uct_ep_am_short(lane, ucp::AM_ID_AM_SINGLE, too_long[0], nullptr, 0));
    EXPECT_TRUE(until([&] { return b->worker->stale_messages - before >= 7; }));
    ping(*a, ab, *b);
}

UCP_TEST_OVER(ucp_proto, "sm", "ofi_shm");

} // namespace
