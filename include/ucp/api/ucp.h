/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UCP: messages, streams, remote memory and active messages between workers of different processes.
 *
 * A program makes a context (ucp_init), a worker in it (ucp_worker_create), an endpoint for each
 * peer (ucp_ep_create), and posts operations on endpoints. Nothing moves unless it calls
 * ucp_worker_progress(), or waits with ucp_worker_wait(). This library carries the operations over
 * libfabric.
 *
 * Operations (ucp_..._nbx) return at once. NULL: complete, and the callback is not called. An error
 * pointer (UCS_PTR_IS_ERR): not started. Otherwise a request: completion comes later, by callback
 * and by ucp_request_check_status(); the user gives the request back with ucp_request_free(). Until
 * then the library owns the buffers. A callback never runs inside the call, unless
 * UCP_OP_ATTR_FLAG_NO_IMM_CMPL was given.
 *
 * Threads: calls on a worker, its endpoints, listeners and requests follow the worker's thread
 * mode; calls on a context follow ucp_params_t::mt_workers_shared. A wrong argument gives
 * UCS_ERR_INVALID_PARAM and a log line that names it. Structures with a field_mask: only members
 * whose bit is set are read or written.
 */
#ifndef UCP_H_
#define UCP_H_

#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <ucp/api/ucp_compat.h>
#include <ucp/api/ucp_def.h>
#include <ucp/api/ucp_version.h>
#include <ucs/config/types.h>
#include <ucs/memory/memory_type.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/thread_mode.h>

/**
 * @defgroup UCP_CONTEXT  Context
 * @defgroup UCP_CONFIG   Configuration
 * @defgroup UCP_WORKER   Worker, listener, active message handlers
 * @defgroup UCP_WAKEUP   Waiting for events
 * @defgroup UCP_ENDPOINT Endpoint
 * @defgroup UCP_MEM      Memory and remote keys
 * @defgroup UCP_COMM     Operations and requests
 * @defgroup UCP_DATATYPE Data types
 */

BEGIN_C_DECLS

/* ---- Context ---- */

/**
 * @ingroup UCP_CONTEXT
 * @brief Members of ucp_params_t.
 */
enum ucp_params_field {
    UCP_PARAM_FIELD_FEATURES = UCS_BIT(0),          /**< features */
    UCP_PARAM_FIELD_REQUEST_SIZE = UCS_BIT(1),      /**< request_size */
    UCP_PARAM_FIELD_REQUEST_INIT = UCS_BIT(2),      /**< request_init */
    UCP_PARAM_FIELD_REQUEST_CLEANUP = UCS_BIT(3),   /**< request_cleanup */
    UCP_PARAM_FIELD_TAG_SENDER_MASK = UCS_BIT(4),   /**< tag_sender_mask */
    UCP_PARAM_FIELD_MT_WORKERS_SHARED = UCS_BIT(5), /**< mt_workers_shared */
    UCP_PARAM_FIELD_ESTIMATED_NUM_EPS = UCS_BIT(6), /**< estimated_num_eps */
    UCP_PARAM_FIELD_ESTIMATED_NUM_PPN = UCS_BIT(7), /**< estimated_num_ppn */
    UCP_PARAM_FIELD_NAME = UCS_BIT(8),              /**< name */
    UCP_PARAM_FIELD_NODE_LOCAL_ID = UCS_BIT(9)      /**< node_local_id */
};

/**
 * @ingroup UCP_CONTEXT
 * @brief What a program wants to use. A call of a feature that was not asked for fails with
 * UCS_ERR_INVALID_PARAM.
 */
enum ucp_feature {
    UCP_FEATURE_TAG = UCS_BIT(0),    /**< Tagged messages. */
    UCP_FEATURE_RMA = UCS_BIT(1),    /**< Put and get. */
    UCP_FEATURE_AMO32 = UCS_BIT(2),  /**< Atomic operations on 4 bytes. */
    UCP_FEATURE_AMO64 = UCS_BIT(3),  /**< Atomic operations on 8 bytes. */
    UCP_FEATURE_WAKEUP = UCS_BIT(4), /**< Waiting for events. */
    UCP_FEATURE_STREAM = UCS_BIT(5), /**< Streams. */
    UCP_FEATURE_AM = UCS_BIT(6),     /**< Active messages. */
    UCP_FEATURE_EXPORTED_MEMH =
        UCS_BIT(7),                 /**< Local use of memory that a peer registered and exported. */
    UCP_FEATURE_DEVICE = UCS_BIT(8) /**< Communication started by devices; not supported. */
};

/**
 * @ingroup UCP_CONTEXT
 * @brief Parameters of ucp_init().
 */
typedef struct ucp_params {
    uint64_t field_mask; /**< Members that are set, from @ref ucp_params_field. */
    uint64_t features;   /**< From @ref ucp_feature; to be set always. */

    /** Bytes at the start of each request that are the user's; 0 when not set. */
    size_t request_size;

    /** Called for each request when it is created, not for each use; none when not set. */
    ucp_request_init_callback_t request_init;

    /** Called for each request before its memory is freed; none when not set. */
    ucp_request_cleanup_callback_t request_cleanup;

    /** Bits of a tag by which the receiver can tell the sending endpoint; 0 when not set. A hint.
     */
    uint64_t tag_sender_mask;

    /** Not 0: workers of this context are used by several threads at a time, also if each worker
     * has only one. */
    int mt_workers_shared;

    size_t estimated_num_eps; /**< About how many endpoints there will be. A hint; UCX_NUM_EPS
                                 overrides it. */
    size_t estimated_num_ppn; /**< About how many processes a host has. A hint; UCX_NUM_PPN
                                 overrides it. */
    const char *name; /**< Name for messages; copied, and changed by the library where needed. */

    /** Number of this process among those of the host. A hint; UCX_NODE_LOCAL_ID overrides it. */
    size_t node_local_id;
} ucp_params_t;

/**
 * @ingroup UCP_CONTEXT
 * @brief Members of ucp_lib_attr_t.
 */
enum ucp_lib_attr_field {
    UCP_LIB_ATTR_FIELD_MAX_THREAD_LEVEL = UCS_BIT(0) /**< max_thread_level */
};

/**
 * @ingroup UCP_CONTEXT
 * @brief Attributes of the library, filled by ucp_lib_query().
 */
typedef struct ucp_lib_attr {
    uint64_t field_mask;                /**< Members asked for, from @ref ucp_lib_attr_field. */
    ucs_thread_mode_t max_thread_level; /**< The most that a worker can be created with. */
} ucp_lib_attr_t;

/**
 * @ingroup UCP_CONTEXT
 * @brief Members of ucp_context_attr_t.
 */
enum ucp_context_attr_field {
    UCP_ATTR_FIELD_REQUEST_SIZE = UCS_BIT(0),       /**< request_size */
    UCP_ATTR_FIELD_THREAD_MODE = UCS_BIT(1),        /**< thread_mode */
    UCP_ATTR_FIELD_MEMORY_TYPES = UCS_BIT(2),       /**< memory_types */
    UCP_ATTR_FIELD_NAME = UCS_BIT(3),               /**< name */
    UCP_ATTR_FIELD_DEVICE_COUNTER_SIZE = UCS_BIT(4) /**< device_counter_size */
};

/**
 * @ingroup UCP_CONTEXT
 * @brief Attributes of a context, filled by ucp_context_query().
 */
typedef struct ucp_context_attr {
    uint64_t field_mask; /**< Members asked for, from @ref ucp_context_attr_field. */

    /** Bytes before a request of the user that the library needs, see ucp_request_param_t::request.
     */
    size_t request_size;

    ucs_thread_mode_t
        thread_mode; /**< UCS_THREAD_MODE_MULTI when workers of several threads may share it. */
    uint64_t
        memory_types; /**< Set of the kinds of memory that buffers may be in, a bit for each. */
    char name[UCP_ENTITY_NAME_MAX]; /**< Name for messages. */
    size_t device_counter_size; /**< Bytes of a counter of the device interface; 0 without that. */
} ucp_context_attr_t;

/* ---- Worker ---- */

/**
 * @ingroup UCP_WORKER
 * @brief Members of ucp_worker_params_t.
 */
enum ucp_worker_params_field {
    UCP_WORKER_PARAM_FIELD_THREAD_MODE = UCS_BIT(0),  /**< thread_mode */
    UCP_WORKER_PARAM_FIELD_CPU_MASK = UCS_BIT(1),     /**< cpu_mask */
    UCP_WORKER_PARAM_FIELD_EVENTS = UCS_BIT(2),       /**< events */
    UCP_WORKER_PARAM_FIELD_USER_DATA = UCS_BIT(3),    /**< user_data */
    UCP_WORKER_PARAM_FIELD_EVENT_FD = UCS_BIT(4),     /**< event_fd */
    UCP_WORKER_PARAM_FIELD_FLAGS = UCS_BIT(5),        /**< flags */
    UCP_WORKER_PARAM_FIELD_NAME = UCS_BIT(6),         /**< name */
    UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT = UCS_BIT(7), /**< am_alignment */
    UCP_WORKER_PARAM_FIELD_CLIENT_ID = UCS_BIT(8)     /**< client_id */
};

