/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file uct_def.h
 * Handles, limits and callback types of the transport interface (UCT).
 *
 * Included by uct.h, and by code that stores UCT handles without calling UCT.
 *
 * Callback rules, unless a type below says otherwise: a callback runs inside uct_worker_progress()
 * of the worker that owns the object, in the thread that called it, with no lock of the library
 * held. It may start further operations and may release the objects that its own text names. It
 * must not call uct_worker_progress().
 */
#ifndef UCT_DEF_H_
#define UCT_DEF_H_

#include <ucs/config/types.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Sizes of name arrays include the terminating zero. */
#define UCT_COMPONENT_NAME_MAX 16
#define UCT_MD_GLOBAL_ID_MAX 256
#define UCT_TL_NAME_MAX 10
#define UCT_MD_NAME_MAX 16
#define UCT_DEVICE_NAME_MAX 32

/** Bytes of @ref uct_pending_req that belong to the library while the request is queued. */
#define UCT_PENDING_REQ_PRIV_LEN 40

/** Bytes of @ref uct_tag_context that belong to the library while the receive is posted. */
#define UCT_TAG_PRIV_LEN 32

/** Active message ids are 0 .. UCT_AM_ID_MAX - 1. */
#define UCT_AM_ID_BITS 5
#define UCT_AM_ID_MAX UCS_BIT(UCT_AM_ID_BITS)

/** "No memory handle": for buffers on domains without UCT_MD_FLAG_NEED_MEMH. */
#define UCT_MEM_HANDLE_NULL NULL

/** A remote key that no successful uct_rkey_unpack() returns. */
#define UCT_INVALID_RKEY ((uintptr_t)(-1))

/** Storage class of the calls that uct.h defines inline. */
#define UCT_INLINE_API static UCS_F_ALWAYS_INLINE

/** "Not exported as dma-buf", see @ref uct_md_mem_attr::dmabuf_fd. */
#define UCT_DMABUF_FD_INVALID -1

/** What an active message tracer is told about. */
enum uct_am_trace_type {
    UCT_AM_TRACE_TYPE_SEND,      /**< message sent */
    UCT_AM_TRACE_TYPE_RECV,      /**< message received */
    UCT_AM_TRACE_TYPE_SEND_DROP, /**< outgoing message dropped */
    UCT_AM_TRACE_TYPE_RECV_DROP, /**< incoming message dropped */
    UCT_AM_TRACE_TYPE_LAST
};

/** Flags passed TO receive callbacks (@ref uct_am_callback_t, @ref uct_tag_unexp_eager_cb_t). */
enum uct_cb_param_flags {
    /**
     * The data lies in a descriptor of the library, rx_headroom bytes after its start:
     *
     *     desc            data
     *      |<-rx_headroom->|<---- length ---->|
     *
     * The callback may keep it by returning UCS_INPROGRESS; the receiver then owns the descriptor
     * (headroom included) until it passes desc to uct_iface_release_desc(). Without this flag the
     * data is valid only until the callback returns.
     */
    UCT_CB_PARAM_FLAG_DESC = UCS_BIT(0),
    UCT_CB_PARAM_FLAG_FIRST = UCS_BIT(1), /**< tag callback: first fragment of a message */
    UCT_CB_PARAM_FLAG_MORE = UCS_BIT(2)   /**< tag callback: more fragments will follow */
};

