/* SPDX-License-Identifier: BSD-3-Clause */
/* For tests in C: ends the program with the place and the text of a condition that does not hold.
 */
#ifndef UCXLIKE_ABI_CHECK_H
#define UCXLIKE_ABI_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(_condition)                                                                          \
    do {                                                                                           \
        if (!(_condition)) {                                                                       \
            printf("FAIL: %s:%d: %s\n", __FILE__, __LINE__, #_condition);                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#endif
