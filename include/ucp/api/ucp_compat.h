/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The older calls. They work on the same objects as the calls of ucp/api/ucp.h that replace them,
 * which programs should prefer. Operations return NULL when complete, an error pointer, or a
 * request that the user frees.
 */
#ifndef UCP_COMPAT_H_
#define UCP_COMPAT_H_

#include <ucp/api/ucp_def.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/**
 * @ingroup UCP_WORKER
 * @deprecated ucp_listener_conn_handler_t leaves the choice of the worker, and a refusal, to the
 * server.
 * @brief Accept handler of a listener: every client is accepted on the listener's worker.
 */
typedef struct ucp_listener_accept_handler {
    ucp_listener_accept_callback_t cb; /**< Called with each new endpoint. */
    void *arg;                         /**< Its argument. */
} ucp_listener_accept_handler_t;

/**
 * @ingroup UCP_COMM
 * @deprecated See ucp_atomic_op_t.
 * @brief Operations of ucp_atomic_post().
 */
typedef enum {
    UCP_ATOMIC_POST_OP_ADD, /**< Add. */
    UCP_ATOMIC_POST_OP_AND, /**< Bitwise and. */
    UCP_ATOMIC_POST_OP_OR,  /**< Bitwise or. */
    UCP_ATOMIC_POST_OP_XOR, /**< Bitwise exclusive or. */
    UCP_ATOMIC_POST_OP_LAST /**< Number of operations. */
} ucp_atomic_post_op_t;

/**
 * @ingroup UCP_COMM
 * @deprecated See ucp_atomic_op_t.
 * @brief Operations of ucp_atomic_fetch_nb().
 */
typedef enum {
    UCP_ATOMIC_FETCH_OP_FADD,  /**< Add. */
    UCP_ATOMIC_FETCH_OP_SWAP,  /**< Replace. */
    UCP_ATOMIC_FETCH_OP_CSWAP, /**< Replace when equal. */
    UCP_ATOMIC_FETCH_OP_FAND,  /**< Bitwise and. */
    UCP_ATOMIC_FETCH_OP_FOR,   /**< Bitwise or. */
    UCP_ATOMIC_FETCH_OP_FXOR,  /**< Bitwise exclusive or. */
    UCP_ATOMIC_FETCH_OP_LAST   /**< Number of operations. */
} ucp_atomic_fetch_op_t;

/**
 * @ingroup UCP_ENDPOINT
 * @deprecated See ucp_ep_close_flags_t.
 * @brief Ways of ucp_ep_close_nb().
 */
enum ucp_ep_close_mode {
    UCP_EP_CLOSE_MODE_FORCE =
        0, /**< At once; operations end with UCS_ERR_CANCELED. Needs error mode PEER. */
    UCP_EP_CLOSE_MODE_FLUSH = 1 /**< After all operations are done. */
};

END_C_DECLS

UCS_BEGIN_API

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_request_check_status().
 * @return Not 0 when the request is complete.
 */
int ucp_request_is_completed(void *request);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_request_free().
 * @brief Give a request back. One that is not complete goes on, and its callback is still called.
 */
void ucp_request_release(void *request);

/**
 * @ingroup UCP_COMM
 * @deprecated Allocate requests with malloc().
 * @return NULL: never implemented.
 */
void *ucp_request_alloc(ucp_worker_h worker);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_request_check_status() or ucp_tag_recv_request_test().
 * @brief State of a request.
 *
 * @param[in]  request  The request.
 * @param[out] info     Tag and length of the message, for a complete tagged receive; may be NULL.
 * @return UCS_INPROGRESS, or how it completed.
 */
ucs_status_t ucp_request_test(void *request, ucp_tag_recv_info_t *info);

/**
 * @ingroup UCP_WORKER
 * @deprecated Use ucp_worker_query() with UCP_WORKER_ATTR_FIELD_ADDRESS.
 * @brief The address of a worker.
 *
 * @param[in]  worker            The worker.
 * @param[out] address_p         The address; release it with ucp_worker_release_address().
 * @param[out] address_length_p  Its bytes.
 */