/**
 * @ingroup UCP_WORKER
 * @brief Flags of a worker; unknown bits are ignored.
 */
typedef enum {
    UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK =
        UCS_BIT(0) /**< Do not warn of requests that were never freed. */
} ucp_worker_flags_t;

/**
 * @ingroup UCP_WORKER
 * @brief Parameters of ucp_worker_create().
 */
typedef struct ucp_worker_params {
    uint64_t field_mask; /**< Members that are set, from @ref ucp_worker_params_field. */

    /** Threads that will use the worker; SINGLE when not set. ucp_worker_query() tells what it
     * became. */
    ucs_thread_mode_t thread_mode;

    ucs_cpu_set_t
        cpu_mask;    /**< Processors near which memory of the worker should be; any when not set. */
    unsigned events; /**< What it wakes up for, from ucp_wakeup_event_t; everything when not set. */
    void *user_data; /**< Data of the events that the worker adds to @a event_fd; NULL when not set.
                      */

    /** An epoll descriptor that the worker adds its events to. ucp_worker_get_efd() then fails. */
    int event_fd;

    uint64_t flags;      /**< From ucp_worker_flags_t; 0 when not set. */
    const char *name;    /**< Name for messages; copied, and changed by the library where needed. */
    size_t am_alignment; /**< Data of active messages is given to handlers at a multiple of this
                            address. */

    /** Sent to servers by endpoints with UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID; see
     * ucp_conn_request_query(). */
    uint64_t client_id;
} ucp_worker_params_t;

/**
 * @ingroup UCP_WORKER
 * @brief Members of ucp_worker_attr_t.
 */
enum ucp_worker_attr_field {
    UCP_WORKER_ATTR_FIELD_THREAD_MODE = UCS_BIT(0),    /**< thread_mode */
    UCP_WORKER_ATTR_FIELD_ADDRESS = UCS_BIT(1),        /**< address and address_length */
    UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS = UCS_BIT(2),  /**< address_flags */
    UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER = UCS_BIT(3),  /**< max_am_header */
    UCP_WORKER_ATTR_FIELD_NAME = UCS_BIT(4),           /**< name */
    UCP_WORKER_ATTR_FIELD_MAX_INFO_STRING = UCS_BIT(5) /**< max_debug_string */
};

/**
 * @ingroup UCP_WORKER
 * @brief What the address of a worker contains.
 */
typedef enum {
    UCP_WORKER_ADDRESS_FLAG_NET_ONLY =
        UCS_BIT(0) /**< No devices that work inside this host only; shorter. */
} ucp_worker_address_flags_t;

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of a worker, filled by ucp_worker_query().
 */
typedef struct ucp_worker_attr {
    uint64_t field_mask;           /**< Members asked for, from @ref ucp_worker_attr_field. */
    ucs_thread_mode_t thread_mode; /**< Threads that may use the worker. */
    uint32_t
        address_flags; /**< In: what the address shall contain, from ucp_worker_address_flags_t. */
    ucp_address_t *address; /**< Its address; release it with ucp_worker_release_address(). */
    size_t address_length;  /**< Bytes of the address. */
    size_t max_am_header;   /**< The longest header of an active message, in bytes. */
    char name[UCP_ENTITY_NAME_MAX]; /**< Name for messages. */
    size_t max_debug_string;        /**< The longest text of ucp_request_query(), with its end. */
} ucp_worker_attr_t;

/**
 * @ingroup UCP_WORKER
 * @brief Members of ucp_worker_address_attr_t.
 */
enum ucp_worker_address_attr_field {
    UCP_WORKER_ADDRESS_ATTR_FIELD_UID = UCS_BIT(0) /**< worker_uid */
};

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of a worker address, filled by ucp_worker_address_query().
 */
typedef struct ucp_worker_address_attr {
    uint64_t field_mask; /**< Members asked for, from @ref ucp_worker_address_attr_field. */
    uint64_t worker_uid; /**< Number of the worker that no other worker has. */
} ucp_worker_address_attr_t;

/* ---- Listener ---- */

/**
 * @ingroup UCP_WORKER
 * @brief Members of ucp_listener_params_t.
 */
enum ucp_listener_params_field {
    UCP_LISTENER_PARAM_FIELD_SOCK_ADDR = UCS_BIT(0),      /**< sockaddr */
    UCP_LISTENER_PARAM_FIELD_ACCEPT_HANDLER = UCS_BIT(1), /**< accept_handler */
    UCP_LISTENER_PARAM_FIELD_CONN_HANDLER = UCS_BIT(2)    /**< conn_handler */
};

/**
 * @ingroup UCP_WORKER
 * @brief Parameters of ucp_listener_create(): an address and exactly one of the two handlers.
 */
typedef struct ucp_listener_params {
    uint64_t field_mask;      /**< Members that are set, from @ref ucp_listener_params_field. */
    ucs_sock_addr_t sockaddr; /**< Where to listen; port 0 takes any free one. */
    ucp_listener_accept_handler_t accept_handler; /**< Called with an endpoint for each client. */
    ucp_listener_conn_handler_t
        conn_handler; /**< Called for each client that asks to be connected. */
} ucp_listener_params_t;

/**
 * @ingroup UCP_WORKER
 * @brief Members of ucp_listener_attr_t.
 */
enum ucp_listener_attr_field {
    UCP_LISTENER_ATTR_FIELD_SOCKADDR = UCS_BIT(0) /**< sockaddr */
};

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of a listener, filled by ucp_listener_query().
 */
typedef struct ucp_listener_attr {
    uint64_t field_mask;              /**< Members asked for, from @ref ucp_listener_attr_field. */
    struct sockaddr_storage sockaddr; /**< Where it listens, with the actual port. */
} ucp_listener_attr_t;

/**
 * @ingroup UCP_WORKER
 * @brief Members of ucp_conn_request_attr_t.
 */
enum ucp_conn_request_attr_field {
    UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR = UCS_BIT(0), /**< client_address */
    UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ID = UCS_BIT(1)    /**< client_id */
};

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of a waiting client, filled by ucp_conn_request_query().
 */
typedef struct ucp_conn_request_attr {
    uint64_t field_mask; /**< Members asked for, from @ref ucp_conn_request_attr_field. */
    struct sockaddr_storage client_address; /**< Address and port it connects from. */
    uint64_t client_id; /**< What it sent with UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID. */
} ucp_conn_request_attr_t;

/* ---- Endpoint ---- */

/**
 * @ingroup UCP_ENDPOINT
 * @brief Members of ucp_ep_params_t.
 */
enum ucp_ep_params_field {
    UCP_EP_PARAM_FIELD_REMOTE_ADDRESS = UCS_BIT(0),    /**< address */
    UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE = UCS_BIT(1), /**< err_mode */
    UCP_EP_PARAM_FIELD_ERR_HANDLER = UCS_BIT(2),       /**< err_handler */
    UCP_EP_PARAM_FIELD_USER_DATA = UCS_BIT(3),         /**< user_data */
    UCP_EP_PARAM_FIELD_SOCK_ADDR = UCS_BIT(4),         /**< sockaddr */
    UCP_EP_PARAM_FIELD_FLAGS = UCS_BIT(5),             /**< flags */
    UCP_EP_PARAM_FIELD_CONN_REQUEST = UCS_BIT(6),      /**< conn_request */
    UCP_EP_PARAM_FIELD_NAME = UCS_BIT(7),              /**< name */
    UCP_EP_PARAM_FIELD_LOCAL_SOCK_ADDR = UCS_BIT(8)    /**< local_sockaddr */
};

/**
 * @ingroup UCP_ENDPOINT
 * @brief Flags of an endpoint.
 */
enum ucp_ep_params_flags_field {
    UCP_EP_PARAMS_FLAGS_CLIENT_SERVER = UCS_BIT(0), /**< Connect to the listener at sockaddr. */
    UCP_EP_PARAMS_FLAGS_NO_LOOPBACK = UCS_BIT(1),   /**< To the own worker: connect to the next
                                                       endpoint of this kind,   not to itself. */
    UCP_EP_PARAMS_FLAGS_SEND_CLIENT_ID =
        UCS_BIT(2) /**< Send the worker's client id to the listener. */
};

/**
 * @ingroup UCP_ENDPOINT
 * @brief Flags of ucp_ep_close_nbx().
 */
typedef enum {
    /**
     * Do not wait for anything: operations end with UCS_ERR_CANCELED, the peer sees a failure.
     * Needs UCP_ERR_HANDLING_MODE_PEER on both sides; not together with
     * UCP_OP_ATTR_FLAG_NO_IMM_CMPL.
     */
    UCP_EP_CLOSE_FLAG_FORCE = UCS_BIT(0)
} ucp_ep_close_flags_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief Members of ucp_ep_evaluate_perf_param_t.
 */
typedef enum ucp_ep_perf_param_field {
    UCP_EP_PERF_PARAM_FIELD_MESSAGE_SIZE = UCS_BIT(0) /**< message_size */
} ucp_ep_perf_param_field_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief Members of ucp_ep_evaluate_perf_attr_t.
 */
