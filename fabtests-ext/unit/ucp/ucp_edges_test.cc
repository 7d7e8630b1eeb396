// SPDX-License-Identifier: BSD-3-Clause
// Messages of a peer that lies about lengths and offsets: each such field of every message gets the
// values at its edges. What cannot be true is dropped and counted, nothing is written outside of
// what the message may fill, and the two sides go on.
#include "fabtests-ext/common/ucp_pair.h"
#include "ucp/am/am.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto.h"

#include <memory>
#include <ucs/debug/log_def.h>
#include <utility>

namespace {

using namespace ucp_test;
constexpr ucp_tag_t full = ~ucp_tag_t(0);
constexpr uint64_t stray_source = 0x5eed;
constexpr size_t piece = 8000; // bytes behind a header: more than a pooled descriptor has room for

std::vector<uint64_t> edges(uint64_t limit)
{
    return {0,
            1,
            limit - 1,
            limit,
            limit + 1,
            uint64_t(1) << 31,
            uint64_t(1) << 32,
            ucp::wire::max_message - 1,
            ucp::wire::max_message,
            ucp::wire::max_message + 1,
            uint64_t(1) << 63,
            ~uint64_t(0) - 200,
            ~uint64_t(0) - 1,
            ~uint64_t(0)};
}

class ucp_edges : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        options o;
        o.tls = GetParam();
        o.features |= UCP_FEATURE_STREAM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
        a = std::make_unique<entity>(o);
        b = std::make_unique<entity>(o);
        ASSERT_EQ(UCS_OK, create_ep(*a, b->address(), &ab));
        ASSERT_EQ(UCS_OK, create_ep(*b, a->address(), &ba));
        ping(*a, ab, *b);
        ping(*b, ba, *a);
    }

    void TearDown() override
    {
        ping(*a, ab, *b);
        ping(*b, ba, *a);
        for (ucp_ep_h ep : {ab, ba}) {
            wait({a.get(), b.get()}, close_nb(ep, true));
        }
        b.reset();
        a.reset();
    }

    // `to` gets a message that ends where its memory ends.
    template <class Hdr>
    void receive(entity &to, uint8_t id, const Hdr &hdr, size_t length = 0)
    {
        auto message = std::make_unique<char[]>(sizeof(hdr) + length);
        memcpy(message.get(), &hdr, sizeof(hdr));
        fill_pattern(message.get() + sizeof(hdr), length, 1);
        to.worker->inside_progress = true;
        for (size_t i = 0; i < ucp::am_handler_count; ++i) {
            const ucp::am_handler_entry &row = ucp::am_handlers[i];
            if (row.id == id) {
                EXPECT_EQ(UCS_OK, row.fn(to.worker, message.get(), sizeof(hdr) + length, 0));
            }
        }
        to.worker->inside_progress = false;
        a->progress();
        b->progress();
    }

    // The messages that `to` has dropped while `act` ran.
    template <class Act>
    static uint64_t dropped(const entity &to, Act &&act)
    {
        uint64_t before = to.worker->stale_messages;
        act();
        return to.worker->stale_messages - before;
    }

    // Of tag 7; always a request.
    ucp_request *recv(void *buffer, size_t count, ucp_datatype_t dt = ucp_dt_make_contig(1))
    {
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        p.datatype = dt;
        return ucp_request::from_user(ucp_tag_recv_nbx(b->worker, buffer, count, 7, full, &p));
    }

    void give_up(ucp_request *req)
    {
        ucp_request_cancel(b->worker, req->user());
        if (ucp_request_check_status(req->user()) == UCS_INPROGRESS) {
            ucp::request_unlist(req);
            req->abort(req, UCS_ERR_CANCELED);
        }
        ucp_request_free(req->user());
    }

    // Takes and frees what was kept of tag messages.
    void take_kept()
    {
        ucp_tag_recv_info_t info;
        char some[16];
        while (ucp_tag_message_h m = ucp_tag_probe_nb(b->worker, 0, 0, 1, &info)) {
            EXPECT_LE(info.length, ucp::wire::max_message);
            ucp_request_param_t p = {};
            void *r = ucp_tag_msg_recv_nbx(b->worker, some, sizeof(some), m, &p);
            if (UCS_PTR_IS_PTR(r)) {
                give_up(ucp_request::from_user(r));
            }
        }
    }

    void set_handlers()
    {
        auto on_message = [](void *, const void *, size_t, void *, size_t length,
                             const ucp_am_recv_param_t *) {
            EXPECT_LE(length, ucp::wire::max_message);
            return UCS_OK;
        };
        ASSERT_EQ(UCS_OK, set_am_handler(b->worker, 1, on_message));
        auto old = [](void *, void *, size_t, ucp_ep_h, unsigned) { return UCS_OK; };
        ASSERT_EQ(UCS_OK, ucp_worker_set_am_handler(b->worker, 2, old, nullptr, 0));
    }

    std::unique_ptr<entity> a, b;
    ucp_ep_h ab = nullptr, ba = nullptr;
    uint64_t next_id = 0;
};

