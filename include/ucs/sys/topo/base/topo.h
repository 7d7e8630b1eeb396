/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices of the host and how far they are from each other and from memory.
 * UCT and UCP use no more than the device index of this header. The calls tell what hwloc knows;
 * those that would change it return UCS_ERR_UNSUPPORTED, or do nothing where they return nothing.
 */
#ifndef UCS_TOPO_H
#define UCS_TOPO_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <ucs/datastruct/list.h>
#include <ucs/memory/numa.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

#define UCS_SYS_DEVICE_ID_MAX UINT8_MAX         /**< Device indices are below this. */
#define UCS_SYS_DEVICE_ID_UNKNOWN UINT8_MAX     /**< Index of a device that has no bus address. */
#define UCS_SYS_DEVICE_ORDINAL_INVALID UINT_MAX /**< Rank of a device that has none. */
#define UCS_SYS_DEVICE_USER_VALUE_EMPTY UINTPTR_MAX /**< User value of a device that has none. */
#define UCS_SYS_BDF_NAME_MAX 16 /**< Bytes of the text of a bus address, with its end. */

/** PCI address of a device. */
typedef struct ucs_sys_bus_id {
    uint16_t domain;  /**< Domain, 16 bits. */
    uint8_t bus;      /**< Bus, 8 bits. */
    uint8_t slot;     /**< Device on the bus, 5 bits. */
    uint8_t function; /**< Function of the device, 3 bits. */
} ucs_sys_bus_id_t;

/** A PCI address in one number. */
typedef int64_t ucs_bus_id_bit_rep_t;

/**
 * @ingroup UCS_RESOURCE
 * @brief Index of a device of this host, below UCS_SYS_DEVICE_ID_MAX, or UCS_SYS_DEVICE_ID_UNKNOWN.
 */
typedef uint8_t ucs_sys_device_t;

/**
 * @ingroup UCS_RESOURCE
 * @brief What a device is for.
 */
typedef enum {
    UCS_TOPO_DEVICE_CLASS_UNKNOWN = 0, /**< Not known. */
    UCS_TOPO_DEVICE_CLASS_NET,         /**< Network. */
    UCS_TOPO_DEVICE_CLASS_ACC          /**< Acceleration, such as a GPU. */
} ucs_topo_device_class_t;

/**
 * @ingroup UCS_RESOURCE
 * @brief All that is known about devices; opaque.
 */
typedef struct ucs_global_state ucs_global_state_t;

/** How far two devices are from each other. */
typedef struct ucs_sys_dev_distance {
    double latency;   /**< Seconds. */
    double bandwidth; /**< Bytes per second. */
} ucs_sys_dev_distance_t;

/** Computes the distance between two devices, see ucs_topo_get_distance(). */
typedef ucs_status_t (*ucs_topo_get_distance_func_t)(ucs_sys_device_t device1,
                                                     ucs_sys_device_t device2,
                                                     ucs_sys_dev_distance_t *distance);

/** Computes the distance to the calling thread's memory, see ucs_topo_get_memory_distance(). Always
 * gives an answer. */
typedef void (*ucs_topo_get_memory_distance_func_t)(ucs_sys_device_t device,
                                                    ucs_sys_dev_distance_t *distance);

/** Computes the distance to the memory next to some processors, see
 * ucs_topo_get_memory_distance_for_cpuset(). */
typedef void (*ucs_topo_get_memory_distance_for_cpuset_func_t)(ucs_sys_device_t device,
                                                               const ucs_cpu_set_t *cpuset,
                                                               ucs_sys_dev_distance_t *distance);

/** A source of distances. */
typedef struct ucs_sys_topo_ops {
    ucs_topo_get_distance_func_t get_distance;               /**< Device to device. */
    ucs_topo_get_memory_distance_func_t get_memory_distance; /**< Device to own memory. */
    ucs_topo_get_memory_distance_for_cpuset_func_t
        get_memory_distance_for_cpuset; /**< Device to memory of a set. */
} ucs_sys_topo_ops_t;

END_C_DECLS

UCS_BEGIN_API

/** Distance to take where nothing is known. */
extern const ucs_sys_dev_distance_t ucs_topo_default_distance;

/** Distance beyond every real one. */
extern const ucs_sys_dev_distance_t ucs_topo_max_distance;

/** Forget the source of distances in use; the next query selects one again. */
void ucs_sys_topo_reset_provider(void);

