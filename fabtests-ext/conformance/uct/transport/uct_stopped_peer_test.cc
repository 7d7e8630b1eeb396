// SPDX-License-Identifier: BSD-3-Clause
// A peer that does not call in, or is stopped: what goes to others goes on, and what ends while the
// core still has it ends once.
#include "fabtests-ext/conformance/common/uct_entity.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"

#include <fcntl.h>

namespace uct_conformance {
namespace {

class uct_stopped_peer : public uct_test {
  protected:
    ssize_t send(uct_ep_h ep, uint8_t id, const std::string &data)
    {
        packed p{data};
        return post([&] { return uct_ep_am_bcopy(ep, id, pack, &p, 0); });
    }
};

TEST_P(uct_stopped_peer, a_peer_that_does_not_read_holds_up_nobody_else)
{
    if (alone()) {
        GTEST_SKIP() << "an endpoint reaches its own worker alone";
    }
    entity sleeper(GetParam(), {});
    uct_ep_h to_sleeper = a().connect(sleeper);
    uct_ep_h ep = a().connect(b());
    auto reads = [&] {
        uct_worker_progress(sleeper.worker);
        return !sleeper.received.empty();
    };
    bool sent = false; // once: what it does not read takes room of the core
    ASSERT_TRUE(until([&] {
        sent = sent || uct_ep_am_short(to_sleeper, 1, 1, nullptr, 0) == UCS_OK;
        return reads();
    }));
    sleeper.received.clear();

    std::string data = pattern(a().attr.cap.am.max_bcopy, 1);
    ASSERT_EQ(send(to_sleeper, 2, data), static_cast<ssize_t>(data.size()));
    ASSERT_EQ(send(ep, 2, data), static_cast<ssize_t>(data.size()));
    EXPECT_TRUE(until([&] { return !b().received.empty(); }));
    EXPECT_TRUE(until([&] { return uct_ep_flush(ep, 0, nullptr) == UCS_OK; }));
    EXPECT_TRUE(until([&] { return reads() && sleeper.received.back().id == 2; }));
    EXPECT_EQ(sleeper.received.back().data, data);
}

UCT_INSTANTIATE(uct_stopped_peer);

// Where memory of a peer's process is.
struct place {
    uint64_t address;
    char key[64];
};

constexpr uint8_t tells_place = 1;
constexpr uint8_t tells_change = 2;

// Tells where a number of it is, and when that changes.
bool serve(entity &self, const entity::address &)
{
    auto *number = new uint64_t(0);
    uct_mem_h memh;
    place here{.address = reinterpret_cast<uint64_t>(number), .key = {}};
    if (self.md_attr.rkey_packed_size > sizeof(here.key) ||
        uct_md_mem_reg(self.md, number, sizeof(*number), UCT_MD_MEM_ACCESS_ALL, &memh) != UCS_OK ||
        uct_md_mkey_pack(self.md, memh, here.key) != UCS_OK) {
        return false;
    }
    auto tell = [&](uint8_t id) {
        packed p{std::string(reinterpret_cast<char *>(&here), sizeof(here))};
        while (uct_ep_am_bcopy(self.eps[0], id, pack, &p, 0) == UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(self.worker);
        }
    };
    tell(tells_place);
    while (__atomic_load_n(number, __ATOMIC_RELAXED) == 0) {
        uct_worker_progress(self.worker);
    }
    tell(tells_change);
    for (;;) {
        uct_worker_progress(self.worker);
    }
}

struct server {
    peer_process process{"shm", {}, serve};
    entity::address where = process.where();
    uct_ep_h ep = nullptr;
    place there{};
    uct_rkey_bundle_t key{};
    uint64_t before = 0; // what the number was
    guard added{};
};

class uct_stopped_process : public ::testing::Test {
  protected:
    bool until(const std::function<bool()> &holds)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (!holds()) {
            uct_worker_progress(self_->worker);
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
        }
        return true;
    }
    void find(server &s)
    {
        s.process.tell(*self_);
        s.ep = self_->connect(s.where);
        ASSERT_TRUE(until([&] { return !self_->received.empty(); }));
        std::string data = self_->received.back().data;
        self_->received.clear();
        ASSERT_EQ(data.size(), sizeof(s.there));
        memcpy(&s.there, data.data(), data.size());
        ASSERT_EQ(uct_rkey_unpack(self_->component, s.there.key, &s.key), UCS_OK);
    }
    // As the kernel sees it.
    static uint64_t number_of(const server &s)
    {
        uint64_t number = 0;
        std::string path = "/proc/" + std::to_string(s.process.pid()) + "/mem";
        int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
        EXPECT_EQ(pread(fd, &number, sizeof(number), static_cast<off_t>(s.there.address)),
                  static_cast<ssize_t>(sizeof(number)));
        close(fd);
        return number;
    }
    void add(server &s, guard &g)
    {
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        EXPECT_TRUE(until([&] {
            status = posting([&] {
                return uct_ep_atomic64_fetch(s.ep, UCT_ATOMIC_OP_ADD, 1, &s.before, s.there.address,
                                             s.key.rkey, &g.completion);
            });
            return status != UCS_ERR_NO_RESOURCE;
        }));
        EXPECT_EQ(status, UCS_INPROGRESS);
    }

