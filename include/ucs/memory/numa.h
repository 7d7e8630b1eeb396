/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory nodes of the host, as sysfs tells them.
 */
#ifndef UCS_NUMA_H_
#define UCS_NUMA_H_

#include <stdint.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

#define UCS_NUMA_NODE_DEFAULT 0    /**< Node to take where the host has no more than one. */
#define UCS_NUMA_NODE_UNDEFINED -1 /**< Node not known. */

/** Distance between memory nodes in the units of the firmware table: 10 is the same node. */
typedef int ucs_numa_distance_t;

/** Number of a memory node, or UCS_NUMA_NODE_UNDEFINED. */
typedef int16_t ucs_numa_node_t;

END_C_DECLS

UCS_BEGIN_API

/** Names of the memory placement policies, ended by NULL. */
extern const char *ucs_numa_policy_names[];

/** Prepare the node queries; they do it by themselves as well. */
void ucs_numa_init(void);

/** Give back what the node queries have cached. */
void ucs_numa_cleanup(void);

/** @return Number of processors that the host is configured with. */
unsigned ucs_numa_num_configured_cpus(void);

/** @return Number of memory nodes that the host is configured with; at least 1. */
unsigned ucs_numa_num_configured_nodes(void);

/**
 * @param cpu  Number of a processor.
 * @return Its memory node, or UCS_NUMA_NODE_UNDEFINED.
 */
ucs_numa_node_t ucs_numa_node_of_cpu(int cpu);

/**
 * @param dev_path  Folder of a device in sysfs.
 * @return The memory node next to the device, or UCS_NUMA_NODE_UNDEFINED.
 */
ucs_numa_node_t ucs_numa_node_of_device(const char *dev_path);

/**
 * @param node1,node2  Memory nodes.
 * @return Their distance.
 */
ucs_numa_distance_t ucs_numa_distance(ucs_numa_node_t node1, ucs_numa_node_t node2);

UCS_END_API

#endif
