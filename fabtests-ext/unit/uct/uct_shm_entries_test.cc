// SPDX-License-Identifier: BSD-3-Clause
// The 256 peers of an interface over libfabric's shm: an entry for each, taken before the core
// sends, no more than there are, and free again when the peer has gone.
#include "fabtests-ext/common/all_descriptors.h"
#include "fabtests-ext/common/emulated.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"
#include "uct/ofi/quirks/shm_peers.h"
#include "uct/ofi/shm/entries.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <vector>

namespace {

using uct::ofi::entry_table;
using uct::ofi::shm_file::parts;
using uct_conformance::entity;
using uct_conformance::guard;
using uct_conformance::patience;
using uct_conformance::peer_process;
using uct_conformance::posting;

parts peer_number(unsigned n)
{
    return {100, 7, n};
}

std::unique_ptr<entry_table> full_table()
{
    auto table = std::make_unique<entry_table>();
    std::set<unsigned> indices;
    for (unsigned i = 0; i < entry_table::size; ++i) {
        indices.insert(table->take(peer_number(i), entry_table::peer));
    }
    EXPECT_EQ(indices.size(), entry_table::size);
    return table;
}

TEST(shm_entries, are_one_for_each_peer_whichever_side_takes_it)
{
    auto table = std::make_unique<entry_table>();
    unsigned index = table->take(peer_number(1), entry_table::peer);
    EXPECT_EQ(table->take(peer_number(1), entry_table::owner), index);
    EXPECT_NE(table->take(peer_number(2), entry_table::owner), index);
    parts other_birth = {100, 8, 1};
    EXPECT_NE(table->take(other_birth, entry_table::owner), index);
}

TEST(shm_entries, are_refused_when_all_are_taken)
{
    auto table = full_table();
    EXPECT_TRUE(table->is_full());
    EXPECT_EQ(table->told() & entry_table::refused, 0u);
    EXPECT_EQ(table->take(peer_number(1000), entry_table::peer), entry_table::none);
    EXPECT_NE(table->told() & entry_table::refused, 0u);
    EXPECT_NE(table->take(peer_number(5), entry_table::owner), entry_table::none);
}

TEST(shm_entries, are_freed_when_neither_side_uses_them)
{
    auto table = full_table();
    unsigned index = table->take(peer_number(5), entry_table::owner);
    EXPECT_FALSE(table->begin_free(index));
    table->leave(index, peer_number(5), entry_table::peer);
    EXPECT_FALSE(table->begin_free(index));
    table->leave(index, peer_number(6), entry_table::owner); // not its entry
    EXPECT_FALSE(table->begin_free(index));
    table->leave(index, peer_number(5), entry_table::owner);
    ASSERT_TRUE(table->begin_free(index));
    EXPECT_EQ(table->take(peer_number(1000), entry_table::peer), entry_table::none);
    EXPECT_EQ(table->take(peer_number(5), entry_table::peer), entry_table::none);
    table->end_free(index);
    EXPECT_EQ(table->take(peer_number(1000), entry_table::peer), index);
}

// One interface, and as many others as it has room for.
class full_shm : public ::testing::Test {
  protected:
    static constexpr unsigned room = entry_table::size;

    void SetUp() override
    {
        SKIP_IF_EMULATED("a process has another start time for itself than for others");
    }

    static std::unique_ptr<entity> open()
    {
        return std::make_unique<entity>("shm", entity::options{});
    }
    void fill(unsigned by_us, unsigned by_them)
    {
        for (unsigned i = 0; i < by_us + by_them; ++i) {
            others_.push_back(open());
            if (i < by_us) {
                hub_->connect(*others_.back());
            } else {
                others_.back()->connect(*hub_);
            }
        }
    }
    ucs_status_t attempt(entity &from, entity &to)
    {
        ucs_status_t status;
        if (uct_ep_h ep = from.try_connect(to, &status)) {
            from.eps.push_back(ep);
        }
        return status;
    }
    static bool is_reachable(entity &from, const entity &to)
    {
        entity::address a = to.where();
        return uct_iface_is_reachable(from.iface,
                                      reinterpret_cast<uct_device_addr_t *>(a.device.data()),
                                      reinterpret_cast<uct_iface_addr_t *>(a.iface.data()));
    }
    // Until a peer takes an entry that became free.
    bool gets_in(entity &peer)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        ucs_status_t status;
        while ((status = attempt(peer, *hub_)) == UCS_ERR_EXCEEDS_LIMIT &&
               std::chrono::steady_clock::now() < end) {
            uct_worker_progress(hub_->worker);
        }
        return status == UCS_OK;
    }
    bool until(entity &a, const std::function<bool()> &holds)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        while (!holds() && std::chrono::steady_clock::now() < end) {
            uct_worker_progress(a.worker);
            uct_worker_progress(hub_->worker);
        }
        return holds();
    }
    void message_arrives(entity &from, entity &to, uint64_t number)
    {
        size_t before = to.received.size();
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        EXPECT_TRUE(until(&from == hub_.get() ? to : from, [&] {
            if (status == UCS_ERR_NO_RESOURCE) {
                status = uct_ep_am_short(from.eps.back(), 1, number, nullptr, 0);
            }
            return to.received.size() > before;
        }));
        EXPECT_EQ(status, UCS_OK);
        ASSERT_EQ(to.received.size(), before + 1);
        EXPECT_EQ(memcmp(to.received.back().data.data(), &number, sizeof(number)), 0);
    }
    // Adds to a number of the other side, which answers with what it was.
    void answer_comes(entity &from, entity &to)
    {
        alignas(64) uint64_t number = 40;
        uct_mem_h memory = nullptr;
        ASSERT_EQ(uct_md_mem_reg(to.md, &number, sizeof(number), UCT_MD_MEM_ACCESS_ALL, &memory),
                  UCS_OK);
        std::vector<char> packed(to.md_attr.rkey_packed_size);
        ASSERT_EQ(uct_md_mkey_pack(to.md, memory, packed.data()), UCS_OK);
        uct_rkey_bundle_t key;
        ASSERT_EQ(uct_rkey_unpack(from.component, packed.data(), &key), UCS_OK);
        guard done;
        uint64_t was = 0;
        ucs_status_t status = UCS_ERR_NO_RESOURCE;
        EXPECT_TRUE(until(&from == hub_.get() ? to : from, [&] {
            if (status == UCS_ERR_NO_RESOURCE) {
                status = posting([&] {
                    return uct_ep_atomic64_fetch(from.eps.back(), UCT_ATOMIC_OP_ADD, 2, &was,
                                                 reinterpret_cast<uint64_t>(&number), key.rkey,
                                                 &done.completion);
                });
            }
            return status == UCS_OK || done.calls == 1;
        }));
        EXPECT_EQ(was, 40u);
        EXPECT_EQ(number, 42u);
        EXPECT_EQ(uct_rkey_release(from.component, &key), UCS_OK);
        EXPECT_EQ(uct_md_mem_dereg(to.md, memory), UCS_OK);
    }

    std::unique_ptr<entity> hub_;
    std::vector<std::unique_ptr<entity>> others_;
};

