// SPDX-License-Identifier: BSD-3-Clause
// What every libFuzzer target has: the functions that libFuzzer calls, the sanitizer's options, and
// an end with a message when something does not hold. Included by the one source of a target.
#pragma once

#include "fabtests-ext/fuzz/asan_options.h"
#include "fabtests-ext/fuzz/mutate.h"
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

// The pair is made for the first input and ends with the process.
template <class Pair>
int begin()
{
    silence_log();
    atexit([] { the_pair<Pair>().reset(); });
    return 0;
}

// An input of messages for a live pair, which posts before it what the messages may be about.
template <class Pair>
int feed(const uint8_t *data, size_t size)
{
    Pair &now = usable_pair<Pair>();
    if constexpr (requires { now.post(); }) {
        now.post();
    }
    for (message &m : parse(data, size)) {
        now.deliver(m);
    }
    now.settle();
    return 0;
}

} // namespace fuzz
