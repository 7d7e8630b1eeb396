/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the device interface that runs on the host. This library has no device interface:
 * ucp_init() refuses UCP_FEATURE_DEVICE, and these calls make nothing.
 */
#ifndef UCP_HOST_H_
#define UCP_HOST_H_

#include <sys/types.h>
#include <ucp/api/ucp_def.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

/**
 * @ingroup UCP_DEVICE
 * @brief Members of ucp_device_mem_list_elem_t.
 */
enum ucp_device_mem_list_elem_field {
    UCP_DEVICE_MEM_LIST_ELEM_FIELD_MEMH = UCS_BIT(0),        /**< memh */
    UCP_DEVICE_MEM_LIST_ELEM_FIELD_RKEY = UCS_BIT(1),        /**< rkey */
    UCP_DEVICE_MEM_LIST_ELEM_FIELD_LOCAL_ADDR = UCS_BIT(2),  /**< local_addr */
    UCP_DEVICE_MEM_LIST_ELEM_FIELD_REMOTE_ADDR = UCS_BIT(3), /**< remote_addr */
    UCP_DEVICE_MEM_LIST_ELEM_FIELD_LENGTH = UCS_BIT(4),      /**< length */
    UCP_DEVICE_MEM_LIST_ELEM_FIELD_EP = UCS_BIT(5)           /**< ep */
};

/**
 * @ingroup UCP_DEVICE
 * @brief A piece of local memory and one of a peer.
 */
typedef struct ucp_device_mem_list_elem {
    uint64_t field_mask;  /**< @ref ucp_device_mem_list_elem_field. */
    ucp_mem_h memh;       /**< The local memory. */
    void *local_addr;     /**< Where the piece begins in it. */
    size_t length;        /**< Bytes. */
    uint64_t remote_addr; /**< Where the peer's begins. */
    ucp_rkey_h rkey;      /**< Key of the peer's memory. */
    ucp_ep_h ep;          /**< The peer. */
} ucp_device_mem_list_elem_t;

/**
 * @ingroup UCP_DEVICE
 * @brief Members of ucp_device_mem_list_params_t.
 */
enum ucp_device_mem_list_params_field {
    UCP_DEVICE_MEM_LIST_PARAMS_FIELD_ELEMENTS = UCS_BIT(0),     /**< elements */
    UCP_DEVICE_MEM_LIST_PARAMS_FIELD_ELEMENT_SIZE = UCS_BIT(1), /**< element_size */
    UCP_DEVICE_MEM_LIST_PARAMS_FIELD_NUM_ELEMENTS = UCS_BIT(2), /**< num_elements */
    UCP_DEVICE_MEM_LIST_PARAMS_FIELD_WORKER = UCS_BIT(3)        /**< worker */
};

/**
 * @ingroup UCP_DEVICE
 * @brief What a list is made of.
 */
typedef struct ucp_device_mem_list_params {
    uint64_t field_mask;                        /**< @ref ucp_device_mem_list_params_field. */
    size_t element_size;                        /**< Bytes of an element. */
    size_t num_elements;                        /**< How many there are. */
    ucp_worker_h worker;                        /**< Whose list it is. */
    const ucp_device_mem_list_elem_t *elements; /**< The first one. */
} ucp_device_mem_list_params_t;

/**
 * @ingroup UCP_DEVICE
 * @brief Members of ucp_device_counter_params_t.
 */
enum ucp_device_counter_params_field {
    UCP_DEVICE_COUNTER_PARAMS_FIELD_MEM_TYPE = UCS_BIT(0), /**< mem_type */
    UCP_DEVICE_COUNTER_PARAMS_FIELD_MEMH = UCS_BIT(1)      /**< memh */
};

/**
 * @ingroup UCP_DEVICE
 * @brief The memory that a counter is in.
 */
typedef struct ucp_device_counter_params {
    uint64_t field_mask;        /**< @ref ucp_device_counter_params_field. */
    ucs_memory_type_t mem_type; /**< Its kind. */
    ucp_mem_h memh;             /**< Its registration. */
} ucp_device_counter_params_t;

UCS_BEGIN_API

/**
 * @ingroup UCP_DEVICE
 * @brief Make a list of local memory for a device.
 *
 * @param params     What is in it.
 * @param mem_list_h Not written.
 *
 * @return UCS_ERR_UNSUPPORTED.
 */
ucs_status_t ucp_device_local_mem_list_create(const ucp_device_mem_list_params_t *params,
                                              ucp_device_local_mem_list_h *mem_list_h);

/**
 * @ingroup UCP_DEVICE
 * @brief Make a list of peers' memory for a device.
 *
 * @param params     What is in it.
 * @param mem_list_h Not written.
 *
 * @return UCS_ERR_UNSUPPORTED.
 */
ucs_status_t ucp_device_remote_mem_list_create(const ucp_device_mem_list_params_t *params,
                                               ucp_device_remote_mem_list_h *mem_list_h);

/**
 * @ingroup UCP_DEVICE
 * @brief How many elements a list has.
 *
 * @return 0: there is no list.
 */
uint32_t ucp_device_get_mem_list_length(const void *mem_list_h);

/**
 * @ingroup UCP_DEVICE
 * @brief Release a list; there is none, and nothing happens.
 */
void ucp_device_mem_list_release(void *mem_list_h);

/**
 * @ingroup UCP_DEVICE
 * @brief Begin to use memory as a counter.
 *
 * @return UCS_ERR_UNSUPPORTED; the memory is left as it is.
 */
ucs_status_t ucp_device_counter_init(ucp_worker_h worker, const ucp_device_counter_params_t *params,
                                     void *counter_ptr);

/**
 * @ingroup UCP_DEVICE
 * @brief Read a counter.
 *
 * @return 0: there is no counter.
 */
uint64_t ucp_device_counter_read(ucp_worker_h worker, const ucp_device_counter_params_t *params,
                                 void *counter_ptr);

UCS_END_API

#endif
