/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles, callbacks and the parameters of endpoints. The calls are in ucp/api/ucp.h.
 *
 * Structures with a field_mask grow at the end only: the library reads and writes a member when its
 * bit is set and leaves all others alone, so programs of other versions stay compatible. Callbacks
 * run inside ucp_worker_progress() of their worker, in the thread that calls it, unless said
 * otherwise. They may call anything but ucp_worker_progress() and calls that wait.
 */
#ifndef UCP_DEF_H_
#define UCP_DEF_H_

#include <stddef.h>
#include <stdint.h>
#include <ucs/config/types.h>
#include <ucs/memory/memory_type.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/**
 * @ingroup UCP_CONTEXT
 * @brief The instance of the library that a program works with: configuration, devices and
 * registered memory.
 *
 * Contexts are independent of each other; a message sent in one is not received in another one of
 * the same process.
 */
typedef struct ucp_context *ucp_context_h;

/**
 * @ingroup UCP_CONFIG
 * @brief Configuration read from the environment by ucp_config_read(), before a context is made of
 * it.
 */
typedef struct ucp_config ucp_config_t;

/**
 * @ingroup UCP_WORKER
 * @brief What drives communication: the interfaces opened on the devices, and the messages that
 * arrive on them.
 *
 * A worker belongs to one context; several workers progress independently, so threads may have one
 * each.
 */
typedef struct ucp_worker *ucp_worker_h;

/**
 * @ingroup UCP_ENDPOINT
 * @brief One peer, seen from one worker. Operations name their destination by it.
 */
typedef struct ucp_ep *ucp_ep_h;

/**
 * @ingroup UCP_WORKER
 * @brief Listens on a socket address for clients.
 */
typedef struct ucp_listener *ucp_listener_h;

/**
 * @ingroup UCP_ENDPOINT
 * @brief A client that waits for an answer: consumed by exactly one ucp_ep_create() or
 * ucp_listener_reject().
 */
typedef struct ucp_conn_request *ucp_conn_request_h;

/**
 * @ingroup UCP_WORKER
 * @brief Address of a worker: bytes to hand to peers by any means. It describes its own length.
 */
typedef struct ucp_address ucp_address_t;

/**
 * @ingroup UCP_MEM
 * @brief Memory that is registered with the devices of a context.
 */
typedef struct ucp_mem *ucp_mem_h;

/**
 * @ingroup UCP_MEM
 * @brief Right to access memory of a peer, for one endpoint.
 */
typedef struct ucp_rkey *ucp_rkey_h;

/**
 * @ingroup UCP_COMM
 * @brief A message that a probe took out of the matching, see ucp_tag_probe_nb().
 */
typedef struct ucp_recv_desc *ucp_tag_message_h;

/**
 * @ingroup UCP_COMM
 * @brief Local and remote memory lists of the device interface; this library makes none.
 */
typedef struct ucp_device_local_mem_list *ucp_device_local_mem_list_h;
typedef struct ucp_device_remote_mem_list *ucp_device_remote_mem_list_h;

/**
 * @ingroup UCP_COMM
 * @brief What messages and receives are matched by.
 */
typedef uint64_t ucp_tag_t;

/**
 * @ingroup UCP_COMM
 * @brief How the elements of a buffer lie in memory, see @ref ucp_dt_type.
 */
typedef uint64_t ucp_datatype_t;

/** @ingroup UCP_COMM Tag and length of a received message, see @ref ucp_tag_recv_info. */
typedef struct ucp_tag_recv_info ucp_tag_recv_info_t;

/** @ingroup UCP_WORKER What a handler learns of an active message, see @ref ucp_am_recv_param. */
typedef struct ucp_am_recv_param ucp_am_recv_param_t;

/** @ingroup UCP_COMM Remote address of an operation whose addresses are in a list of the remote
 * side. */
#define UCP_REMOTE_ADDR_INVALID UINT64_MAX

/** @ingroup UCP_COMM Remote key of an operation whose keys are in a list of the remote side. */
#define UCP_RKEY_INVALID NULL

/** @ingroup UCP_CONTEXT Bytes of the name of an object in its attributes, terminating zero
 * included. */