typedef enum ucp_ep_perf_attr_field {
    UCP_EP_PERF_ATTR_FIELD_ESTIMATED_TIME = UCS_BIT(0) /**< estimated_time */
} ucp_ep_perf_attr_field_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief What ucp_ep_evaluate_perf() shall estimate.
 */
typedef struct {
    uint64_t field_mask; /**< Members that are set, from ucp_ep_perf_param_field_t. */
    size_t message_size; /**< Bytes of the message; to be set always. */
} ucp_ep_evaluate_perf_param_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief What ucp_ep_evaluate_perf() has estimated.
 */
typedef struct {
    uint64_t field_mask;   /**< Members asked for, from ucp_ep_perf_attr_field_t. */
    double estimated_time; /**< Seconds to send the message. */
} ucp_ep_evaluate_perf_attr_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief Members of ucp_ep_attr_t.
 */
enum ucp_ep_attr_field {
    UCP_EP_ATTR_FIELD_NAME = UCS_BIT(0),            /**< name */
    UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR = UCS_BIT(1),  /**< local_sockaddr */
    UCP_EP_ATTR_FIELD_REMOTE_SOCKADDR = UCS_BIT(2), /**< remote_sockaddr */
    UCP_EP_ATTR_FIELD_TRANSPORTS = UCS_BIT(3),      /**< transports */
    UCP_EP_ATTR_FIELD_USER_DATA = UCS_BIT(4)        /**< user_data */
};

/**
 * @ingroup UCP_ENDPOINT
 * @brief Attributes of an endpoint, filled by ucp_ep_query().
 *
 * Asking an endpoint that was not connected through a listener for a socket address gives
 * UCS_ERR_NOT_CONNECTED.
 */
typedef struct ucp_ep_attr {
    uint64_t field_mask;                     /**< Members asked for, from @ref ucp_ep_attr_field. */
    char name[UCP_ENTITY_NAME_MAX];          /**< Name for messages. */
    struct sockaddr_storage local_sockaddr;  /**< Own address of the connection. */
    struct sockaddr_storage remote_sockaddr; /**< The peer's address of the connection. */
    ucp_transports_t transports;             /**< In: the caller's array; out: transports in use. */
    void *user_data;                         /**< What the endpoint was created with. */
} ucp_ep_attr_t;

/**
 * @ingroup UCP_ENDPOINT
 * @brief An endpoint that has stream data, see ucp_stream_worker_poll().
 */
typedef struct ucp_stream_poll_ep {
    ucp_ep_h ep;          /**< The endpoint. */
    void *user_data;      /**< Its user data. */
    unsigned flags;       /**< Reserved. */
    uint8_t reserved[16]; /**< Reserved. */
} ucp_stream_poll_ep_t;

/* ---- Memory ---- */

/**
 * @ingroup UCP_MEM
 * @brief Members of ucp_mem_map_params_t.
 */
enum ucp_mem_map_params_field {
    UCP_MEM_MAP_PARAM_FIELD_ADDRESS = UCS_BIT(0),             /**< address */
    UCP_MEM_MAP_PARAM_FIELD_LENGTH = UCS_BIT(1),              /**< length */
    UCP_MEM_MAP_PARAM_FIELD_FLAGS = UCS_BIT(2),               /**< flags */
    UCP_MEM_MAP_PARAM_FIELD_PROT = UCS_BIT(3),                /**< prot */
    UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE = UCS_BIT(4),         /**< memory_type */
    UCP_MEM_MAP_PARAM_FIELD_EXPORTED_MEMH_BUFFER = UCS_BIT(5) /**< exported_memh_buffer */
};

/**
 * @ingroup UCP_MEM
 * @brief Flags of ucp_mem_map().
 */
enum {
    UCP_MEM_MAP_NONBLOCK =
        UCS_BIT(0), /**< Return sooner; pages may be prepared when they are first used. */
    UCP_MEM_MAP_ALLOCATE = UCS_BIT(1), /**< Allocate the memory; an address given is a hint. */
    UCP_MEM_MAP_FIXED = UCS_BIT(2), /**< Allocate at the address given, a multiple of the page size,
                                       in the place of what is mapped there. */
    UCP_MEM_MAP_SYMMETRIC_RKEY =
        UCS_BIT(3), /**< Make the key equal to those of other processes if possible. */
    UCP_MEM_MAP_LOCK = UCS_BIT(4) /**< Pin all pages now; not with NONBLOCK. */
};

/**
 * @ingroup UCP_MEM
 * @brief Accesses that registered memory allows.
 */
enum {
    UCP_MEM_MAP_PROT_LOCAL_READ = UCS_BIT(0),  /**< Sent by this process. */
    UCP_MEM_MAP_PROT_LOCAL_WRITE = UCS_BIT(1), /**< Received into by this process. */
    UCP_MEM_MAP_PROT_REMOTE_READ = UCS_BIT(8), /**< Read by peers. */
    UCP_MEM_MAP_PROT_REMOTE_WRITE = UCS_BIT(9) /**< Written and changed by peers. */
};

/**
 * @ingroup UCP_MEM
 * @brief Parameters of ucp_mem_map().
 */
typedef struct ucp_mem_map_params {
    uint64_t field_mask; /**< Members that are set, from @ref ucp_mem_map_params_field. */
    void *address;       /**< Memory to register, or where to allocate; NULL when not set. */
    size_t length;       /**< Its bytes; to be set always. */
    unsigned flags;      /**< UCP_MEM_MAP_ flags; 0 when not set. */
    unsigned prot;       /**< UCP_MEM_MAP_PROT_ accesses; all when not set. */
    ucs_memory_type_t memory_type; /**< Kind of memory: to allocate (HOST when not set), or of the
                                      address (found out when not set). */
    const void
        *exported_memh_buffer; /**< From a peer's ucp_memh_pack() with UCP_MEMH_PACK_FLAG_EXPORT:
                                  use that memory instead of own one. */
} ucp_mem_map_params_t;

/**
 * @ingroup UCP_MEM
 * @brief Members of ucp_mem_advise_params_t; all must be set.
 */
enum ucp_mem_advise_params_field {
    UCP_MEM_ADVISE_PARAM_FIELD_ADDRESS = UCS_BIT(0), /**< address */
    UCP_MEM_ADVISE_PARAM_FIELD_LENGTH = UCS_BIT(1),  /**< length */
    UCP_MEM_ADVISE_PARAM_FIELD_ADVICE = UCS_BIT(2)   /**< advice */
};

/**
 * @ingroup UCP_MEM
 * @brief What is going to happen to memory.
 */
typedef enum ucp_mem_advice {
    UCP_MADV_NORMAL = 0, /**< Nothing special. */
    UCP_MADV_WILLNEED /**< It will be used soon: prepare its pages (after UCP_MEM_MAP_NONBLOCK). */
} ucp_mem_advice_t;

/**
 * @ingroup UCP_MEM
 * @brief Parameters of ucp_mem_advise().
 */
typedef struct ucp_mem_advise_params {
    uint64_t field_mask;     /**< Members that are set, from @ref ucp_mem_advise_params_field. */
    void *address;           /**< Start of the range. */
    size_t length;           /**< Its bytes. */
    ucp_mem_advice_t advice; /**< The advice. */
} ucp_mem_advise_params_t;

/**
 * @ingroup UCP_MEM
 * @brief Members of ucp_memh_pack_params_t.
 */
enum ucp_memh_pack_params_field {
    UCP_MEMH_PACK_PARAM_FIELD_FLAGS = UCS_BIT(0) /**< flags */
};

/**
 * @ingroup UCP_MEM
 * @brief Flags of ucp_memh_pack().
 */
enum ucp_memh_pack_flags {
    UCP_MEMH_PACK_FLAG_EXPORT =
        UCS_BIT(0) /**< For ucp_mem_map() of a peer on the same device, not as a key. */
};

/**
 * @ingroup UCP_MEM
 * @brief Parameters of ucp_memh_pack().
 */
typedef struct ucp_memh_pack_params {
    uint64_t field_mask; /**< Members that are set, from @ref ucp_memh_pack_params_field. */
    uint64_t flags;      /**< From @ref ucp_memh_pack_flags; 0 when not set. */
} ucp_memh_pack_params_t;

/**
 * @ingroup UCP_MEM
 * @brief Parameters of ucp_memh_buffer_release().
 */
typedef struct ucp_memh_buffer_release_params {
    uint64_t field_mask; /**< 0: there are no members yet. */
} ucp_memh_buffer_release_params_t;

/**
 * @ingroup UCP_MEM
 * @brief Parameters of ucp_rkey_compare().
 */
typedef struct ucp_rkey_compare_params {
    uint64_t field_mask; /**< 0: there are no members yet. */
} ucp_rkey_compare_params_t;

/* ---- Data types ---- */

/**
 * @ingroup UCP_DATATYPE
 * @brief Classes of data types, in the low bits of ucp_datatype_t.
 */
