// SPDX-License-Identifier: BSD-3-Clause
//
// Checks of a process that a test has made: what does not hold ends it with a line that says where.
#pragma once

#include <cstdio>
#include <unistd.h>

#define REQUIRE(cond)                                                                              \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #cond);                   \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define REQUIRE_EQ(a, b)                                                                           \
    do {                                                                                           \
        auto va = (a);                                                                             \
        auto vb = (b);                                                                             \
        if (!(va == static_cast<decltype(va)>(vb))) {                                              \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #a,               \
                    static_cast<long long>(va), static_cast<long long>(vb));                       \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
