/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of descriptors and timers that are handled outside the user's own progress, by a thread of
 * the library. A UCT worker is created on an async context.
 */
#ifndef UCS_ASYNC_FWD_H
#define UCS_ASYNC_FWD_H

#include <ucs/config/types.h>
#include <ucs/sys/event_set.h>
#include <ucs/time/time_def.h>
#include <ucs/type/status.h>

/** A thread id that no thread has. */
#define UCS_ASYNC_PTHREAD_ID_NULL ((pthread_t)-1)

BEGIN_C_DECLS

/** An async context; opaque. */
typedef struct ucs_async_context ucs_async_context_t;

/**
 * @ingroup UCS_RESOURCE
 * @brief Called when a descriptor is ready or a timer has run down.
 *
 * Runs in the thread of the library, never twice at the same time for one id.
 *
 * @param id      The descriptor, or the id of the timer.
 * @param events  What the descriptor is ready for; 0 for a timer.
 * @param arg     What it was registered with.
 */
typedef void (*ucs_async_event_cb_t)(int id, ucs_event_set_types_t events, void *arg);

END_C_DECLS

UCS_BEGIN_API

/**
 * @ingroup UCS_RESOURCE
 * @brief Call @a cb whenever a descriptor is ready. A descriptor has one handler at most.
 *
 * @param mode      Thread modes only.
 * @param event_fd  The descriptor; it stays the caller's and must be open until its handler is
 * removed.
 * @param events    What to wait for, or-ed UCS_EVENT_SET_EV values.
 * @param cb        The handler.
 * @param arg       Handed to it.
 * @param async     Context whose users the handler keeps out; NULL: none.
 */
ucs_status_t ucs_async_set_event_handler(ucs_async_mode_t mode, int event_fd,
                                         ucs_event_set_types_t events, ucs_async_event_cb_t cb,
                                         void *arg, ucs_async_context_t *async);

/**
 * @ingroup UCS_RESOURCE
 * @brief Call @a cb at regular intervals.
 *
 * @param[in]  mode        Thread modes only.
 * @param[in]  interval    Time between two calls, in units of ucs_time_t.
 * @param[in]  cb          The handler.
 * @param[in]  arg         Handed to it.
 * @param[in]  async       Context whose users the handler keeps out; NULL: none.
 * @param[out] timer_id_p  Id to remove the timer with.
 */
ucs_status_t ucs_async_add_timer(ucs_async_mode_t mode, ucs_time_t interval,
                                 ucs_async_event_cb_t cb, void *arg, ucs_async_context_t *async,
                                 int *timer_id_p);

/**
 * @ingroup UCS_RESOURCE
 * @brief Remove the handler of a descriptor or a timer.
 *
 * @param id    The descriptor, or the id of the timer.
 * @param sync  Not 0: return only when the handler no longer runs. Called by the handler itself it
 * does not wait.
 */
ucs_status_t ucs_async_remove_handler(int id, int sync);

/**
 * @ingroup UCS_RESOURCE
 * @brief Change what a descriptor is waited for.
 *
 * @param fd      A descriptor that has a handler.
 * @param events  What to wait for from now on.
 */
ucs_status_t ucs_async_modify_handler(int fd, ucs_event_set_types_t events);

/**
 * @ingroup UCS_RESOURCE
 * @brief Create an async context, for uct_worker_create().
 *
 * @param[in]  mode     How its users and its handlers are kept apart.
 * @param[out] async_p  The context, on success; destroy it with ucs_async_context_destroy().
 */
ucs_status_t ucs_async_context_create(ucs_async_mode_t mode, ucs_async_context_t **async_p);

/**
 * @ingroup UCS_RESOURCE
 * @brief Destroy an async context, after the workers that use it.
 */
void ucs_async_context_destroy(ucs_async_context_t *async);

/**
 * @ingroup UCS_RESOURCE
 * @brief Handle the events of a context that are waiting.
 *
 * @param async  The context; NULL: all.
 */
void ucs_async_poll(ucs_async_context_t *async);

/** Handle events that arrived while a context was blocked. For inline code of UCX; ucs_async_poll()
 * does the same. */
void __ucs_async_poll_missed(ucs_async_context_t *async);

UCS_END_API

#endif
