// SPDX-License-Identifier: BSD-3-Clause
// Argument checks of the public calls: a false condition logs which argument was wrong and what was
// expected (printf-like text) and returns UCS_ERR_INVALID_PARAM from the calling function.
#pragma once

#include "ucs/log.h"

#include <ucs/type/status.h>

#define UCS_CHECK_ARG(cond, ...)                                                                   \
    do {                                                                                           \
        if (UCS_UNLIKELY(!(cond))) {                                                               \
            ucs_error(__VA_ARGS__);                                                                \
            return UCS_ERR_INVALID_PARAM;                                                          \
        }                                                                                          \
    } while (0)

// The same for calls that return a status pointer.
#define UCS_CHECK_ARG_PTR(cond, ...)                                                               \
    do {                                                                                           \
        if (UCS_UNLIKELY(!(cond))) {                                                               \
            ucs_error(__VA_ARGS__);                                                                \
            return UCS_STATUS_PTR(UCS_ERR_INVALID_PARAM);                                          \
        }                                                                                          \
    } while (0)
