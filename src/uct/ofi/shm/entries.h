// SPDX-License-Identifier: BSD-3-Clause
// An endpoint of libfabric's shm knows 256 peers: those that it sends to, and those that send to
// it. It does not refuse the 257th, but gives it the entry of another peer. So each interface has a
// table of its peers in memory that they map. To connect two interfaces is to take an entry for
// each in the other's table, before the core sends anything. That is a compare-and-swap, so that
// the peer need not answer; where no entry is free, the connection is refused.
//
// An entry:
//
//   0       1       4       8                16
//   state   count   pid     birth
//
// Count, process and its birth are those of the peer's file (quirks/shm_file.h), little endian. The
// owner of the table frees an entry when neither side uses it, after the core has forgotten the
// peer.
#pragma once

#include "ucs/processor.h"
#include "uct/ofi/quirks/shm_file.h"

#include <atomic>
#include <cstdint>

namespace uct::ofi {

class entry_table {
  public:
    static constexpr unsigned size = 256;
    static constexpr unsigned none = size;

    // Which side has endpoints to the other: the owner of the table, or the peer of the entry.
    enum side : uint64_t { owner = 1, peer = 2 };
    // What the owner is told.
    enum news : uint32_t { changed = 1, refused = 2, came = 4 };

    // The index of the peer's entry, which is its own or a free one; none: there is neither.
    unsigned take(const shm_file::parts &file, side from) noexcept;
    // The peer keeps its entry while the other side uses it.
    void leave(unsigned index, const shm_file::parts &file, side from) noexcept;
    void tell(news what) noexcept { news_.fetch_or(what, std::memory_order_release); }

    // For the owner alone.
    std::atomic<uint32_t> &told() noexcept { return news_; }
    bool is_full() const noexcept { return first_free() == none; }
    bool is_used(unsigned index, side by) const noexcept;
    unsigned find(const shm_file::parts &file) const noexcept { return find(file, 0); }
    bool read(unsigned index, shm_file::parts *file) const noexcept; // false: it is free
    // To free an entry: it cannot be taken any more after the first, and by all after the second.
    bool begin_free(unsigned index) noexcept; // false: it is in use
    void end_free(unsigned index) noexcept;

  private:
    struct entry {
        std::atomic<uint64_t> word;
        std::atomic<uint64_t> birth; // 0: not written yet
    };

    bool join(unsigned index, const shm_file::parts &file, side from) noexcept;
    bool claim(unsigned index, const shm_file::parts &file, side from) noexcept;
    unsigned first_free() const noexcept;
    unsigned find(const shm_file::parts &file, unsigned from) const noexcept;
    bool is_of(unsigned index, const shm_file::parts &file) const noexcept;

    alignas(ucs::cache_line) std::atomic<uint32_t> news_;
    alignas(ucs::cache_line) entry entries_[size];
};

} // namespace uct::ofi
