// SPDX-License-Identifier: BSD-3-Clause
// The shm core guards each endpoint's region with a spin lock in the shared memory itself. A
// process that is killed while it holds one leaves it locked, and all others spin in libfabric for
// ever. A process that learns of a death repairs the two locks that can stop it: its own region's
// and the dead peer's.
#pragma once

#include "uct/ofi/quirks/shm_region.h"

#include <initializer_list>
#include <pthread.h>
#include <string>

namespace uct::ofi {

class shm_lock {
  public:
    // Maps the head of the region behind a file of /dev/shm. Where there is no such file, or the
    // region is of a version whose layout is not known here, repair() does nothing.
    explicit shm_lock(const std::string &name);
    shm_lock(const shm_lock &) = delete;
    shm_lock &operator=(const shm_lock &) = delete;

    // After a death: returns at once when the locks are free. One that stays held for much longer
    // than any living holder needs is taken away from its holder. False: it may be that of a
    // process that is stopped; to be called again. Any thread, but one at a time.
    [[nodiscard]] static bool repair(std::initializer_list<shm_lock *> locks);
    [[nodiscard]] bool repair() { return repair({this}); }

  private:
    bool free() const;
    void take_away();

    std::string name_;
    shm_region region_;
    pthread_spinlock_t *lock_ = nullptr;
};

} // namespace uct::ofi
