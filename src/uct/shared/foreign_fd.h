// SPDX-License-Identifier: BSD-3-Clause
// Descriptors of other processes, opened through /proc/<pid>/fd. Process and number come from an
// address or a key, that is, from the peer, and may name anything that the process has open: a data
// file, a directory, a terminal, the pipe of another process. So each is looked at first through a
// descriptor that can neither read nor write (O_PATH), and opened only if it is what was claimed:
//
//   memory  a memfd of our user whose name has the nonce of the claim, of at least the claimed
//   size,
//           and sealed so that it never shrinks under a mapping
//   pipe    an unnamed pipe of our user with the inode that the peer's memory tells
//
// The kernel gives all of that but the inode, not the peer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uct {

// What the peer says.
struct foreign_fd {
    uint32_t pid;
    uint32_t fd;
};

// An empty memfd that peers can open by its nonce as soon as it has its size and its seals; -1, and
// errno, when there is none to be had. The caller closes the descriptor.
int create_memory_file(uint64_t nonce) noexcept;
// The same with `length` zeros, sealed. Throws ucs::error.
int create_memory(uint64_t nonce, size_t length);

// Throws when a memory file may not be so long: beyond RLIMIT_FSIZE the kernel would send SIGXFSZ.
void check_file_size(size_t length);

// Throws UCS_ERR_UNREACHABLE unless the descriptor is of a memfd of our user, has `least` bytes at
// least, and has been sealed with `seals` (F_SEAL_*).
void check_memory(int fd, size_t least, int seals);

// Both throw UCS_ERR_UNREACHABLE when there is no such thing, or another one. The caller closes the
// descriptor.
int open_memory(const foreign_fd &claim, uint64_t nonce, size_t least);
int open_pipe(const foreign_fd &claim, uint64_t inode); // for reading and writing, non-blocking

uint64_t inode_of(int fd); // 0: it cannot be told

} // namespace uct
