// SPDX-License-Identifier: BSD-3-Clause
//
// A stranger that has the address of another worker, as every process of a job does, and speaks in
// that worker's name. It is connected to the same victim as the worker itself, and sends what it
// likes over its own lane. Nothing of the peer changes by that.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/conformance/common/ucp_address.h"
#include "ucp/connect/matcher.h"
#include "ucp/connect/wireup.h"
#include "ucp/core/am_id.h"
#include "ucp/proto/proto.h"

#include <memory>
#include <vector>

namespace {

using namespace ucp_test;
namespace wire = ucp::wire;

constexpr size_t length = 64 << 20; // of many pieces, more than any lane takes at once
constexpr size_t piece = 100;
constexpr uint64_t made_up = 0x1234567800000000; // an id that was not given out

class ucp_stranger : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override { open({{"RNDV_THRESH", "inf"}}); }

    void open(const decltype(options::config) &config)
    {
        options o;
        o.tls = GetParam();
        o.features |= UCP_FEATURE_STREAM;
        o.config = config;
        victim = std::make_unique<entity>(o);
        peer = std::make_unique<entity>(o);
        stranger = std::make_unique<entity>(o);
        ASSERT_EQ(UCS_OK, create_ep(*stranger, victim->address(), &to_victim));
        ping(*stranger, to_victim, *victim);
    }

    void TearDown() override
    {
        for (ucp_ep_h ep : {to_victim, of_peer, of_victim}) {
            closing.push_back(ep ? close_nb(ep) : nullptr);
        }
        for (void *close : closing) {
            EXPECT_EQ(UCS_OK, finish(close));
        }
        stranger.reset();
        peer.reset();
        victim.reset();
    }

    // The status of an operation that all of them work for.
    ucs_status_t finish(void *request)
    {
        return wait({victim.get(), peer.get(), stranger.get()}, request);
    }

    void connect_peer()
    {
        ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
        ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
        ping(*peer, of_peer, *victim);
        ping(*victim, of_victim, *peer);
    }

    // Sends these bytes over the stranger's lane; returns when the victim has read them.
    template <class Hdr>
    void say(uint8_t id, const Hdr &hdr, const std::vector<char> &rest = {})
    {
        std::vector<char> message(sizeof(hdr));
        memcpy(message.data(), &hdr, sizeof(hdr));
        message.insert(message.end(), rest.begin(), rest.end());
        auto pack = [](void *dest, void *arg) {
            auto *bytes = static_cast<std::vector<char> *>(arg);
            memcpy(dest, bytes->data(), bytes->size());
            return bytes->size();
        };
        ASSERT_TRUE(run_until({stranger.get(), victim.get()}, [&] {
            return uct_ep_am_bcopy(to_victim->am_ep, id, pack, &message, 0) != UCS_ERR_NO_RESOURCE;
        }));
        ping(*stranger, to_victim, *victim);
    }

    // The next piece of the message of which a part has arrived, of other bytes, in all the names
    // that the stranger can think of. The peer sends nothing meanwhile.
    void add_to_message(uint8_t id)
    {
        auto &parts = victim->worker->proto->partials;
        ASSERT_TRUE(run_until({peer.get(), victim.get()}, [&] { return !parts.empty(); }));
        run_for({victim.get()}, 0.01);
        ASSERT_EQ(1u, parts.size()) << "the whole message is here";
        const uint64_t number = peer->worker->proto->next_msg_id;
        for (uint64_t source : sources()) {
            say(id, wire::frag_hdr{source, number, parts.begin()->second.received},
                std::vector<char>(piece, '!'));
        }
    }

