// SPDX-License-Identifier: BSD-3-Clause
// What a killed process has reserved in a queue of the shm core and not committed is skipped, and
// what stands behind it arrives.
#include "fabtests-ext/common/emulated.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"
#include "ucs/sys.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/quirks/shm_queue.h"
#include "uct/ofi/quirks/shm_region.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <unistd.h>

namespace {

using uct_conformance::entity;
using uct_conformance::peer_process;

std::string region_of(const entity::address &a)
{
    return a.iface.data() + sizeof(uct::ofi::rdm_address);
}

// As a writer does first. False: there is no such queue here.
bool reserve_entry(const std::string &name)
{
    uct::ofi::shm_region region(name);
    const uct::ofi::shm_layout *layout = region.layout();
    if (!layout || layout->queues[0].entry_size == 0) {
        return false;
    }
    uint64_t offset = 0;
    memcpy(&offset, region.head() + layout->queues[0].offset_at, sizeof(offset));
    auto *write_pos = reinterpret_cast<int64_t *>(region.head() + offset);
    __atomic_fetch_add(write_pos, 1, __ATOMIC_ACQ_REL);
    return true;
}

constexpr size_t length = 300;
constexpr char no_queue[] = "the queues of this libfabric's shm are under its lock";

size_t pack(void *to, void *)
{
    memset(to, 'x', length);
    return length;
}

class shm_queue : public ::testing::Test {
  protected:
    void SetUp() override
    {
        SKIP_IF_EMULATED("a process has another start time for itself than for others");
        ep = sender.connect(receiver);
    }

    void send()
    {
        for (;;) {
            ssize_t sent = uct_ep_am_bcopy(ep, 1, pack, nullptr, 0);
            if (sent != UCS_ERR_NO_RESOURCE) {
                ASSERT_EQ(sent, static_cast<ssize_t>(length));
                return;
            }
            progress();
        }
    }
    void progress()
    {
        uct_worker_progress(sender.worker);
        uct_worker_progress(receiver.worker);
    }
    bool arrive(size_t count)
    {
        auto end = std::chrono::steady_clock::now() + uct_conformance::patience;
        while (receiver.received.size() < count && std::chrono::steady_clock::now() < end) {
            progress();
        }
        return receiver.received.size() == count;
    }

    entity sender{"shm", {}};
    entity receiver{"shm", {}};
    uct_ep_h ep = nullptr;
};

TEST_F(shm_queue, what_is_behind_an_uncommitted_entry_arrives_when_that_is_skipped)
{
    send();
    ASSERT_TRUE(arrive(1));
    std::string region = region_of(receiver.where());
    if (!reserve_entry(region)) {
        GTEST_SKIP() << no_queue;
    }
    for (int i = 0; i < 3; ++i) {
        send();
    }
    for (int i = 0; i < 1000; ++i) {
        progress();
    }
    EXPECT_EQ(receiver.received.size(), 1u);
    EXPECT_TRUE(uct::ofi::repair_shm_queues(region));
    EXPECT_TRUE(arrive(4));
}

TEST_F(shm_queue, is_as_before_when_nothing_is_left_behind)
{
    for (size_t i = 0; i < 2000; ++i) { // goes round
        send();
        EXPECT_TRUE(uct::ofi::repair_shm_queues(region_of(receiver.where())));
        ASSERT_TRUE(arrive(i + 1));
    }
}

TEST(shm_queue_without_a_region, does_nothing)
{
    EXPECT_TRUE(uct::ofi::repair_shm_queues("ucxlike-test-no-such-region"));
}

// A file that looks like a region of version 8, of one page.
class damaged_shm_queue : public ::testing::Test {
  protected:
    void SetUp() override
    {
        int fd = open(("/dev/shm/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        ASSERT_GE(fd, 0);
        EXPECT_EQ(ftruncate(fd, static_cast<off_t>(ucs::page_size())), 0);
        close(fd);
        region = std::make_unique<uct::ofi::shm_region>(name);
        ASSERT_NE(region->head(), nullptr);
        region->head()[0] = 8;
        set(region->layout()->queues[0].offset_at, queue);
    }
    void TearDown() override { unlink(("/dev/shm/" + name).c_str()); }

    void set(uint64_t at, uint64_t value) { memcpy(region->head() + at, &value, sizeof(value)); }
    uint64_t get(uint64_t at)
    {
        uint64_t value;
        memcpy(&value, region->head() + at, sizeof(value));
        return value;
    }

    static constexpr uint64_t queue = 256, first_entry = queue + 192;
    std::string name = "ucxlike-test-" + std::to_string(getpid());
    std::unique_ptr<uct::ofi::shm_region> region;
};

TEST_F(damaged_shm_queue, is_gone_round_once)
{
    set(queue, INT64_MAX);            // where it was written to
    set(queue + 128, 1ull << 32 | 2); // two entries: of them the first is not committed
    EXPECT_TRUE(uct::ofi::repair_shm_queues(name));
    EXPECT_EQ(get(first_entry), 1u);
}

TEST(shm_peer, that_is_killed_between_reserving_and_committing_stops_nobody)
{
    SKIP_IF_EMULATED("a process that was forked has its parent's start time in /proc/self/stat");
    peer_process victim("shm", {}, [](entity &, const entity::address &us) {
        return reserve_entry(region_of(us));
    });
    entity::address there = victim.where();
    entity sender("shm", {});
    entity receiver("shm", {});
    victim.tell(receiver);
    receiver.connect(there);
    if (!victim.report()) {
        GTEST_SKIP() << no_queue;
    }
    uct_ep_h ep = sender.connect(receiver);
    auto end = std::chrono::steady_clock::now() + uct_conformance::patience;
    auto progress = [&] {
        uct_worker_progress(sender.worker);
        uct_worker_progress(receiver.worker);
        return std::chrono::steady_clock::now() < end;
    };
    victim.end();
    ssize_t sent = UCS_ERR_NO_RESOURCE;
    do {
        sent = uct_ep_am_bcopy(ep, 1, pack, nullptr, 0);
    } while (sent == UCS_ERR_NO_RESOURCE && progress());
    ASSERT_EQ(sent, static_cast<ssize_t>(length));
    while ((receiver.received.empty() || receiver.errors.empty()) && progress()) {
    }
    EXPECT_EQ(receiver.received.size(), 1u);
    EXPECT_EQ(receiver.errors.size(), 1u);
}

} // namespace
