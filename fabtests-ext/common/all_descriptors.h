// SPDX-License-Identifier: BSD-3-Clause
//
// Every descriptor that the limit leaves to this process, until the end of the block.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

class all_descriptors {
  public:
    all_descriptors()
    {
        for (int fd; (fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0;) {
            taken_.push_back(fd);
        }
        all_ = errno == EMFILE;
    }
    all_descriptors(const all_descriptors &) = delete;
    all_descriptors &operator=(const all_descriptors &) = delete;
    ~all_descriptors()
    {
        for (int fd : taken_) {
            close(fd);
        }
    }

    bool all() const { return all_; } // the limit stopped it, and nothing else

  private:
    std::vector<int> taken_;
    bool all_ = false;
};
