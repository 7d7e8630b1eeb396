// SPDX-License-Identifier: BSD-3-Clause
//
// Tells of memory of this process that goes: munmap, mremap, mmap over it, brk, and madvise that
// gives pages back. The kernel reports these by a userfaultfd and suspends the caller until a
// thread of ours has read the report. The thread reads under lock(), which it keeps until all
// listeners know. So when munmap returns, the next holder of the lock finds the memory gone.
//
// The thread that unmaps may hold the locks of malloc. So no code allocates, frees or blocks under
// lock(), and no listener does.
#pragma once

#include "ucs/list.h"

#include <cstdint>
#include <mutex>
#include <string>

namespace ucs {

class memory_watch {
  public:
    class listener {
      public:
        // Under lock(). Of any memory, also of such that the listener did not ask for.
        virtual void memory_gone(uintptr_t begin, uintptr_t end) noexcept = 0;

        list_node watch_link;

      protected:
        ~listener() = default;
    };

    // Starts the watch if it is the first. false: it cannot be, see why_not().
    static bool join(listener *l);
    // The last one ends the watch.
    static void leave(listener *l) noexcept;

    // From now on the listeners are told when this memory goes. false: that cannot be: it is not
    // private anonymous memory, or something else in this process watches it.
    static bool cover(uintptr_t begin, uintptr_t end) noexcept;

    static std::mutex &lock() noexcept;

    // This process was forked from one with a watch. Nothing is told any more, and lock() must not
    // be taken: the fork may have copied it while it was held.
    static bool is_lost() noexcept;

    // Why there cannot be a watch, or "". Tries it.
    static std::string why_not();
};

} // namespace ucs
