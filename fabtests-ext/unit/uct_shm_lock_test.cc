// SPDX-License-Identifier: BSD-3-Clause
// The lock of a shm region is released when its holder is dead, and left alone when it is in use or
// unknown. Until then nobody lets go of the region.
#include "fabtests-ext/conformance/uct_entity.h"
#include "ucs/sys.h"
#include "uct/ofi/address.h"
#include "uct/ofi/shm_lock.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
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
    guarded.repair();
    EXPECT_TRUE(is_free());
}

TEST_F(shm_lock, free_one_stays_free)
{
    uct::ofi::shm_lock guarded(name);
    guarded.repair();
    EXPECT_TRUE(is_free());
}

TEST_F(shm_lock, of_an_unknown_version_is_left_alone)
{
    region[0] = 100;
    uct::ofi::shm_lock guarded(name);
    pthread_spin_lock(lock);
    guarded.repair();
    EXPECT_FALSE(is_free());
}

TEST(shm_lock_without_a_region, does_nothing)
{
    uct::ofi::shm_lock guarded("ucxlike-test-no-such-region");
    guarded.repair();
}

using uct_conformance::entity;

// A peer in another process that takes one large message and is killed with its own lock held.
class locked_peer {
  public:
    locked_peer()
    {
        EXPECT_EQ(pipe(up_), 0);
        EXPECT_EQ(pipe(down_), 0);
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL); // a test that crashes leaves nobody behind
            _exit(run());
        }
        close(up_[1]);
        close(down_[0]);
    }

    ~locked_peer()
    {
        end();
        close(up_[0]);
        close(down_[1]);
    }

    void end()
    {
        if (pid_ > 0) {
            kill(pid_, SIGKILL);
            waitpid(pid_, nullptr, 0);
            pid_ = -1;
        }
    }

    entity::address where() { return take(up_[0]); }
    void tell(const entity &e) { give(down_[1], e); }

    // Blocks until the message is there. False: the region has another layout.
    bool holds_lock()
    {
        char locked = 0;
        return read(up_[0], &locked, 1) == 1 && locked;
    }

    static constexpr size_t large = 8000; // more than shm copies when it is sent
    static constexpr uint8_t id = 3;

  private:
    static void give(int fd, const entity &e)
    {
        for (const std::vector<char> &part : {e.device_address, e.iface_address}) {
            size_t size = part.size();
            EXPECT_EQ(write(fd, &size, sizeof(size)), static_cast<ssize_t>(sizeof(size)));
            EXPECT_EQ(write(fd, part.data(), size), static_cast<ssize_t>(size));
        }
    }

    static entity::address take(int fd)
    {
        entity::address a;
        for (std::vector<char> *part : {&a.device, &a.iface}) {
            size_t size = 0;
            EXPECT_EQ(read(fd, &size, sizeof(size)), static_cast<ssize_t>(sizeof(size)));
            part->resize(size);
            EXPECT_EQ(read(fd, part->data(), size), static_cast<ssize_t>(size));
        }
        return a;
    }

    static bool take_lock(const entity &e)
    {
        const char *name = e.iface_address.data() + sizeof(uct::ofi::rdm_address);
        int fd = open(("/dev/shm/" + std::string(name)).c_str(), O_RDWR | O_CLOEXEC);
        void *region = mmap(nullptr, ucs::page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (region == MAP_FAILED || *static_cast<char *>(region) != 4) {
            return false;
        }
        void *lock = static_cast<char *>(region) + 24;
        pthread_spin_lock(static_cast<pthread_spinlock_t *>(lock));
        return true;
    }

    int run()
    {
        entity self("shm", {});
        give(up_[1], self);
        self.connect(take(down_[0]));
        while (self.received.empty() || self.received.back().id != id) {
            uct_worker_progress(self.worker);
        }
        char locked = take_lock(self);
        if (write(up_[1], &locked, 1) == 1) {
            pause();
        }
        return 0;
    }

    pid_t pid_ = -1;
    int up_[2];
    int down_[2];
};

size_t pack_large(void *to, void *)
{
    memset(to, 'x', locked_peer::large);
    return locked_peer::large;
}

TEST(shm_peer, is_let_go_of_with_a_message_unfinished)
{
    locked_peer peer;
    entity self("shm", {});
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
    ASSERT_EQ(uct_ep_am_bcopy(ep, locked_peer::id, pack_large, nullptr, 0),
              static_cast<ssize_t>(locked_peer::large));
    if (!peer.holds_lock()) {
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
