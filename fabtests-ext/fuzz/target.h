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

} // namespace fuzz
