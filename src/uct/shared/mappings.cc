// SPDX-License-Identifier: BSD-3-Clause
// The table of mappings of this process, the longest unused in front.
#include "uct/shared/mappings.h"

#include <algorithm>
#include <list>
#include <mutex>

namespace uct {

namespace {

// What stays mapped though no key uses it. The owner may have freed it meanwhile, and its pages go
// only with the last mapping.
constexpr size_t idle_count = 16;
constexpr size_t idle_bytes = 256ul << 20;

struct mapping {
    shared_memory_key key;
    void *address;
    size_t users;
};

class table {
  public:
    static table &get()
    {
        static auto *all = new table; // outlives every key
        return *all;
    }

    void *acquire(const shared_memory_key &key, uint64_t hint)
    {
        std::lock_guard guard(mutex_);
        auto found = find(key);
        if (found == all_.end()) {
            all_.push_back({key, nullptr, 1});
            void *address = all_.back().address = map_shared(key, hint);
            if (!address) {
                all_.pop_back();
            }
            return address;
        }
        ++found->users;
        return found->address;
    }

    void release(const shared_memory_key &key) noexcept
    {
        std::lock_guard guard(mutex_);
        auto found = find(key);
        --found->users;
        all_.splice(all_.end(), all_, found);
        drop_idle();
    }

  private:
    std::list<mapping>::iterator find(const shared_memory_key &key)
    {
        return std::find_if(all_.begin(), all_.end(),
                            [&](const mapping &m) { return m.key == key; });
    }

    void drop_idle() noexcept
    {
        size_t count = 0;
        size_t bytes = 0;
        for (auto m = all_.end(); m != all_.begin();) {
            --m;
            if (m->users > 0) {
                continue;
            }
            ++count;
            bytes += m->key.length;
            if (count > idle_count || bytes > idle_bytes) {
                unmap_shared(m->address, m->key);
                m = all_.erase(m);
            }
        }
    }

    std::mutex mutex_;
    std::list<mapping> all_;
};

} // namespace

void *acquire_mapping(const shared_memory_key &key, uint64_t hint)
{
    return key.pid == 0 ? nullptr : table::get().acquire(key, hint);
}

void release_mapping(const shared_memory_key &key) noexcept
{
    table::get().release(key);
}

} // namespace uct