// No message that announces less than it brings or more than there can be is kept.
TEST_P(ucp_edges, totals_of_fragmented_messages)
{
    set_handlers();
    for (uint64_t total : edges(piece)) {
        bool bad = total < piece || total > ucp::wire::max_message;
        const ucp::wire::tag_first_hdr tag = {7, total, stray_source, ++next_id, ab->remote_id, 0};
        EXPECT_EQ(bad, dropped(*b, [&] { receive(*b, ucp::AM_ID_TAG_FIRST, tag, piece); }))
            << total;
        std::vector<char> in(piece);
        ucp_request *r = recv(in.data(), in.size());
        receive(*b, ucp::AM_ID_TAG_FIRST, tag, piece); // the same again, or one that matches
        give_up(r);
        const ucp::wire::am_first_hdr am = {
            {1, 0, 0}, total, stray_source, ++next_id, ab->remote_id};
        EXPECT_EQ(bad, dropped(*b, [&] { receive(*b, ucp::AM_ID_AM_FIRST, am, piece); })) << total;
    }
    take_kept();
}

TEST_P(ucp_edges, offsets_of_fragments)
{
    const uint64_t total = 3 * piece;
    for (uint64_t offset : edges(piece)) {
        const uint64_t id = ++next_id;
        bool bad = offset != piece;
        std::vector<char> in(total);
        for (bool matched : {false, true}) {
            ucp_request *r = matched ? recv(in.data(), in.size()) : nullptr;
            const ucp::wire::tag_first_hdr first = {
                7, total, stray_source, id + 1000 * matched, ab->remote_id, 0};
            receive(*b, ucp::AM_ID_TAG_FIRST, first, piece);
            EXPECT_EQ(bad,
                      dropped(*b,
                              [&] {
                                  receive(*b, ucp::AM_ID_TAG_MIDDLE,
                                          ucp::wire::frag_hdr{stray_source, first.msg_id, offset},
                                          piece);
                              }))
                << offset;
            if (r) {
                give_up(r);
            } else {
                take_kept();
            }
        }
        const ucp::wire::am_first_hdr am = {{1, 0, 0}, total, stray_source + 1, id, ab->remote_id};
        receive(*b, ucp::AM_ID_AM_FIRST, am, piece);
        EXPECT_EQ(bad, dropped(*b,
                               [&] {
                                   receive(*b, ucp::AM_ID_AM_MIDDLE,
                                           ucp::wire::frag_hdr{stray_source + 1, id, offset},
                                           piece);
                               }))
            << offset;
    }
}

TEST_P(ucp_edges, lengths_of_user_headers)
{
    set_handlers();
    for (uint64_t length : edges(piece)) {
        const ucp::wire::am_hdr am = {1, 0, static_cast<uint32_t>(length)};
        bool bad = am.header_len > piece;
        EXPECT_EQ(bad, dropped(*b, [&] { receive(*b, ucp::AM_ID_AM_SINGLE, am, piece); }));
        struct {
            ucp::wire::am_hdr am;
            uint64_t ep;
        } reply = {am, ab->remote_id};
        EXPECT_EQ(bad, dropped(*b, [&] { receive(*b, ucp::AM_ID_AM_REPLY, reply, piece); }));
        const ucp::wire::am_first_hdr first = {am, piece, stray_source, ++next_id, ab->remote_id};
        EXPECT_EQ(bad, dropped(*b, [&] { receive(*b, ucp::AM_ID_AM_FIRST, first, piece); }));
    }
}