/**
 * @brief Put a source of distances before those in use, until it is popped.
 *
 * @param ops  Functions of the source; copied.
 * @return UCS_OK or UCS_ERR_NO_MEMORY.
 */
ucs_status_t ucs_sys_topo_provider_push(const ucs_sys_topo_ops_t *ops);

/** Take away the source that was pushed last. */
void ucs_sys_topo_provider_pop(void);

/**
 * @brief The device at a PCI address.
 *
 * @param[in]  bus_id   The address.
 * @param[out] sys_dev  Index of the device.
 */
ucs_status_t ucs_topo_find_device_by_bus_id(const ucs_sys_bus_id_t *bus_id,
                                            ucs_sys_device_t *sys_dev);

/**
 * @brief Like ucs_topo_find_device_by_bus_id(), for several devices at one address that a value
 * tells apart.
 *
 * @param[in]  bus_id      The address.
 * @param[in]  user_value  The value; UCS_SYS_DEVICE_USER_VALUE_EMPTY is the device of the plain
 * address.
 * @param[out] sys_dev_p   Index of the device.
 */
ucs_status_t ucs_topo_find_device_by_bus_id_and_user_value(const ucs_sys_bus_id_t *bus_id,
                                                           uintptr_t user_value,
                                                           ucs_sys_device_t *sys_dev_p);

/**
 * @brief The PCI address of a device.
 *
 * @param[in]  sys_dev  Index of the device.
 * @param[out] bus_id   Its address.
 */
ucs_status_t ucs_topo_get_device_bus_id(ucs_sys_device_t sys_dev, ucs_sys_bus_id_t *bus_id);

/** @return A PCI address as one number; different addresses give different numbers. */
ucs_bus_id_bit_rep_t ucs_topo_get_bus_id_bit_repr(const ucs_sys_bus_id_t *bus_id);

/**
 * @brief Distance between two devices.
 *
 * @param[in]  device1,device2  Indices of the devices.
 * @param[out] distance         Their distance.
 */
ucs_status_t ucs_topo_get_distance(ucs_sys_device_t device1, ucs_sys_device_t device2,
                                   ucs_sys_dev_distance_t *distance);

/**
 * @brief Distance of a device from the memory next to the processors that the calling thread may
 * run on.
 *
 * @param[in]  device    Index of the device.
 * @param[out] distance  The distance; a default where it is not known.
 */
void ucs_topo_get_memory_distance(ucs_sys_device_t device, ucs_sys_dev_distance_t *distance);

/**
 * @brief Distance of a device from the memory next to some processors.
 *
 * @param[in]  device    Index of the device.
 * @param[in]  cpuset    The processors.
 * @param[out] distance  The distance; a default where it is not known.
 */
void ucs_topo_get_memory_distance_for_cpuset(ucs_sys_device_t device, const ucs_cpu_set_t *cpuset,
                                             ucs_sys_dev_distance_t *distance);

/**
 * @brief A distance as text.
 *
 * @param[in]  distance  The distance.
 * @param[out] buffer    Where the text goes.
 * @param[in]  max       Size of @a buffer in bytes.
 * @return @a buffer.
 */
const char *ucs_topo_distance_str(const ucs_sys_dev_distance_t *distance, char *buffer, size_t max);

/** @return Below 0 when @a distance1 is the better one (lower latency, then higher bandwidth), 0
 * when equal, else above. */
int ucs_topo_distance_cmp(const ucs_sys_dev_distance_t *distance1,
                          const ucs_sys_dev_distance_t *distance2);

/**
 * @brief The device of a folder in sysfs.
 *
 * @param dev_name       Name for the device.
 * @param sysfs_path     Its folder.
 * @param name_priority  The name with the highest priority stays.
 * @return Index of the device, or UCS_SYS_DEVICE_ID_UNKNOWN.
 */
ucs_sys_device_t ucs_topo_get_sysfs_dev(const char *dev_name, const char *sysfs_path,
                                        unsigned name_priority);

/**
 * @brief The PCI address of a device as text, "domain:bus:slot.function" in hexadecimal.
 *
 * @param[in]  sys_dev  Index of the device.
 * @param[out] buffer   Where the text goes.
 * @param[in]  max      Size of @a buffer in bytes; UCS_SYS_BDF_NAME_MAX is enough.
 * @return @a buffer.
 */