enum ucp_dt_type {
    UCP_DATATYPE_CONTIG = 0,  /**< Elements of one size, one after the other. */
    UCP_DATATYPE_STRIDED = 1, /**< Reserved. */
    UCP_DATATYPE_IOV = 2,     /**< A list of local buffers, ucp_dt_iov_t. */
    UCP_DATATYPE_SGL = 4,     /**< Lists of buffers on both sides. */
    UCP_DATATYPE_GENERIC = 7, /**< Packed and unpacked by functions of the user. */
    UCP_DATATYPE_SHIFT = 3,   /**< Bits of the class. */
    UCP_DATATYPE_CLASS_MASK = UCS_MASK(UCP_DATATYPE_SHIFT) /**< Mask of the class. */
};

/** @ingroup UCP_DATATYPE Type of elements of @a _elem_size bytes; a receive takes whole elements.
 */
#define ucp_dt_make_contig(_elem_size)                                                             \
    (((ucp_datatype_t)(_elem_size) << UCP_DATATYPE_SHIFT) | UCP_DATATYPE_CONTIG)

/** @ingroup UCP_DATATYPE Type of a list of buffers: the buffer is an array of ucp_dt_iov_t, the
 * count its length. */
#define ucp_dt_make_iov() ((ucp_datatype_t)UCP_DATATYPE_IOV)

/**
 * @ingroup UCP_DATATYPE
 * Type of lists on both sides of a put or get: the buffer is a ucp_dt_local_sgl_t,
 * ucp_request_param_t::remote a ucp_dt_remote_sgl_t, with as many elements.
 */
#define ucp_dt_make_sgl() ((ucp_datatype_t)UCP_DATATYPE_SGL)

/**
 * @ingroup UCP_DATATYPE
 * @brief An element of a list of buffers. The list must not change until the operation is complete.
 */
typedef struct ucp_dt_iov {
    void *buffer;  /**< The buffer; not touched when the length is 0. */
    size_t length; /**< Its bytes. */
} ucp_dt_iov_t;

/**
 * @ingroup UCP_DATATYPE
 * @brief Members of ucp_dt_local_sgl_t.
 */
enum ucp_dt_local_sgl_field {
    UCP_DT_LOCAL_SGL_FIELD_BUFFERS = UCS_BIT(0), /**< buffers */
    UCP_DT_LOCAL_SGL_FIELD_LENGTHS = UCS_BIT(1), /**< lengths */
    UCP_DT_LOCAL_SGL_FIELD_MEMHS = UCS_BIT(2),   /**< memhs */
    UCP_DT_LOCAL_SGL_FIELD_COUNTS = UCS_BIT(3),  /**< counts */
    UCP_DT_LOCAL_SGL_FIELD_STRIDES = UCS_BIT(4)  /**< strides */
};

/**
 * @ingroup UCP_DATATYPE
 * @brief Members of ucp_dt_remote_sgl_t.
 */
enum ucp_dt_remote_sgl_field {
    UCP_DT_REMOTE_SGL_FIELD_REMOTE_ADDRS = UCS_BIT(0), /**< remote_addrs */
    UCP_DT_REMOTE_SGL_FIELD_LENGTHS = UCS_BIT(1),      /**< lengths */
    UCP_DT_REMOTE_SGL_FIELD_RKEYS = UCS_BIT(2)         /**< rkeys */
};

/**
 * @ingroup UCP_DATATYPE
 * @brief Local side of a list on both sides. It is copied, its arrays must stay until the operation
 * is complete.
 *
 * Element i is counts[i] blocks of lengths[i] bytes, the first at buffers[i], each strides[i] bytes
 * after the one before; one block where counts and strides are not set. All buffers are of one kind
 * of memory.
 */
typedef struct {
    uint64_t field_mask;    /**< Members that are set, from @ref ucp_dt_local_sgl_field. */
    void *const *buffers;   /**< Starts of the elements. */
    const size_t *lengths;  /**< Bytes of a block. */
    ucp_mem_h const *memhs; /**< Registrations of the buffers. */
    const size_t *counts;   /**< Blocks. */
    const size_t *strides;  /**< Bytes from block to block. */
} ucp_dt_local_sgl_t;

/**
 * @ingroup UCP_DATATYPE
 * @brief Remote side of a list on both sides. It is copied, its arrays must stay until the
 * operation is complete.
 */
typedef struct {
    uint64_t field_mask;          /**< Members that are set, from @ref ucp_dt_remote_sgl_field. */
    const uint64_t *remote_addrs; /**< Starts of the elements at the peer. */
    const size_t *lengths;        /**< Their bytes. */
    ucp_rkey_h const *rkeys;      /**< Their keys. */
} ucp_dt_remote_sgl_t;

/**
 * @ingroup UCP_DATATYPE
 * @brief Functions of a generic type. The library asks for any part at any offset, in any order.
 */
typedef struct ucp_generic_dt_ops {
    /**
     * Begin to pack.
     * @param context  What the type was created with.
     * @param buffer   Buffer of the operation.
     * @param count    Its elements.
     * @return State for the functions below.
     */
    void *(*start_pack)(void *context, const void *buffer, size_t count);

    /**
     * Begin to unpack.
     * @param context  What the type was created with.
     * @param buffer   Buffer of the operation.
     * @param count    Its room in elements.
     * @return State for the functions below.
     */
    void *(*start_unpack)(void *context, void *buffer, size_t count);

    /** @return Bytes of all the packed data of @a state. */
    size_t (*packed_size)(void *state);

    /**
     * Pack a part.
     * @param state       From start_pack.
     * @param offset      Where the part begins in the packed data.
     * @param dest        Where it goes.
     * @param max_length  The most bytes to pack.
     * @return Bytes packed, at most @a max_length.
     */
    size_t (*pack)(void *state, size_t offset, void *dest, size_t max_length);

    /**
     * Unpack a part.
     * @param state   From start_unpack.
     * @param offset  Where the part begins in the packed data.
     * @param src     The part.
     * @param length  Its bytes.
     * @return UCS_OK, or an error that the operation completes with.
     */
    ucs_status_t (*unpack)(void *state, size_t offset, const void *src, size_t length);

    /** End what start_pack or start_unpack began; called once for each. */
    void (*finish)(void *state);
} ucp_generic_dt_ops_t;

/**
 * @ingroup UCP_DATATYPE
 * @brief Members of ucp_datatype_attr_t.
 */
enum ucp_datatype_attr_field {
    UCP_DATATYPE_ATTR_FIELD_PACKED_SIZE = UCS_BIT(0), /**< packed_size is asked for. */
    UCP_DATATYPE_ATTR_FIELD_BUFFER = UCS_BIT(1),      /**< buffer is set. */
    UCP_DATATYPE_ATTR_FIELD_COUNT = UCS_BIT(2)        /**< count is set. */
};

/**
 * @ingroup UCP_DATATYPE
 * @brief Attributes of data of a type, for ucp_dt_query().
 */
typedef struct ucp_datatype_attr {
    uint64_t field_mask; /**< Members used, from @ref ucp_datatype_attr_field. */
    size_t packed_size;  /**< Out: bytes of the packed data. */
    const void *buffer;  /**< In: the data; NULL when not set. */
    size_t count;        /**< In: its elements; 1 when not set. */
} ucp_datatype_attr_t;

/* ---- Operations ---- */

/**
 * @ingroup UCP_WORKER
 * @brief Flags of a handler of active messages.
 */
enum ucp_am_cb_flags {
    UCP_AM_FLAG_WHOLE_MSG = UCS_BIT(0), /**< One call for a message, with all of its data. */
    UCP_AM_FLAG_PERSISTENT_DATA =
        UCS_BIT(1) /**< Data can always be kept: UCP_AM_RECV_ATTR_FLAG_DATA is set. */
};

/**
 * @ingroup UCP_WORKER
 * @brief Flags of a send of an active message.
 */
enum ucp_send_am_flags {
    UCP_AM_SEND_FLAG_REPLY = UCS_BIT(0), /**< The handler gets an endpoint to answer on. */
    UCP_AM_SEND_FLAG_EAGER = UCS_BIT(1), /**< Send the data along, whatever its size. */
    UCP_AM_SEND_FLAG_RNDV = UCS_BIT(2),  /**< Leave the data here until the handler asks for it. */
    UCP_AM_SEND_FLAG_COPY_HEADER =
        UCS_BIT(3), /**< The header may be changed when the call has returned. */
    UCP_AM_SEND_REPLY = UCP_AM_SEND_FLAG_REPLY /**< Older name. */
};

/**
 * @ingroup UCP_ENDPOINT
 * @brief Flags that a handler of ucp_worker_set_am_handler() gets.
 */
enum ucp_cb_param_flags {
    UCP_CB_PARAM_FLAG_DATA = UCS_BIT(0) /**< The data may be kept: return UCS_INPROGRESS. */
};

/**
 * @ingroup UCP_COMM
 * @brief Operations of ucp_atomic_op_nbx().
 */
typedef enum {
    UCP_ATOMIC_OP_ADD,   /**< Add the operand. */
    UCP_ATOMIC_OP_SWAP,  /**< Replace by the operand. */
    UCP_ATOMIC_OP_CSWAP, /**< Replace by the content of the reply buffer when equal to the operand.
                          */
    UCP_ATOMIC_OP_AND,   /**< Bitwise and. */
    UCP_ATOMIC_OP_OR,    /**< Bitwise or. */
    UCP_ATOMIC_OP_XOR,   /**< Bitwise exclusive or. */
    UCP_ATOMIC_OP_LAST   /**< Number of operations. */
} ucp_atomic_op_t;

