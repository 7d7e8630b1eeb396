// SPDX-License-Identifier: BSD-3-Clause
// Names of the memory types, indexed by ucs_memory_type_t and ended by a null pointer.
#include "ucs/compiler.h"

#include <ucs/memory/memory_type.h>

extern "C" {
UCS_EXPORT extern const char *ucs_memory_type_names[];
const char *ucs_memory_type_names[] = {"host",         "cuda",  "cuda-managed", "rocm",
                                       "rocm-managed", "rdma",  "ze-host",      "ze-device",
                                       "ze-managed",   "gaudi", "unknown",      nullptr};
UCS_EXPORT extern const char *ucs_memory_type_descs[];
const char *ucs_memory_type_descs[] = {"System memory",
                                       "NVIDIA GPU memory",
                                       "NVIDIA GPU managed/unified memory",
                                       "AMD/ROCm GPU memory",
                                       "AMD/ROCm GPU managed system memory",
                                       "RDMA device memory",
                                       "Intel/ZE USM host memory",
                                       "Intel/ZE USM device memory",
                                       "Intel/ZE USM managed memory",
                                       "Gaudi device memory",
                                       "unknown",
                                       nullptr};
}
