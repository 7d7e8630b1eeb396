// SPDX-License-Identifier: BSD-3-Clause
// A descriptor that is closed with its owner, unless it was taken.
#pragma once

#include <unistd.h>
#include <utility>

namespace ucs {

class owned_fd {
  public:
    explicit owned_fd(int fd = -1) noexcept : fd_(fd) {} // -1: none
    owned_fd(owned_fd &&other) noexcept : fd_(other.take()) {}
    owned_fd &operator=(owned_fd &&other) noexcept
    {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~owned_fd()
    {
        if (fd_ >= 0) {
            close(fd_);
        }
    }

    int get() const noexcept { return fd_; }
    int take() noexcept { return std::exchange(fd_, -1); }

  private:
    int fd_;
};

} // namespace ucs
