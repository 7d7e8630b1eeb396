// SPDX-License-Identifier: BSD-3-Clause
//
// A peer that lies: a program of its own that speaks the provider's messages over UCP and says in
// them what no honest peer would. It gets nothing that belongs to another.
#include "fabtests-ext/conformance/common/prov_liar.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

using namespace prov_liar;

namespace {

TEST(prov_liar_test, a_connection_speaks_for_one_peer)
{
    auto client = [](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        ucp_ep_h ep = l.connect(to);
        for (uint16_t i = 0; i < 50; ++i) {
            l.greet(ep, static_cast<uint16_t>(1000 + i), 1u + i);
        }
        l.greet(ep, 1000, 1, 99);
        REQUIRE_EQ(l.await(wire::acked).m.tag, 99); // behind the answers to all others
        REQUIRE_EQ(l.count(wire::welcome), 1);
        p.tell(1);
    };
    EXPECT_EQ(run_pair(serve, client), "");
}

// Connects so many times and sends nothing, until so many connections have ended. The connection
// that has carried a hello stays.
void stay_silent(partner &p, size_t connections, size_t ended)
{
    sockaddr_in to = address_of(p);
    liar l;
    ucp_ep_h known = l.connect(to);
    l.greet(known, 1000, 1, 98);
    l.await(wire::acked);
    for (size_t i = 0; i < connections; ++i) {
        l.connect(to);
    }
    l.progress_until([&] { return l.lost() == ended; });
    l.greet(known, 1000, 1, 99);
    REQUIRE_EQ(l.await(wire::acked).m.tag, 99);
    REQUIRE_EQ(l.lost(), ended);
    p.tell(1);
}

TEST(prov_liar_test, silent_strangers_are_sent_away)
{
    auto server = [](partner &p) {
        setenv("FI_UCXLIKE_PEER_TIMEOUT", "3000", 1);
        serve(p);
    };
    EXPECT_EQ(run_pair(server, [](partner &p) { stay_silent(p, 5, 5); }), "");
}

TEST(prov_liar_test, only_so_many_strangers_are_kept)
{
    auto server = [](partner &p) {
        setenv("FI_UCXLIKE_PEER_TIMEOUT", "1000000000", 1);
        rlimit most = {256, 256};
        REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &most), 0);
        serve(p);
    };
    EXPECT_EQ(run_pair(server, [](partner &p) { stay_silent(p, 80, 80 - 256 / 4); }), "");
}

// What it refuses it refuses at once: it does not wait for FI_UCXLIKE_PEER_TIMEOUT.
void serve_without_timeout(partner &p)
{
    setenv("FI_UCXLIKE_PEER_TIMEOUT", "1000000000", 1);
    serve(p);
}

TEST(prov_liar_test, a_peer_of_another_version_is_sent_away)
{
    auto client = [](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        l.greet(l.connect(to), 1000, 1, 99, 77, wire::version + 1);
        l.progress_until([&] { return l.lost() == 1; });
        REQUIRE_EQ(l.count(wire::acked), 0);
        l.greet(l.connect(to), 1000, 1, 99);
        REQUIRE_EQ(l.await(wire::acked).m.tag, 99);
        p.tell(1);
    };
    EXPECT_EQ(run_pair(serve_without_timeout, client), "");
}

// The hello of an honest peer comes with its request to connect.
TEST(prov_liar_test, a_request_of_another_version_is_sent_away)
{
    auto client = [](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        liar::session other;
        l.call(to, &other, wire::version + 1);
        l.progress_until([&] { return l.lost() == 1; });
        REQUIRE_EQ(l.count(wire::welcome), 0);
        liar::session equal;
        l.call(to, &equal);
        l.await(wire::welcome);
        REQUIRE_EQ(l.lost(), 1);
        p.tell(1);
    };
    EXPECT_EQ(run_pair(serve_without_timeout, client), "");
}

TEST(prov_liar_test, ids_cannot_be_foretold)
{
    auto client = [](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        uint64_t high[3];
        for (uint16_t i = 0; i < 3; ++i) {
            l.greet(l.connect(to), static_cast<uint16_t>(1000 + i), 1u + i);
            high[i] = l.await(wire::welcome).m.tag >> 20;
        }
        REQUIRE(high[0] != high[1] && high[1] != high[2]);
        REQUIRE(high[2] - high[1] != high[1] - high[0]);
        p.tell(1);
    };
    EXPECT_EQ(run_pair(serve, client), "");
}