/**
 * @ingroup UCP_COMM
 * @brief Flags of stream receives.
 */
typedef enum {
    UCP_STREAM_RECV_FLAG_WAITALL =
        UCS_BIT(0) /**< Complete when the buffer is full, not with the first data. */
} ucp_stream_recv_flags_t;

/**
 * @ingroup UCP_COMM
 * @brief Members of ucp_request_param_t, and flags of every operation.
 */
typedef enum {
    UCP_OP_ATTR_FIELD_REQUEST = UCS_BIT(0),         /**< request */
    UCP_OP_ATTR_FIELD_CALLBACK = UCS_BIT(1),        /**< cb */
    UCP_OP_ATTR_FIELD_USER_DATA = UCS_BIT(2),       /**< user_data */
    UCP_OP_ATTR_FIELD_DATATYPE = UCS_BIT(3),        /**< datatype */
    UCP_OP_ATTR_FIELD_FLAGS = UCS_BIT(4),           /**< flags */
    UCP_OP_ATTR_FIELD_REPLY_BUFFER = UCS_BIT(5),    /**< reply_buffer */
    UCP_OP_ATTR_FIELD_MEMORY_TYPE = UCS_BIT(6),     /**< memory_type */
    UCP_OP_ATTR_FIELD_RECV_INFO = UCS_BIT(7),       /**< recv_info */
    UCP_OP_ATTR_FIELD_MEMH = UCS_BIT(8),            /**< memh */
    UCP_OP_ATTR_FIELD_REMOTE_DATATYPE = UCS_BIT(9), /**< remote_datatype */
    UCP_OP_ATTR_FIELD_REMOTE = UCS_BIT(10),         /**< remote */
    UCP_OP_ATTR_FIELD_REMOTE_COUNT = UCS_BIT(11),   /**< remote_count */

    UCP_OP_ATTR_FLAG_NO_IMM_CMPL = UCS_BIT(16), /**< Never return NULL: return a request, and call
                                                   the callback, also inside the call. */
    UCP_OP_ATTR_FLAG_FAST_CMPL =
        UCS_BIT(17), /**< Let the local buffer go soon, if need be by a copy. */
    UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL =
        UCS_BIT(18), /**< Complete inside the call or fail with UCS_ERR_NO_RESOURCE. */
    UCP_OP_ATTR_FLAG_MULTI_SEND = UCS_BIT(19) /**< Many operations at a time: bandwidth before
                                                 latency. Not with FAST_CMPL. */
} ucp_op_attr_t;

/**
 * @ingroup UCP_COMM
 * @brief Tag and length of a received message.
 */
struct ucp_tag_recv_info {
    ucp_tag_t sender_tag; /**< Tag that the sender gave. */
    size_t length;        /**< Bytes of the message. */
};

/**
 * @ingroup UCP_COMM
 * @brief Parameters of operations. Read during the call.
 */
typedef struct {
    uint32_t op_attr_mask; /**< Members that are set, and flags, from ucp_op_attr_t. */
    uint32_t flags;        /**< Flags of the operation at hand. */

    /**
     * A request of the user's own: an address with ucp_context_attr_t::request_size bytes before it
     * that are the library's until completion. It is returned where a request is returned, and
     * never freed.
     */
    void *request;

    /** Called at completion. */
    union {
        ucp_send_nbx_callback_t send; /**< Of sends, remote memory operations, flush and close. */
        ucp_tag_recv_nbx_callback_t recv;           /**< Of tagged receives. */
        ucp_stream_recv_nbx_callback_t recv_stream; /**< Of stream receives. */
        ucp_am_recv_data_nbx_callback_t recv_am;    /**< Of ucp_am_recv_data_nbx(). */
    } cb;

    ucp_datatype_t datatype;       /**< Type of the buffer's elements; bytes when not set. */
    void *user_data;               /**< Argument of the callback. */
    void *reply_buffer;            /**< Where an atomic operation puts the former value. */
    ucs_memory_type_t memory_type; /**< Kind of memory of the buffer; found out when not set. */

    /** Filled when a receive completes inside its call. */
    union {
        size_t *length;                /**< Bytes received, of an active message. */
        ucp_tag_recv_info_t *tag_info; /**< Tag and length, of a tagged message. */
    } recv_info;

    ucp_mem_h memh;                 /**< Registration of the buffer, to save the library one. */
    ucp_datatype_t remote_datatype; /**< Type of the remote side: ucp_dt_make_sgl() or not set. */
    const void *remote;             /**< The remote side, ucp_dt_remote_sgl_t. */
    size_t remote_count;            /**< Its elements; as many as on the local side. */
} ucp_request_param_t;

/**
 * @ingroup UCP_COMM
 * @brief Members of ucp_request_attr_t.
 */
typedef enum {
    UCP_REQUEST_ATTR_FIELD_INFO_STRING = UCS_BIT(0),      /**< debug_string */
    UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE = UCS_BIT(1), /**< debug_string_size */
    UCP_REQUEST_ATTR_FIELD_STATUS = UCS_BIT(2),           /**< status */
    UCP_REQUEST_ATTR_FIELD_MEM_TYPE = UCS_BIT(3)          /**< mem_type */
} ucp_req_attr_field;

/**
 * @ingroup UCP_COMM
 * @brief Attributes of a request, filled by ucp_request_query().
 */
typedef struct {
    uint64_t field_mask;      /**< Members used, from ucp_req_attr_field. */
    char *debug_string;       /**< Buffer of the caller for a text about protocol and transports. */
    size_t debug_string_size; /**< In: its bytes; ucp_worker_attr_t::max_debug_string is enough. */
    ucs_status_t status;      /**< As ucp_request_check_status() tells. */
    ucs_memory_type_t mem_type; /**< Kind of memory of the buffer. */
} ucp_request_attr_t;

/**
 * @ingroup UCP_COMM
 * @brief Members of ucp_am_recv_param_t, and how data of an active message came.
 */
typedef enum {
    UCP_AM_RECV_ATTR_FIELD_REPLY_EP = UCS_BIT(0), /**< reply_ep */
    UCP_AM_RECV_ATTR_FLAG_DATA =
        UCS_BIT(16), /**< The data is here and may be kept: return UCS_INPROGRESS. */
    UCP_AM_RECV_ATTR_FLAG_RNDV =
        UCS_BIT(17) /**< The data is still with the sender: ucp_am_recv_data_nbx(). */
} ucp_am_recv_attr_t;

/**
 * @ingroup UCP_WORKER
 * @brief What a handler learns of an active message.
 */
struct ucp_am_recv_param {
    uint64_t recv_attr; /**< Members that are set, and flags, from ucp_am_recv_attr_t. */
    ucp_ep_h
        reply_ep; /**< Endpoint to answer on; it stays the library's unless the user created it. */
};

/**
 * @ingroup UCP_COMM
 * @brief Members of ucp_am_handler_param_t.
 */
enum ucp_am_handler_param_field {
    UCP_AM_HANDLER_PARAM_FIELD_ID = UCS_BIT(0),    /**< id */
    UCP_AM_HANDLER_PARAM_FIELD_FLAGS = UCS_BIT(1), /**< flags */
    UCP_AM_HANDLER_PARAM_FIELD_CB = UCS_BIT(2),    /**< cb */
    UCP_AM_HANDLER_PARAM_FIELD_ARG = UCS_BIT(3)    /**< arg */
};

/**
 * @ingroup UCP_WORKER
 * @brief Parameters of ucp_worker_set_am_recv_handler().
 */
typedef struct ucp_am_handler_param {
    uint64_t field_mask;       /**< Members that are set, from @ref ucp_am_handler_param_field. */
    unsigned id;               /**< Id of the messages, 0 to 65535. */
    uint32_t flags;            /**< From @ref ucp_am_cb_flags; 0 when not set. */
    ucp_am_recv_callback_t cb; /**< The handler; NULL removes it. */
    void *arg;                 /**< Its argument. */
} ucp_am_handler_param_t;

END_C_DECLS

UCS_BEGIN_API

/* ---- Library and configuration ---- */

/**
 * @ingroup UCP_CONTEXT
 * @brief Attributes of the library.
 *
 * @param[in,out] attr  In: which; out: their values.
 */
ucs_status_t ucp_lib_query(ucp_lib_attr_t *attr);

/**
 * @ingroup UCP_CONTEXT
 * @brief Version of the interface that the library implements.
 */
void ucp_get_version(unsigned *major_version, unsigned *minor_version, unsigned *release_number);

/**
 * @ingroup UCP_CONTEXT
 * @return The same as text, "major.minor.release"; lives as long as the library.
 */
const char *ucp_get_version_string(void);

/**
 * @ingroup UCP_CONFIG
 * @brief Read the configuration from the environment.
 *
 * @param[in]  env_prefix  Variables PREFIX_UCX_... take precedence over UCX_...; NULL: the latter
 * only.
 * @param[in]  filename    A file of NAME=VALUE lines that goes before the usual ones, or NULL. One
 *                         that does not exist is ignored.
 * @param[out] config_p    The configuration; release it with ucp_config_release().
 */
