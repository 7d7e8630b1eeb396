/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many threads may use an object, chosen when it is created.
 */
#ifndef UCS_TYPE_THREAD_MODE_H
#define UCS_TYPE_THREAD_MODE_H

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @ingroup UCS_RESOURCE
 * @brief Threads that may use an object.
 */
typedef enum {
    UCS_THREAD_MODE_SINGLE,     /**< One thread only, the one that created it. */
    UCS_THREAD_MODE_SERIALIZED, /**< Any thread, but the callers let no two calls overlap. */
    UCS_THREAD_MODE_MULTI,      /**< Any thread at any time. */
    UCS_THREAD_MODE_LAST        /**< Number of modes. */
} ucs_thread_mode_t;

END_C_DECLS

UCS_BEGIN_API

/** Names of the thread modes, indexed by ucs_thread_mode_t, ended by NULL. */
extern const char *ucs_thread_mode_names[];

UCS_END_API

#endif