#define UCP_ENTITY_NAME_MAX 32

/**
 * @ingroup UCP_ENDPOINT
 * @brief What an endpoint promises when its peer or the way to it fails.
 */
typedef enum {
    UCP_ERR_HANDLING_MODE_NONE,    /**< Nothing: operations may stay incomplete and no handler is
                                      called. */
    UCP_ERR_HANDLING_MODE_PEER,    /**< Every operation completes, and the error handler is called
                                      once. */
    UCP_ERR_HANDLING_MODE_FAILOVER /**< Like PEER: there is no other way that could take over. */
} ucp_err_handling_mode_t;

/**
 * @ingroup UCP_MEM
 * @brief Members of ucp_mem_attr_t.
 */
enum ucp_mem_attr_field {
    UCP_MEM_ATTR_FIELD_ADDRESS = UCS_BIT(0), /**< address */
    UCP_MEM_ATTR_FIELD_LENGTH = UCS_BIT(1),  /**< length */
    UCP_MEM_ATTR_FIELD_MEM_TYPE = UCS_BIT(2) /**< mem_type */
};

/**
 * @ingroup UCP_MEM
 * @brief Attributes of registered memory, filled by ucp_mem_query().
 */
typedef struct ucp_mem_attr {
    uint64_t field_mask;        /**< Members asked for, from @ref ucp_mem_attr_field. */
    void *address;              /**< Its start. */
    size_t length;              /**< Its size in bytes. */
    ucs_memory_type_t mem_type; /**< Its kind. */
} ucp_mem_attr_t;

/**
 * @ingroup UCP_CONTEXT
 * @brief Called once for a request when the library creates it, not each time it is used.
 *
 * @param request  The bytes reserved for the user, ucp_params_t::request_size of them.
 */
typedef void (*ucp_request_init_callback_t)(void *request);

/**
 * @ingroup UCP_CONTEXT
 * @brief Called once for a request before the library frees its memory, at the latest in
 * ucp_worker_destroy().
 *
 * @param request  The bytes reserved for the user.
 */
typedef void (*ucp_request_cleanup_callback_t)(void *request);

/**
 * @ingroup UCP_COMM
 * @brief Completion of an operation of the older calls (ucp_..._nb), other than receives.
 *
 * Not called when the operation completed inside its call.
 *
 * @param request  The request that the call returned.
 * @param status   UCS_OK, UCS_ERR_CANCELED, or what failed.
 */
typedef void (*ucp_send_callback_t)(void *request, ucs_status_t status);

/**
 * @ingroup UCP_COMM
 * @brief Completion of an operation (ucp_..._nbx) other than a receive.
 *
 * Not called when the call returned no request. It may free the request.
 *
 * @param request    The request that the call returned.
 * @param status     UCS_OK, UCS_ERR_CANCELED, or what failed.
 * @param user_data  ucp_request_param_t::user_data.
 */
typedef void (*ucp_send_nbx_callback_t)(void *request, ucs_status_t status, void *user_data);

/**
 * @ingroup UCP_COMM
 * @brief The peer of an endpoint, or the way to it, has failed.
 *
 * Called once for an endpoint at most, never after the user closed it. The endpoint takes no
 * operation any more, but remains until it is closed, which the handler may do.
 *
 * @param arg     ucp_ep_params_t::user_data where that was given, else ucp_err_handler_t::arg.
 * @param ep      The endpoint.
 * @param status  What failed.
 */
typedef void (*ucp_err_handler_cb_t)(void *arg, ucp_ep_h ep, ucs_status_t status);

/**
 * @ingroup UCP_COMM
 * @brief Error handler of an endpoint.
 */
typedef struct ucp_err_handler {
    ucp_err_handler_cb_t cb; /**< The function; NULL: none. */
    void *arg;               /**< Its argument, unless the endpoint has user data. */
} ucp_err_handler_t;

/**
 * @ingroup UCP_WORKER
 * @brief A client has been accepted (listeners with an accept handler).
 *
 * @param ep   The new endpoint; the user closes it.
 * @param arg  ucp_listener_accept_handler_t::arg.
 */
