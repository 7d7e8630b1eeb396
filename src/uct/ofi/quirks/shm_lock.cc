// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/quirks/shm_lock.h"

#include "ucs/log.h"
#include "ucs/sys.h"
#include "uct/ofi/quirks/shm_patience.h"

#include <vector>

namespace uct::ofi {

shm_lock::shm_lock(const std::string &name) : name_(name), region_(name, ucs::page_size())
{
    const shm_layout *layout = region_.layout();
    if (layout && layout->lock) {
        lock_ = reinterpret_cast<pthread_spinlock_t *>(region_.head() + layout->lock);
    } else {
        ucs_debug("shm region %s has no lock that could be repaired", name.c_str());
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

bool shm_lock::repair(std::initializer_list<shm_lock *> locks)
{
    std::vector<shm_lock *> held(locks);
    std::vector<std::string> names;
    for (const shm_lock *l : held) {
        names.push_back(l->name_);
    }
    lasting found = outlasts_the_living(names, [&] {
        std::erase_if(held, [](const shm_lock *l) { return l->free(); });
        return !held.empty();
    });
    if (found == lasting::yes) {
        for (shm_lock *l : held) {
            l->take_away();
        }
    }
    return found != lasting::cannot_tell;
}

} // namespace uct::ofi
