// SPDX-License-Identifier: BSD-3-Clause
//
// What a program cannot do when $EMULATOR runs it on a processor of another kind (see
// fabtests-ext/scripts/aarch64).
#pragma once

#include <cstdlib>
#include <gtest/gtest.h>

#define SKIP_IF_EMULATED(why)                                                                      \
    do {                                                                                           \
        if (getenv("EMULATOR")) {                                                                  \
            GTEST_SKIP() << "emulated: " why;                                                      \
        }                                                                                          \
    } while (0)
