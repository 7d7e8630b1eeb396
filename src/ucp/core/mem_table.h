// SPDX-License-Identifier: BSD-3-Clause
//
// The mappings of a context, and its workers' views of them. ucp_mem_map and ucp_mem_unmap change a
// list under its lock. A message looks into its worker's view, a copy that is renewed, under the
// lock, when the list has changed since: it costs a load and a search. A renewal repeats the
// changes that the view has not seen. When there are more than entries the list forgets them, and a
// view that is older copies everything: seldom enough that a change costs O(log M) either way.
// While a message moves data of a mapping its view says so, and what removes the mapping from the
// list waits for that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

struct ucp_mem;

namespace ucp {

class mem_view;

// What peers may do with a mapping.
enum : uint8_t { RIGHT_READ = 1, RIGHT_WRITE = 2 }; // atomics write

struct mapping {
    uint64_t id;
    uintptr_t address;
    size_t length;
    ucp_mem *mem;       // nullptr: none. Another thread may unmap it unless an operation uses it
    uint8_t denied = 0; // RIGHT_*

    bool holds(uint64_t from, uint64_t bytes) const noexcept
    {
        return mem && from >= address && bytes <= length && from - address <= length - bytes;
    }
};

// Entries of ascending keys.
class mem_list {
  public:
    using key_of = uint64_t (*)(const mapping &) noexcept;

    explicit mem_list(key_of key) : key_(key) {}

    void add(const mapping &m);
    // If it is there. No access that began before lasts when it returns.
    void remove(uint64_t key) noexcept;

  private:
    friend class mem_view;
    using entries = std::multimap<uint64_t, mapping>;
    struct change {
        uint64_t key;
        mapping added; // of no memory: the entry was removed
    };
    static constexpr size_t changes_min = 64;

    void await_accesses() noexcept;
    void note(const change &c) noexcept;
    static void apply(entries &to, const change &c);
    static bool remove_last(entries &from, uint64_t key) noexcept;
    static mapping last_not_above(const entries &in, uint64_t key) noexcept;

    const key_of key_;
    std::mutex mutex_;
    std::atomic<uint64_t> generation_{0}; // changes so far
    entries entries_;
    uint64_t forgotten_ = 0; // changes before those that follow
    std::vector<change> changes_;
    std::mutex views_mutex_;
    std::vector<mem_view *> views_;
};

// For one thread at a time.
class mem_view {
  public:
    explicit mem_view(mem_list &list);
    ~mem_view();
    mem_view(const mem_view &) = delete;
    mem_view &operator=(const mem_view &) = delete;

    // The last entry whose key is not above this one.
    mapping find(uint64_t key) noexcept;

    // Entries that renewals have copied, and changes that they have repeated.
    uint64_t renewed() const noexcept { return renewed_; }

    // What find() returned since the access began stays mapped until it ends. No code of the user
    // runs meanwhile: it could unmap.
    class access {
      public:
        explicit access(mem_view &view) noexcept : accesses_(view.accesses_)
        {
            // Before find() looks for changes: either it sees that the mapping is gone, or what
            // removed it sees the access.
            accesses_.exchange(accesses_.load(std::memory_order_relaxed) + 1);
        }
        ~access()
        {
            accesses_.store(accesses_.load(std::memory_order_relaxed) + 1,
                            std::memory_order_release);
        }
        access(const access &) = delete;
        access &operator=(const access &) = delete;

      private:
        std::atomic<uint64_t> &accesses_;
    };

  private:
    friend class mem_list;

    mapping renew_and_find(uint64_t key) noexcept;
    void renew();

    mem_list &list_;
    uint64_t seen_ = 0; // changes
    uint64_t renewed_ = 0;
    mem_list::entries copy_;
    std::atomic<uint64_t> accesses_{0}; // odd: one is under way
};

struct mem_table {
    // By the random id that travels in rkeys.
    mem_list by_id{[](const mapping &m) noexcept { return m.id; }};
    // Those with memory of ours, by address: it cannot go while an operation uses it.
    mem_list allocated{[](const mapping &m) noexcept -> uint64_t { return m.address; }};
};

struct mem_views {
    explicit mem_views(mem_table &table) : by_id(table.by_id), allocated(table.allocated) {}

    mem_view by_id;
    mem_view allocated;
};

} // namespace ucp