ucs_status_t ucp_worker_get_address(ucp_worker_h worker, ucp_address_t **address_p,
                                    size_t *address_length_p);

/**
 * @ingroup UCP_WORKER
 * @deprecated Use ucp_worker_set_am_recv_handler().
 * @brief Set the handler of an id for messages of ucp_am_send_nb().
 *
 * @param worker  The worker.
 * @param id      The id.
 * @param cb      The handler; NULL removes it.
 * @param arg     Its argument.
 * @param flags   From @ref ucp_am_cb_flags.
 */
ucs_status_t ucp_worker_set_am_handler(ucp_worker_h worker, uint16_t id, ucp_am_callback_t cb,
                                       void *arg, uint32_t flags);

/**
 * @ingroup UCP_WORKER
 * @deprecated Use ucp_worker_flush_nbx().
 * @brief Complete all remote memory operations of a worker, here and at the peers; progresses until
 * then.
 */
ucs_status_t ucp_worker_flush(ucp_worker_h worker);

/**
 * @ingroup UCP_WORKER
 * @deprecated Use ucp_worker_flush_nbx().
 * @brief Begin to complete all remote memory operations of a worker, here and at the peers.
 *
 * @param worker  The worker.
 * @param flags   0.
 * @param cb      Called when done, if not at once.
 */
ucs_status_ptr_t ucp_worker_flush_nb(ucp_worker_h worker, unsigned flags, ucp_send_callback_t cb);

/**
 * @ingroup UCP_ENDPOINT
 * @deprecated Use ucp_ep_close_nbx().
 * @brief Flush and close an endpoint; progresses until done.
 */
void ucp_ep_destroy(ucp_ep_h ep);

/**
 * @ingroup UCP_ENDPOINT
 * @deprecated Use ucp_ep_close_nbx().
 * @brief Begin to flush and close an endpoint.
 */
ucs_status_ptr_t ucp_disconnect_nb(ucp_ep_h ep);

/**
 * @ingroup UCP_ENDPOINT
 * @deprecated Use ucp_ep_close_nbx(), whose flag means the opposite.
 * @brief Begin to close an endpoint.
 *
 * @param ep    The endpoint; not to be used any more.
 * @param mode  From @ref ucp_ep_close_mode.
 */
ucs_status_ptr_t ucp_ep_close_nb(ucp_ep_h ep, unsigned mode);

/**
 * @ingroup UCP_ENDPOINT
 * @deprecated Give the parameters to ucp_ep_create().
 * @brief Change the error handler and the user data of an endpoint.
 *
 * @param ep      The endpoint.
 * @param params  What to change; the peer and the error mode cannot be.
 */
ucs_status_ptr_t ucp_ep_modify_nb(ucp_ep_h ep, const ucp_ep_params_t *params);

/**
 * @ingroup UCP_ENDPOINT
 * @deprecated Use ucp_ep_flush_nbx().
 * @brief Complete all remote memory operations of an endpoint, here and at the peer; progresses
 * until then.
 */
ucs_status_t ucp_ep_flush(ucp_ep_h ep);

/**
 * @ingroup UCP_ENDPOINT
 * @deprecated Use ucp_ep_flush_nbx().
 * @brief Begin to complete all remote memory operations of an endpoint, here and at the peer.
 *
 * @param ep     The endpoint.
 * @param flags  0.
 * @param cb     Called when done, if not at once.
 */
ucs_status_ptr_t ucp_ep_flush_nb(ucp_ep_h ep, unsigned flags, ucp_send_callback_t cb);

/**
 * @ingroup UCP_MEM
 * @deprecated Use ucp_memh_pack().
 * @brief Make a key that peers access registered memory with.
 *
 * @param[in]  context        The context of the memory.
 * @param[in]  memh           The memory.
 * @param[out] rkey_buffer_p  The key, bytes to hand to peers; release it with
 * ucp_rkey_buffer_release().
 * @param[out] size_p         Its bytes.
 */
