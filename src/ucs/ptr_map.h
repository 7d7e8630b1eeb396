// SPDX-License-Identifier: BSD-3-Clause
// Pointer <-> 64-bit id that may travel on the wire. The low half is a slot, the high half a random
// number that the slot gets with every object: an id whose object is gone is not found, a peer that
// was not told an id does not guess it, and no id is ever 0.
#pragma once

#include "ucs/compiler.h"
#include "ucs/random_pool.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucs {

template <class T>
class ptr_map {
  public:
    uint64_t add(T *object)
    {
        uint32_t index;
        if (free_ != none) {
            index = free_;
            free_ = slots_[index].next_free;
        } else {
            index = static_cast<uint32_t>(slots_.size());
            slots_.emplace_back();
        }
        slots_[index].object = object;
        slots_[index].secret = another(slots_[index].secret);
        ++count_;
        return id_of(index);
    }

    // nullptr for an id that was never given out or whose object was erased.
    T *find(uint64_t id) const
    {
        auto index = static_cast<uint32_t>(id);
        if (UCS_UNLIKELY(index >= slots_.size() || id_of(index) != id)) {
            return nullptr;
        }
        return slots_[index].object;
    }

    void erase(uint64_t id)
    {
        if (!find(id)) {
            return;
        }
        auto index = static_cast<uint32_t>(id);
        slot &s = slots_[index];
        s.object = nullptr;
        s.next_free = free_;
        free_ = index;
        --count_;
    }

    size_t size() const { return count_; }

    template <class F>
    void for_each(F &&f)
    {
        for (size_t i = 0; i < slots_.size(); ++i) {
            ++visited_;
            if (slots_[i].object) {
                f(slots_[i].object);
            }
        }
    }

    // Slots that for_each() has looked at so far.
    size_t visited() const { return visited_; }

  private:
    static constexpr uint32_t none = UINT32_MAX;

    struct slot {
        T *object = nullptr;
        uint32_t secret = 0;
        uint32_t next_free = none;
    };

    uint64_t id_of(uint32_t index) const
    {
        return static_cast<uint64_t>(slots_[index].secret) << 32 | index;
    }

    // Neither 0 nor the last one.
    uint32_t another(uint32_t last)
    {
        uint32_t secret;
        do {
            secret = secrets_.next();
        } while (UCS_UNLIKELY(secret == 0 || secret == last));
        return secret;
    }

    random_pool<uint32_t> secrets_;
    std::vector<slot> slots_;
    uint32_t free_ = none;
    size_t count_ = 0;
    size_t visited_ = 0;
};

} // namespace ucs