typedef void (*ucp_listener_accept_callback_t)(ucp_ep_h ep, void *arg);

/**
 * @ingroup UCP_WORKER
 * @brief A client asks to be connected (listeners with a connection handler).
 *
 * @param conn_request  The client. It may be answered here or at any later time, on any worker of
 * the context.
 * @param arg           ucp_listener_conn_handler_t::arg.
 */
typedef void (*ucp_listener_conn_callback_t)(ucp_conn_request_h conn_request, void *arg);

/**
 * @ingroup UCP_WORKER
 * @brief Connection handler of a listener.
 */
typedef struct ucp_listener_conn_handler {
    ucp_listener_conn_callback_t cb; /**< The function. */
    void *arg;                       /**< Its argument. */
} ucp_listener_conn_handler_t;

/**
 * @ingroup UCP_COMM
 * @brief Completion of ucp_stream_recv_nb().
 *
 * @param request  The request that the call returned.
 * @param status   UCS_OK or what failed.
 * @param length   Bytes received, whole elements only; valid with UCS_OK.
 */
typedef void (*ucp_stream_recv_callback_t)(void *request, ucs_status_t status, size_t length);

/**
 * @ingroup UCP_COMM
 * @brief Completion of ucp_stream_recv_nbx().
 *
 * @param request    The request that the call returned.
 * @param status     UCS_OK or what failed.
 * @param length     Bytes received, whole elements only; valid with UCS_OK.
 * @param user_data  ucp_request_param_t::user_data.
 */
typedef void (*ucp_stream_recv_nbx_callback_t)(void *request, ucs_status_t status, size_t length,
                                               void *user_data);

/**
 * @ingroup UCP_COMM
 * @brief Completion of ucp_tag_recv_nb() and ucp_tag_msg_recv_nb().
 *
 * @param request  The request that the call returned.
 * @param status   UCS_OK, UCS_ERR_MESSAGE_TRUNCATED when the buffer is too small, UCS_ERR_CANCELED,
 * or what failed.
 * @param info     Tag and length of the message; valid with UCS_OK, during the callback.
 */
typedef void (*ucp_tag_recv_callback_t)(void *request, ucs_status_t status,
                                        ucp_tag_recv_info_t *info);

/**
 * @ingroup UCP_COMM
 * @brief Completion of ucp_tag_recv_nbx() and ucp_tag_msg_recv_nbx().
 *
 * @param request    The request that the call returned.
 * @param status     UCS_OK, UCS_ERR_MESSAGE_TRUNCATED when the buffer is too small,
 * UCS_ERR_CANCELED, or what failed.
 * @param tag_info   Tag and length of the message; valid with UCS_OK, during the callback.
 * @param user_data  ucp_request_param_t::user_data.
 */
typedef void (*ucp_tag_recv_nbx_callback_t)(void *request, ucs_status_t status,
                                            const ucp_tag_recv_info_t *tag_info, void *user_data);

/**
 * @ingroup UCP_COMM
 * @brief Completion of ucp_am_recv_data_nbx().
 *
 * @param request    The request that the call returned.
 * @param status     UCS_OK or what failed.
 * @param length     Bytes received; valid with UCS_OK.
 * @param user_data  ucp_request_param_t::user_data.
 */
typedef void (*ucp_am_recv_data_nbx_callback_t)(void *request, ucs_status_t status, size_t length,
                                                void *user_data);

/**
 * @ingroup UCP_WORKER
 * @brief Events that make the descriptor of a worker readable.
 *
 * A wake-up without any news is possible, except for TX and RX.
 */
