// SPDX-License-Identifier: BSD-3-Clause
// See shm_lock.h. What is written here about the region is the layout of libfabric 1.17 to 2.2,
// told apart by the version in its first byte.
#include "uct/ofi/shm_lock.h"

#include "ucs/log.h"
#include "ucs/sys.h"

#include <cstdint>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <vector>

namespace uct::ofi {

namespace {

// A living process holds the lock for microseconds; one that was descheduled while holding it, for
// tens of milliseconds. There is no event to wait for: the holder is dead. On a busy machine the
// samples themselves come late, so that neither their number nor the time says enough alone.
constexpr uint64_t patience_ns = 300'000'000;
constexpr int samples = 20;
constexpr timespec sample_interval = {.tv_sec = 0, .tv_nsec = 1000000};

// Offset of the lock, 0 for a version not known. The heads differ by what lies before base_addr:
//   4, 5:  version 1, reserved 1, flags 2, pid 4, cma 2, (pad 2), max_sar 4, base_addr 8, lock 4
//   6:     the same, and behind max_sar: xpmem capability 1, (pad 7), two segments of 16
//   7, 8:  the same, and behind max_sar: two segments of 16
size_t lock_offset(uint8_t version)
{
    switch (version) {
    case 4:
    case 5:
        return 24;
    case 6:
        return 64;
    case 7:
    case 8:
        return 56;
    default:
        return 0;
    }
}

} // namespace

shm_lock::shm_lock(const std::string &name)
{
    int fd = open(("/dev/shm/" + std::string(name.c_str())).c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    struct stat st;
    if (fstat(fd, &st) == 0 && static_cast<size_t>(st.st_size) >= ucs::page_size()) {
        void *head = mmap(nullptr, ucs::page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        head_ = head == MAP_FAILED ? nullptr : head;
    }
    close(fd);
    size_t offset = head_ ? lock_offset(*static_cast<uint8_t *>(head_)) : 0;
    if (offset) {
        lock_ = reinterpret_cast<pthread_spinlock_t *>(static_cast<char *>(head_) + offset);
    } else {
        ucs_debug("shm region %s has no lock that could be repaired", name.c_str());
    }
}

shm_lock::~shm_lock()
{
    if (head_) {
        munmap(head_, ucs::page_size());
    }
}

bool shm_lock::free() const
{
    if (lock_ && pthread_spin_trylock(lock_) != 0) {
        return false;
    }
    if (lock_) {
        pthread_spin_unlock(lock_);
    }
    return true;
}

void shm_lock::take_away()
{
    ucs_warn("a killed process has left a shared-memory lock behind: releasing it");
    // Not pthread_spin_unlock(), which is for the holder; a new lock has the value of a free one.
    pthread_spinlock_t free_lock;
    pthread_spin_init(&free_lock, PTHREAD_PROCESS_SHARED);
    __atomic_store_n(lock_, free_lock, __ATOMIC_RELEASE);
    pthread_spin_destroy(&free_lock);
}

void shm_lock::repair(std::initializer_list<shm_lock *> locks)
{
    std::vector<shm_lock *> held(locks);
    uint64_t limit = ucs::monotonic_ns() + patience_ns;
    for (int i = 0; i < samples || ucs::monotonic_ns() < limit; ++i) {
        std::erase_if(held, [](const shm_lock *l) { return l->free(); });
        if (held.empty()) {
            return;
        }
        nanosleep(&sample_interval, nullptr);
    }
    for (shm_lock *l : held) {
        l->take_away();
    }
}

} // namespace uct::ofi