TEST(prov_liar_test, a_word_without_data_does_not_complete_a_read)
{
    auto server = [](partner &p) {
        honest h(p);
        h.read(p);
        fi_cq_err_entry error = {};
        h.s.complete(h.s.txcq, &error);
        REQUIRE_EQ(error.err, FI_EIO);
        REQUIRE(strcmp(h.in, "before") == 0);
        p.tell(1);
    };
    auto client = [](partner &p) {
        address_of(p);
        liar l;
        p.tell(l.listen());
        heard asked = l.await(wire::read);
        uint8_t to[wire::max_header];
        wire::builder b(to);
        b.tag(asked.m.ack);
        b.data(0);
        l.send(asked.reply, wire::am_control, to, b.finish(asked.hello.id, wire::acked));
        p.hear();
    };
    EXPECT_EQ(run_pair(server, client), "");
}

TEST(prov_liar_test, a_peer_answers_for_its_own_operations)
{
    auto server = [](partner &p) {
        honest h(p);
        h.read(p);
        h.s.complete(h.s.txcq);
        REQUIRE(strcmp(h.in, "target!") == 0);
        p.tell(1);
    };
    auto client = [](partner &p) {
        sockaddr_in server_at = address_of(p);
        liar l;
        p.tell(l.listen());
        heard asked = l.await(wire::read);
        // Another process knows the operation and ends it.
        ucp_ep_h other = l.connect(server_at);
        l.greet(other, 1000, 1);
        uint64_t id = l.await(wire::welcome).m.tag;
        uint8_t to[wire::max_header];
        {
            wire::builder b(to);
            b.tag(asked.m.ack);
            b.data(0);
            l.send(other, wire::am_control, to, b.finish(id, wire::acked));
        }
        l.greet(other, 1000, 1, 99);
        REQUIRE_EQ(l.await(wire::acked).m.tag, 99);
        wire::builder b(to);
        b.ack(asked.m.ack);
        l.send(asked.reply, wire::am_rma, to, b.finish(asked.hello.id, wire::read_data),
               {'t', 'a', 'r', 'g', 'e', 't', '!', 0});
        p.hear();
    };
    EXPECT_EQ(run_pair(server, client), "");
}

// The endpoint of the second connection has no queue of receives yet.
TEST(prov_liar_test, a_connection_hears_nothing_before_it_is_accepted)
{
    auto server = [](partner &p) {
        setenv("FI_UCXLIKE_TLS", "tcp", 1);
        options o;
        o.type = FI_EP_MSG;
        fabric_side s(o);
        s.serve(p);
        p.tell(1);
        fi_info *request = s.await_request();
        fid_ep *second = nullptr;
        REQUIRE_EQ(fi_endpoint(s.domain, request, &second, nullptr), 0);
        fi_freeinfo(request);
        p.tell(1);
        s.serve_until_told(p);
        REQUIRE_EQ(fi_close(&second->fid), 0);
    };
    auto client = [](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        liar::session first;
        l.call(to, &first);
        l.progress_until([&] { return first.id != 0 && p.told(); });
        p.hear();
        liar::session second;
        l.call(to, &second);
        l.progress_until([&] { return p.told(); });
        p.hear();
        for (uint64_t guess = first.id - 4; guess != first.id + 4; ++guess) {
            uint8_t bytes[wire::max_header];
            wire::builder b(bytes);
            if (guess != first.id) {
                l.send(first.ep, wire::am_msg, bytes, b.finish(guess, wire::none), {'x'});
            }
        }
        uint8_t bytes[wire::max_header];
        wire::builder b(bytes);
        b.ack(99);
        b.ack_on_arrival();
        l.send(first.ep, wire::am_msg, bytes, b.finish(first.id, wire::none));
        REQUIRE_EQ(l.await(wire::acked).m.tag, 99);
        p.tell(1);
    };
    EXPECT_EQ(run_pair(server, client), "");
}

// A passive endpoint does not tell its program of such a client.
TEST(prov_liar_test, a_client_of_another_version_is_refused)
{
    auto server = [](partner &p) {
        setenv("FI_UCXLIKE_TLS", "tcp", 1);
        options o;
        o.type = FI_EP_MSG;
        fabric_side s(o);
        s.serve(p);
        s.serve_until_told(p);
    };
    auto client = [](partner &p) {
        sockaddr_in to = address_of(p);
        liar l;
        liar::session other;
        l.call(to, &other, wire::version + 1);
        l.progress_until([&] { return l.lost() == 1; });
        REQUIRE_EQ(other.id, 0);
        liar::session equal;
        l.call(to, &equal);
        l.progress_until([&] { return equal.id != 0; });
        p.tell(1);
    };
    EXPECT_EQ(run_pair(server, client), "");
}

} // namespace
