// SPDX-License-Identifier: BSD-3-Clause
// Random numbers of which the kernel draws many at a time: a system call for each 256 of them. A
// process that was forked goes on with the same ones, so they are for what a peer is not to guess,
// not for what has to differ from those of other processes.
#pragma once

#include "ucs/compiler.h"
#include "ucs/sys.h"

#include <array>
#include <cstddef>

namespace ucs {

template <class T>
class random_pool {
  public:
    T next()
    {
        if (UCS_UNLIKELY(drawn_ == numbers_.size())) {
            random_fill(numbers_.data(), sizeof(numbers_));
            drawn_ = 0;
        }
        return numbers_[drawn_++];
    }

  private:
    std::array<T, 256> numbers_;
    size_t drawn_ = numbers_.size();
};

} // namespace ucs
