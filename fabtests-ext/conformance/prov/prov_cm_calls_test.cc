// SPDX-License-Identifier: BSD-3-Clause
//
// What a connection over tcp costs in messages, which are counted here. Both ends are in one
// process and one thread, which polls them in turns.
#include "fabtests-ext/common/fabric_app.h"

#include <atomic>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

using namespace app;

namespace {

std::atomic<int> sends = 0; // to sockets

} // namespace

extern "C" __attribute__((visibility("default"))) ssize_t send(int fd, const void *data,
                                                               size_t length, int flags)
{
    static auto *next = reinterpret_cast<decltype(&send)>(dlsym(RTLD_NEXT, "send"));
    ++sends;
    return next(fd, data, length, flags);
}

extern "C" __attribute__((visibility("default"))) ssize_t sendmsg(int fd, const msghdr *message,
                                                                  int flags)
{
    static auto *next = reinterpret_cast<decltype(&sendmsg)>(dlsym(RTLD_NEXT, "sendmsg"));
    ++sends;
    return next(fd, message, flags);
}

namespace {

options msg()
{
    options o;
    o.type = FI_EP_MSG;
    return o;
}

// A server and a client of one process.
class both_ends {
  public:
    explicit both_ends(partner &p) : server_(msg()), client_(msg())
    {
        server_.listen(p);
        size_t length = sizeof(name_);
        REQUIRE_EQ(fi_getname(&server_.pep->fid, &name_, &length), 0);
    }

    void connect()
    {
        client_.open_active(client_.info);
        REQUIRE_EQ(fi_connect(client_.ep, &name_, nullptr, 0), 0);
        connected_ = 0;
        auto end = std::chrono::steady_clock::now() + patience;
        while (connected_ < 2) {
            REQUIRE(std::chrono::steady_clock::now() < end);
            progress();
        }
    }

    void close()
    {
        client_.close_active();
        server_.close_active();
    }

    void progress()
    {
        read(server_);
        read(client_);
    }

  private:
    void read(fabric_side &side)
    {
        union {
            fi_eq_cm_entry head;
            char room[sizeof(fi_eq_cm_entry) + 64];
        } e = {};
        uint32_t type = 0;
        ssize_t n = fi_eq_read(side.eq, &type, &e, sizeof(e), 0);
        if (n == -FI_EAGAIN) {
            return;
        }
        REQUIRE(n > 0);
        if (type == FI_CONNREQ) {
            side.open_active(e.head.info);
            fi_freeinfo(e.head.info);
            REQUIRE_EQ(fi_accept(side.ep, nullptr, 0), 0);
            return;
        }
        REQUIRE_EQ(type, static_cast<uint32_t>(FI_CONNECTED));
        ++connected_;
    }

    fabric_side server_, client_;
    sockaddr_in name_ = {};
    int connected_ = 0;
};

class prov_cm_calls_test : public testing::Test {
  protected:
    // In a process that has not touched libfabric yet.
    void run(const std::function<void(both_ends &)> &body)
    {
        auto here = [&](partner &p) {
            setenv("FI_UCXLIKE_TLS", "tcp", 1);
            both_ends b(p);
            b.connect(); // the lanes of the two
            b.close();
            body(b);
        };
        auto elsewhere = [](partner &p) {
            sockaddr_in name;
            p.hear(&name, sizeof(name));
        };
        EXPECT_EQ(run_pair(here, elsewhere), "");
    }
};

// The request, the answer and the word that it has come. What was never used ends without another.
TEST_F(prov_cm_calls_test, connection_takes_three_messages)
{
    run([](both_ends &b) {
        constexpr int count = 16;
        int before = sends;
        for (int i = 0; i < count; ++i) {
            b.connect();
            b.close();
        }
        b.progress();
        REQUIRE(sends - before <= 3 * count);
    });
}

} // namespace