    // Says something of the handshake in the peer's name. A request comes with the address of
    // `from`, in which the peer's uuid stands.
    void say_as_peer(ucp::wireup_kind kind, ucp::close_reason reason, uint64_t src_ep,
                     const entity &from, uint32_t sn = 0)
    {
        std::vector<uint8_t> tail;
        const uint64_t uuid = peer->worker->uuid;
        if (kind == ucp::wireup_kind::request) {
            tail = address_in_the_name_of(uuid, *from.worker);
        }
        const ucp::wireup_hdr hdr = {kind,
                                     static_cast<uint8_t>(reason),
                                     static_cast<uint16_t>(tail.size()),
                                     sn,
                                     uuid,
                                     src_ep,
                                     0};
        say(ucp::AM_ID_WIREUP, hdr, {tail.begin(), tail.end()});
    }
    void ask_as_peer(const entity &from)
    {
        say_as_peer(ucp::wireup_kind::request, ucp::close_reason::graceful, made_up, from);
    }

    // In each direction what is to be answered is.
    void expect_answers()
    {
        char word[8] = {};
        for (int i = 0; i < 2; ++i) {
            entity &to = i ? *peer : *victim;
            ucp_request_param_t p = {};
            void *s = ucp_tag_send_sync_nbx(i ? of_victim : of_peer, "a word", 7, 5, &p);
            void *r = recv_nb(to, word, sizeof(word), 5);
            EXPECT_EQ(UCS_OK, finish(r));
            EXPECT_EQ(UCS_OK, finish(s));
        }
    }
    // And by the right endpoint.
    void expect_pair()
    {
        expect_answers();
        EXPECT_EQ(of_victim->remote_id, of_peer->local_id);
        EXPECT_EQ(of_peer->remote_id, of_victim->local_id);
    }

    // What the stranger can think of as the source of the peer's messages.
    std::vector<uint64_t> sources() const
    {
        const uint64_t uuid = peer->worker->uuid;
        return {uuid, uuid ^ to_victim->local_id, uuid ^ to_victim->remote_id,
                uuid ^ stranger->worker->uuid};
    }

    std::unique_ptr<entity> victim, peer, stranger;
    ucp_ep_h to_victim = nullptr; // the stranger's
    ucp_ep_h of_peer = nullptr, of_victim = nullptr;
    std::vector<void *> closing;
};

TEST_P(ucp_stranger, does_not_add_to_a_tag_message)
{
    connect_peer();
    std::vector<char> out = pattern(length), in(length);
    void *r = recv_nb(*victim, in.data(), in.size(), 9);
    void *s = send_nb(of_peer, out.data(), out.size(), 9);
    add_to_message(ucp::AM_ID_TAG_MIDDLE);
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_TRUE(out == in);
}

TEST_P(ucp_stranger, does_not_add_to_an_active_message)
{
    connect_peer();
    std::vector<char> out = pattern(length), in;
    auto on_message = [](void *arg, const void *, size_t, void *data, size_t n,
                         const ucp_am_recv_param_t *) {
        auto *bytes = static_cast<char *>(data);
        static_cast<std::vector<char> *>(arg)->assign(bytes, bytes + n);
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, set_am_handler(victim->worker, 1, on_message, &in));
    ucp_request_param_t p = {};
    void *s = ucp_am_send_nbx(of_peer, 1, nullptr, 0, out.data(), out.size(), &p);
    add_to_message(ucp::AM_ID_AM_MIDDLE);
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_TRUE(run_until({victim.get(), peer.get()}, [&] { return !in.empty(); }));
    EXPECT_TRUE(out == in);
}

// The stranger begins a message of the name that the peer's next one will have.
TEST_P(ucp_stranger, does_not_take_the_name_of_a_message)
{
    connect_peer();
    std::vector<char> out = pattern(length), in(length);
    for (uint64_t source : sources()) {
        say(ucp::AM_ID_TAG_FIRST,
            wire::tag_first_hdr{8, 2 * piece, source, peer->worker->proto->next_msg_id + 1,
                                to_victim->remote_id, 0},
            std::vector<char>(piece, '!'));
    }
    void *r = recv_nb(*victim, in.data(), in.size(), 9);
    void *s = send_nb(of_peer, out.data(), out.size(), 9);
    EXPECT_EQ(UCS_OK, finish(s));
    EXPECT_EQ(UCS_OK, finish(r));
    EXPECT_TRUE(out == in);
}

