// SPDX-License-Identifier: BSD-3-Clause
// A table of mappings by key. Finding, taking and releasing one costs the same however many there
// are. Key: has the members `nonce`, random for each memory, and `length`, an operator==, and the
// functions map_shared() and unmap_shared().
#pragma once

#include "ucs/list.h"

#include <mutex>
#include <unordered_map>

namespace uct {

template <class Key>
class mapping_table {
  public:
    // What stays mapped though no key uses it. The owner may have freed it meanwhile, and its pages
    // go only with the last mapping.
    static constexpr size_t idle_count_max = 16;
    static constexpr size_t idle_bytes_max = 256ul << 20;

    mapping_table() = default;
    mapping_table(const mapping_table &) = delete;
    mapping_table &operator=(const mapping_table &) = delete;

    // nullptr: it cannot be mapped. To be released once for each time. Throws bad_alloc.
    void *acquire(const Key &key, uint64_t hint)
    {
        std::lock_guard guard(mutex_);
        auto [at, fresh] = all_.try_emplace(key);
        mapping &found = at->second;
        if (fresh) {
            found.key = &at->first;
            found.address = map_shared(key, hint);
            if (!found.address) {
                all_.erase(at);
                return nullptr;
            }
        } else if (found.users == 0) {
            idle_.erase(&found);
            --idle_count_;
            idle_bytes_ -= key.length;
        }
        ++found.users;
        return found.address;
    }

    void release(const Key &key) noexcept
    {
        std::lock_guard guard(mutex_);
        mapping &found = all_.find(key)->second;
        if (--found.users > 0) {
            return;
        }
        idle_.push_back(&found);
        ++idle_count_;
        idle_bytes_ += key.length;
        while (idle_count_ > idle_count_max || idle_bytes_ > idle_bytes_max) {
            drop(*idle_.pop_front());
        }
    }

  private:
    struct hash {
        size_t operator()(const Key &key) const { return static_cast<size_t>(key.nonce); }
    };

    struct mapping {
        const Key *key = nullptr; // of its entry
        void *address = nullptr;
        size_t users = 0;
        ucs::list_node idle_link; // while there are no users
    };

    void drop(mapping &unused) noexcept
    {
        const Key &key = *unused.key;
        --idle_count_;
        idle_bytes_ -= key.length;
        unmap_shared(unused.address, key);
        all_.erase(all_.find(key));
    }

    std::mutex mutex_;
    std::unordered_map<Key, mapping, hash> all_;
    ucs::list<mapping, &mapping::idle_link> idle_; // the longest unused in front
    size_t idle_count_ = 0;
    size_t idle_bytes_ = 0;
};

} // namespace uct