ucs_status_t ucp_rkey_pack(ucp_context_h context, ucp_mem_h memh, void **rkey_buffer_p,
                           size_t *size_p);

/**
 * @ingroup UCP_MEM
 * @deprecated Use ucp_memh_buffer_release().
 * @brief Free what ucp_rkey_pack() returned.
 */
void ucp_rkey_buffer_release(void *rkey_buffer);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_am_send_nbx().
 * @brief Send an active message to a handler of ucp_worker_set_am_handler().
 *
 * @param ep        The peer.
 * @param id        Id of the handler.
 * @param buffer    The message; not to be changed until complete.
 * @param count     Its elements.
 * @param datatype  Their type.
 * @param cb        Called when complete, if not at once.
 * @param flags     0 or UCP_AM_SEND_FLAG_REPLY.
 */
ucs_status_ptr_t ucp_am_send_nb(ucp_ep_h ep, uint16_t id, const void *buffer, size_t count,
                                ucp_datatype_t datatype, ucp_send_callback_t cb, unsigned flags);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_stream_send_nbx().
 * @brief Append data to the stream to a peer.
 *
 * @param ep        The peer.
 * @param buffer    The data; not to be changed until complete.
 * @param count     Its elements.
 * @param datatype  Their type.
 * @param cb        Called when complete, if not at once.
 * @param flags     0.
 */
ucs_status_ptr_t ucp_stream_send_nb(ucp_ep_h ep, const void *buffer, size_t count,
                                    ucp_datatype_t datatype, ucp_send_callback_t cb,
                                    unsigned flags);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_stream_recv_nbx().
 * @brief Take data from the stream of a peer.
 *
 * @param[in]  ep        The peer.
 * @param[out] buffer    Where it goes.
 * @param[in]  count     Its room in elements.
 * @param[in]  datatype  Their type.
 * @param[in]  cb        Called when complete, if not at once.
 * @param[out] length    Bytes received, when NULL is returned.
 * @param[in]  flags     From ucp_stream_recv_flags_t.
 */
ucs_status_ptr_t ucp_stream_recv_nb(ucp_ep_h ep, void *buffer, size_t count,
                                    ucp_datatype_t datatype, ucp_stream_recv_callback_t cb,
                                    size_t *length, unsigned flags);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_tag_send_nbx().
 * @brief Send a tagged message.
 *
 * @param ep        The peer.
 * @param buffer    The message; not to be changed until complete.
 * @param count     Its elements.
 * @param datatype  Their type.
 * @param tag       Its tag.
 * @param cb        Called when complete, if not at once.
 */
ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h ep, const void *buffer, size_t count,
                                 ucp_datatype_t datatype, ucp_tag_t tag, ucp_send_callback_t cb);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_tag_send_nbx() with UCP_OP_ATTR_FIELD_REQUEST.
 * @brief Send a tagged message with a request of the caller.
 *
 * @param ep        The peer.
 * @param buffer    The message; not to be changed until complete.
 * @param count     Its elements.
 * @param datatype  Their type.
 * @param tag       Its tag.
 * @param req       The request: ucp_context_attr_t::request_size bytes before this address are the
 * library's.
 * @return UCS_OK when complete (the request is free at once), UCS_INPROGRESS, or an error.
 */
ucs_status_t ucp_tag_send_nbr(ucp_ep_h ep, const void *buffer, size_t count,
                              ucp_datatype_t datatype, ucp_tag_t tag, void *req);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_tag_send_sync_nbx().
 * @brief Send a tagged message that completes when the receiver has matched it.
 *
 * @param ep        The peer.
 * @param buffer    The message; not to be changed until complete.
 * @param count     Its elements.
 * @param datatype  Their type.
 * @param tag       Its tag.
 * @param cb        Called when complete.
 */
ucs_status_ptr_t ucp_tag_send_sync_nb(ucp_ep_h ep, const void *buffer, size_t count,
                                      ucp_datatype_t datatype, ucp_tag_t tag,
                                      ucp_send_callback_t cb);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_tag_recv_nbx().
 * @brief Receive a tagged message. A request is returned in any case but an error.
 *
 * @param[in]  worker    The worker.
 * @param[out] buffer    Where the message goes.
 * @param[in]  count     Its room in elements.
 * @param[in]  datatype  Their type.
 * @param[in]  tag       Tag to match.
 * @param[in]  tag_mask  The bits of the tag that must agree.
 * @param[in]  cb        Called when complete, inside the call when the message is there already.
 */