ucs_status_t ucp_config_read(const char *env_prefix, const char *filename, ucp_config_t **config_p);

/** @ingroup UCP_CONFIG Free a configuration; contexts made of it do not need it any more. */
void ucp_config_release(ucp_config_t *config);

/**
 * @ingroup UCP_CONFIG
 * @brief Change one value of a configuration.
 *
 * @param config  The configuration.
 * @param name    Name of the variable without UCX_, such as TLS.
 * @param value   The value as text.
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM when the value is not one of that name.
 */
ucs_status_t ucp_config_modify(ucp_config_t *config, const char *name, const char *value);

/**
 * @ingroup UCP_CONFIG
 * @brief Print a configuration.
 *
 * @param config       The configuration.
 * @param stream       Where to.
 * @param title        Heading; may be NULL.
 * @param print_flags  What to print.
 */
void ucp_config_print(const ucp_config_t *config, FILE *stream, const char *title,
                      ucs_config_print_flags_t print_flags);

/* ---- Context ---- */

/**
 * @ingroup UCP_CONTEXT
 * @brief What ucp_init() calls, with the version of the headers that the caller was compiled with.
 *
 * A caller newer than the library gets a warning in the log, not an error.
 */
ucs_status_t ucp_init_version(unsigned api_major_version, unsigned api_minor_version,
                              const ucp_params_t *params, const ucp_config_t *config,
                              ucp_context_h *context_p);

/**
 * @ingroup UCP_CONTEXT
 * @brief Make a context: find the devices and open what the features need.
 *
 * @param[in]  params     What is wanted; features must be set.
 * @param[in]  config     Configuration; NULL: as ucp_config_read(NULL, NULL) reads it.
 * @param[out] context_p  The context, on success; destroy it with ucp_cleanup().
 * @return UCS_OK, UCS_ERR_NO_DEVICE when no device fits, or another error.
 */
static inline ucs_status_t ucp_init(const ucp_params_t *params, const ucp_config_t *config,
                                    ucp_context_h *context_p)
{
    return ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, params, config, context_p);
}

/** @ingroup UCP_CONTEXT Destroy a context, after its workers and its memory. */
void ucp_cleanup(ucp_context_h context_p);

/**
 * @ingroup UCP_CONTEXT
 * @brief Attributes of a context.
 *
 * @param[in]     context_p  The context.
 * @param[in,out] attr       In: which; out: their values.
 */
ucs_status_t ucp_context_query(ucp_context_h context_p, ucp_context_attr_t *attr);

/** @ingroup UCP_CONTEXT Print the memory domains and transports of a context. */
void ucp_context_print_info(const ucp_context_h context, FILE *stream);

/* ---- Worker ---- */

/**
 * @ingroup UCP_WORKER
 * @brief Make a worker.
 *
 * @param[in]  context   Its context.
 * @param[in]  params    What is wanted.
 * @param[out] worker_p  The worker, on success; destroy it with ucp_worker_destroy().
 */
ucs_status_t ucp_worker_create(ucp_context_h context, const ucp_worker_params_t *params,
                               ucp_worker_h *worker_p);

/**
 * @ingroup UCP_WORKER
 * @brief Destroy a worker, with the endpoints that were not closed. No other thread may use it at
 * the same time.
 */
void ucp_worker_destroy(ucp_worker_h worker);

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of a worker.
 *
 * @param[in]     worker  The worker.
 * @param[in,out] attr    In: which; out: their values.
 */
ucs_status_t ucp_worker_query(ucp_worker_h worker, ucp_worker_attr_t *attr);

/** @ingroup UCP_WORKER Print the interfaces of a worker. */
void ucp_worker_print_info(ucp_worker_h worker, FILE *stream);

/** @ingroup UCP_WORKER Free an address that ucp_worker_query() or ucp_worker_get_address()
 * returned. */
void ucp_worker_release_address(ucp_worker_h worker, ucp_address_t *address);

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of the address of any worker.
 *
 * @param[in]     address  The address.
 * @param[in,out] attr     In: which; out: their values.
 * @return UCS_OK, or UCS_ERR_INVALID_ADDR when it is damaged.
 */
ucs_status_t ucp_worker_address_query(ucp_address_t *address, ucp_worker_address_attr_t *attr);

/**
 * @ingroup UCP_WORKER
 * @brief Move on all that the worker has to do, without waiting, and call the callbacks that are
 * due.
 *
 * Not to be called from a callback.
 *
 * @return 0 when there was nothing to do.
 */
unsigned ucp_worker_progress(ucp_worker_h worker);

/**
 * @ingroup UCP_WORKER
 * @brief Order the remote memory operations of each endpoint: those before the call take effect
 * before those after it. It does not wait for any.
 */
ucs_status_t ucp_worker_fence(ucp_worker_h worker);

/**
 * @ingroup UCP_WORKER
 * @brief Complete all operations of a worker that were posted before, remote memory operations also
 * at the peers. Sends that wait for the receiver to take the data are left alone.
 *
 * @param worker  The worker.
 * @param param   Request, callback and user data.
 */
ucs_status_ptr_t ucp_worker_flush_nbx(ucp_worker_h worker, const ucp_request_param_t *param);

/**
 * @ingroup UCP_WORKER
 * @brief Endpoints that have stream data to be received.
 *
 * @param[in]  worker    The worker.
 * @param[out] poll_eps  The endpoints.
 * @param[in]  max_eps   Room of @a poll_eps.
 * @param[in]  flags     0.
 * @return Number of endpoints, or an error (below 0).
 */
ssize_t ucp_stream_worker_poll(ucp_worker_h worker, ucp_stream_poll_ep_t *poll_eps, size_t max_eps,
                               unsigned flags);

/**
 * @ingroup UCP_WORKER
 * @brief Set the handler of an id for messages of ucp_am_send_nbx().
 *
 * @param worker  The worker.
 * @param param   Id, handler and its argument.
 */
ucs_status_t ucp_worker_set_am_recv_handler(ucp_worker_h worker,
                                            const ucp_am_handler_param_t *param);

/* ---- Waiting ---- */

/**
 * @ingroup UCP_WAKEUP
 * @brief Descriptor that becomes readable when a worker that was armed has something to do.
 *
 * Needs UCP_FEATURE_WAKEUP. Wait like this: progress until it returns 0, ucp_worker_arm(), poll the
 * descriptor when that returned UCS_OK, start again.
 *
 * @param[in]  worker  The worker.
 * @param[out] fd      The descriptor; the worker owns it.
 */
ucs_status_t ucp_worker_get_efd(ucp_worker_h worker, int *fd);

/**
 * @ingroup UCP_WAKEUP
 * @brief Ask for the next event on the descriptor.
 *
 * @return UCS_OK: the descriptor becomes readable with the next event. UCS_ERR_BUSY: there are
 * events already, call ucp_worker_progress().
 */
ucs_status_t ucp_worker_arm(ucp_worker_h worker);

/** @ingroup UCP_WAKEUP Sleep until a worker has something to do. Needs UCP_FEATURE_WAKEUP. */
ucs_status_t ucp_worker_wait(ucp_worker_h worker);

/**
 * @ingroup UCP_WAKEUP
 * @brief Wait until memory changes or a worker has something to do; it may return earlier.
 *
 * @param worker   The worker.
 * @param address  The memory, 8 bytes.
 */
void ucp_worker_wait_mem(ucp_worker_h worker, void *address);

/** @ingroup UCP_WAKEUP End the waiting of a worker, as if there was an event. From any thread,
 * whatever the mode. */
ucs_status_t ucp_worker_signal(ucp_worker_h worker);

/* ---- Listener ---- */

/**
 * @ingroup UCP_WORKER
 * @brief Listen for clients.
 *
 * @param[in]  worker      Worker that calls the handler.
 * @param[in]  params      Address and handler.
 * @param[out] listener_p  The listener, on success; destroy it with ucp_listener_destroy().
 * @return UCS_OK, UCS_ERR_BUSY when the port is in use, UCS_ERR_UNSUPPORTED without a device that
 * can listen, or another error.
 */
ucs_status_t ucp_listener_create(ucp_worker_h worker, const ucp_listener_params_t *params,
                                 ucp_listener_h *listener_p);

/**
 * @ingroup UCP_WORKER
 * @brief Stop listening. Clients that were not told to the user are refused; endpoints of accepted
 * ones stay.
 */
void ucp_listener_destroy(ucp_listener_h listener);

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of a listener.
 *
 * @param[in]     listener  The listener.
 * @param[in,out] attr      In: which; out: their values.
 */
ucs_status_t ucp_listener_query(ucp_listener_h listener, ucp_listener_attr_t *attr);

/**
 * @ingroup UCP_WORKER
 * @brief Refuse a client: its error handler gets UCS_ERR_REJECTED.
 *
 * @param listener      The listener it came to.
 * @param conn_request  The client; consumed.
 */
ucs_status_t ucp_listener_reject(ucp_listener_h listener, ucp_conn_request_h conn_request);