    std::unique_ptr<entity> self_;
};

// A core that ends operations in their order ends the one to a peer that was killed behind the one
// to a peer that is stopped, when it has ended for the user already. Later cores end it at once.
TEST_F(uct_stopped_process, who_is_killed_while_another_is_stopped_fails_once)
{
    server stopped, killed; // they fork first
    self_ = std::make_unique<entity>("shm", entity::options{});
    find(stopped);
    find(killed);
    stopped.process.stop();
    add(stopped, stopped.added);
    add(killed, killed.added);
    ASSERT_TRUE(until([&] { return !self_->received.empty(); }));
    EXPECT_EQ(self_->received[0].id, tells_change);
    killed.process.end();
    ASSERT_TRUE(until([&] { return !self_->errors.empty(); }));
    EXPECT_EQ(killed.added.calls, 1);
    EXPECT_EQ(stopped.added.calls, 0);

    stopped.process.go_on();
    ASSERT_TRUE(until([&] { return stopped.added.calls == 1; }));
    EXPECT_EQ(stopped.added.completion.status, UCS_OK);
    for (int i = 0; i < 100; ++i) {
        guard again;
        add(stopped, again);
        ASSERT_TRUE(until([&] { return again.calls == 1; }));
        EXPECT_EQ(stopped.before, i + 1u);
    }
    EXPECT_EQ(uct_iface_flush(self_->iface, 0, nullptr), UCS_OK);
    EXPECT_EQ(killed.added.calls, 1);
    EXPECT_EQ(self_->errors.size(), 1u);
    for (server *s : {&stopped, &killed}) {
        EXPECT_EQ(uct_rkey_release(self_->component, &s->key), UCS_OK);
    }
}

// The kernel copies for the core, or the target does when it goes on: a flush waits for that.
TEST_F(uct_stopped_process, a_flushed_put_is_there)
{
    server target;
    self_ = std::make_unique<entity>("shm", entity::options{});
    find(target);
    target.process.stop();
    const uint64_t one = 1;
    ucs_status_t status = UCS_ERR_NO_RESOURCE;
    ASSERT_TRUE(until([&] {
        status =
            uct_ep_put_short(target.ep, &one, sizeof(one), target.there.address, target.key.rkey);
        return status != UCS_ERR_NO_RESOURCE;
    }));
    ASSERT_EQ(status, UCS_OK);
    guard flushed;
    status = uct_ep_flush(target.ep, 0, &flushed.completion);
    auto is_flushed = [&] { return status == UCS_OK || flushed.calls == 1; };
    for (int i = 0; i < 1000 && !is_flushed(); ++i) {
        uct_worker_progress(self_->worker);
    }
    if (is_flushed()) {
        EXPECT_EQ(number_of(target), one);
    }
    target.process.go_on();
    ASSERT_TRUE(until(is_flushed));
    EXPECT_EQ(number_of(target), one);
    EXPECT_EQ(uct_rkey_release(self_->component, &target.key), UCS_OK);
}

} // namespace
} // namespace uct_conformance