/* Handles. All are opaque; tl.h completes those that the inline calls look into. */
typedef struct uct_component *uct_component_h;
typedef struct uct_iface *uct_iface_h;
typedef struct uct_iface_config uct_iface_config_t;
typedef struct uct_md_config uct_md_config_t;
typedef struct uct_cm_config uct_cm_config_t;
typedef struct uct_ep *uct_ep_h;
typedef void *uct_mem_h;
typedef uintptr_t uct_rkey_t;
typedef struct uct_md *uct_md_h;
typedef struct uct_md_ops uct_md_ops_t;
typedef void *uct_rkey_ctx_h;
typedef struct uct_iface_attr uct_iface_attr_t;
typedef struct uct_iface_params uct_iface_params_t;
typedef struct uct_ep_attr uct_ep_attr_t;
typedef struct uct_md_attr uct_md_attr_t;
typedef struct uct_completion uct_completion_t;
typedef struct uct_pending_req uct_pending_req_t;
typedef struct uct_worker *uct_worker_h;
typedef struct uct_md uct_md_t;
typedef enum uct_am_trace_type uct_am_trace_type_t;
typedef struct uct_device_addr uct_device_addr_t;
typedef struct uct_iface_addr uct_iface_addr_t;
typedef struct uct_ep_addr uct_ep_addr_t;
typedef struct uct_ep_params uct_ep_params_t;
typedef struct uct_ep_connect_params uct_ep_connect_params_t;
typedef struct uct_cm_attr uct_cm_attr_t;
typedef struct uct_cm uct_cm_t;
typedef uct_cm_t *uct_cm_h;
typedef struct uct_listener_attr uct_listener_attr_t;
typedef struct uct_listener *uct_listener_h;
typedef struct uct_listener_params uct_listener_params_t;
typedef struct uct_tag_context uct_tag_context_t;
typedef uint64_t uct_tag_t;
typedef int uct_worker_cb_id_t;
typedef void *uct_conn_request_h;

/* Names reserved by the interface for transfers that accelerators start; no call here uses them. */
typedef struct uct_device_ep *uct_device_ep_h;
typedef union uct_device_mem_elem uct_device_mem_elem_t;
typedef struct uct_device_local_mem_elem uct_device_local_mem_elem_t;
typedef struct uct_device_remote_tl_elem uct_device_remote_tl_elem_t;
typedef struct uct_device_remote_mem_elem uct_device_remote_mem_elem_t;

/**
 * One entry of a local buffer list.
 *
 * count blocks of length bytes, whose starts are stride bytes apart; with count 1 a plain buffer
 * (stride is not read). buffer is not accessed when length or count is 0. The lengths of a list
 * must not add up to more than the operation's max_short or max_zcopy, and its blocks must not be
 * more than max_iov, where blocks without a gap between them (stride equals length) count as one.
 * The list itself is read only during the call, the memory it names belongs to the library until
 * the operation completes.
 */
typedef struct uct_iov {
    void *buffer;   /**< start of the first block */
    size_t length;  /**< bytes of one block */
    uct_mem_h memh; /**< registration that covers it; needed where the domain says NEED_MEMH */
    size_t stride;  /**< bytes between the starts of two blocks */
    unsigned count; /**< number of blocks */
} uct_iov_t;

/* ---- Arguments of the connection manager's callbacks --------------------------------------------
 *
 * Each carries a field_mask in which the LIBRARY names the members it has filled; a callback must
 * not read others. Everything such a structure points to lives until the callback returns.
 */

/** Bits of @ref uct_cm_ep_priv_data_pack_args::field_mask. */
enum uct_cm_ep_priv_data_pack_args_field {
    UCT_CM_EP_PRIV_DATA_PACK_ARGS_FIELD_DEVICE_NAME = UCS_BIT(0) /**< dev_name */
};

/** Bits of @ref uct_cm_ep_resolve_args::field_mask. */
enum uct_cm_ep_resolve_args_field {
    UCT_CM_EP_RESOLVE_ARGS_FIELD_DEV_NAME = UCS_BIT(0), /**< dev_name */
    UCT_CM_EP_RESOLVE_ARGS_FIELD_STATUS = UCS_BIT(1)    /**< status */
};

/** What @ref uct_cm_ep_priv_data_pack_callback_t is told. */
typedef struct uct_cm_ep_priv_data_pack_args {
    uint64_t field_mask;
    /** The local device that carries the connection: a dev_name of uct_md_query_tl_resources(). */
    char dev_name[UCT_DEVICE_NAME_MAX];
} uct_cm_ep_priv_data_pack_args_t;

/** What @ref uct_cm_ep_resolve_callback_t is told. */
typedef struct uct_cm_ep_resolve_args {
    uint64_t field_mask;
    /** The local device that carries the connection: a dev_name of uct_md_query_tl_resources(). */
    char dev_name[UCT_DEVICE_NAME_MAX];
    /**
     * UCS_OK: address and route are known, uct_ep_connect() may follow. UCS_ERR_UNREACHABLE: no
     * route to the server. Others: the local side failed. After a failure no callback follows.
     */
    ucs_status_t status;
} uct_cm_ep_resolve_args_t;

