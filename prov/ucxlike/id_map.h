// SPDX-License-Identifier: BSD-3-Clause
//
// Ids for the wire: 20 bits of slot, the rest of generation; 0 is never given out. The generation
// of a secret id is random, so that only the peer that was given it can name its object;
// others count, which is enough to tell an old id from a new one.
#pragma once

#include "prov/ucxlike/prov.h"

#include "ucs/random_pool.h"

#include <cstdint>
#include <type_traits>
#include <vector>

namespace ucxlike {

template <class T, unsigned generation_bits, bool secret = false>
class id_map {
  public:
    static constexpr unsigned slot_bits = 20;
    static constexpr uint64_t slot_mask = (uint64_t(1) << slot_bits) - 1;

    // 0 when there is no room.
    uint64_t try_add(T *object) noexcept
    {
        try {
            return add(object);
        } catch (...) {
            return 0;
        }
    }

    uint64_t add(T *object) // throws
    {
        uint64_t i;
        if (!free_.empty()) {
            i = free_.back();
            free_.pop_back();
        } else {
            if (slots_.size() > slot_mask) {
                throw failure{FI_ENOSPC};
            }
            i = slots_.size();
            if (free_.capacity() <= i) {
                free_.reserve(2 * i + 64);
            }
            slots_.push_back({nullptr, 0});
        }
        slots_[i].object = object;
        slots_[i].generation = next(slots_[i].generation);
        return slots_[i].generation << slot_bits | i;
    }

    T *find(uint64_t id) const
    {
        uint64_t i = id & slot_mask;
        if (UCS_UNLIKELY(i >= slots_.size() || slots_[i].generation != id >> slot_bits)) {
            return nullptr;
        }
        return slots_[i].object;
    }

    void erase(uint64_t id)
    {
        if (!find(id)) {
            return;
        }
        slots_[id & slot_mask].object = nullptr;
        free_.push_back(static_cast<uint32_t>(id & slot_mask));
    }

  private:
    uint64_t next(uint64_t generation)
    {
        constexpr uint64_t mask = (uint64_t(1) << generation_bits) - 1;
        do {
            if constexpr (secret) {
                generation = secrets_.next() & mask;
            } else {
                generation = (generation + 1) & mask;
            }
        } while (!generation);
        return generation;
    }

    struct slot {
        T *object;
        uint64_t generation;
    };
    std::vector<slot> slots_;
    std::vector<uint32_t> free_;
    struct none {};
    [[no_unique_address]] std::conditional_t<secret, ucs::random_pool<uint64_t>, none> secrets_;
};

} // namespace ucxlike
