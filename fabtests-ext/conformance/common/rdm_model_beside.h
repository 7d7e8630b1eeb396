// SPDX-License-Identifier: BSD-3-Clause
//
// What a second thread does with the two endpoints of a schedule (rdm_model.h) beside the thread
// that carries it out: writes to memory of its own and reads it back, one access at a time. Its
// completions are read by the other thread, since the two have one queue.
#pragma once

#include "fabtests-ext/conformance/common/rdm_model.h"

namespace rdm_model {

class beside {
  public:
    // Before the second thread begins.
    beside(side &from, side &to)
        : from_(from), to_(to),
          open_at_(to.app().expose(there_.data(), longest, FI_REMOTE_READ | FI_REMOTE_WRITE, 2))
    {
    }
    // After it has ended.
    ~beside()
    {
        from_.await([this] { return from_.other_thread_over.load(); });
        if (begun_) {
            check();
        }
    }
    beside(const beside &) = delete;

    void turn()
    {
        from_.app().progress();
        to_.app().progress();
        if (!from_.other_thread_over) {
            return;
        }
        if (begun_) {
            check();
            prepare();
        }
        begun_ = begin();
    }

  private:
    bool reads() const { return turns_ % 2 == 0; }

    void prepare()
    {
        ++turns_;
        if (!reads()) {
            length_ = std::max<size_t>(length_of(turns_ * 37 % 1000), 1);
            out_ = pattern(length_, turns_);
        }
    }

    bool begin()
    {
        from_.other_thread_over = false;
        ssize_t r =
            from_.post_access(reads() ? get : put, (reads() ? in_ : out_).data(),
                              {open_at_.address, length_, open_at_.key}, &from_.other_thread_over);
        REQUIRE(r == 0 || r == -FI_EAGAIN);
        if (r != 0) {
            from_.other_thread_over = true;
        }
        return r == 0;
    }

    void check() const
    {
        if (turns_ > 0 && reads()) {
            REQUIRE(schedule::same(in_.data(), out_.data(), length_));
        }
    }

    side &from_, &to_;
    std::vector<char> there_ = std::vector<char>(longest), in_ = std::vector<char>(longest), out_;
    const remote open_at_; // of `to`
    unsigned turns_ = 0;   // accesses; every second one reads what was written
    bool begun_ = true;    // the last of them; else it waits for room
    size_t length_ = 0;
};

} // namespace rdm_model