const char *ucs_topo_sys_device_bdf_name(ucs_sys_device_t sys_dev, char *buffer, size_t max);

/**
 * @brief The device at a PCI address given as text, with or without its domain.
 *
 * @param[in]  name     The address.
 * @param[out] sys_dev  Index of the device.
 */
ucs_status_t ucs_topo_find_device_by_bdf_name(const char *name, ucs_sys_device_t *sys_dev);

/**
 * @brief Name a device.
 *
 * @param sys_dev   Index of the device.
 * @param name      The name; copied.
 * @param priority  It replaces a name of lower priority only.
 */
ucs_status_t ucs_topo_sys_device_set_name(ucs_sys_device_t sys_dev, const char *name,
                                          unsigned priority);

/**
 * @param dev_name    Name of the device for messages.
 * @param sysfs_path  Its folder in sysfs.
 * @return Bytes per second of its PCI link; DBL_MAX where not known.
 */
double ucs_topo_get_pci_bw(const char *dev_name, const char *sysfs_path);

/**
 * @brief The folder that a device's entry in a class of sysfs leads to.
 *
 * @param[in]  dev_path     The entry, such as /sys/class/net/eth0.
 * @param[out] path_buffer  PATH_MAX bytes for the folder.
 * @return @a path_buffer, or NULL.
 */
const char *ucs_topo_resolve_sysfs_path(const char *dev_path, char *path_buffer);

/** @return Name of a device, its PCI address where it has none, NULL where there is no such device.
 */
const char *ucs_topo_sys_device_get_name(ucs_sys_device_t sys_dev);

/** Say what a device is for. */
ucs_status_t ucs_topo_sys_device_set_class(ucs_sys_device_t sys_dev,
                                           ucs_topo_device_class_t device_class);

/**
 * @return Rank of the device's PCI address among those of the devices of its class, from 0; devices
 * at one address have one rank. UCS_SYS_DEVICE_ORDINAL_INVALID where there is no such device or it
 * has no class.
 */
unsigned ucs_topo_sys_device_get_bdf_class_ordinal(ucs_sys_device_t sys_dev);

/** @return Memory node next to a device, or UCS_NUMA_NODE_UNDEFINED. */
ucs_numa_node_t ucs_topo_sys_device_get_numa_node(ucs_sys_device_t sys_dev);

/** Say which memory node is next to a device. */
ucs_status_t ucs_topo_sys_device_set_numa_node(ucs_sys_device_t sys_dev, ucs_numa_node_t numa_node);

/** @return The value a device was added with, or UCS_SYS_DEVICE_USER_VALUE_EMPTY. */
uintptr_t ucs_topo_sys_device_get_user_value(ucs_sys_device_t sys_dev);

/** Say that a second device serves as another path of the first. */
ucs_status_t ucs_topo_sys_device_set_sys_dev_aux(ucs_sys_device_t sys_dev,
                                                 ucs_sys_device_t sys_dev_aux);

/** Let transfers of the memory of a device take its second path. */
ucs_status_t ucs_topo_sys_device_enable_aux_path(ucs_sys_device_t sys_dev);

/** @return Whether @a sys_dev can access the memory of @a sys_dev_mem directly. */
int ucs_topo_is_reachable(ucs_sys_device_t sys_dev, ucs_sys_device_t sys_dev_mem);

/** @return Whether both devices hang on one switch that connects them directly. */
int ucs_topo_is_sibling(ucs_sys_device_t sys_dev, ucs_sys_device_t sys_dev_mem);

/** @return Whether any other device is a sibling of this one. */
int ucs_topo_device_has_sibling(ucs_sys_device_t sys_dev);

/** @return Number of known devices; their indices are 0 to that minus 1. */
unsigned ucs_topo_num_devices(void);

/** Print the distances between all known devices. */
void ucs_topo_print_info(FILE *stream);

/** Put aside what is known about devices, and begin anew. @return What was known; for
 * ucs_topo_restore_state(). */
ucs_global_state_t *ucs_topo_extract_state(void);

/** Take back what was put aside, instead of what is known now. */
void ucs_topo_restore_state(ucs_global_state_t *state);

/** Prepare this part of the library; it does so by itself as well. */
void ucs_topo_init(void);

/** Give back all that this part of the library holds. */
void ucs_topo_cleanup(void);

UCS_END_API

#endif