ucs_status_ptr_t ucp_tag_recv_nb(ucp_worker_h worker, void *buffer, size_t count,
                                 ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t tag_mask,
                                 ucp_tag_recv_callback_t cb);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_tag_recv_nbx() with UCP_OP_ATTR_FIELD_REQUEST.
 * @brief Receive a tagged message with a request of the caller; its state tells the completion.
 *
 * @param[in]  worker    The worker.
 * @param[out] buffer    Where the message goes.
 * @param[in]  count     Its room in elements.
 * @param[in]  datatype  Their type.
 * @param[in]  tag       Tag to match.
 * @param[in]  tag_mask  The bits of the tag that must agree.
 * @param[in]  req       The request: ucp_context_attr_t::request_size bytes before this address are
 * the library's.
 */
ucs_status_t ucp_tag_recv_nbr(ucp_worker_h worker, void *buffer, size_t count,
                              ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t tag_mask,
                              void *req);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_tag_msg_recv_nbx().
 * @brief Receive a message that a probe took out. A request is returned in any case but an error.
 *
 * @param[in]  worker    The worker.
 * @param[out] buffer    Where the message goes.
 * @param[in]  count     Its room in elements.
 * @param[in]  datatype  Their type.
 * @param[in]  message   What ucp_tag_probe_nb() returned; consumed.
 * @param[in]  cb        Called when complete.
 */
ucs_status_ptr_t ucp_tag_msg_recv_nb(ucp_worker_h worker, void *buffer, size_t count,
                                     ucp_datatype_t datatype, ucp_tag_message_h message,
                                     ucp_tag_recv_callback_t cb);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_put_nbx().
 * @brief Write to memory of a peer; returns when @a buffer may be reused.
 *
 * @param ep           The peer.
 * @param buffer       The data.
 * @param length       Its bytes.
 * @param remote_addr  Where it goes, an address of the peer.
 * @param rkey         Key of that memory.
 */
ucs_status_t ucp_put(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr,
                     ucp_rkey_h rkey);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_put_nbx().
 * @brief Like ucp_put(), but @a buffer may be reused only after a flush.
 * @return UCS_OK when it may be reused at once, UCS_INPROGRESS, or an error.
 */
ucs_status_t ucp_put_nbi(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr,
                         ucp_rkey_h rkey);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_put_nbx().
 * @brief Like ucp_put(), but @a buffer may be reused when the request is complete.
 * @param cb  Called when complete, if not at once.
 */
ucs_status_ptr_t ucp_put_nb(ucp_ep_h ep, const void *buffer, size_t length, uint64_t remote_addr,
                            ucp_rkey_h rkey, ucp_send_callback_t cb);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_get_nbx().
 * @brief Read memory of a peer; returns when the data is there.
 *
 * @param[in]  ep           The peer.
 * @param[out] buffer       Where the data goes.
 * @param[in]  length       Its bytes.
 * @param[in]  remote_addr  What to read, an address of the peer.
 * @param[in]  rkey         Key of that memory.
 */
ucs_status_t ucp_get(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr,
                     ucp_rkey_h rkey);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_get_nbx().
 * @brief Like ucp_get(), but the data is there only after a flush.
 * @return UCS_OK when the data is there at once, UCS_INPROGRESS, or an error.
 */
ucs_status_t ucp_get_nbi(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr,
                         ucp_rkey_h rkey);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_get_nbx().
 * @brief Like ucp_get(), but the data is there when the request is complete.
 * @param cb  Called when complete, if not at once.
 */
