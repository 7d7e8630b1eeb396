// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/quirks/shm_queue.h"

#include "ucs/log.h"
#include "uct/ofi/quirks/shm_patience.h"
#include "uct/ofi/quirks/shm_region.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace uct::ofi {

namespace {

// A queue of libfabric's ofi_atomic_queue.h. The entry at a position is free for writing while its
// sequence number is the position, and for reading while it is one more.
class shm_queue {
  public:
    shm_queue(const shm_region &region, const shm_layout::queue &layout)
        : entry_size_(layout.entry_size)
    {
        if (entry_size_ == 0 || region.length() < first_entry) {
            return;
        }
        uint64_t offset = 0;
        memcpy(&offset, region.head() + layout.offset_at, sizeof(offset));
        if (offset > region.length() - first_entry) {
            return;
        }
        char *head = region.head() + offset;
        uint32_t size = 0, mask = 0;
        memcpy(&size, head + size_at, sizeof(size));
        memcpy(&mask, head + size_at + sizeof(size), sizeof(mask));
        if (size > 0 && (size & (size - 1)) == 0 && mask == size - 1 &&
            (region.length() - offset - first_entry) / entry_size_ >= size) {
            head_ = head;
            mask_ = mask;
        }
    }

    // Positions that were reserved and are not committed.
    std::vector<int64_t> uncommitted() const
    {
        std::vector<int64_t> result;
        if (head_) {
            int64_t end = __atomic_load_n(word(0), __ATOMIC_ACQUIRE);
            int64_t pos = __atomic_load_n(word(read_pos_at), __ATOMIC_ACQUIRE);
            // A damaged position must not be followed further than round once.
            for (size_t i = 0; i <= mask_ && pos < end; ++i, ++pos) {
                if (!committed(pos)) {
                    result.push_back(pos);
                }
            }
        }
        return result;
    }
    bool committed(int64_t pos) const
    {
        return __atomic_load_n(sequence(pos), __ATOMIC_ACQUIRE) != pos;
    }
    void commit_nothing(int64_t pos)
    {
        reinterpret_cast<char *>(sequence(pos))[nothing_at] = 1;
        __atomic_store_n(sequence(pos), pos + 1, __ATOMIC_RELEASE);
    }

  private:
    static constexpr size_t read_pos_at = 64;
    static constexpr size_t size_at = 128; // and the mask behind it
    static constexpr size_t first_entry = 192;
    static constexpr size_t nothing_at = 8; // behind the sequence number

    int64_t *word(size_t at) const { return reinterpret_cast<int64_t *>(head_ + at); }
    int64_t *sequence(int64_t pos) const
    {
        return word(first_entry + (static_cast<size_t>(pos) & mask_) * entry_size_);
    }

    size_t entry_size_;
    char *head_ = nullptr;
    size_t mask_ = 0;
};

bool repair(const std::string &name, shm_queue queue)
{
    std::vector<int64_t> left = queue.uncommitted();
    lasting found = outlasts_the_living({&name, 1}, [&] {
        std::erase_if(left, [&](int64_t pos) { return queue.committed(pos); });
        return !left.empty();
    });
    if (found == lasting::yes) {
        ucs_warn("a killed process has left %zu shared-memory messages half written: skipping them",
                 left.size());
        for (int64_t pos : left) {
            queue.commit_nothing(pos);
        }
    }
    return found != lasting::cannot_tell;
}

} // namespace

bool repair_shm_queues(const std::string &name)
{
    bool done = true;
    shm_region region(name);
    if (const shm_layout *layout = region.layout()) {
        for (const shm_layout::queue &q : layout->queues) {
            done = repair(name, shm_queue(region, q)) && done;
        }
    }
    return done;
}

} // namespace uct::ofi
