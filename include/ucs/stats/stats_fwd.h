/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types of UCX's statistics. This library counts in its own ways and offers no statistics tree.
 */
#ifndef UCS_STATS_FD_H_
#define UCS_STATS_FD_H_

#include <stdint.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

typedef uint64_t ucs_stats_counter_t; /**< A counter. */
typedef struct ucs_stats_class
    ucs_stats_class_t; /**< Names of the counters of a kind of node; opaque. */
typedef struct ucs_stats_node ucs_stats_node_t; /**< A node of the tree; opaque. */
typedef struct ucs_stats_filter_node
    ucs_stats_filter_node_t; /**< A node of the filtered tree; opaque. */

/** Form of a report. */
typedef enum {
    UCS_STATS_FULL,     /**< Every node. */
    UCS_STATS_FULL_AGG, /**< Every kind of node, summed up. */
    UCS_STATS_SUMMARY,  /**< One line. */
    UCS_STATS_LAST      /**< Number of forms. */
} ucs_stats_formats_t;

END_C_DECLS

UCS_BEGIN_API

/** Names of the forms, indexed by ucs_stats_formats_t, ended by NULL. */
extern const char *ucs_stats_formats_names[];

/** @return The root of the tree; NULL, as there is none. */
ucs_stats_node_t *ucs_stats_get_root(void);

UCS_END_API

#endif