bool send_one(entity &self, const entity::address &)
{
    while (uct_ep_am_short(self.eps[0], 1, 5, nullptr, 0) == UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(self.worker);
    }
    return true;
}

TEST_F(full_shm, refuses_the_next_peer_until_one_is_killed)
{
    peer_process victim("shm", {}, send_one);
    hub_ = open();
    victim.tell(*hub_);
    ASSERT_TRUE(until(*hub_, [&] { return !hub_->received.empty(); }));
    fill(room / 2, room - room / 2 - 1);
    auto next = open();
    EXPECT_FALSE(is_reachable(*next, *hub_));
    EXPECT_EQ(attempt(*next, *hub_), UCS_ERR_EXCEEDS_LIMIT);
    EXPECT_FALSE(is_reachable(*hub_, *next));
    EXPECT_EQ(attempt(*hub_, *next), UCS_ERR_EXCEEDS_LIMIT);
    EXPECT_EQ(attempt(*hub_, *others_.back()), UCS_OK); // has one already
    EXPECT_EQ(attempt(*others_.front(), *hub_), UCS_OK);
    EXPECT_TRUE(is_reachable(*next, *others_.front()));
    victim.end();
    if (uct::ofi::shm_peers::are_removable()) {
        EXPECT_TRUE(gets_in(*next));
    }
}

// That one process reaches and another awaits.
class step {
  public:
    step() { EXPECT_GE(fd_, 0); }
    step(const step &) = delete;
    step &operator=(const step &) = delete;
    ~step() { close(fd_); }

    void reach() { EXPECT_EQ(eventfd_write(fd_, 1), 0); }
    bool await()
    {
        eventfd_t value = 0;
        return eventfd_read(fd_, &value) == 0;
    }

  private:
    const int fd_ = eventfd(0, EFD_CLOEXEC);
};

// Its region is mapped with one that the interface has kept. The peer sends when the interface has
// progressed once since the peer took its entry: one that sends within that round comes too early.
TEST_F(full_shm, meets_a_peer_when_no_descriptor_is_left)
{
    SKIP_IF_EMULATED("a process that was forked has its parent's start time in /proc/self/stat");
    if (!uct::ofi::shm_peers::are_removable()) {
        GTEST_SKIP() << "this libfabric maps regions of peers by itself";
    }
    step connected, met;
    peer_process other("shm", {}, [&](entity &self, const entity::address &us) {
        connected.reach();
        return met.await() && send_one(self, us);
    });
    hub_ = open();
    other.tell(*hub_);
    ASSERT_TRUE(connected.await());
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    rlimit fewer = {std::min<rlim_t>(before.rlim_cur, 1024), before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &fewer), 0);
    {
        all_descriptors taken;
        EXPECT_TRUE(taken.all());
        uct_worker_progress(hub_->worker);
        met.reach();
        EXPECT_TRUE(until(*hub_, [&] { return !hub_->received.empty(); }));
    }
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    other.end();
}

// libfabric 1.17 alone can forget a peer.
TEST_F(full_shm, takes_others_when_peers_have_closed)
{
    if (!uct::ofi::shm_peers::are_removable()) {
        GTEST_SKIP() << "this libfabric does not forget peers";
    }
    constexpr unsigned turns = 3;
    hub_ = open();
    fill(0, room);
    for (unsigned turn = 0; turn < turns; ++turn) {
        entity &oldest = *others_.front();
        message_arrives(oldest, *hub_, turn);
        others_.erase(others_.begin());
        others_.push_back(open());
        entity &newest = *others_.back();
        // So that the hub has another index there than it had at the oldest.
        ASSERT_EQ(attempt(newest, *others_.front()), UCS_OK);
        ASSERT_TRUE(gets_in(newest));
        ASSERT_EQ(attempt(*hub_, newest), UCS_OK);
        message_arrives(*hub_, newest, 100 + turn);
        answer_comes(*hub_, newest);
        message_arrives(newest, *hub_, 200 + turn);
        answer_comes(newest, *hub_);
        hub_->destroy(hub_->eps.back());
    }
}

} // namespace
