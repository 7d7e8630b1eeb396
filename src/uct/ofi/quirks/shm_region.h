// SPDX-License-Identifier: BSD-3-Clause
// What is known here about the regions of the shm core: one file of /dev/shm for each endpoint,
// written to by all its peers. The version in the first byte tells the layouts of libfabric 1.17 to
// 2.6 apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace uct::ofi {

struct shm_layout {
    // A queue that any process may write to: where its offset is in the head, and the size of an
    // entry. 0, 0: none.
    struct queue {
        uint16_t offset_at;
        uint16_t entry_size;
    };
    uint8_t version;
    uint16_t lock; // where the head has its spin lock; 0: nowhere
    queue queues[2];
};

// nullptr for a version that is not known. What stands before the lock differs by what there is of
// xpmem; the offsets of the queues come behind it.
inline const shm_layout *shm_layout_of(uint8_t version)
{
    static constexpr shm_layout layouts[] = {
        {4, 24, {}}, // 1.17, whose queue is under the lock; 1.18 has the same number
        {5, 24, {{48, 576}, {}}},
        {6, 64, {{88, 576}, {}}},
        {7, 56, {{80, 576}, {}}},
        {8, 56, {{80, 576}, {}}}, // 2.0 to 2.4
        {9, 0, {{64, 512}, {88, 64}}},
        {10, 64, {{128, 384}, {152, 64}}},
    };
    for (const shm_layout &l : layouts) {
        if (l.version == version) {
            return &l;
        }
    }
    return nullptr;
}

// A mapping of the file behind a name that the core gave an endpoint.
class shm_region {
  public:
    // length: in bytes from its head; 0: the whole. What cannot be mapped has no head().
    explicit shm_region(const std::string &name, size_t length = 0);
    shm_region(const shm_region &) = delete;
    shm_region &operator=(const shm_region &) = delete;
    ~shm_region();

    char *head() const { return head_; }
    size_t length() const { return length_; }
    const shm_layout *layout() const
    {
        return head_ ? shm_layout_of(static_cast<uint8_t>(*head_)) : nullptr;
    }

  private:
    char *head_ = nullptr;
    size_t length_ = 0;
};

} // namespace uct::ofi
