/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Status codes of every call of the library, and pointers that carry either a status or a request.
 * A status is one byte wide: callers and callees of any version read only the low byte of the
 * return register.
 */
#ifndef UCS_TYPES_STATUS_H_
#define UCS_TYPES_STATUS_H_

#include <stdint.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @ingroup UCS_RESOURCE
 * @brief Result of a call.
 *
 * 0 is success, 1 means that the operation goes on, negative values are errors. Errors between
 * UCS_ERR_FIRST_LINK_FAILURE and UCS_ERR_LAST_LINK_FAILURE leave a link (interface) unusable, those
 * between UCS_ERR_FIRST_ENDPOINT_FAILURE and UCS_ERR_LAST_ENDPOINT_FAILURE an endpoint; any other
 * error concerns the one call.
 */
typedef enum {
    UCS_OK = 0,         /**< Done. */
    UCS_INPROGRESS = 1, /**< Started; the completion comes later. */

    UCS_ERR_NO_MESSAGE = -1, /**< No message that matches. */
    UCS_ERR_NO_RESOURCE =
        -2, /**< Nothing was started for lack of buffers or credits: try after progress. */
    UCS_ERR_IO_ERROR = -3,      /**< The device or the operating system reported a failure. */
    UCS_ERR_NO_MEMORY = -4,     /**< Memory could not be allocated or registered. */
    UCS_ERR_INVALID_PARAM = -5, /**< An argument is wrong; the log names it. */
    UCS_ERR_UNREACHABLE = -6,   /**< No way leads to that peer. */
    UCS_ERR_INVALID_ADDR = -7,  /**< A packed address or remote address is damaged or not valid. */
    UCS_ERR_NOT_IMPLEMENTED = -8,       /**< The call exists, this library does nothing for it. */
    UCS_ERR_MESSAGE_TRUNCATED = -9,     /**< The message is longer than the receive buffer. */
    UCS_ERR_NO_PROGRESS = -10,          /**< Nothing to progress. */
    UCS_ERR_BUFFER_TOO_SMALL = -11,     /**< The caller's buffer cannot hold the result. */
    UCS_ERR_NO_ELEM = -12,              /**< No such element. */
    UCS_ERR_SOME_CONNECTS_FAILED = -13, /**< Part of a group of connections failed. */
    UCS_ERR_NO_DEVICE = -14,            /**< No such device, or no device that fits. */
    UCS_ERR_BUSY = -15, /**< Occupied at the moment: events are waiting, or an address is in use. */
    UCS_ERR_CANCELED = -16,       /**< Ended by a cancel or a forced close. */
    UCS_ERR_SHMEM_SEGMENT = -17,  /**< A shared memory segment could not be used. */
    UCS_ERR_ALREADY_EXISTS = -18, /**< Exists already. */
    UCS_ERR_OUT_OF_RANGE = -19,   /**< An index or value lies outside its range. */
    UCS_ERR_TIMED_OUT = -20,      /**< The time allowed has passed. */
    UCS_ERR_EXCEEDS_LIMIT = -21,  /**< More than the limit the object reports in its attributes. */
    UCS_ERR_UNSUPPORTED = -22,    /**< Not offered by this object, device or configuration. */
    UCS_ERR_REJECTED = -23,       /**< The server refused the connection. */
    UCS_ERR_NOT_CONNECTED = -24,  /**< No connection, or no longer one. */
    UCS_ERR_CONNECTION_RESET = -25, /**< The peer ended the connection. */

    UCS_ERR_FIRST_LINK_FAILURE = -40, /**< First code of the link failures. */
    UCS_ERR_LAST_LINK_FAILURE = -59,  /**< Last code of the link failures. */

    UCS_ERR_FIRST_ENDPOINT_FAILURE = -60, /**< First code of the endpoint failures. */
    UCS_ERR_ENDPOINT_TIMEOUT = -80,       /**< The peer of an endpoint no longer answers. */
    UCS_ERR_LAST_ENDPOINT_FAILURE = -89,  /**< Last code of the endpoint failures. */

    UCS_ERR_LAST = -100 /**< Below every status: bound of the status pointers. */
} UCS_S_PACKED ucs_status_t;

/** Whether a status tells of a failed link. */
#define UCS_IS_LINK_ERROR(_code)                                                                   \
    (((_code) <= UCS_ERR_FIRST_LINK_FAILURE) && ((_code) >= UCS_ERR_LAST_LINK_FAILURE))

/** Whether a status tells of a failed endpoint. */
#define UCS_IS_ENDPOINT_ERROR(_code)                                                               \
    (((_code) <= UCS_ERR_FIRST_ENDPOINT_FAILURE) && ((_code) >= UCS_ERR_LAST_ENDPOINT_FAILURE))

/**
 * @ingroup UCS_RESOURCE
 * @brief A status or a request in one pointer.
 *
 * NULL is UCS_OK; the topmost addresses are the error codes; anything else is a request in
 * progress.
 */
typedef void *ucs_status_ptr_t;

/** Whether the pointer carries an error code. */
#define UCS_PTR_IS_ERR(_ptr) (((uintptr_t)(_ptr)) >= ((uintptr_t)UCS_ERR_LAST))

/** Whether the pointer is a request. */
#define UCS_PTR_IS_PTR(_ptr) (((uintptr_t)(_ptr)-1) < ((uintptr_t)UCS_ERR_LAST - 1))

/** The status in a pointer that is known not to be a request. */
#define UCS_PTR_RAW_STATUS(_ptr) ((ucs_status_t)(intptr_t)(_ptr))

/** The status of any status pointer; UCS_INPROGRESS for a request. */
#define UCS_PTR_STATUS(_ptr) (UCS_PTR_IS_PTR(_ptr) ? UCS_INPROGRESS : UCS_PTR_RAW_STATUS(_ptr))

/** The status pointer of a status that is UCS_OK or an error; UCS_INPROGRESS has none. */
#define UCS_STATUS_PTR(_status) ((void *)(intptr_t)(_status))

/** Whether a status is an error. */
#define UCS_STATUS_IS_ERR(_status) ((_status) < 0)

END_C_DECLS

UCS_BEGIN_API

/**
 * @ingroup UCS_RESOURCE
 * @brief Text of a status.
 *
 * May be called from any thread at any time.
 *
 * @param status  Any value, also one that is no status.
 * @return A string that lives as long as the library; never NULL.
 */
const char *ucs_status_string(ucs_status_t status);

UCS_END_API

#endif
