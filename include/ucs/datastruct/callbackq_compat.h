/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flags of progress callbacks, for uct_worker_progress_register_safe().
 */
#ifndef UCS_CALLBACKQ_COMPAT_H
#define UCS_CALLBACKQ_COMPAT_H

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @ingroup UCS_RESOURCE
 * @brief How a progress callback is called.
 */
enum ucs_callbackq_flags {
    UCS_CALLBACKQ_FLAG_FAST = UCS_BIT(0),   /**< In every progress, as early as possible. */
    UCS_CALLBACKQ_FLAG_ONESHOT = UCS_BIT(1) /**< Once, then it is removed; not with FAST. */
};

END_C_DECLS

#endif