/** Bits of @ref uct_cm_remote_data::field_mask. */
enum uct_cm_remote_data_field {
    UCT_CM_REMOTE_DATA_FIELD_DEV_ADDR = UCS_BIT(0),             /**< dev_addr */
    UCT_CM_REMOTE_DATA_FIELD_DEV_ADDR_LENGTH = UCS_BIT(1),      /**< dev_addr_length */
    UCT_CM_REMOTE_DATA_FIELD_CONN_PRIV_DATA = UCS_BIT(2),       /**< conn_priv_data */
    UCT_CM_REMOTE_DATA_FIELD_CONN_PRIV_DATA_LENGTH = UCS_BIT(3) /**< conn_priv_data_length */
};

/** What arrived from the peer together with a connection request or its answer. */
typedef struct uct_cm_remote_data {
    uint64_t field_mask;
    const uct_device_addr_t *dev_addr; /**< device address of the peer */
    size_t dev_addr_length;            /**< its length in bytes */
    const void *conn_priv_data;        /**< the peer's private data, any alignment */
    size_t conn_priv_data_length;      /**< its length in bytes; exactly what the peer gave */
} uct_cm_remote_data_t;

/** Bits of @ref uct_cm_listener_conn_request_args::field_mask. */
enum uct_cm_listener_conn_request_args_field {
    UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_DEV_NAME = UCS_BIT(0),     /**< dev_name */
    UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_CONN_REQUEST = UCS_BIT(1), /**< conn_request */
    UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_REMOTE_DATA = UCS_BIT(2),  /**< remote_data */
    UCT_CM_LISTENER_CONN_REQUEST_ARGS_FIELD_CLIENT_ADDR = UCS_BIT(3)   /**< client_address */
};

/** What @ref uct_cm_listener_conn_request_callback_t is told. */
typedef struct uct_cm_listener_conn_request_args {
    uint64_t field_mask;
    char dev_name[UCT_DEVICE_NAME_MAX]; /**< the local device the request came in on */
    /**
     * The request. The callee owns it and ends it exactly once: by uct_ep_create() (accept) or by
     * uct_listener_reject(), in the callback or at any later time.
     */
    uct_conn_request_h conn_request;
    const uct_cm_remote_data_t *remote_data; /**< what the client sent */
    ucs_sock_addr_t client_address;          /**< from where */
} uct_cm_listener_conn_request_args_t;

/** Bits of @ref uct_cm_ep_client_connect_args::field_mask. */
enum uct_cm_ep_client_connect_args_field {
    UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_REMOTE_DATA = UCS_BIT(0), /**< remote_data */
    UCT_CM_EP_CLIENT_CONNECT_ARGS_FIELD_STATUS = UCS_BIT(1)       /**< status */
};

/** What @ref uct_cm_ep_client_connect_callback_t is told. */
typedef struct uct_cm_ep_client_connect_args {
    uint64_t field_mask;
    const uct_cm_remote_data_t *remote_data; /**< what the server sent; its mask is 0 on failure */
    /**
     * UCS_OK: accepted. UCS_ERR_REJECTED: refused by the server's program.
     * UCS_ERR_CONNECTION_RESET: broken while it was being made. UCS_ERR_NOT_CONNECTED: nobody
     * listens. UCS_ERR_UNREACHABLE: no route. Others: the local side failed.
     */
    ucs_status_t status;
} uct_cm_ep_client_connect_args_t;

/** Bits of @ref uct_cm_ep_server_conn_notify_args::field_mask. */
enum uct_cm_ep_server_conn_notify_args_field {
    UCT_CM_EP_SERVER_CONN_NOTIFY_ARGS_FIELD_STATUS = UCS_BIT(0) /**< status */
};

/** What @ref uct_cm_ep_server_conn_notify_callback_t is told. */
typedef struct uct_cm_ep_server_conn_notify_args {
    uint64_t field_mask;
    /**
     * UCS_OK: the client has confirmed, both sides are connected. Others: the connection broke
     * before that (UCS_ERR_CONNECTION_RESET) or the local side failed.
     */
    ucs_status_t status;
} uct_cm_ep_server_conn_notify_args_t;

/* ---- Callback types ------------------------------------------------------------------------- */

