// SPDX-License-Identifier: BSD-3-Clause
// Whether the completion queue of many connections has to be read. Each read of it makes the core
// of libfabric before 1.18 look at every connection. The descriptor that the queue waits on says
// with one system call whether something came to any of them.
//
// It does not say everything: a message that the core has read itself waits for a receive, a send
// for room that the core has not begun to wait for. So the queue is read as well twice after the
// last completion, and once in so many rounds that the looks at the connections cost each round the
// same, however many there are.
#pragma once

#include <cstddef>

namespace uct::ofi {

class quiet_queue {
  public:
    // fd: what the queue waits on, which stays open; -1: the queue is always read.
    void watch(int fd) noexcept { fd_ = fd; }
    // Of a round with so many connections in which nothing is being sent. True: the queue has
    // nothing, and is not read in this round.
    bool is_quiet(size_t connections) noexcept;
    // The queue was read, and had so many completions.
    void was_read(unsigned completions) noexcept
    {
        left_ = 0;
        empty_reads_ = completions > 0 ? 0 : empty_reads_ + 1;
    }
    // Something was done that the descriptor does not show.
    void disturb() noexcept { empty_reads_ = 0; }

  private:
    int fd_ = -1;
    size_t left_ = 0;          // rounds without a read
    unsigned empty_reads_ = 0; // one after the other
};

} // namespace uct::ofi
