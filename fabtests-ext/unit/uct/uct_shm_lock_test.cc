// SPDX-License-Identifier: BSD-3-Clause
// The lock of a shm region is released when its holder is dead, and left alone when it is in use or
// unknown. Until then none lets go of the region.
#include "fabtests-ext/common/emulated.h"
#include "fabtests-ext/conformance/common/uct_peer_process.h"
#include "ucs/sys.h"
#include "uct/ofi/core/address.h"
#include "uct/ofi/quirks/shm_lock.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
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
using uct_conformance::guard;
using uct_conformance::peer_process;
using uct_conformance::posting;

// Of the peer, which was forked: it stands at the same address there.
uint64_t number = 0;

size_t pack(void *to, void *key)
{
    auto *packed_key = static_cast<std::string *>(key);
    memcpy(to, packed_key->data(), packed_key->size());
    return packed_key->size();
}

// Gives away the key of the number, lets it be changed once, and then takes the lock of its own
// region. False: libfabric's shm waits for that lock to take an answer (1.19 and later do).
bool serve_and_lock(entity &self, const entity::address &)
{
    std::string key(self.md_attr.rkey_packed_size, 0);
    uct_mem_h memh;
    if (uct_md_mem_reg(self.md, &number, sizeof(number), UCT_MD_MEM_ACCESS_ALL, &memh) != UCS_OK ||
        uct_md_mkey_pack(self.md, memh, key.data()) != UCS_OK) {
        return false;
    }
    while (uct_ep_am_bcopy(self.eps[0], 1, pack, &key, 0) == UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(self.worker);
    }
    while (__atomic_load_n(&number, __ATOMIC_RELAXED) == 0) {
        uct_worker_progress(self.worker);
    }
    uct::ofi::shm_region region(self.iface_address.data() + sizeof(uct::ofi::rdm_address));
    const uct::ofi::shm_layout *layout = region.layout();
    if (!layout || layout->version != 4) {
        return false;
    }
    pthread_spin_lock(reinterpret_cast<pthread_spinlock_t *>(region.head() + layout->lock));
    return true;
}

// The core looks into the peer's region for the answer to an atomic operation.
TEST(shm_peer, is_let_go_of_with_an_operation_unfinished)
{
    SKIP_IF_EMULATED("a process that was forked has its parent's start time in /proc/self/stat");
    peer_process peer("shm", {}, serve_and_lock);
    entity self("shm", {});
    entity::address there = peer.where();
    peer.tell(self);
    uct_ep_h ep = self.connect(there);
    auto end = std::chrono::steady_clock::now() + uct_conformance::patience;
    while (self.received.empty() && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(self.worker);
    }
    ASSERT_FALSE(self.received.empty());
    uct_rkey_bundle_t key;
    ASSERT_EQ(uct_rkey_unpack(self.component, self.received.back().data.data(), &key), UCS_OK);
    uint64_t before = 0;
    guard added;
    auto add = [&] {
        return posting([&] {
            return uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &before,
                                         reinterpret_cast<uint64_t>(&number), key.rkey,
                                         &added.completion);
        });
    };
    ucs_status_t status = add();
    while (status == UCS_ERR_NO_RESOURCE && std::chrono::steady_clock::now() < end) {
        uct_worker_progress(self.worker);
        status = add();
    }
    ASSERT_EQ(status, UCS_INPROGRESS);
    if (!peer.report()) {
        GTEST_SKIP() << "this libfabric's shm waits for the lock to take an answer";
    }
    // The peer has answered, and its lock is held.
    self.destroy(ep);
    EXPECT_EQ(added.calls, 1);
    for (int i = 0; i < 1000; ++i) {
        uct_worker_progress(self.worker);
    }
    peer.end();
    for (int i = 0; i < 1000; ++i) {
        uct_worker_progress(self.worker);
    }
    EXPECT_EQ(uct_rkey_release(self.component, &key), UCS_OK);
}

} // namespace
