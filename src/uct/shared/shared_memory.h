// SPDX-License-Identifier: BSD-3-Clause
// Memory that processes of one host map together: allocated from a memfd, opened by peers through
// /proc/<pid>/fd, so that it has no name and goes with the last process that maps it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uct {

// How a peer finds it; part of a packed key of shm. pid 0: not such memory.
struct shared_memory_key {
    uint64_t host;  // shared_memory_identity() of the owner
    uint64_t birth; // of the owner's process
    uint64_t length;
    uint64_t nonce; // of the memory (foreign_fd.h)
    uint32_t pid;
    uint32_t fd;

    bool operator==(const shared_memory_key &) const = default;
};
static_assert(sizeof(shared_memory_key) == 40);

// The owner's side.
class shared_memory {
  public:
    // length is rounded up to pages; fixed: exactly at address; populated: the pages are there when
    // it returns, otherwise each comes with its first use. Throws ucs::error.
    shared_memory(size_t length, void *address, bool fixed, bool populated);
    shared_memory(const shared_memory &) = delete;
    shared_memory &operator=(const shared_memory &) = delete;
    ~shared_memory();

    const shared_memory_key &key() const { return key_; }

    void *address;
    size_t length;

  private:
    int fd_ = -1;
    shared_memory_key key_;
};

// A peer's mapping, at `hint` if nothing is there; nullptr when the owner is elsewhere or gone.
void *map_shared(const shared_memory_key &key, uint64_t hint) noexcept;
void unmap_shared(void *address, const shared_memory_key &key) noexcept;

} // namespace uct