TEST_P(ucp_stranger, does_not_take_the_place_of_a_peer)
{
    connect_peer();
    for (const entity *from : {stranger.get(), peer.get()}) {
        ask_as_peer(*from);
        expect_pair();
    }
}

// The peer makes no progress meanwhile.
TEST_P(ucp_stranger, does_not_answer_for_a_peer)
{
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    run_for({victim.get()}, 0.01);
    const uint64_t stale = victim->worker->stale_messages;
    say_as_peer(ucp::wireup_kind::reply, ucp::close_reason::graceful, made_up, *stranger);
    EXPECT_EQ(stale + 1, victim->worker->stale_messages);
    EXPECT_EQ(0u, of_victim->remote_id);
    EXPECT_FALSE(of_victim->can_send());
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    expect_pair();
}

TEST_P(ucp_stranger, does_not_close_what_waits_for_a_peer)
{
    errors seen;
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim, &seen));
    run_for({victim.get()}, 0.01);
    const uint64_t stale = victim->worker->stale_messages;
    for (auto reason : {ucp::close_reason::graceful, ucp::close_reason::worker_gone}) {
        say_as_peer(ucp::wireup_kind::close, reason, made_up, *stranger);
    }
    EXPECT_EQ(stale + 2, victim->worker->stale_messages);
    EXPECT_EQ(0, seen.count);
    EXPECT_EQ(UCS_OK, of_victim->status);
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    expect_pair();
}

// It says to be the peer that the victim waits for, and that this is at its own address, or at
// where it is.
TEST_P(ucp_stranger, is_not_the_peer_that_is_waited_for)
{
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    for (const entity *from : {stranger.get(), peer.get()}) {
        ask_as_peer(*from);
        EXPECT_EQ(0u, of_victim->remote_id);
    }
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    expect_pair();
}

// The same when the peer asks at that time, and when it ends before it is answered.
TEST_P(ucp_stranger, does_not_come_between_requests)
{
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    run_for({peer.get()}, 0.01);
    ask_as_peer(*peer);
    expect_pair();
    EXPECT_EQ(UCS_OK, finish(close_nb(of_peer)));
    EXPECT_EQ(UCS_OK, finish(close_nb(of_victim)));
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    EXPECT_EQ(UCS_OK, finish(close_nb(of_peer)));
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    ping(*peer, of_peer, *victim);
    ping(*victim, of_victim, *peer);
}

// The stranger is first, and says that the peer has an endpoint that it does not have.
TEST_P(ucp_stranger, does_not_keep_a_peer_from_connecting)
{
    ask_as_peer(*peer);
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    ping(*peer, of_peer, *victim);
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    ping(*victim, of_victim, *peer);
    expect_answers();
}

// It says to be the peer before that connects, and that this is where the stranger is.
TEST_P(ucp_stranger, is_not_handed_out_as_a_peer)
{
    ask_as_peer(*stranger);
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    ping(*victim, of_victim, *peer);
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    expect_pair();
}

TEST_P(ucp_stranger, is_not_found_by_a_peer)
{
    ask_as_peer(*stranger);
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    ping(*peer, of_peer, *victim);
    ask_as_peer(*stranger);
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    expect_pair();
}

// It claims to be the peer, at the peer's address, and names an endpoint that is not there: the
// program gets the endpoint that answers, which asks the peer before it sends.
TEST_P(ucp_stranger, does_not_name_the_endpoint_of_a_peer)
{
    ask_as_peer(*peer);
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    EXPECT_EQ(made_up, of_victim->remote_id);
    EXPECT_FALSE(of_victim->can_send());
    ucp_request_param_t p = {};
    void *s = ucp_tag_send_sync_nbx(of_victim, "a word", 7, 5, &p);
    char word[8] = {};
    EXPECT_EQ(UCS_OK, finish(recv_nb(*peer, word, sizeof(word), 5)));
    EXPECT_EQ(UCS_OK, finish(s));
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    expect_pair();
}