typedef enum ucp_wakeup_event_types {
    UCP_WAKEUP_RMA = UCS_BIT(0),      /**< A put or get has completed. */
    UCP_WAKEUP_AMO = UCS_BIT(1),      /**< An atomic operation has completed. */
    UCP_WAKEUP_TAG_SEND = UCS_BIT(2), /**< A tagged send has completed. */
    UCP_WAKEUP_TAG_RECV = UCS_BIT(3), /**< A tagged receive has completed. */
    UCP_WAKEUP_TX = UCS_BIT(10),      /**< Anything sent has completed, or a part of it. */
    UCP_WAKEUP_RX = UCS_BIT(11),      /**< Anything has been received, or a part of it. */
    UCP_WAKEUP_EDGE = UCS_BIT(16) /**< Tell each new event once; no ucp_worker_arm() is needed. */
} ucp_wakeup_event_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief Handler of active messages of the older calls, see ucp_worker_set_am_handler().
 *
 * @param arg       Argument it was set with.
 * @param data      The message.
 * @param length    Its bytes.
 * @param reply_ep  Endpoint to answer on when the sender asked for it, else NULL.
 * @param flags     UCP_CB_PARAM_FLAG_DATA when the data may be kept.
 * @return UCS_OK: the data is not needed any more. UCS_INPROGRESS, only with
 * UCP_CB_PARAM_FLAG_DATA: it is kept until ucp_am_data_release().
 */
typedef ucs_status_t (*ucp_am_callback_t)(void *arg, void *data, size_t length, ucp_ep_h reply_ep,
                                          unsigned flags);

/**
 * @ingroup UCP_ENDPOINT
 * @brief Handler of active messages, see ucp_worker_set_am_recv_handler().
 *
 * @param arg            Argument it was set with.
 * @param header         Header of the message; valid during the call. Not to be read when @a
 * header_length is 0.
 * @param header_length  Bytes of the header.
 * @param data           The data; with UCP_AM_RECV_ATTR_FLAG_RNDV in @a param a descriptor of data
 * that is still with the sender, for ucp_am_recv_data_nbx().
 * @param length         Bytes of the data.
 * @param param          How the data came, and whom to answer.
 * @return UCS_OK: the data is not needed any more; data still with the sender is given up, and its
 * send completes with UCS_OK. UCS_INPROGRESS, only with UCP_AM_RECV_ATTR_FLAG_DATA or _RNDV: it is
 * kept until ucp_am_recv_data_nbx() or ucp_am_data_release(). An error, only with _RNDV: given up,
 * and the send completes with that error.
 */
typedef ucs_status_t (*ucp_am_recv_callback_t)(void *arg, const void *header, size_t header_length,
                                               void *data, size_t length,
                                               const ucp_am_recv_param_t *param);

/**
 * @ingroup UCP_ENDPOINT
 * @brief Parameters of ucp_ep_create(). One of address, sockaddr and conn_request says whom to
 * connect to.
 */
typedef struct ucp_ep_params {
    uint64_t field_mask; /**< Members that are set, from @ref ucp_ep_params_field. */

    /** Address of the peer's worker, as its ucp_worker_query() gave it; read during the call. */
    const ucp_address_t *address;

    ucp_err_handling_mode_t err_mode; /**< What to do about failures; NONE when not set. */
    ucp_err_handler_t err_handler;    /**< Called upon a failure. */

    /** Of the user: argument of the error handler, and given back by ucp_stream_worker_poll() and
     * ucp_ep_query(). */
    void *user_data;

    unsigned flags; /**< From @ref ucp_ep_params_flags_field; 0 when not set. */

    /** Where the server listens, with UCP_EP_PARAMS_FLAGS_CLIENT_SERVER; read during the call. */
    ucs_sock_addr_t sockaddr;

    ucp_conn_request_h
        conn_request; /**< The client to connect to; consumed by the call, also when that fails. */

    /** Name for messages; copied, and changed by the library where needed. */
    const char *name;

    /** Address of this host to connect from, with any port when its port is 0; read during the
     * call. */
    ucs_sock_addr_t local_sockaddr;
} ucp_ep_params_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief A transport that an endpoint uses, with its device. The strings live as long as the
 * endpoint.
 */
typedef struct {
    const char *transport_name; /**< Name of the transport. */
    const char *device_name;    /**< Name of the device. */
} ucp_transport_entry_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief Where ucp_ep_query() puts the transports of an endpoint.
 */
typedef struct {
    ucp_transport_entry_t *entries; /**< Array of the caller. */
    unsigned num_entries;           /**< In: elements of the array; out: elements filled. */
    size_t entry_size; /**< In: bytes of an element as the caller knows it; no more are written. */
} ucp_transports_t;

END_C_DECLS

#endif
