// SPDX-License-Identifier: BSD-3-Clause
//
// The peer that a connection to an RDM endpoint belongs to: the name in its hello is believed when
// no other process can have said it, and else when the process that listens there has shown it.
#include "fabtests-ext/conformance/common/prov_liar.h"

#include <gtest/gtest.h>

using namespace prov_liar;

namespace {

constexpr uint64_t first_life = 77, second_life = 78;

// A peer with an address, known to the honest side.
struct known_peer {
    known_peer(liar &own, const sockaddr_in &honest)
        : l(own), port(own.listen()), link(own.connect(honest))
    {
        l.greet(link, port, id, 98, first_life);
        REQUIRE_EQ(l.await(wire::acked).m.tag, 98);
        l.await(wire::welcome);
    }
    // It is still heard, and no other was welcomed.
    void stays()
    {
        l.greet(link, port, id, 99, first_life);
        REQUIRE_EQ(l.await(wire::acked).m.tag, 99);
        REQUIRE_EQ(l.count(wire::welcome), 0);
        REQUIRE_EQ(l.count(wire::acked), 0);
    }
    void prove(ucp_ep_h over, uint64_t word)
    {
        uint8_t bytes[wire::max_header];
        wire::builder b(bytes);
        b.tag(word);
        l.send(over, wire::am_control, bytes, b.finish(0, wire::proof));
    }

    static constexpr uint64_t id = 5;
    liar &l;
    uint16_t port;
    ucp_ep_h link;
};

template <class F>
std::string with_known_peer(F &&body)
{
    return run_pair(serve, [&](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        known_peer x(l, to);
        body(l, x, to);
        p.tell(1);
    });
}

// The word goes to the address that was named, and the stranger does not learn it.
TEST(prov_claim_test, a_stranger_does_not_take_the_place_of_a_peer)
{
    EXPECT_EQ(with_known_peer([](liar &l, known_peer &x, const sockaddr_in &to) {
                  ucp_ep_h stranger = l.connect(to);
                  l.greet(stranger, x.port, 9, 97, second_life);
                  heard asked = l.await(wire::challenge);
                  REQUIRE_EQ(asked.m.id, 9);
                  x.stays();
                  x.prove(stranger, asked.m.tag + 1); // it can only guess
                  x.stays();
                  x.prove(x.link, asked.m.tag); // of another link's claim
                  x.stays();
              }),
              "");
}

// Also one that knows the life, which is no secret.
TEST(prov_claim_test, a_stranger_in_the_life_of_a_peer_is_asked)
{
    EXPECT_EQ(with_known_peer([](liar &l, known_peer &x, const sockaddr_in &to) {
                  l.greet(l.connect(to), x.port, 9, 97, first_life);
                  REQUIRE_EQ(l.await(wire::challenge).m.id, 9);
                  x.stays();
              }),
              "");
}

// What it said before arrives after the proof, in order.
TEST(prov_claim_test, a_peer_that_has_come_back_is_heard_when_it_has_shown_itself)
{
    EXPECT_EQ(with_known_peer([](liar &l, known_peer &x, const sockaddr_in &to) {
                  ucp_ep_h again = l.connect(to);
                  for (uint64_t ack = 1; ack <= 3; ++ack) {
                      l.greet(again, x.port, 9, ack, second_life);
                  }
                  heard asked = l.await(wire::challenge);
                  REQUIRE_EQ(l.count(wire::acked), 0);
                  x.prove(again, asked.m.tag);
                  for (uint64_t ack = 1; ack <= 3; ++ack) {
                      REQUIRE_EQ(l.await(wire::acked).m.tag, ack);
                  }
                  REQUIRE(l.count(wire::welcome) == 1 && l.count(wire::challenge) == 0);
                  l.progress_until([&] { return l.lost() == 1; }); // the link of its former life
              }),
              "");
}

TEST(prov_claim_test, a_second_connection_in_one_life_needs_no_proof)
{
    EXPECT_EQ(with_known_peer([](liar &l, known_peer &x, const sockaddr_in &to) {
                  l.greet(l.connect(to), x.port, known_peer::id, 97, first_life);
                  REQUIRE_EQ(l.await(wire::acked).m.tag, 97);
                  REQUIRE_EQ(l.count(wire::challenge), 0);
              }),
              "");
}

TEST(prov_claim_test, one_that_names_an_address_where_nobody_listens_is_sent_away)
{
    EXPECT_EQ(with_known_peer([](liar &l, known_peer &x, const sockaddr_in &to) {
                  l.stop_listening();
                  l.greet(l.connect(to), x.port, 9, 97, second_life);
                  l.progress_until([&] { return l.lost() == 1; });
                  x.stays();
              }),
              "");
}

// Its messages are kept, but not all of them.
TEST(prov_claim_test, one_that_shows_nothing_and_sends_much_is_sent_away)
{
    EXPECT_EQ(with_known_peer([](liar &l, known_peer &x, const sockaddr_in &to) {
                  ucp_ep_h stranger = l.connect(to);
                  uint8_t bytes[wire::max_header];
                  std::vector<char> data(4096);
                  for (size_t sent = 0; l.lost() == 0; sent += data.size()) {
                      REQUIRE(sent < size_t(1) << 30);
                      wire::builder b(bytes);
                      b.say_hello(wire::make_hello(name_of(x.port), second_life, 9));
                      l.try_send(stranger, wire::am_msg, bytes, b.finish(0, wire::none), data);
                  }
                  x.stays();
              }),
              "");
}

// The application has named the peer at 127.0.0.1, and the first to call itself so comes from
// 127.0.0.2.
TEST(prov_claim_test, the_first_to_name_a_known_address_comes_from_there)
{
    auto server = [](partner &p) {
        honest h(p);
        sockaddr_in known = local(static_cast<uint16_t>(p.hear()));
        REQUIRE_EQ(fi_av_insert(h.s.av, &known, 1, &h.s.peer, 0, nullptr), 1);
        p.tell(1);
        h.s.serve_until_told(p);
    };
    auto client = [](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        uint16_t port = l.listen();
        p.tell(port);
        p.hear();
        sockaddr_in from = local(0);
        from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
        ucp_ep_h link = l.connect(to, &from);
        l.greet(link, port, 9, 97);
        REQUIRE_EQ(l.await(wire::challenge).m.id, 9);
        REQUIRE_EQ(l.count(wire::acked), 0);
        l.greet(l.connect(to), port, 10, 96);
        REQUIRE_EQ(l.await(wire::acked).m.tag, 96);
        p.tell(1);
    };
    EXPECT_EQ(run_pair(server, client), "");
}

} // namespace
