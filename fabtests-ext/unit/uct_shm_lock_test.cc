// SPDX-License-Identifier: BSD-3-Clause
// The lock of a shm region is released when its holder is dead, and left alone when it is in use or
// unknown. Until then nobody lets go of the region.
#include "fabtests-ext/common/emulated.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"
#include "ucs/sys.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/quirks/shm_lock.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

class shm_lock : public ::testing::Test {
  protected:
    void SetUp() override
    {
        int fd = open(("/dev/shm/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        ASSERT_GE(fd, 0);
        ASSERT_EQ(ftruncate(fd, static_cast<off_t>(ucs::page_size())), 0);
        region = static_cast<char *>(
            mmap(nullptr, ucs::page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        close(fd);
        ASSERT_NE(static_cast<void *>(region), MAP_FAILED);
        lock = reinterpret_cast<pthread_spinlock_t *>(region + 24);
        region[0] = 4;
        pthread_spin_init(lock, PTHREAD_PROCESS_SHARED);
    }

    void TearDown() override
    {
        munmap(region, ucs::page_size());
        unlink(("/dev/shm/" + name).c_str());
    }

    bool is_free()
    {
        bool taken = pthread_spin_trylock(lock) == 0;
        if (taken) {
            pthread_spin_unlock(lock);
        }
        return taken;
    }

    std::string name = "ucxlike-test-" + std::to_string(getpid());
    char *region = nullptr;
    pthread_spinlock_t *lock = nullptr;
};

TEST_F(shm_lock, is_taken_from_a_dead_holder)
{
    uct::ofi::shm_lock guarded(name);
    pid_t holder = fork();
    if (holder == 0) {
        pthread_spin_lock(lock);
        _exit(0);
    }
    waitpid(holder, nullptr, 0);
    ASSERT_FALSE(is_free());
    EXPECT_TRUE(guarded.repair());
    EXPECT_TRUE(is_free());
}

// One that is stopped goes on as if nothing had happened, in the middle of what the lock guards.
TEST_F(shm_lock, is_left_to_a_holder_that_is_stopped)
{
    uct::ofi::shm_lock guarded(name);
    pid_t holder = fork();
    if (holder == 0) {
        pthread_spin_lock(lock);
        raise(SIGSTOP);
        bool still_held = !is_free();
        pthread_spin_unlock(lock);
        _exit(still_held ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(holder, &status, WUNTRACED), holder);
    ASSERT_TRUE(WIFSTOPPED(status));
    EXPECT_FALSE(guarded.repair());
    kill(holder, SIGCONT);
    ASSERT_EQ(waitpid(holder, &status, 0), holder);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the lock was taken from it";
    EXPECT_TRUE(guarded.repair());
    EXPECT_TRUE(is_free());
}

TEST_F(shm_lock, free_one_stays_free)
{
    uct::ofi::shm_lock guarded(name);
    EXPECT_TRUE(guarded.repair());
    EXPECT_TRUE(is_free());
}

TEST_F(shm_lock, of_an_unknown_version_is_left_alone)
{
    region[0] = 100;
    uct::ofi::shm_lock guarded(name);
    pthread_spin_lock(lock);
    EXPECT_TRUE(guarded.repair());
    EXPECT_FALSE(is_free());
}

TEST(shm_lock_without_a_region, does_nothing)
{
    uct::ofi::shm_lock guarded("ucxlike-test-no-such-region");
    EXPECT_TRUE(guarded.repair());
}

using uct_conformance::entity;
using uct_conformance::peer_process;

constexpr size_t large = 8000; // more than shm copies when it is sent
constexpr uint8_t large_id = 3;

size_t pack_large(void *to, void *)
{
    memset(to, 'x', large);
    return large;
}

// Takes one large message, and then the lock of its own region. False: that has another layout.
bool receive_and_lock(entity &self, const entity::address &)
{
    while (self.received.empty() || self.received.back().id != large_id) {
        uct_worker_progress(self.worker);
    }
    uct::ofi::shm_region region(self.iface_address.data() + sizeof(uct::ofi::rdm_address));
    const uct::ofi::shm_layout *layout = region.layout();
    if (!layout || layout->lock == 0) {
        return false;
    }
    pthread_spin_lock(reinterpret_cast<pthread_spinlock_t *>(region.head() + layout->lock));
    return true;
}

TEST(shm_peer, is_let_go_of_with_a_message_unfinished)
{
    SKIP_IF_EMULATED("a process that was forked has its parent's start time in /proc/self/stat");
    entity::options wide;
    wide.seg_size = "8k";
    peer_process peer("shm", wide, receive_and_lock);
    entity self("shm", wide);
    entity::address there = peer.where();
    peer.tell(self);
    uct_ep_h ep = self.connect(there);
    while (uct_ep_am_short(ep, 1, 0, nullptr, 0) != UCS_OK) {
        uct_worker_progress(self.worker);
    }
    while (uct_ep_flush(ep, 0, nullptr) != UCS_OK) {
        uct_worker_progress(self.worker);
    }
    // The core takes it at once.
    ASSERT_EQ(uct_ep_am_bcopy(ep, large_id, pack_large, nullptr, 0), static_cast<ssize_t>(large));
    if (!peer.report()) {
        GTEST_SKIP() << "the region has another layout here";
    }
    uct_worker_progress(self.worker); // the peer is done with the message, its lock is held
    self.destroy(ep);
    for (int i = 0; i < 1000; ++i) {
        uct_worker_progress(self.worker);
    }
    peer.end();
    for (int i = 0; i < 1000; ++i) {
        uct_worker_progress(self.worker);
    }
}

} // namespace
