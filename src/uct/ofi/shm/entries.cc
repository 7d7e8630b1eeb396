// SPDX-License-Identifier: BSD-3-Clause
// Taking and freeing entries. All of it is in memory that other processes write: an index is one of
// ours, and what an entry says names at most a file of our own user.
#include "uct/ofi/shm/entries.h"

namespace uct::ofi {

namespace {

constexpr uint64_t users = entry_table::owner | entry_table::peer;
constexpr uint64_t taken = 4;
constexpr uint64_t freeing = 8;
constexpr uint64_t states = 0xff;
constexpr unsigned count_shift = 8;
constexpr unsigned pid_shift = 32;
constexpr uint64_t count_mask = 0xffffff;

uint64_t key_of(const shm_file::parts &file)
{
    return uint64_t(static_cast<uint32_t>(file.pid)) << pid_shift |
           (file.count & count_mask) << count_shift | taken;
}

} // namespace

unsigned entry_table::take(const shm_file::parts &file, side from) noexcept
{
    for (;;) {
        unsigned index = find(file, 0);
        if (index == none) {
            index = first_free();
            if (index == none) {
                tell(refused);
                return none;
            }
            if (!claim(index, file, from)) {
                continue;
            }
        } else if (!join(index, file, from)) {
            continue;
        }
        if (from == peer) {
            tell(came);
            tell(changed);
        }
        return index;
    }
}

bool entry_table::join(unsigned index, const shm_file::parts &file, side from) noexcept
{
    std::atomic<uint64_t> &word = entries_[index].word;
    uint64_t seen = word.load(std::memory_order_acquire);
    return (seen & ~users) == key_of(file) &&
           word.compare_exchange_strong(seen, seen | from, std::memory_order_acq_rel);
}

// Both sides may claim one for the same peer, where an entry becomes free between their looks:
// then this one is given back.
bool entry_table::claim(unsigned index, const shm_file::parts &file, side from) noexcept
{
    entry &e = entries_[index];
    uint64_t seen = 0;
    uint64_t mine = key_of(file) | from;
    if (!e.word.compare_exchange_strong(seen, mine, std::memory_order_seq_cst)) {
        return false;
    }
    e.birth.store(file.birth, std::memory_order_release);
    unsigned other = find(file, 0);
    if (other == index) {
        other = find(file, index + 1);
    }
    if (other == none ||
        !e.word.compare_exchange_strong(mine, freeing, std::memory_order_acq_rel)) {
        return true;
    }
    end_free(index);
    return false;
}

unsigned entry_table::first_free() const noexcept
{
    unsigned index = 0;
    while (index < size && entries_[index].word.load(std::memory_order_relaxed) != 0) {
        ++index;
    }
    return index;
}

void entry_table::leave(unsigned index, const shm_file::parts &file, side from) noexcept
{
    std::atomic<uint64_t> &word = entries_[index].word;
    uint64_t seen = word.load(std::memory_order_acquire);
    while ((seen & ~states) == (key_of(file) & ~states) && (seen & from)) {
        if (word.compare_exchange_weak(seen, seen & ~from, std::memory_order_acq_rel)) {
            tell(changed);
            return;
        }
    }
}

bool entry_table::is_used(unsigned index, side by) const noexcept
{
    return entries_[index].word.load(std::memory_order_acquire) & by;
}

// One that is being freed is of no file.
bool entry_table::is_of(unsigned index, const shm_file::parts &file) const noexcept
{
    uint64_t word = entries_[index].word.load(std::memory_order_seq_cst);
    uint64_t birth = entries_[index].birth.load(std::memory_order_acquire);
    return (word & ~users) == key_of(file) && (birth == file.birth || birth == 0);
}

unsigned entry_table::find(const shm_file::parts &file, unsigned index) const noexcept
{
    while (index < size && !is_of(index, file)) {
        ++index;
    }
    return index;
}

bool entry_table::read(unsigned index, shm_file::parts *file) const noexcept
{
    uint64_t word = entries_[index].word.load(std::memory_order_acquire);
    file->pid = static_cast<pid_t>(word >> pid_shift);
    file->count = static_cast<unsigned>(word >> count_shift & count_mask);
    file->birth = entries_[index].birth.load(std::memory_order_acquire);
    return word != 0;
}

bool entry_table::begin_free(unsigned index) noexcept
{
    std::atomic<uint64_t> &word = entries_[index].word;
    uint64_t seen = word.load(std::memory_order_acquire);
    return (seen & taken) && !(seen & (users | freeing)) &&
           word.compare_exchange_strong(seen, seen | freeing, std::memory_order_acq_rel);
}

void entry_table::end_free(unsigned index) noexcept
{
    entries_[index].birth.store(0, std::memory_order_relaxed);
    entries_[index].word.store(0, std::memory_order_release);
}

} // namespace uct::ofi