ucs_status_ptr_t ucp_get_nb(ucp_ep_h ep, void *buffer, size_t length, uint64_t remote_addr,
                            ucp_rkey_h rkey, ucp_send_callback_t cb);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_atomic_op_nbx().
 * @brief Change a number of a peer; done at the peer after a flush.
 *
 * @param ep           The peer.
 * @param opcode       The operation.
 * @param value        Its operand.
 * @param op_size      Bytes of the number: 4 or 8.
 * @param remote_addr  The number, an address of the peer that is a multiple of its size.
 * @param rkey         Key of that memory.
 */
ucs_status_t ucp_atomic_post(ucp_ep_h ep, ucp_atomic_post_op_t opcode, uint64_t value,
                             size_t op_size, uint64_t remote_addr, ucp_rkey_h rkey);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_atomic_op_nbx().
 * @brief Change a number of a peer and get its former value.
 *
 * @param[in]     ep           The peer.
 * @param[in]     opcode       The operation.
 * @param[in]     value        Its operand; for CSWAP what the number is compared with.
 * @param[in,out] result       Former value, when complete; for CSWAP before that the replacement.
 * @param[in]     op_size      Bytes of the number: 4 or 8.
 * @param[in]     remote_addr  The number, an address of the peer that is a multiple of its size.
 * @param[in]     rkey         Key of that memory.
 * @param[in]     cb           Called when complete, if not at once.
 */
ucs_status_ptr_t ucp_atomic_fetch_nb(ucp_ep_h ep, ucp_atomic_fetch_op_t opcode, uint64_t value,
                                     void *result, size_t op_size, uint64_t remote_addr,
                                     ucp_rkey_h rkey, ucp_send_callback_t cb);

/**
 * @ingroup UCP_COMM
 * @deprecated Use ucp_atomic_op_nbx().
 * @brief Atomic operations on a number of 4 (32) or 8 (64) bytes of a peer.
 *
 * The add forms return at once, the others when @a result has the former value; they progress until
 * then.
 *
 * @param[in]  ep           The peer.
 * @param[in]  add          What to add.
 * @param[in]  swap         What to put in its place; for cswap when the number equals @a compare.
 * @param[in]  compare      What the number must be.
 * @param[in]  remote_addr  The number, an address of the peer that is a multiple of its size.
 * @param[in]  rkey         Key of that memory.
 * @param[out] result       Former value.
 */
ucs_status_t ucp_atomic_add32(ucp_ep_h ep, uint32_t add, uint64_t remote_addr, ucp_rkey_h rkey);

/** @copydoc ucp_atomic_add32 */
ucs_status_t ucp_atomic_add64(ucp_ep_h ep, uint64_t add, uint64_t remote_addr, ucp_rkey_h rkey);

/** @copydoc ucp_atomic_add32 */
ucs_status_t ucp_atomic_fadd32(ucp_ep_h ep, uint32_t add, uint64_t remote_addr, ucp_rkey_h rkey,
                               uint32_t *result);

/** @copydoc ucp_atomic_add32 */
ucs_status_t ucp_atomic_fadd64(ucp_ep_h ep, uint64_t add, uint64_t remote_addr, ucp_rkey_h rkey,
                               uint64_t *result);

/** @copydoc ucp_atomic_add32 */
ucs_status_t ucp_atomic_swap32(ucp_ep_h ep, uint32_t swap, uint64_t remote_addr, ucp_rkey_h rkey,
                               uint32_t *result);

/** @copydoc ucp_atomic_add32 */
ucs_status_t ucp_atomic_swap64(ucp_ep_h ep, uint64_t swap, uint64_t remote_addr, ucp_rkey_h rkey,
                               uint64_t *result);

/** @copydoc ucp_atomic_add32 */
ucs_status_t ucp_atomic_cswap32(ucp_ep_h ep, uint32_t compare, uint32_t swap, uint64_t remote_addr,
                                ucp_rkey_h rkey, uint32_t *result);

/** @copydoc ucp_atomic_add32 */
ucs_status_t ucp_atomic_cswap64(ucp_ep_h ep, uint64_t compare, uint64_t swap, uint64_t remote_addr,
                                ucp_rkey_h rkey, uint64_t *result);

UCS_END_API

#endif