/**
 * @ingroup UCP_WORKER
 * @brief Attributes of a waiting client.
 *
 * @param[in]     conn_request  The client.
 * @param[in,out] attr          In: which; out: their values.
 */
ucs_status_t ucp_conn_request_query(ucp_conn_request_h conn_request, ucp_conn_request_attr_t *attr);

/* ---- Endpoint ---- */

/**
 * @ingroup UCP_ENDPOINT
 * @brief Make an endpoint. It may be used at once; connecting goes on in ucp_worker_progress().
 *
 * A peer is given by its worker address, by the socket address of its listener
 * (UCP_EP_PARAMS_FLAGS_CLIENT_SERVER), or as a waiting client. Errors of connecting are told to the
 * error handler. An endpoint to the own worker is connected to itself, unless
 * UCP_EP_PARAMS_FLAGS_NO_LOOPBACK is given.
 *
 * @param[in]  worker  Its worker; for a waiting client any worker of the listener's context.
 * @param[in]  params  The peer, and more.
 * @param[out] ep_p    The endpoint, on success; close it with ucp_ep_close_nbx().
 * @return UCS_OK, UCS_ERR_INVALID_ADDR, UCS_ERR_UNREACHABLE, UCS_ERR_UNSUPPORTED when the error
 * mode is not the client's, or another error.
 */
ucs_status_t ucp_ep_create(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep_p);

/**
 * @ingroup UCP_ENDPOINT
 * @brief Close an endpoint; the handle may not be used any more, unless UCS_ERR_INVALID_PARAM is
 * returned.
 *
 * Without a flag it is flushed first; sends that then still wait for the receiver to take the data
 * end with UCS_ERR_CANCELED. An endpoint that was connected through a listener waits for its peer
 * to close too. It completes in any case.
 *
 * @param ep     The endpoint.
 * @param param  Request, callback, user data; flags from ucp_ep_close_flags_t.
 */
ucs_status_ptr_t ucp_ep_close_nbx(ucp_ep_h ep, const ucp_request_param_t *param);

/**
 * @ingroup UCP_ENDPOINT
 * @brief Complete all operations of an endpoint that were posted before, remote memory operations
 * also at the peer. Sends that wait for the receiver to take the data are left alone.
 *
 * @param ep     The endpoint.
 * @param param  Request, callback and user data.
 */
ucs_status_ptr_t ucp_ep_flush_nbx(ucp_ep_h ep, const ucp_request_param_t *param);

/**
 * @ingroup UCP_ENDPOINT
 * @brief Attributes of an endpoint.
 *
 * @param[in]     ep    The endpoint.
 * @param[in,out] attr  In: which; out: their values.
 */
ucs_status_t ucp_ep_query(ucp_ep_h ep, ucp_ep_attr_t *attr);

/** @ingroup UCP_ENDPOINT Print the transports and protocols of an endpoint. */
void ucp_ep_print_info(ucp_ep_h ep, FILE *stream);

/**
 * @ingroup UCP_ENDPOINT
 * @brief Estimate what a message on an endpoint costs.
 *
 * @param[in]     ep     The endpoint.
 * @param[in]     param  The message.
 * @param[in,out] attr   In: what; out: the estimate.
 */
ucs_status_t ucp_ep_evaluate_perf(ucp_ep_h ep, const ucp_ep_evaluate_perf_param_t *param,
                                  ucp_ep_evaluate_perf_attr_t *attr);

/* ---- Memory ---- */

/**
 * @ingroup UCP_MEM
 * @brief Register memory with the devices of a context, and allocate it before that where asked to.
 *
 * | flags            | address | result                              |
 * |------------------|---------|-------------------------------------|
 * | none             | given   | registered                          |
 * | ALLOCATE         | NULL    | allocated and registered            |
 * | ALLOCATE         | given   | likewise, near the address if it can |
 * | ALLOCATE + FIXED | given   | likewise, at the address            |
 * | anything else    |         | UCS_ERR_INVALID_PARAM, unless the length is 0 |
 *
 * @param[in]  context  The context.
 * @param[in]  params   The memory.
 * @param[out] memh_p   The registration, on success; give it back with ucp_mem_unmap().
 */
ucs_status_t ucp_mem_map(ucp_context_h context, const ucp_mem_map_params_t *params,
                         ucp_mem_h *memh_p);

/**
 * @ingroup UCP_MEM
 * @brief End a registration, and free the memory that it allocated. Its keys are void; no operation
 * may be using it.
 *
 * @param context  Its context.
 * @param memh     The registration.
 */
ucs_status_t ucp_mem_unmap(ucp_context_h context, ucp_mem_h memh);

/**
 * @ingroup UCP_MEM
 * @brief Attributes of registered memory.
 *
 * @param[in]     memh  The registration.
 * @param[in,out] attr  In: which; out: their values.
 */
ucs_status_t ucp_mem_query(const ucp_mem_h memh, ucp_mem_attr_t *attr);

/**
 * @ingroup UCP_MEM
 * @brief Allocate and register memory, print how that was done, and give it back.
 *
 * @param mem_spec  Size and kind of the memory: "1m", "64k,host".
 * @param context   The context.
 * @param stream    Where to print.
 */
void ucp_mem_print_info(const char *mem_spec, ucp_context_h context, FILE *stream);

/**
 * @ingroup UCP_MEM
 * @brief Tell what is going to happen to registered memory. The library may ignore it.
 *
 * @param context  The context.
 * @param memh     The registration.
 * @param params   Range inside it, and the advice.
 */
ucs_status_t ucp_mem_advise(ucp_context_h context, ucp_mem_h memh, ucp_mem_advise_params_t *params);

/**
 * @ingroup UCP_MEM
 * @brief Make a key that peers access registered memory with, or an export of it.
 *
 * @param[in]  memh           The registration.
 * @param[in]  params         What is wanted.
 * @param[out] buffer_p       Bytes to hand to peers by any means; release them with
 * ucp_memh_buffer_release().
 * @param[out] buffer_size_p  How many.
 */
ucs_status_t ucp_memh_pack(ucp_mem_h memh, const ucp_memh_pack_params_t *params, void **buffer_p,
                           size_t *buffer_size_p);

/**
 * @ingroup UCP_MEM
 * @brief Free what ucp_memh_pack() returned.
 *
 * @param buffer  The bytes.
 * @param params  Nothing yet; may be NULL.
 */
void ucp_memh_buffer_release(void *buffer, const ucp_memh_buffer_release_params_t *params);

/**
 * @ingroup UCP_MEM
 * @brief Make the key that a peer sent usable.
 *
 * @param[in]  ep           Endpoint to that peer; the key is good for it only.
 * @param[in]  rkey_buffer  The bytes, at any alignment; read during the call.
 * @param[out] rkey_p       The key, on success; destroy it with ucp_rkey_destroy().
 */
ucs_status_t ucp_ep_rkey_unpack(ucp_ep_h ep, const void *rkey_buffer, ucp_rkey_h *rkey_p);

/**
 * @ingroup UCP_MEM
 * @brief Own address of memory of a peer on this host.
 *
 * @param[in]  rkey    Key of the memory.
 * @param[in]  raddr   Address at the peer.
 * @param[out] addr_p  The same byte in this process; valid until the key is destroyed.
 * @return UCS_OK, or UCS_ERR_UNREACHABLE when the memory cannot be mapped here.
 */
ucs_status_t ucp_rkey_ptr(ucp_rkey_h rkey, uint64_t raddr, void **addr_p);

/**
 * @ingroup UCP_MEM
 * @brief Put two keys in order.
 *
 * @param[in]  worker       Worker of both.
 * @param[in]  rkey1,rkey2  The keys.
 * @param[in]  params       Nothing yet.
 * @param[out] result       Below 0, 0 when one can be used for the other, or above 0.
 */
ucs_status_t ucp_rkey_compare(ucp_worker_h worker, ucp_rkey_h rkey1, ucp_rkey_h rkey2,
                              const ucp_rkey_compare_params_t *params, int *result);

/** @ingroup UCP_MEM Destroy a key, after the operations that use it and before its endpoint. */
void ucp_rkey_destroy(ucp_rkey_h rkey);

/* ---- Active messages ---- */

/**
 * @ingroup UCP_COMM
 * @brief Send an active message: the peer's worker calls the handler of the id.
 *
 * @param ep             The peer.
 * @param id             Id of the handler.
 * @param header         Header; not to be changed until complete, unless
 * UCP_AM_SEND_FLAG_COPY_HEADER is given.
 * @param header_length  Its bytes, at most ucp_worker_attr_t::max_am_header.
 * @param buffer         The data; not to be changed until complete.
 * @param count          Its elements; 0 sends the header alone.
 * @param param          Flags from @ref ucp_send_am_flags, and more.
 */
