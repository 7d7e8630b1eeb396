// SPDX-License-Identifier: BSD-3-Clause
//
// A peer that lies: a process that uses every protocol, and says in one field of one message
// something else than is true. The other side ends each operation once, gets one error for its
// endpoint when the liar ends, and closes; under a sanitizer it reads nothing that it was not
// given, and loses no memory. Each lie has a name, that of the case. Each is told over one
// transport with one value at an edge of its field; UCXLIKE_LIES=all tells all values over all
// transports. (No transport here answers gets by messages.)
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/common/ucp_duo.h"
#include "fabtests-ext/common/uct_tap.h"
#include "ucp/connect/wireup.h"
#include "ucp/core/am_id.h"
#include "ucp/core/worker.h"
#include "ucp/proto/wire.h"

#include <cstddef>

namespace {

using namespace ucp_actor;
namespace wire = ucp::wire;

const bool found_by_path = use_strict_cores();

constexpr unsigned whole_length = 0; // in place of a field's size: the message is cut

struct lie {
    const char *name;
    unsigned am;
    size_t offset;
    unsigned size;
};
constexpr unsigned in_address = 100, in_rkey = 101; // in place of a message's id

#define LIE(am, type, member)                                                                      \
    {                                                                                              \
#am "_" #member, ucp::AM_ID_##am, offsetof(type, member), sizeof(type::member)             \
    }
#define LIE_AT(am, name, at, size)                                                                 \
    {                                                                                              \
#am "_" #name, ucp::AM_ID_##am, at, size                                                   \
    }

constexpr lie lies[] = {
    LIE(WIREUP, ucp::wireup_hdr, kind),
    LIE(WIREUP, ucp::wireup_hdr, reason),
    LIE(WIREUP, ucp::wireup_hdr, tail_length),
    LIE(WIREUP, ucp::wireup_hdr, sn),
    LIE(WIREUP, ucp::wireup_hdr, src_uuid),
    LIE(WIREUP, ucp::wireup_hdr, src_ep),
    LIE(WIREUP, ucp::wireup_hdr, dst_ep),
    LIE_AT(WIREUP, address, sizeof(ucp::wireup_hdr) + 4, 8),
    LIE_AT(WIREUP, length, 0, whole_length),
    LIE_AT(TAG_EAGER, tag, 0, 8),
    LIE_AT(TAG_EAGER, length, 0, whole_length),
    LIE(TAG_FIRST, wire::tag_first_hdr, tag),
    LIE(TAG_FIRST, wire::tag_first_hdr, total),
    LIE(TAG_FIRST, wire::tag_first_hdr, source),
    LIE(TAG_FIRST, wire::tag_first_hdr, msg_id),
    LIE(TAG_FIRST, wire::tag_first_hdr, ep),
    LIE(TAG_FIRST, wire::tag_first_hdr, req),
    LIE_AT(TAG_FIRST, length, 0, whole_length),
    LIE(TAG_MIDDLE, wire::frag_hdr, source),
    LIE(TAG_MIDDLE, wire::frag_hdr, msg_id),
    LIE(TAG_MIDDLE, wire::frag_hdr, offset),
    LIE_AT(TAG_MIDDLE, length, 0, whole_length),
    LIE(TAG_SYNC, wire::tag_sync_hdr, tag),
    LIE(TAG_SYNC, wire::tag_sync_hdr, ep),
    LIE(TAG_SYNC, wire::tag_sync_hdr, req),
    LIE_AT(TAG_SYNC, length, 0, whole_length),
    LIE(RNDV_RTS, wire::rts_hdr, kind),
    LIE(RNDV_RTS, wire::rts_hdr, flags),
    LIE(RNDV_RTS, wire::rts_hdr, am_id),
    LIE(RNDV_RTS, wire::rts_hdr, header_len),
    LIE(RNDV_RTS, wire::rts_hdr, rkey_len),
    LIE(RNDV_RTS, wire::rts_hdr, tag),
    LIE(RNDV_RTS, wire::rts_hdr, ep),
    LIE(RNDV_RTS, wire::rts_hdr, req),
    LIE(RNDV_RTS, wire::rts_hdr, address),
    LIE(RNDV_RTS, wire::rts_hdr, size),
    LIE_AT(RNDV_RTS, rkey_head, sizeof(wire::rts_hdr), 4),
    LIE_AT(RNDV_RTS, rkey_body, sizeof(wire::rts_hdr) + 16, 8),
    LIE_AT(RNDV_RTS, length, 0, whole_length),
    LIE(RNDV_RTR, wire::rtr_hdr, ep),
    LIE(RNDV_RTR, wire::rtr_hdr, sreq),
    LIE(RNDV_RTR, wire::rtr_hdr, rreq),
    LIE(RNDV_RTR, wire::rtr_hdr, size),
    LIE_AT(RNDV_RTR, length, 0, whole_length),
    LIE(RNDV_DATA, wire::data_hdr, ep),
    LIE(RNDV_DATA, wire::data_hdr, req),
    LIE(RNDV_DATA, wire::data_hdr, offset),
    LIE_AT(RNDV_DATA, length, 0, whole_length),
    LIE(RNDV_ATS, wire::answer_hdr, ep),
    LIE(RNDV_ATS, wire::answer_hdr, req),
    LIE(RNDV_ATS, wire::answer_hdr, status),
    LIE_AT(RNDV_ATS, length, 0, whole_length),
    LIE(ACK, wire::answer_hdr, ep),
    LIE(ACK, wire::answer_hdr, req),
    LIE(ACK, wire::answer_hdr, status),
    LIE_AT(ACK, length, 0, whole_length),
    LIE(AM_SINGLE, wire::am_hdr, am_id),
    LIE(AM_SINGLE, wire::am_hdr, flags),
    LIE(AM_SINGLE, wire::am_hdr, header_len),
    LIE_AT(AM_SINGLE, length, 0, whole_length),
    LIE(AM_REPLY, wire::am_hdr, header_len),
    LIE_AT(AM_REPLY, ep, sizeof(wire::am_hdr), 8),
    LIE_AT(AM_REPLY, length, 0, whole_length),
    LIE_AT(AM_FIRST, header_len, offsetof(wire::am_hdr, header_len), 4),
    LIE(AM_FIRST, wire::am_first_hdr, total),
    LIE(AM_FIRST, wire::am_first_hdr, source),
    LIE(AM_FIRST, wire::am_first_hdr, msg_id),
    LIE(AM_FIRST, wire::am_first_hdr, ep),
    LIE_AT(AM_FIRST, length, 0, whole_length),
    LIE(AM_MIDDLE, wire::frag_hdr, source),
    LIE(AM_MIDDLE, wire::frag_hdr, msg_id),
    LIE(AM_MIDDLE, wire::frag_hdr, offset),
    LIE_AT(AM_MIDDLE, length, 0, whole_length),
    LIE_AT(STREAM, ep, 0, 8),
    LIE_AT(STREAM, length, 0, whole_length),
    LIE(RMA_PUT, wire::put_hdr, memh),
    LIE(RMA_PUT, wire::put_hdr, address),
    LIE(RMA_PUT, wire::put_hdr, ep),
    LIE_AT(RMA_PUT, length, 0, whole_length),
    LIE(AMO, wire::amo_hdr, memh),
    LIE(AMO, wire::amo_hdr, address),
    LIE(AMO, wire::amo_hdr, ep),
    LIE(AMO, wire::amo_hdr, req),
    LIE(AMO, wire::amo_hdr, op),
    LIE(AMO, wire::amo_hdr, size),
    LIE_AT(AMO, length, 0, whole_length),
    LIE(AMO_REPLY, wire::amo_reply_hdr, ep),
    LIE(AMO_REPLY, wire::amo_reply_hdr, req),
    LIE(AMO_REPLY, wire::amo_reply_hdr, status),
    LIE_AT(AMO_REPLY, length, 0, whole_length),
    LIE(RMA_FLUSH, wire::flush_hdr, ep),
    LIE(RMA_FLUSH, wire::flush_hdr, seq),
    LIE(RMA_ACK, wire::flush_hdr, ep),
    LIE(RMA_ACK, wire::flush_hdr, seq),
    LIE_AT(RMA_ACK, length, 0, whole_length),
    {"address_version", in_address, 0, 4},
    {"address_middle", in_address, 40, 8},
    {"rkey_head", in_rkey, 0, 8},
    {"rkey_second", in_rkey, 8, 8},
    {"rkey_third", in_rkey, 16, 8},
    {"rkey_fourth", in_rkey, 24, 8},
    {"rkey_parts", in_rkey, 40, 8},
};

// The edges, from what is true.
constexpr unsigned edges = 8;
uint64_t edge(unsigned which, uint64_t right)
{
    const uint64_t values[edges] = {~0ull,     0,          right + 1,  1ull << 63,
                                    right - 1, 1ull << 32, 1ull << 31, 1};
    return values[which % edges] == right ? ~right : values[which % edges];
}

class liar final : public uct_tap::observer {
  public:
    liar(const lie &what, unsigned value) : what_(what), value_(value) {}