// The same, and the peer asks, too.
TEST_P(ucp_stranger, is_forgotten_when_the_peer_connects)
{
    ask_as_peer(*peer);
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    EXPECT_EQ(made_up, of_victim->remote_id);
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    ping(*peer, of_peer, *victim);
    EXPECT_TRUE(run_until({victim.get(), peer.get()},
                          [&] { return of_victim->remote_id == of_peer->local_id; }));
    expect_pair();
}

// It asks in many names: the victim makes so many endpoints and no more, keeps some of the other
// requests, and forgets the names that have left.
class ucp_strangers : public ucp_stranger {
  protected:
    static constexpr size_t most = 8;

    void SetUp() override { open({{"MAX_PEER_EPS", std::to_string(most)}}); }

    void ask(uint32_t number)
    {
        say_as_peer(ucp::wireup_kind::request, ucp::close_reason::graceful, made_up + number, *peer,
                    number);
    }
    void leave(uint32_t number)
    {
        say_as_peer(ucp::wireup_kind::close, ucp::close_reason::graceful, made_up + number, *peer,
                    number);
    }
    size_t made() const { return victim->worker->matcher->peers_own; }
    bool waits() const { return !victim->worker->matcher->postponed.empty(); }
};

TEST_P(ucp_strangers, make_as_many_endpoints_as_the_setting_says)
{
    EXPECT_EQ(1u, made()); // the stranger's own
    for (uint32_t number = 1; number < 3 * most; ++number) {
        ask(number);
        EXPECT_EQ(std::min<size_t>(number + 1, most), made());
    }
    EXPECT_TRUE(waits());
    // The program's own endpoints are not among them.
    ASSERT_EQ(UCS_OK, create_ep(*victim, peer->address(), &of_victim));
    ping(*victim, of_victim, *peer);
    for (uint32_t number = 1; number < 3 * most; ++number) {
        leave(number);
        EXPECT_GE(most, made());
    }
    EXPECT_TRUE(run_until({victim.get()}, [&] { return made() == 1 && !waits(); }));
}

TEST_P(ucp_strangers, let_a_peer_wait_until_one_leaves)
{
    for (uint32_t number = 1; number < most; ++number) {
        ask(number);
    }
    ASSERT_EQ(UCS_OK, create_ep(*peer, victim->address(), &of_peer));
    ASSERT_TRUE(run_until({peer.get(), victim.get()}, [&] { return waits(); }));
    EXPECT_FALSE(of_peer->can_send());
    leave(1);
    ping(*peer, of_peer, *victim);
    EXPECT_FALSE(waits());
    EXPECT_EQ(most, made());
}

// Nothing stays of a name that was used once.
TEST_P(ucp_strangers, leave_no_entry_behind)
{
    const auto &peers = victim->worker->matcher->peers;
    const size_t before = peers.size();
    for (uint32_t number = 1; number < most; ++number) {
        ask(number);
    }
    EXPECT_EQ(before + 1, peers.size()); // they are all of one name
    for (uint32_t number = 1; number < most; ++number) {
        leave(number);
    }
    EXPECT_TRUE(run_until({victim.get()}, [&] { return peers.size() == before; }));
}

// An endpoint over shared memory is found by an address that does not speak of it.
TEST(ucp_no_stranger, is_found_by_an_address_for_networks)
{
    options o;
    o.tls = "sm,tcp";
    entity a(o), b(o);
    ucp_ep_h ab = nullptr, ba = nullptr;
    ASSERT_EQ(UCS_OK, create_ep(a, b.address(), &ab));
    ping(a, ab, b);
    ASSERT_EQ(UCS_OK, create_ep(b, a.address(true), &ba));
    EXPECT_EQ(ucp::ep_state::connected, ba->state);
    EXPECT_EQ(ab->local_id, ba->remote_id);
    ping(b, ba, a);
    void *x = close_nb(ab), *y = close_nb(ba);
    EXPECT_EQ(UCS_OK, wait({&a, &b}, x));
    EXPECT_EQ(UCS_OK, wait({&a, &b}, y));
}

UCP_TEST_OVER(ucp_stranger, "sm", "tcp", "ofi_shm");
UCP_TEST_OVER(ucp_strangers, "sm", "tcp");

} // namespace
