// SPDX-License-Identifier: BSD-3-Clause
//
// Makes one allocation of our library fail. The program's own malloc and its kin look at the
// caller: calls from libucxlike.so count, also those that the C and C++ libraries make for them;
// calls of the test and of libfabric do not. The program is linked with the shared library, since
// in an archive nothing would tell the library from the test.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace own_allocations {

// A sanitizer has an allocator of its own.
bool can_fail();

struct result {
    std::string wrong; // empty: as it must be
    size_t made = 0;   // by the run, which ends early where an error does not let it go on
};

// Runs `scenario` in a process of its own and makes the n-th allocation there fail; with 0 none. It
// returns what is wrong.
result run(size_t n, const std::function<std::string()> &scenario);

// Runs it for every n, or for every k-th unless UCXLIKE_ALLOCATION is "all". A number there is the
// only n: its log is shown, and the stack of the allocation. Returns what was wrong, of few n.
std::string run_each(size_t k, const std::function<std::string()> &scenario);

// The steps of a scenario: one that an allocation has ended is done again, and must work then.
class steps {
  protected:
    // False: a step has failed twice, or wrong_ says what was wrong anyhow.
    template <class F>
    bool twice(const char *what, F &&step)
    {
        bool well = step();
        if (!well && wrong_.empty()) {
            failed_at_.clear();
            well = step();
            if (!well && wrong_.empty()) {
                wrong_ = what;
                wrong_.append(" failed twice: ").append(failed_at_);
            }
        }
        return well && wrong_.empty();
    }

    // Notes what did not work, and why.
    bool works(const char *what, bool well, const char *why)
    {
        if (!well) {
            failed_at_.append(what).append(" ").append(why).append("; ");
        }
        return well;
    }

    std::string wrong_, failed_at_;
};

} // namespace own_allocations