// The sender of what cannot be received is told so.
TEST_P(ucp_edges, sizes_of_rendezvous)
{
    set_handlers();
    std::vector<char> in(piece), out(piece);
    for (uint64_t size : edges(piece)) {
        bool bad = size > ucp::wire::max_message;
        for (int what = 0; what < 4; ++what) { // tag kept, tag matched, handlers of both kinds
            ucp_request *r = what == 1 ? recv(in.data(), in.size()) : nullptr;
            ucp_request_param_t p = {};
            p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
            p.flags = UCP_AM_SEND_FLAG_RNDV;
            void *s = ucp_am_send_nbx(ab, 3, nullptr, 0, out.data(), out.size(), &p);
            ASSERT_TRUE(UCS_PTR_IS_PTR(s));
            ucp::wire::rts_hdr rts = {};
            rts.kind = what < 2 ? ucp::wire::RTS_TAG : ucp::wire::RTS_AM;
            rts.am_id = static_cast<uint16_t>(what - 1);
            rts.tag = 7;
            rts.ep = ab->remote_id;
            rts.req = ucp_request::from_user(s)->id;
            rts.size = size;
            EXPECT_EQ(bad, dropped(*b, [&] { receive(*b, ucp::AM_ID_RNDV_RTS, rts); }))
                << what << " " << size;
            if (bad) {
                EXPECT_TRUE(
                    run_until({a.get()},
                              [&] { return ucp_request_check_status(s) == UCS_ERR_EXCEEDS_LIMIT; }))
                    << what << " " << size;
            }
            if (r) {
                give_up(r);
            }
            take_kept();
            wait({a.get(), b.get()}, s);
        }
    }
}

TEST_P(ucp_edges, lengths_inside_a_rendezvous_and_its_answers)
{
    set_handlers();
    std::vector<char> out(piece);
    for (uint64_t size : edges(piece)) {
        ucp::wire::rts_hdr rts = {};
        rts.kind = ucp::wire::RTS_AM;
        rts.am_id = 1;
        rts.ep = ab->remote_id;
        for (uint32_t *field : {&rts.rkey_len, &rts.header_len}) {
            rts.rkey_len = rts.header_len = 0;
            *field = static_cast<uint32_t>(size);
            EXPECT_EQ(*field > 16, dropped(*b, [&] { receive(*b, ucp::AM_ID_RNDV_RTS, rts, 16); }))
                << size;
        }
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        p.flags = UCP_AM_SEND_FLAG_RNDV;
        void *s = ucp_am_send_nbx(ab, 1, nullptr, 0, out.data(), out.size(), &p);
        ASSERT_TRUE(UCS_PTR_IS_PTR(s));
        const ucp::wire::rtr_hdr rtr = {ba->remote_id, ucp_request::from_user(s)->id, 1, size};
        EXPECT_EQ(size > piece, dropped(*a, [&] { receive(*a, ucp::AM_ID_RNDV_RTR, rtr); }))
            << size;
        EXPECT_EQ(UCS_OK, wait({a.get(), b.get()}, s));
        while (ucp_worker_progress(b->worker) != 0) { // what the RTR asked for comes to nothing
        }
    }
}

TEST_P(ucp_edges, offsets_of_pushed_rendezvous_data)
{
    generic_type generic;
    for (ucp_datatype_t dt : {ucp_dt_make_contig(1), generic.dt}) {
        for (uint64_t offset : edges(piece)) {
            std::vector<char> in(2 * piece);
            ucp_request *r = recv(in.data(), in.size(), dt);
            ucp::wire::rts_hdr rts = {};
            rts.kind = ucp::wire::RTS_TAG;
            rts.tag = 7;
            rts.ep = ab->remote_id;
            rts.size = piece;
            receive(*b, ucp::AM_ID_RNDV_RTS, rts);
            ASSERT_NE(0u, r->id);
            receive(*b, ucp::AM_ID_RNDV_DATA, ucp::wire::data_hdr{ab->remote_id, r->id, offset},
                    piece);
            EXPECT_EQ(offset <= piece ? UCS_OK : UCS_ERR_MESSAGE_TRUNCATED,
                      ucp_request_check_status(r->user()))
                << offset;
            ucp_request_free(r->user());
        }
    }
}

