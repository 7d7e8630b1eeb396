// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of the provider when there is no memory: each returns an error or works. The allocator of
// the process is this file's, which refuses what a test says.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/sanitized.h"

#include <gtest/gtest.h>

extern "C" void *__libc_malloc(size_t size); // NOLINT(bugprone-reserved-identifier)

namespace {

thread_local bool refuse_all;
std::atomic<size_t> refused_size;
std::atomic<unsigned> refused;

} // namespace

// A sanitizer has an allocator of its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                             \
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
extern "C" void *malloc(size_t size)
{
    if (refuse_all || (size && size == refused_size)) {
        ++refused;
        return nullptr;
    }
    return __libc_malloc(size);
}
#endif

using namespace app;

namespace {

class prov_memory_test : public testing::Test {
  protected:
    void SetUp() override
    {
        if (sanitized) {
            GTEST_SKIP() << "the sanitizer has an allocator of its own";
        }
    }
};

void over_tcp()
{
    setenv("FI_UCXLIKE_TLS", "tcp", 1);
}

template <class F>
ssize_t without_memory(F &&f)
{
    refuse_all = true;
    ssize_t result = f();
    refuse_all = false;
    return result;
}

// Operations that wait for the peer's word, more than anything was made for in advance.
void run_window(const std::function<ssize_t(fabric_side &, const remote &)> &post)
{
    constexpr int window = 500;
    auto server = [&](partner &p) {
        over_tcp();
        options o;
        o.caps |= FI_RMA;
        fabric_side s(o);
        s.open_rdm(p);
        char memory[8] = {};
        remote r = s.expose(memory, sizeof(memory), FI_REMOTE_WRITE);
        p.tell(&r, sizeof(r));
        for (int i = 0; i < window; ++i) {
            REQUIRE_EQ(fi_trecv(s.ep, nullptr, 0, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
        }
        s.serve_until_told(p);
    };
    auto client = [&](partner &p) {
        over_tcp();
        options o;
        o.caps |= FI_RMA;
        fabric_side s(o);
        s.open_rdm(p);
        remote r;
        p.hear(&r, sizeof(r));
        s.retry([&] { return fi_tinject(s.ep, nullptr, 0, s.peer, 2); }); // connects
        for (int i = 0; i < window; ++i) {
            ssize_t result = without_memory([&] { return post(s, r); });
            REQUIRE(result == 0 || result == -FI_EAGAIN || result == -FI_ENOMEM);
            if (result) {
                s.retry([&] { return post(s, r); });
            }
        }
        REQUIRE(refused > 0);
        for (int i = 0; i < window; ++i) {
            s.complete(s.txcq);
        }
        p.tell(1);
    };
    EXPECT_EQ(run_pair(server, client), "");
}

TEST_F(prov_memory_test, a_send_returns_an_error)
{
    run_window([](fabric_side &s, const remote &) {
        fi_msg_tagged m = {};
        m.addr = s.peer;
        m.tag = 1;
        return fi_tsendmsg(s.ep, &m, FI_DELIVERY_COMPLETE | FI_COMPLETION);
    });
}

TEST_F(prov_memory_test, a_write_returns_an_error)
{
    run_window([](fabric_side &s, const remote &r) {
        static char data[8];
        return fi_write(s.ep, data, sizeof(data), nullptr, s.peer, r.address, r.key, nullptr);
    });
}

// A message that cannot be kept until its receive comes is not delivered as an empty one.
TEST_F(prov_memory_test, a_message_that_was_lost_is_an_error)
{
    constexpr size_t size = 777;
    auto server = [&](partner &p) {
        over_tcp();
        fabric_side s({});
        s.open_rdm(p);
        refused_size = size;
        REQUIRE_EQ(s.serve_until_told(p), 1u);
        refused_size = 0;
        REQUIRE(refused > 0);
        char buffer[size];
        REQUIRE_EQ(fi_trecv(s.ep, buffer, size, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr), 0);
        fi_cq_err_entry error = {};
        s.complete(s.rxcq, &error);
        REQUIRE_EQ(error.err, FI_ENOMEM);
        p.tell(1);
    };
    auto client = [&](partner &p) {
        over_tcp();
        fabric_side s({});
        s.open_rdm(p);
        s.retry([&] { return fi_tinject(s.ep, pattern(size, 1).data(), size, s.peer, 1); });
        // Behind it, so that it has arrived.
        fi_msg_tagged m = {};
        m.addr = s.peer;
        m.tag = 2;
        s.retry([&] { return fi_tsendmsg(s.ep, &m, FI_TRANSMIT_COMPLETE | FI_COMPLETION); });
        s.complete(s.txcq);
        p.tell(1);
        s.serve_until_told(p);
    };
    EXPECT_EQ(run_pair(server, client), "");
}

} // namespace