ucs_status_ptr_t ucp_am_send_nbx(ucp_ep_h ep, unsigned id, const void *header, size_t header_length,
                                 const void *buffer, size_t count,
                                 const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Receive the data of an active message that a handler has kept.
 *
 * @param[in]  worker     The worker.
 * @param[in]  data_desc  What the handler got as data; consumed, also by a failure.
 * @param[out] buffer     Where the data goes.
 * @param[in]  count      Its room in elements.
 * @param[in]  param      Callback recv_am, recv_info.length, and more.
 */
ucs_status_ptr_t ucp_am_recv_data_nbx(ucp_worker_h worker, void *data_desc, void *buffer,
                                      size_t count, const ucp_request_param_t *param);

/** @ingroup UCP_COMM Give back data of an active message that a handler has kept, in place of
 * receiving it. */
void ucp_am_data_release(ucp_worker_h worker, void *data);

/* ---- Streams ---- */

/**
 * @ingroup UCP_COMM
 * @brief Append data to the stream to a peer.
 *
 * @param ep      The peer.
 * @param buffer  The data; not to be changed until complete.
 * @param count   Its elements.
 * @param param   Data type, callback send, and more.
 */
ucs_status_ptr_t ucp_stream_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                     const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Take data from the stream of a peer.
 *
 * @param[in]  ep      The peer.
 * @param[out] buffer  Where it goes.
 * @param[in]  count   Its room in elements.
 * @param[out] length  Bytes received, whole elements only, when NULL is returned.
 * @param[in]  param   Flags from ucp_stream_recv_flags_t, callback recv_stream, and more.
 */
ucs_status_ptr_t ucp_stream_recv_nbx(ucp_ep_h ep, void *buffer, size_t count, size_t *length,
                                     const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Take what has arrived of the stream of a peer where it lies.
 *
 * @param[in]  ep      The peer.
 * @param[out] length  Bytes.
 * @return The bytes, to be given back with ucp_stream_data_release(); NULL when there are none; or
 * an error.
 */
ucs_status_ptr_t ucp_stream_recv_data_nb(ucp_ep_h ep, size_t *length);

/** @ingroup UCP_COMM Give back what ucp_stream_recv_data_nb() returned. */
void ucp_stream_data_release(ucp_ep_h ep, void *data);

/* ---- Tagged messages ---- */

/**
 * @ingroup UCP_COMM
 * @brief Send a tagged message. Complete means that the buffer may be reused.
 *
 * Messages of one endpoint that match one receive are received in the order they were sent.
 *
 * @param ep      The peer.
 * @param buffer  The message; not to be changed until complete.
 * @param count   Its elements.
 * @param tag     Its tag.
 * @param param   Data type, callback send, and more.
 */
ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                  const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Like ucp_tag_send_nbx(), but complete only when a receive has matched the message. Never
 * returns NULL.
 */
ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count, ucp_tag_t tag,
                                       const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Receive a tagged message from any peer of a worker.
 *
 * A message that is longer than the buffer completes it with UCS_ERR_MESSAGE_TRUNCATED.
 *
 * @param[in]  worker    The worker.
 * @param[out] buffer    Where the message goes.
 * @param[in]  count     Its room in elements.
 * @param[in]  tag       Tag to match.
 * @param[in]  tag_mask  The bits of the tag that must agree.
 * @param[in]  param     Callback recv, recv_info.tag_info, and more.
 */
ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count, ucp_tag_t tag,
                                  ucp_tag_t tag_mask, const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Look for a message that has arrived, in part or whole, and that no receive has matched. It
 * makes no progress.
 *
 * @param[in]  worker    The worker.
 * @param[in]  tag       Tag to match.
 * @param[in]  tag_mask  The bits of the tag that must agree.
 * @param[in]  remove    Not 0: take the message out of the matching, for ucp_tag_msg_recv_nbx().
 * @param[out] info      Tag and length of the message, when there is one.
 * @return NULL when there is none; a message to be received; without @a remove something that only
 * tells that there is one.
 */
ucp_tag_message_h ucp_tag_probe_nb(ucp_worker_h worker, ucp_tag_t tag, ucp_tag_t tag_mask,
                                   int remove, ucp_tag_recv_info_t *info);

/**
 * @ingroup UCP_COMM
 * @brief Receive a message that a probe took out.
 *
 * @param[in]  worker   The worker.
 * @param[out] buffer   Where the message goes.
 * @param[in]  count    Its room in elements.
 * @param[in]  message  What ucp_tag_probe_nb() returned; consumed.
 * @param[in]  param    Callback recv, and more.
 */
ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
                                      ucp_tag_message_h message, const ucp_request_param_t *param);

/* ---- Remote memory ---- */

/**
 * @ingroup UCP_COMM
 * @brief Write to memory of a peer.
 *
 * Complete means that the buffer may be reused; a flush makes sure that the data is at the peer.
 *
 * @param ep           The peer.
 * @param buffer       The data.
 * @param count        Its elements.
 * @param remote_addr  Where it goes, an address of the peer; UCP_REMOTE_ADDR_INVALID when
 * param->remote tells.
 * @param rkey         Key of that memory; UCP_RKEY_INVALID when param->remote tells.
 * @param param        Data type, callback send, and more.
 */
ucs_status_ptr_t ucp_put_nbx(ucp_ep_h ep, const void *buffer, size_t count, uint64_t remote_addr,
                             ucp_rkey_h rkey, const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Read memory of a peer. Complete means that the data is in the buffer.
 *
 * @param[in]  ep           The peer.
 * @param[out] buffer       Where the data goes.
 * @param[in]  count        Its elements.
 * @param[in]  remote_addr  What to read, an address of the peer.
 * @param[in]  rkey         Key of that memory.
 * @param[in]  param        Data type, callback send, and more.
 */
ucs_status_ptr_t ucp_get_nbx(ucp_ep_h ep, void *buffer, size_t count, uint64_t remote_addr,
                             ucp_rkey_h rkey, const ucp_request_param_t *param);

/**
 * @ingroup UCP_COMM
 * @brief Change a number in memory of a peer, atomically with respect to others that use this call.
 *
 * With a reply buffer, which SWAP and CSWAP need, it completes when the former value is there;
 * without one a flush makes sure that the change is done.
 *
 * @param ep           The peer.
 * @param opcode       The operation.
 * @param buffer       Its operand.
 * @param count        1.
 * @param remote_addr  The number, an address of the peer that is a multiple of its size.
 * @param rkey         Key of that memory.
 * @param param        Data type (contiguous, 4 or 8 bytes; must be set), reply_buffer, callback
 * send, and more.
 */
ucs_status_ptr_t ucp_atomic_op_nbx(ucp_ep_h ep, ucp_atomic_op_t opcode, const void *buffer,
                                   size_t count, uint64_t remote_addr, ucp_rkey_h rkey,
                                   const ucp_request_param_t *param);

/* ---- Requests ---- */

/**
 * @ingroup UCP_COMM
 * @brief State of a request.
 * @return UCS_INPROGRESS, or how it completed.
 */
ucs_status_t ucp_request_check_status(void *request);

/**
 * @ingroup UCP_COMM
 * @brief State of a tagged receive.
 *
 * @param[in]  request  The request.
 * @param[out] info     Tag and length of the message, when complete.
 * @return UCS_INPROGRESS, or how it completed.
 */
ucs_status_t ucp_tag_recv_request_test(void *request, ucp_tag_recv_info_t *info);

/**
 * @ingroup UCP_COMM
 * @brief State of a stream receive.
 *
 * @param[in]  request   The request.
 * @param[out] length_p  Bytes received, when complete with UCS_OK.
 * @return UCS_INPROGRESS, or how it completed.
 */
ucs_status_t ucp_stream_recv_request_test(void *request, size_t *length_p);

/**
 * @ingroup UCP_COMM
 * @brief Attributes of a request.
 *
 * @param[in]     request  The request.
 * @param[in,out] attr     In: which; out: their values.
 */
ucs_status_t ucp_request_query(void *request, ucp_request_attr_t *attr);

/**
 * @ingroup UCP_COMM
 * @brief Try to stop an operation. A receive that nothing has matched completes with
 * UCS_ERR_CANCELED, inside this call; anything else goes on.
 *
 * @param worker   The worker.
 * @param request  The request; still to be freed.
 */
void ucp_request_cancel(ucp_worker_h worker, void *request);

/**
 * @ingroup UCP_COMM
 * @brief Give a request back, complete or not. An operation that is not complete goes on, without
 * its callback.
 */
void ucp_request_free(void *request);

/* ---- Data types ---- */

/**
 * @ingroup UCP_DATATYPE
 * @brief Make a type of functions of the user.
 *
 * @param[in]  ops         The functions; copied.
 * @param[in]  context     Argument of start_pack and start_unpack.
 * @param[out] datatype_p  The type; destroy it with ucp_dt_destroy().
 */
ucs_status_t ucp_dt_create_generic(const ucp_generic_dt_ops_t *ops, void *context,
                                   ucp_datatype_t *datatype_p);

/** @ingroup UCP_DATATYPE Destroy a type of ucp_dt_create_generic() that no operation uses; others
 * are ignored. */
void ucp_dt_destroy(ucp_datatype_t datatype);

/**
 * @ingroup UCP_DATATYPE
 * @brief Attributes of data of a type.
 *
 * @param[in]     datatype  The type.
 * @param[in,out] attr      In: the data, and what is asked for; out: its value.
 */
ucs_status_t ucp_dt_query(ucp_datatype_t datatype, ucp_datatype_attr_t *attr);

UCS_END_API

#endif