/**
 * Receives an active message. Set by uct_iface_set_am_handler().
 *
 * @param arg    as given with the handler
 * @param data   the message: for am_short the 8-byte header followed by the payload, for am_zcopy
 *               the header followed by the data, otherwise what the sender packed. No alignment is
 *               promised beyond @ref uct_iface_params::am_alignment
 * @param length bytes at data
 * @param flags  @ref uct_cb_param_flags
 * @return UCS_OK: done with the data. UCS_INPROGRESS (only with UCT_CB_PARAM_FLAG_DESC): the
 *         callee keeps the descriptor and releases it by uct_iface_release_desc().
 */
typedef ucs_status_t (*uct_am_callback_t)(void *arg, void *data, size_t length, unsigned flags);

/**
 * Describes an active message for a trace. Set by uct_iface_set_am_tracer(); may run in the thread
 * that sends as well as in progress.
 *
 * @param arg    as given with the tracer
 * @param type   what happened
 * @param id     active message id
 * @param data   the message, read only
 * @param length bytes at data
 * @param buffer where to write the description, zero terminated
 * @param max    bytes at buffer
 */
typedef void (*uct_am_tracer_t)(void *arg, uct_am_trace_type_t type, uint8_t id, const void *data,
                                size_t length, char *buffer, size_t max);

/**
 * Runs when the last operation that refers to the completion is done. The memory of self may be
 * released or used again inside the callback.
 */
typedef void (*uct_completion_callback_t)(uct_completion_t *self);

/**
 * Runs when an operation that had returned UCS_ERR_NO_RESOURCE may be tried again.
 *
 * @param self the request given to uct_ep_pending_add()
 * @return UCS_OK: the request is dequeued and belongs to the caller again. UCS_INPROGRESS: some
 *         progress was made, call again. UCS_ERR_NO_RESOURCE or UCS_ERR_BUSY: nothing could be
 *         sent, keep it queued and call again later.
 */
typedef ucs_status_t (*uct_pending_callback_t)(uct_pending_req_t *self);

/**
 * Reports that the peer of an endpoint failed. Runs at most once for an endpoint; its outstanding
 * operations are completed with an error before or after it, and new ones fail. The endpoint still
 * has to be destroyed; this may be done in the callback.
 *
 * @param arg    err_handler_arg of @ref uct_iface_params
 * @param ep     the endpoint
 * @param status why, e.g. UCS_ERR_ENDPOINT_TIMEOUT or UCS_ERR_CONNECTION_RESET
 * @return UCS_OK: handled. Others: the library logs the failure as an error.
 */
typedef ucs_status_t (*uct_error_handler_t)(void *arg, uct_ep_h ep, ucs_status_t status);

/** Hands a pending request back to its owner during uct_ep_pending_purge(). */
typedef void (*uct_pending_purge_callback_t)(uct_pending_req_t *self, void *arg);

/**
 * Writes the data of a bcopy operation straight into the send buffer. Runs at most once and only
 * inside the call it was passed to; it must not call UCT.
 *
 * @param dest where to write, at most the operation's max_bcopy bytes
 * @param arg  as given to the operation
 * @return bytes written
 */
typedef size_t (*uct_pack_callback_t)(void *dest, void *arg);

/**
 * Consumes the data of a get_bcopy operation; data is valid until it returns. Runs inside the call
 * when that returns UCS_OK, otherwise in progress.
 */
typedef void (*uct_unpack_callback_t)(void *arg, const void *data, size_t length);

/**
 * Receives a connection request on an interface opened with UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER.
 * That mode is obsolete, see @ref uct_listener_create.
 */
typedef void (*uct_sockaddr_conn_request_callback_t)(uct_iface_h iface, void *arg,
                                                     uct_conn_request_h conn_request,
                                                     const void *conn_priv_data, size_t length);

/*
 * Callbacks of the connection manager. They may run in a thread of the library at any time, also
 * before the call that started the connection returns; one object's callbacks never overlap. They
 * must not block. An endpoint may be destroyed in its own callback, and a destroyed one gets none.
 */

/**
 * Server: a client asks for a connection. Runs once for each request.
 *
 * @param listener      where it came in
 * @param arg           user_data of @ref uct_listener_params
 * @param conn_req_args the request; see @ref uct_cm_listener_conn_request_args::conn_request for
 *                      what to do with it
 */
