// SPDX-License-Identifier: BSD-3-Clause
// Whether a program polls often. What works for an idle program in the background asks: it would
// only disturb one that polls. A program is judged by its number of polls from one question to the
// next. For one thread.
#pragma once

#include "ucs/sys.h"

#include <cstdint>

namespace ucs {

class attendance {
  public:
    // seldom_ns: a program that polls less often than once in this time is away. polls: so far.
    attendance(uint64_t seldom_ns, uint64_t polls) : seldom_ns_(seldom_ns), polls_seen_(polls) {}

    // Since the last question, or the beginning; `now` is monotonic_ns(). One poll is not often.
    bool is_often(uint64_t polls, uint64_t now)
    {
        bool often = (polls - polls_seen_) * seldom_ns_ > now - seen_at_ + seldom_ns_;
        polls_seen_ = polls;
        seen_at_ = now;
        return often;
    }
    uint64_t polls_seen() const { return polls_seen_; }

  private:
    const uint64_t seldom_ns_;
    uint64_t polls_seen_;
    uint64_t seen_at_ = monotonic_ns();
};

} // namespace ucs
