/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue of callbacks that uct_worker_progress() runs, inline in the caller.
 * The layout is part of the binary interface in two versions: elements had 24 bytes (callback,
 * argument, flags, id) up to UCX 1.15 and have 16 since. A queue with one element, followed by
 * zeros, reads the same with both; workers of this library keep to that, and reserve the larger
 * size.
 */
#ifndef UCS_CALLBACKQ_H
#define UCS_CALLBACKQ_H

#include <stddef.h>
#include <stdint.h>
#include <ucs/datastruct/list.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

#define UCS_CALLBACKQ_FAST_COUNT 7 /**< The most callbacks that a progress runs inline. */
#define UCS_CALLBACKQ_ID_NULL (-1) /**< Id of no callback. */

typedef struct ucs_callbackq ucs_callbackq_t;           /**< See @ref ucs_callbackq. */
typedef struct ucs_callbackq_elem ucs_callbackq_elem_t; /**< See @ref ucs_callbackq_elem. */
typedef struct ucs_callbackq_priv ucs_callbackq_priv_t; /**< The hidden part of a queue; opaque. */
typedef void *ucs_callbackq_key_t;                      /**< What groups one-shot callbacks. */

/**
 * @brief A callback of a queue, run by the thread that makes progress.
 *
 * @param arg  What it was added with.
 * @return How much was done; 0: nothing.
 */
typedef unsigned (*ucs_callback_t)(void *arg);

/**
 * @brief Says which callbacks to remove.
 *
 * @param elem  A callback with the key that is being removed.
 * @param arg   What the removal was called with.
 * @return Not 0: remove it.
 */
typedef int (*ucs_callbackq_predicate_t)(const ucs_callbackq_elem_t *elem, void *arg);

/** A callback and its argument. */
struct ucs_callbackq_elem {
    ucs_callback_t cb; /**< The function; NULL ends the list. */
    void *arg;         /**< Its argument. */
};

/** A queue of callbacks. */
struct ucs_callbackq {
    ucs_callbackq_elem_t
        fast_elems[UCS_CALLBACKQ_FAST_COUNT + 1]; /**< Those run inline, up to the first NULL. */
    ucs_callbackq_priv_t *priv;                   /**< The rest. */
};

END_C_DECLS

UCS_BEGIN_API

/** Make a queue ready for use. @return UCS_OK or UCS_ERR_NO_MEMORY. */
ucs_status_t ucs_callbackq_init(ucs_callbackq_t *cbq);

/** Free what a queue holds; remaining callbacks are dropped. */
void ucs_callbackq_cleanup(ucs_callbackq_t *cbq);

/**
 * @brief Add a callback. Only from the thread that dispatches, also out of a callback.
 *
 * @param cbq  The queue.
 * @param cb   The function.
 * @param arg  Its argument.
 * @return Id to remove it with.
 */
int ucs_callbackq_add(ucs_callbackq_t *cbq, ucs_callback_t cb, void *arg);

/**
 * @brief Remove a callback. Only from the thread that dispatches; called out of a callback, the
 * removed one may still run once.
 *
 * @param cbq  The queue.
 * @param id   Id of the callback.
 * @return The argument it was added with.
 */
void *ucs_callbackq_remove(ucs_callbackq_t *cbq, int id);

/** Like ucs_callbackq_add(), from any thread. */
int ucs_callbackq_add_safe(ucs_callbackq_t *cbq, ucs_callback_t cb, void *arg);

/** Like ucs_callbackq_remove(), from any thread; it takes effect at one of the next dispatches. */
void *ucs_callbackq_remove_safe(ucs_callbackq_t *cbq, int id);

/**
 * @brief Add a callback that runs once, from any thread. Those with one key run in the order they
 * were added.
 *
 * @param cbq  The queue.
 * @param key  Any value, to remove the callback with.
 * @param cb   The function.
 * @param arg  Its argument.
 */
void ucs_callbackq_add_oneshot(ucs_callbackq_t *cbq, ucs_callbackq_key_t key, ucs_callback_t cb,
                               void *arg);

/**
 * @brief Remove the one-shot callbacks with @a key that @a pred picks. From any thread.
 *
 * @param cbq   The queue.
 * @param key   The key they were added with.
 * @param pred  Called for each of them.
 * @param arg   Its argument.
 */
void ucs_callbackq_remove_oneshot(ucs_callbackq_t *cbq, ucs_callbackq_key_t key,
                                  ucs_callbackq_predicate_t pred, void *arg);

UCS_END_API

BEGIN_C_DECLS

/**
 * @brief Run the callbacks of a queue. One thread at a time.
 *
 * @return The sum of what they returned.
 */
static inline unsigned ucs_callbackq_dispatch(ucs_callbackq_t *cbq)
{
    const ucs_callbackq_elem_t *elem = cbq->fast_elems;
    unsigned done = 0;
    ucs_callback_t cb;

    while ((cb = elem->cb) != NULL) {
        done += cb(elem->arg);
        ++elem;
    }

    return done;
}

END_C_DECLS

#endif
