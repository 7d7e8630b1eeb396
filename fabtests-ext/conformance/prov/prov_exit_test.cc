// SPDX-License-Identifier: BSD-3-Clause
//
// Programs that end with everything open: libfabric then unloads its providers, whose threads run.
// And programs that close at once after they have sent.
#include "fabtests-ext/common/fabric_app.h"

#include <gtest/gtest.h>
#include <memory>
#include <tuple>

using namespace app;

namespace {

fabric_side *still_open; // and reachable, so that it is no leak

options of_type(fi_ep_type type)
{
    options o;
    o.type = type;
    o.caps = type == FI_EP_MSG ? FI_MSG : FI_TAGGED;
    return o;
}

class prov_exit_test : public testing::TestWithParam<fi_ep_type> {};

TEST_P(prov_exit_test, a_program_may_end_right_after_it_connected)
{
    auto end = [](bool server) {
        return [server](partner &p) {
            setenv("FI_UCXLIKE_TLS", "tcp", 1); // leaves no files of shared memory behind
            still_open = new fabric_side(of_type(GetParam()));
            if (GetParam() == FI_EP_RDM) {
                still_open->open_rdm(p);
            } else if (server) {
                still_open->serve(p);
            } else {
                still_open->dial(p);
            }
            exit(0);
        };
    };
    for (int i = 0; i < 10; ++i) {
        ASSERT_EQ(run_pair(end(true), end(false)), "") << i;
    }
}

using close_case = std::tuple<fi_ep_type, const char *>; // and the transport

// The sender closes and ends when as much as fits is on its way to a receiver that does nothing.
class prov_close_test : public testing::TestWithParam<close_case> {
  protected:
    void send_to_busy_receiver(const char *keepalive);

    // Sends until nothing more is taken, and returns how many messages that were.
    template <class F>
    static uint64_t send_all_that_fits(fabric_side &s, F &&send)
    {
        uint64_t sent = 0;
        for (unsigned refused = 0; refused < 1000;) {
            ssize_t r = send(sent);
            REQUIRE(r == 0 || r == -FI_EAGAIN);
            refused = r ? refused + 1 : 0;
            sent += !r;
            if (r) {
                s.progress();
            }
        }
        return sent;
    }

    static void meet(fabric_side &s, partner &p, bool server)
    {
        if (s.opt.type == FI_EP_RDM) {
            s.open_rdm(p);
        } else if (server) {
            s.serve(p);
        } else {
            s.dial(p);
        }
        uint64_t word = 0;
        if (server) { // both sides know each other before one of them falls silent
            REQUIRE_EQ(fi_recv(s.ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
            s.complete(s.rxcq);
        } else {
            s.retry([&] { return fi_inject(s.ep, &word, sizeof(word), s.peer); });
        }
        if (server) {
            s.retry([&] { return fi_inject(s.ep, &word, sizeof(word), s.peer); });
            s.serve_until_told(p); // what was injected may need progress to leave
        } else {
            REQUIRE_EQ(fi_recv(s.ep, &word, sizeof(word), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
            s.complete(s.rxcq);
            p.tell(1);
        }
    }
};

// keepalive: how often the receiver looks after its peers.
void prov_close_test::send_to_busy_receiver(const char *keepalive)
{
    options o;
    o.type = std::get<0>(GetParam());
    o.caps = FI_MSG;
    const char *transport = std::get<1>(GetParam());
    constexpr size_t size = 512;
    auto receiver = [&](partner &p) {
        setenv("FI_UCXLIKE_TLS", transport, 1);
        setenv("UCX_KEEPALIVE_INTERVAL", keepalive, 1);
        fabric_side s(o);
        meet(s, p, true);
        uint64_t sent = p.hear();
        // A sender that does not wait says that it is done; the others wait for what comes now.
        p.told(500);
        std::vector<char> room(size);
        for (uint64_t i = 0; i < sent; ++i) {
            REQUIRE_EQ(fi_recv(s.ep, room.data(), size, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
            s.complete(s.rxcq);
            uint64_t number;
            memcpy(&number, room.data(), sizeof(number));
            REQUIRE_EQ(number, i);
        }
        REQUIRE_EQ(p.hear(), 1u);
    };
    auto sender = [&](partner &p) {
        setenv("FI_UCXLIKE_TLS", transport, 1);
        setenv("FI_UCXLIKE_CLOSE_TIMEOUT", "1", 1);
        setenv("FI_UCXLIKE_LINGER", "300000", 1);
        auto s = std::make_unique<fabric_side>(o);
        meet(*s, p, false);
        std::vector<char> data(size);
        uint64_t sent = send_all_that_fits(*s, [&](uint64_t number) {
            memcpy(data.data(), &number, sizeof(number));
            return fi_inject(s->ep, data.data(), size, s->peer);
        });
        p.tell(sent);
        s.reset();
        p.tell(1);
    };
    EXPECT_EQ(run_pair(receiver, sender), "");
}

TEST_P(prov_close_test, what_was_sent_completely_arrives_at_a_receiver_that_was_busy)
{
    send_to_busy_receiver("20s");
}

// A question to a peer that has closed would make its system drop what is still on its way.
TEST_P(prov_close_test, what_was_sent_completely_arrives_at_a_receiver_that_looks_after_its_peers)
{
    send_to_busy_receiver("10ms");
}

INSTANTIATE_TEST_SUITE_P(, prov_close_test,
                         testing::Combine(testing::Values(FI_EP_MSG, FI_EP_RDM),
                                          testing::Values("sm", "tcp")),
                         [](const auto &i) {
                             return std::string(std::get<0>(i.param) == FI_EP_MSG ? "msg_"
                                                                                  : "rdm_") +
                                    std::get<1>(i.param);
                         });

INSTANTIATE_TEST_SUITE_P(, prov_exit_test, testing::Values(FI_EP_MSG, FI_EP_RDM),
                         [](const auto &i) {
                             return std::string(i.param == FI_EP_MSG ? "msg" : "rdm");
                         });

} // namespace