// What a peer has sent of a message ends with the peer.
TEST_P(ucp_edges, parts_of_messages_end_with_their_sender)
{
    set_handlers();
    const ucp::wire::tag_first_hdr tag = {7, 3 * piece, stray_source, ++next_id, ab->remote_id, 0};
    const ucp::wire::am_first_hdr am = {
        {1, 0, 100}, 3 * piece, stray_source, ++next_id, ab->remote_id};
    receive(*b, ucp::AM_ID_TAG_FIRST, tag, piece);
    receive(*b, ucp::AM_ID_AM_FIRST, am, piece);
    EXPECT_EQ(2u, b->worker->proto->partials.size());
    ba->set_failed(UCS_ERR_ENDPOINT_TIMEOUT);
    b->progress();
    EXPECT_EQ(0u, b->worker->proto->partials.size());
    std::vector<char> in(3 * piece);
    ucp_tag_recv_info_t info;
    EXPECT_NE(nullptr, ucp_tag_probe_nb(b->worker, 7, full, 0, &info));
    ucp_request *r = recv(in.data(), in.size());
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, ucp_request_check_status(r->user()));
    give_up(r);
    EXPECT_EQ(1u, dropped(*b, [&] { receive(*b, ucp::AM_ID_TAG_FIRST, tag, piece); }));
    EXPECT_EQ(1u, dropped(*b, [&] { receive(*b, ucp::AM_ID_AM_FIRST, am, piece); }));
    wait({a.get(), b.get()}, close_nb(ba));
    ASSERT_EQ(UCS_OK, create_ep(*b, a->address(), &ba));
    wait({a.get(), b.get()}, close_nb(ab));
    ASSERT_EQ(UCS_OK, create_ep(*a, b->address(), &ab));
}

TEST_P(ucp_edges, messages_of_features_that_are_not_enabled_are_not_kept)
{
    options o;
    o.tls = GetParam();
    o.features = UCP_FEATURE_RMA;
    entity c(o);
    ucp_ep_h ac = nullptr, ca = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(*a, c.address(), &ac));
    ASSERT_EQ(UCS_OK, create_ep(c, a->address(), &ca));
    std::vector<char> out(piece);
    ucp_request_param_t p = {};
    const std::initializer_list<entity *> both = {a.get(), &c};
    for (size_t length : {size_t(8), piece}) {
        EXPECT_EQ(UCS_OK, wait(both, ucp_tag_send_nbx(ac, out.data(), length, 7, &p)));
        EXPECT_EQ(UCS_OK, wait(both, ucp_am_send_nbx(ac, 1, nullptr, 0, out.data(), length, &p)));
        EXPECT_EQ(UCS_OK, wait(both, ucp_stream_send_nbx(ac, out.data(), length, &p)));
    }
    EXPECT_TRUE(run_until(both, [&] { return c.worker->stale_messages >= 6; }));
    EXPECT_EQ(nullptr, c.worker->proto->tags.first_msg());
    EXPECT_EQ(nullptr, ca->stream);
    void *x = close_nb(ac), *y = close_nb(ca);
    wait(both, x);
    wait(both, y);
}

TEST_P(ucp_edges, what_a_peer_repeats_does_not_fill_the_log)
{
    static unsigned lines = 0;
    ucs_log_push_handler([](auto...) { return ++lines, UCS_LOG_FUNC_RC_STOP; });
    for (unsigned i = 0; i < 1000; ++i) { // puts that are refused
        receive(*b, ucp::AM_ID_RMA_PUT, ucp::wire::put_hdr{~uint64_t(0), 1, 0}, 8);
    }
    ucs_log_pop_handler();
    EXPECT_EQ(16u, std::exchange(lines, 0)); // the first ten, then 16, 32 ... 512
}

// A third party has an endpoint to the same worker and was told ids that are not its own.
TEST_P(ucp_edges, answers_of_another_peer_are_dropped)
{
    options o;
    o.tls = GetParam();
    entity c(o);
    ucp_ep_h ca = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(c, a->address(), &ca));
    const std::initializer_list<entity *> all = {a.get(), b.get(), &c};
    char word[8];
    void *r = recv_nb(*a, word, sizeof(word), 9);
    void *s = send_nb(ca, "a word", 7, 9);
    EXPECT_EQ(UCS_OK, wait(all, r));
    EXPECT_EQ(UCS_OK, wait(all, s));
    std::vector<char> out(1 << 20);
    ucp_request_param_t p = {};
    void *sync = ucp_tag_send_sync_nbx(ab, out.data(), 8, 7, &p);
    void *rndv = ucp_tag_send_nbx(ab, out.data(), out.size(), 8, &p);
    ASSERT_TRUE(UCS_PTR_IS_PTR(sync) && UCS_PTR_IS_PTR(rndv));
    run_for(all, 0.01);
    const uint64_t sync_id = ucp_request::from_user(sync)->id;
    const uint64_t rndv_id = ucp_request::from_user(rndv)->id;
    EXPECT_EQ(
        3u, dropped(*a, [&] {
            receive(*a, ucp::AM_ID_ACK, ucp::wire::answer_hdr{ca->remote_id, sync_id, 0});
            receive(*a, ucp::AM_ID_RNDV_ATS, ucp::wire::answer_hdr{ca->remote_id, rndv_id, 0});
            receive(*a, ucp::AM_ID_RNDV_RTR, ucp::wire::rtr_hdr{ca->remote_id, rndv_id, 1, 100});
        }));
    EXPECT_EQ(UCS_INPROGRESS, ucp_request_check_status(sync));
    EXPECT_EQ(UCS_INPROGRESS, ucp_request_check_status(rndv));
    std::vector<char> in(out.size());
    ucp_request *first = recv(in.data(), 8);
    void *second = recv_nb(*b, in.data(), in.size(), 8);
    EXPECT_EQ(UCS_OK, wait(all, first->user()));
    EXPECT_EQ(UCS_OK, wait(all, second));
    EXPECT_EQ(UCS_OK, wait(all, sync));
    EXPECT_EQ(UCS_OK, wait(all, rndv));
    wait(all, close_nb(ca));
}