    size_t before(unsigned id, uint8_t *bytes, size_t length) override
    {
        telling_ = id == what_.am && !told() && length >= what_.offset + what_.size;
        return telling_ ? tell(bytes, length) : length;
    }
    void after() override { words().reached = words().reached | telling_; }
    static bool told() { return words().reached; }

    size_t tell(uint8_t *bytes, size_t length)
    {
        if (what_.size == whole_length) {
            const size_t lengths[] = {length - 1, 0, 1, 7, 8, length / 2};
            return std::min(lengths[value_ % std::size(lengths)], length);
        }
        uint64_t field = 0;
        memcpy(&field, bytes + what_.offset, what_.size);
        field = edge(value_, field);
        memcpy(bytes + what_.offset, &field, what_.size);
        return length;
    }
    void tell_in(contact &c)
    {
        if (what_.am == in_address || what_.am == in_rkey) {
            bool address = what_.am == in_address;
            tell(reinterpret_cast<uint8_t *>(address ? c.address : c.rkey),
                 address ? c.address_length : c.rkey_length);
            words().reached = 1;
        }
    }

  private:
    const lie what_;
    unsigned value_;
    bool telling_ = false;
};

// Until the lie has been told and had its effect, or everything has gone well.
outcome lie_to(const channel &test, const char *tls, const char *scheme, liar &l)
{
    actor a(tls, scheme);
    for (auto &i : a.self().worker->ifaces) {
        uct_tap::install(i->uct, &l);
    }
    if (!meet(a, test, [&](contact &c) { l.tell_in(c); })) {
        return outcome::not_set_up;
    }
    a.start(everything);
    constexpr unsigned enough = 200; // rounds of the other side
    unsigned since = 0;
    bool over = ucp_test::run_until({&a.self()}, [&] {
        unsigned now = words().rounds;
        if (!liar::told()) {
            since = now;
        }
        return now - since > enough || (a.sent() && a.received() && !liar::told());
    });
    // Without a word, as a process that crashes.
    _exit(static_cast<int>(over ? outcome::ok : outcome::no_result));
}

// An address or a key may be refused at once: that is an error of the API, too.
outcome listen_to(const channel &test, const char *tls, const char *scheme)
{
    actor a(tls, scheme);
    if (!meet(a, test)) {
        char gone;
        words().rounds = 1000;
        return test.hear(&gone) ? outcome::ok : outcome::not_set_up;
    }
    a.start(everything);
    return survive(a, test);
}

class ucp_liar : public testing::TestWithParam<lie> {
  protected:
    // Whether the lie was told.
    static bool run(const char *tls, const char *scheme, unsigned value)
    {
        words().rounds = 0;
        words().reached = 0;
        process lying, hears;
        liar l(GetParam(), value);
        lying.start([&](const channel &c) { return lie_to(c, tls, scheme, l); });
        hears.start([&](const channel &c) { return listen_to(c, tls, scheme); });
        EXPECT_TRUE(introduce(lying, hears));
        EXPECT_EQ(lying.end(), static_cast<int>(outcome::ok)) << "the liar itself";
        EXPECT_TRUE(hears.to.say('g'));
        EXPECT_EQ(hears.end(), static_cast<int>(outcome::ok));
        return liar::told();
    }
};

TEST_P(ucp_liar, does_no_harm)
{
    const char *all = getenv("UCXLIKE_LIES");
    bool every = all && std::string(all) == "all";
    unsigned told = 0;
    const unsigned turn = static_cast<unsigned>(GetParam().offset + strlen(GetParam().name));
    constexpr const char *transports[] = {"tcp", "sm", "psm3"};
    for (unsigned i = 0; i < std::size(transports) && (every || !told); ++i) {
        const char *tls = transports[(turn + i) % std::size(transports)];
        // Pieces or reads: which side is asked for them differs.
        bool pieces = GetParam().am == ucp::AM_ID_RNDV_RTR || GetParam().am == ucp::AM_ID_RNDV_DATA;
        for (unsigned value = every ? 0 : turn; value < (every ? edges : turn + 1); ++value) {
            SCOPED_TRACE(std::string(tls) + ", edge " + std::to_string(value % edges));
            told += run(tls, pieces ? "am" : "auto", value);
        }
    }
    EXPECT_GT(told, 0u) << "there was no such message";
}

INSTANTIATE_TEST_SUITE_P(about, ucp_liar, testing::ValuesIn(lies),
                         [](const testing::TestParamInfo<lie> &i) {
                             return std::string(i.param.name);
                         });

} // namespace
