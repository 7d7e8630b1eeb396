// SPDX-License-Identifier: BSD-3-Clause
// What every libFuzzer target has: the functions that libFuzzer calls, the sanitizer's options, and
// an end with a message when something does not hold. Included by the one source of a target.
#pragma once

#include "fabtests-ext/fuzz/asan_options.h"
#include "ucs/log.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

extern "C" int LLVMFuzzerInitialize(int *, char ***);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace fuzz {

inline void expect(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

// Lines about damaged input would hide a finding.
inline void silence_log()
{
    ucs::log::set_sink([](ucs::log::level, const char *, int, const char *) {});
}

// What the inputs of a target go to, a pair of its own. An empty one before the first input.
template <class Pair>
std::unique_ptr<Pair> &the_pair()
{
    static std::unique_ptr<Pair> now;
    return now;
}

// It, or a new one where there is none that an input can go to.
template <class Pair>
Pair &usable_pair()
{
    std::unique_ptr<Pair> &now = the_pair<Pair>();
    if (!now || !now->usable()) {
        now.reset();
        now = std::make_unique<Pair>();
    }
    return *now;
}

} // namespace fuzz
