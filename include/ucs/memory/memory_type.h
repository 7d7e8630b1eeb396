/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kinds of memory that a buffer may lie in.
 * UCS_MEMORY_TYPE_UNKNOWN is 5 in programs built with UCX 1.13 to 1.15, 6 in 1.16, 9 in 1.17
 * to 1.20 and 10 since: the library therefore takes every kind that it does not handle for "not
 * told", and finds out by itself.
 */
#ifndef UCS_MEMORY_TYPE_H_
#define UCS_MEMORY_TYPE_H_

#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/** Set of the kinds that a processor can load from and store to. */
#define UCS_MEMORY_TYPES_CPU_ACCESSIBLE                                                            \
    (UCS_BIT(UCS_MEMORY_TYPE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_ROCM_MANAGED) |                       \
     UCS_BIT(UCS_MEMORY_TYPE_ZE_HOST) | UCS_BIT(UCS_MEMORY_TYPE_ZE_MANAGED))

/** Loop over all kinds of memory; @a _x is an integer variable. */
#define ucs_memory_type_for_each(_x)                                                               \
    for ((_x) = UCS_MEMORY_TYPE_HOST; (_x) < UCS_MEMORY_TYPE_LAST; (_x)++)

/**
 * @ingroup UCS_RESOURCE
 * @brief Kind of memory.
 */
typedef enum ucs_memory_type {
    UCS_MEMORY_TYPE_HOST,                          /**< Memory of the host. */
    UCS_MEMORY_TYPE_CUDA,                          /**< NVIDIA device memory. */
    UCS_MEMORY_TYPE_CUDA_MANAGED,                  /**< NVIDIA managed memory. */
    UCS_MEMORY_TYPE_ROCM,                          /**< AMD device memory. */
    UCS_MEMORY_TYPE_ROCM_MANAGED,                  /**< AMD managed memory. */
    UCS_MEMORY_TYPE_RDMA,                          /**< Memory on a network device. */
    UCS_MEMORY_TYPE_ZE_HOST,                       /**< Intel Level Zero, host. */
    UCS_MEMORY_TYPE_ZE_DEVICE,                     /**< Intel Level Zero, device. */
    UCS_MEMORY_TYPE_ZE_MANAGED,                    /**< Intel Level Zero, shared. */
    UCS_MEMORY_TYPE_GAUDI,                         /**< Gaudi device memory. */
    UCS_MEMORY_TYPE_LAST,                          /**< Number of kinds. */
    UCS_MEMORY_TYPE_UNKNOWN = UCS_MEMORY_TYPE_LAST /**< Not known: the library finds out. */
} ucs_memory_type_t;

/** Properties of a piece of memory. */
typedef enum ucs_mem_flags {
    UCS_MEM_FLAG_REGISTRABLE = UCS_BIT(0) /**< Memory domains can register it. */
} ucs_mem_flags_t;

END_C_DECLS

UCS_BEGIN_API

/** Short names of the kinds, indexed by ucs_memory_type_t, ended by NULL. */
extern const char *ucs_memory_type_names[];

/** One-line descriptions of the kinds, indexed by ucs_memory_type_t, ended by NULL. */
extern const char *ucs_memory_type_descs[];

UCS_END_API

#endif
