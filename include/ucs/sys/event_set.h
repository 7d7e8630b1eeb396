/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of file descriptors that one thread waits on.
 */
#ifndef UCS_EVENT_SET_H
#define UCS_EVENT_SET_H

#include <stdint.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/** A set of descriptors; opaque. */
typedef struct ucs_sys_event_set ucs_sys_event_set_t;

/** Or-ed values of ucs_event_set_type_t. */
typedef uint8_t ucs_event_set_types_t;

/**
 * @brief Called from @ref ucs_event_set_wait for each descriptor that is ready, in the waiting
 * thread.
 *
 * @param callback_data  What the descriptor was added with.
 * @param events         What it is ready for.
 * @param arg            What the wait was called with.
 */
typedef void (*ucs_event_set_handler_t)(void *callback_data, ucs_event_set_types_t events,
                                        void *arg);

/** Readiness of a descriptor. */
typedef enum {
    UCS_EVENT_SET_EVREAD = UCS_BIT(0),        /**< Readable. */
    UCS_EVENT_SET_EVWRITE = UCS_BIT(1),       /**< Writable. */
    UCS_EVENT_SET_EVERR = UCS_BIT(2),         /**< In error. */
    UCS_EVENT_SET_EDGE_TRIGGERED = UCS_BIT(3) /**< Tell only changes. */
} ucs_event_set_type_t;

END_C_DECLS

UCS_BEGIN_API

/** The most events that one wait can return. */
extern const unsigned ucs_sys_event_set_max_wait_events;

/**
 * @brief Make a set out of an epoll descriptor; it stays the caller's and is not closed with the
 * set.
 *
 * @param[out] event_set_p  The set, on success.
 * @param[in]  event_fd     An epoll descriptor.
 */
ucs_status_t ucs_event_set_create_from_fd(ucs_sys_event_set_t **event_set_p, int event_fd);

/**
 * @brief Make an empty set.
 *
 * @param[out] event_set_p  The set, on success.
 */
ucs_status_t ucs_event_set_create(ucs_sys_event_set_t **event_set_p);

/**
 * @brief Add a descriptor.
 *
 * @param event_set      The set.
 * @param fd             A descriptor that is not in it.
 * @param events         What to wait for.
 * @param callback_data  Handed to the handler.
 */
ucs_status_t ucs_event_set_add(ucs_sys_event_set_t *event_set, int fd, ucs_event_set_types_t events,
                               void *callback_data);

/**
 * @brief Change what a descriptor is waited for, and its data.
 *
 * @param event_set      The set.
 * @param fd             A descriptor that is in it.
 * @param events         What to wait for from now on.
 * @param callback_data  Handed to the handler from now on.
 */
ucs_status_t ucs_event_set_mod(ucs_sys_event_set_t *event_set, int fd, ucs_event_set_types_t events,
                               void *callback_data);

/**
 * @brief Take a descriptor out.
 *
 * @param event_set  The set.
 * @param fd         A descriptor that is in it.
 */
ucs_status_t ucs_event_set_del(ucs_sys_event_set_t *event_set, int fd);

/**
 * @brief Wait until a descriptor is ready or the time is over, and call the handler for each ready
 * one.
 *
 * @param[in]     event_set          The set.
 * @param[in,out] num_events         In: the most to return, out: how many were ready.
 * @param[in]     timeout_ms         Milliseconds; 0 does not wait, -1 has no end.
 * @param[in]     event_set_handler  Called for each.
 * @param[in]     arg                Handed to the handler.
 * @return UCS_OK, UCS_INPROGRESS when a signal interrupted the wait, or UCS_ERR_IO_ERROR.
 */
ucs_status_t ucs_event_set_wait(ucs_sys_event_set_t *event_set, unsigned *num_events,
                                int timeout_ms, ucs_event_set_handler_t event_set_handler,
                                void *arg);

/** Destroy a set; the descriptors stay open. */
void ucs_event_set_cleanup(ucs_sys_event_set_t *event_set);

/**
 * @brief The descriptor of the set itself, for another poll to wait on.
 *
 * @param[in]  event_set   The set, which keeps owning it.
 * @param[out] event_fd_p  The descriptor.
 */
ucs_status_t ucs_event_set_fd_get(ucs_sys_event_set_t *event_set, int *event_fd_p);

UCS_END_API

#endif
