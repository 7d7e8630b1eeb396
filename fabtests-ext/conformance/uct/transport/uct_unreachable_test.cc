// SPDX-License-Identifier: BSD-3-Clause
// A peer that is not there, over a connectionless core that never stops to try: the interface gives
// up after the time that a connection may take. The address is made by hand: no socket listens
// there.
#include "fabtests-ext/conformance/common/uct_entity.h"

#include "uct/ofi/core/address.h"

#include <netinet/in.h>
#include <unistd.h>

namespace uct_conformance {
namespace {

// A port of the loopback device that is taken, so that no other socket comes to listen there.
class silent_port {
  public:
    silent_port() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof(address);
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr *>(&address), length), 0);
        EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr *>(&address), &length), 0);
        number = address.sin_port;
    }
    silent_port(const silent_port &) = delete;
    silent_port &operator=(const silent_port &) = delete;
    ~silent_port() { close(fd_); }

    in_port_t number = 0;

  private:
    int fd_;
};

class uct_unreachable : public uct_test {
  protected:
    silent_port port_;

    // b's address, but of another interface of another process at another port.
    void nobody(std::vector<char> *address)
    {
        uct::ofi::rdm_address about;
        sockaddr_in where;
        ASSERT_GE(address->size(), sizeof(about) + sizeof(where));
        memcpy(&about, address->data(), sizeof(about));
        memcpy(&where, address->data() + sizeof(about), sizeof(where));
        about.id ^= 1;
        about.bell.pid = 1;
        where.sin_port = port_.number;
        memcpy(address->data(), &about, sizeof(about));
        memcpy(address->data() + sizeof(about), &where, sizeof(where));
    }
};

TEST_P(uct_unreachable, 216_a_send_that_the_core_retries_for_ever_ends)
{
    open({.conn_timeout = "300ms"});
    nobody(&b().iface_address);
    uct_ep_h ep = a().connect(b());
    ASSERT_NE(ep, nullptr);
    ASSERT_TRUE(until([&] {
        if (a().errors.empty()) {
            EXPECT_EQ(posting([&] { return uct_ep_am_short(ep, 1, 0, nullptr, 0); }),
                      UCS_ERR_NO_RESOURCE);
        }
        return a().errors.size() == 1;
    }));
    EXPECT_EQ(a().errors[0].second, UCS_ERR_UNREACHABLE);
    EXPECT_EQ(uct_ep_am_short(ep, 1, 0, nullptr, 0), UCS_ERR_UNREACHABLE);
}

TEST_P(uct_unreachable, 216_a_packed_message_does_not_wait_for_ever)
{
    open({.conn_timeout = "300ms"});
    nobody(&b().iface_address);
    uct_ep_h ep = a().connect(b());
    ASSERT_NE(ep, nullptr);
    packed p{"held"};
    EXPECT_EQ(posting([&] { return uct_ep_am_bcopy(ep, 1, pack, &p, 0); }), 4);
    ASSERT_TRUE(until([&] { return a().errors.size() == 1; }));
    EXPECT_EQ(a().errors[0].second, UCS_ERR_UNREACHABLE);
    EXPECT_EQ(p.calls, 1);
}

// What another endpoint met before says nothing: the peer may be there now.
TEST_P(uct_unreachable, an_old_refusal_does_not_count)
{
    open({.conn_timeout = "1ms"});
    nobody(&b().iface_address);
    uct_ep_h first = a().connect(b());
    uct_ep_h second = a().connect(b());
    ASSERT_EQ(uct_ep_am_short(first, 1, 0, nullptr, 0), UCS_ERR_NO_RESOURCE);
    auto later = std::chrono::steady_clock::now() + std::chrono::milliseconds(3);
    while (std::chrono::steady_clock::now() < later) {
    }
    EXPECT_EQ(uct_ep_am_short(second, 1, 0, nullptr, 0), UCS_ERR_NO_RESOURCE);
    uct_worker_progress(a().worker);
    EXPECT_TRUE(a().errors.empty());
}

INSTANTIATE_TEST_SUITE_P(on, uct_unreachable, testing::Values("tcprdm"), name_of);

} // namespace
} // namespace uct_conformance