// ---- keys whose fields do not fit together

struct key_header { // see rkey.cc
    uint16_t magic, length;
    uint32_t check, list_check, reserved;
    uint64_t memh_id, base, size;
};

uint32_t fnv(const void *data, size_t length, uint32_t h = 2166136261u)
{
    for (size_t i = 0; i < length; ++i) {
        h = (h ^ static_cast<const uint8_t *>(data)[i]) * 16777619u;
    }
    return h;
}

class ucp_edges_key : public ucp_edges {
  protected:
    void SetUp() override
    {
        ucp_edges::SetUp();
        ucp_mem_map_params_t map = {};
        map.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS;
        map.length = 65536;
        map.flags = UCP_MEM_MAP_ALLOCATE;
        ASSERT_EQ(UCS_OK, ucp_mem_map(b->context, &map, &memh));
        void *packed = nullptr;
        size_t size = 0;
        ASSERT_EQ(UCS_OK, ucp_rkey_pack(b->context, memh, &packed, &size));
        key.assign(static_cast<char *>(packed), static_cast<char *>(packed) + size);
        ucp_rkey_buffer_release(packed);
        memcpy(&header, key.data(), sizeof(header));
    }

    void TearDown() override
    {
        EXPECT_EQ(UCS_OK, ucp_mem_unmap(b->context, memh));
        ucp_edges::TearDown();
    }

    // The key as `header` has it now.
    ucp_rkey_h unpack()
    {
        header.list_check = fnv(key.data() + sizeof(header), header.length - sizeof(header));
        header.check = fnv(&header.list_check, sizeof(header) - offsetof(key_header, list_check),
                           fnv(&header.magic, offsetof(key_header, check)));
        memcpy(key.data(), &header, sizeof(header));
        ucp_rkey_h rkey = nullptr;
        EXPECT_EQ(UCS_OK, ucp_ep_rkey_unpack(ab, key.data(), &rkey));
        return rkey;
    }

    ucp_mem_h memh = nullptr;
    std::vector<char> key;
    key_header header = {};
};

TEST_P(ucp_edges_key, a_part_shorter_than_what_is_read_of_it_is_none)
{
    ucp_rkey_h whole = unpack();
    ASSERT_NE(nullptr, whole->direct);
    ucp_rkey_destroy(whole);
    char &part_length = key[sizeof(header) + 2];
    const int length = static_cast<unsigned char>(part_length);
    ASSERT_EQ(header.length, sizeof(header) + 3 + static_cast<size_t>(length)) << "of one md";
    for (int n : {0, 1, length - 1}) {
        header.length = static_cast<uint16_t>(sizeof(header) + 3 + static_cast<size_t>(n));
        part_length = static_cast<char>(n);
        ucp_rkey_h rkey = unpack();
        EXPECT_EQ(nullptr, rkey->direct) << n;
        EXPECT_EQ(ucp::NO_LANE, rkey->first.lane) << n;
        ucp_rkey_destroy(rkey);
    }
}

TEST_P(ucp_edges_key, memory_is_mapped_no_further_than_it_goes)
{
    for (uint64_t size : edges(header.size)) {
        header.size = size;
        ucp_rkey_h rkey = unpack();
        EXPECT_EQ(size <= 65536, rkey->direct != nullptr) << size;
        ucp_rkey_destroy(rkey);
    }
}

UCP_TEST_OVER(ucp_edges, "ofi_shm");
UCP_TEST_OVER(ucp_edges_key, "sm", "ofi_shm");

} // namespace