typedef void (*uct_cm_listener_conn_request_callback_t)(
    uct_listener_h listener, void *arg, const uct_cm_listener_conn_request_args_t *conn_req_args);

/**
 * Server: the client has answered the accept by uct_cm_client_ep_conn_notify(), or the connection
 * broke before it did. Runs once for each accepted endpoint; only after UCS_OK may the server's
 * endpoint be disconnected.
 */
typedef void (*uct_cm_ep_server_conn_notify_callback_t)(
    uct_ep_h ep, void *arg, const uct_cm_ep_server_conn_notify_args_t *connect_args);

/**
 * Client: the server has answered, or the connection failed after it was resolved. Runs once. With
 * status UCS_OK the client must call uct_cm_client_ep_conn_notify(), here or later.
 */
typedef void (*uct_cm_ep_client_connect_callback_t)(
    uct_ep_h ep, void *arg, const uct_cm_ep_client_connect_args_t *connect_args);

/**
 * Either side: the connection has ended, because the peer called uct_ep_disconnect(), died, or
 * answered ours. Runs once for each endpoint that was connected. Data may not have arrived that was
 * sent but not flushed.
 */
typedef void (*uct_ep_disconnect_cb_t)(uct_ep_h ep, void *arg);

/**
 * Writes the private data that travels with a connection request (client) or with its acceptance
 * (server). An alternative to @ref uct_ep_connect_params and @ref uct_ep_params::private_data.
 *
 * @param arg       user_data of @ref uct_ep_params
 * @param pack_args on which device the connection runs
 * @param priv_data where to write, at most @ref uct_cm_attr::max_conn_priv bytes
 * @return bytes written, or a negative ucs_status_t: the connection is not made (on a server: the
 *         request is rejected) and no further callback comes
 */
typedef ssize_t (*uct_cm_ep_priv_data_pack_callback_t)(
    void *arg, const uct_cm_ep_priv_data_pack_args_t *pack_args, void *priv_data);

/**
 * Client: the server's address and the route to it are resolved, or that failed. Runs once; the
 * client calls uct_ep_connect() in it or later.
 *
 * @param user_data    user_data of @ref uct_ep_params
 * @param resolve_args on which device the connection runs, and whether it can
 * @return UCS_OK, or an error: the connection is given up and no further callback comes
 */
typedef ucs_status_t (*uct_cm_ep_resolve_callback_t)(void *user_data,
                                                     const uct_cm_ep_resolve_args_t *resolve_args);

/**
 * Receives an eager tagged message that matched no posted tag (tag offload). Fragments of one
 * message share *context, which the callee owns: it is NULL with UCT_CB_PARAM_FLAG_FIRST.
 *
 * @param arg     eager_arg of @ref uct_iface_params
 * @param data    payload
 * @param length  bytes at data
 * @param flags   @ref uct_cb_param_flags
 * @param stag    the sender's tag
 * @param imm     the sender's immediate value
 * @param context the callee's word for the message
 * @return as @ref uct_am_callback_t
 */
typedef ucs_status_t (*uct_tag_unexp_eager_cb_t)(void *arg, void *data, size_t length,
                                                 unsigned flags, uct_tag_t stag, uint64_t imm,
                                                 void **context);

/**
 * Receives a rendezvous announcement that matched no posted tag (tag offload).
 *
 * @param arg           rndv_arg of @ref uct_iface_params
 * @param flags         @ref uct_cb_param_flags
 * @param stag          the sender's tag
 * @param header        the sender's header
 * @param header_length bytes at header
 * @param remote_addr   where the data is, in the sender's address space
 * @param length        bytes there
 * @param rkey_buf      packed key for it, or NULL
 * @return as @ref uct_am_callback_t
 */
typedef ucs_status_t (*uct_tag_unexp_rndv_cb_t)(void *arg, unsigned flags, uint64_t stag,
                                                const void *header, unsigned header_length,
                                                uint64_t remote_addr, size_t length,
                                                const void *rkey_buf);

/**
 * Reports events of an interface that has UCT_IFACE_FLAG_EVENT_ASYNC_CB instead of a pollable fd.
 * May run in a thread of the library; flags are @ref uct_iface_event_types.
 */
typedef void (*uct_async_event_cb_t)(void *arg, unsigned flags);

#endif
