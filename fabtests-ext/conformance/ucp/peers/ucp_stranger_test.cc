// SPDX-License-Identifier: BSD-3-Clause
//
// A stranger that has the address of another worker, as every process of a job does, and speaks in
// that worker's name. It is connected to the same victim as the worker itself, and sends what it
// likes over its own lane. Nothing of the peer changes by that.
#include "fabtests-ext/common/ucp_pair.h"
#include "ucp/core/am_id.h"
#include "ucp/endpoint/ep.h"
#include "ucp/proto/proto.h"

#include <memory>
#include <vector>

namespace {

using namespace ucp_test;
namespace wire = ucp::wire;

constexpr size_t length = 64 << 20; // of many pieces, more than any lane takes at once
constexpr size_t piece = 100;

class ucp_stranger : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        options o;
        o.tls = GetParam();
        o.features |= UCP_FEATURE_STREAM;
        o.config = {{"RNDV_THRESH", "inf"}};
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
    ucp_am_handler_param_t h = {};
    h.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                   UCP_AM_HANDLER_PARAM_FIELD_ARG;
    h.id = 1;
    h.arg = &in;
    h.cb = [](void *arg, const void *, size_t, void *data, size_t n, const ucp_am_recv_param_t *) {
        auto *bytes = static_cast<char *>(data);
        static_cast<std::vector<char> *>(arg)->assign(bytes, bytes + n);
        return UCS_OK;
    };
    ASSERT_EQ(UCS_OK, ucp_worker_set_am_recv_handler(victim->worker, &h));
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

UCP_TEST_OVER(ucp_stranger, "sm", "tcp", "ofi_shm");

} // namespace
