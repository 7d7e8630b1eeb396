/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The unit of time of timers.
 */
#ifndef UCS_TIME_DEF_H
#define UCS_TIME_DEF_H

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @ingroup UCS_RESOURCE
 * @brief A point in time or a time span in clock ticks of the library (this library: nanoseconds).
 * It may wrap around, so compare differences.
 */
typedef unsigned long ucs_time_t;

END_C_DECLS

#endif
