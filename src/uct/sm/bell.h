// SPDX-License-Identifier: BSD-3-Clause
// What wakes an interface that sleeps: a pipe whose reading end it watches, and that peers open
// through /proc/<pid>/fd when they ring first. One descriptor on the owner's side.
#pragma once

#include "uct/shared/foreign_fd.h"

#include <cstdint>

namespace uct::sm {

class bell {
  public:
    bell(); // throws ucs::error
    bell(const bell &) = delete;
    bell &operator=(const bell &) = delete;
    ~bell();

    int fd() const { return fd_; }
    uint64_t inode() const { return inode_of(fd_); }
    void ring() noexcept; // from any thread
    void drain() noexcept;

  private:
    int fd_;
};

// A peer's. The descriptor is kept after the first ring as long as the process keeps few of them;
// where there is none to be had at all, two that are held in reserve serve.
class remote_bell {
  public:
    remote_bell(const foreign_fd &where, uint64_t inode) : where_(where), inode_(inode) {}
    remote_bell(const remote_bell &) = delete;
    remote_bell &operator=(const remote_bell &) = delete;
    ~remote_bell();

    bool ring() noexcept; // false: it cannot be opened

  private:
    int open() noexcept;

    const foreign_fd where_;
    const uint64_t inode_;
    int fd_ = -1;
};

} // namespace uct::sm
