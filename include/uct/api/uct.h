/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file uct.h
 * The transport interface (UCT): one object model over every fabric.
 *
 *     component ── memory domain (md) ── interface (iface) ── endpoint (ep)
 *         │                                   │
 *         └── connection manager (cm) ── listener      worker: progresses ifaces and cms
 *
 * A component is a kind of fabric, a memory domain one device of it with the registrations made
 * there, an interface an opened transport on that device, an endpoint the way from an interface to
 * one peer. A connection manager makes connections by IP address and port.
 *
 * Conventions, unless a text below says otherwise:
 * - Sizes are bytes, times are seconds.
 * - Params structures start with a field_mask that names the members the caller has set; attr
 *   structures start with one that names the members the caller wants. Other members are neither
 *   read nor written. They grow at the end only.
 * - Outputs (`_p`) are written only on success. A child keeps its parent busy: destroy endpoints
 *   before their interface, interfaces before their worker and domain.
 * - Threads: components and domains may be used by all threads at once. A worker and everything
 *   opened on it is used by one thread at a time (UCS_THREAD_MODE_SINGLE: by the creating thread).
 *   The `_safe` calls and UCT_PROGRESS_THREAD_SAFE are the exceptions.
 * - Control calls may block and allocate. Data calls (uct_ep_put_short() .. uct_ep_flush()) do
 *   neither and return:
 *     - UCS_OK: done, the buffers are free, the completion is not touched;
 *     - UCS_INPROGRESS: started, the completion will be counted down in progress;
 *     - UCS_ERR_NO_RESOURCE: nothing happened, try again after progress or from
 *       uct_ep_pending_add();
 *     - UCS_ERR_INVALID_PARAM: a limit of @ref uct_iface_attr or an argument rule was broken;
 *     - UCS_ERR_UNSUPPORTED: the interface has no such operation (its capability flag is not set);
 *     - UCS_ERR_CONNECTION_RESET, UCS_ERR_ENDPOINT_TIMEOUT, ...: the endpoint has failed.
 *   bcopy calls return the number of bytes packed in place of UCS_OK, errors as negative values.
 * - Operations of one endpoint are carried out in any order; uct_ep_fence() orders them, active
 *   messages of one endpoint arrive in the order they were sent in.
 */
#ifndef UCT_H_
#define UCT_H_

#include <ucs/async/async_fwd.h>
#include <ucs/datastruct/callbackq.h>
#include <ucs/datastruct/callbackq_compat.h>
#include <ucs/datastruct/linear_func.h>
#include <ucs/memory/memory_type.h>
#include <ucs/stats/stats_fwd.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/topo/base/topo.h>
#include <ucs/type/cpu_set.h>
#include <ucs/type/status.h>
#include <ucs/type/thread_mode.h>
#include <uct/api/tl.h>
#include <uct/api/uct_def.h>
#include <uct/api/version.h>

#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>

UCS_BEGIN_API

/* ---- Components, domains, transport resources ----------------------------------------------- */

/** A memory domain that can be opened. */
typedef struct uct_md_resource_desc {
    char md_name[UCT_MD_NAME_MAX];
} uct_md_resource_desc_t;

/** Bits of @ref uct_component_attr::field_mask. */
enum uct_component_attr_field {
    UCT_COMPONENT_ATTR_FIELD_NAME = UCS_BIT(0),              /**< name */
    UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT = UCS_BIT(1), /**< md_resource_count */
    UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES = UCS_BIT(2),      /**< md_resources */
    UCT_COMPONENT_ATTR_FIELD_FLAGS = UCS_BIT(3)              /**< flags */
};

/** Attributes of a component, see uct_component_query(). */
typedef struct uct_component_attr {
    uint64_t field_mask;
    char name[UCT_COMPONENT_NAME_MAX];
    unsigned md_resource_count;
    /**
     * In: an array of the caller with room for md_resource_count entries; ask for the count alone
     * first. Out: the array is filled.
     */
    uct_md_resource_desc_t *md_resources;
    uint64_t flags; /**< UCT_COMPONENT_FLAG_* */
} uct_component_attr_t;

/** Values of @ref uct_component_attr::flags. */
enum {
    UCT_COMPONENT_FLAG_CM = UCS_BIT(0),      /**< uct_cm_open() works on it */
    UCT_COMPONENT_FLAG_RKEY_PTR = UCS_BIT(1) /**< uct_rkey_ptr() works on some of its memory */
};

/** What a device is. */
typedef enum {
    UCT_DEVICE_TYPE_NET,  /**< network */
    UCT_DEVICE_TYPE_SHM,  /**< memory shared between processes of a host */
    UCT_DEVICE_TYPE_ACC,  /**< accelerator */
    UCT_DEVICE_TYPE_SELF, /**< the process itself */
    UCT_DEVICE_TYPE_LAST
} uct_device_type_t;

/** A transport on a device: what uct_iface_open() opens. */
typedef struct uct_tl_resource_desc {
    char tl_name[UCT_TL_NAME_MAX];      /**< transport */
    char dev_name[UCT_DEVICE_NAME_MAX]; /**< device, unique within the transport */
    uct_device_type_t dev_type;
    ucs_sys_device_t sys_device; /**< place in the machine, or UCS_SYS_DEVICE_ID_UNKNOWN */
} uct_tl_resource_desc_t;

/** Prints a resource: `printf("res " UCT_TL_RESOURCE_DESC_FMT, UCT_TL_RESOURCE_DESC_ARG(&r))`. */
#define UCT_TL_RESOURCE_DESC_FMT "%s/%s"
#define UCT_TL_RESOURCE_DESC_ARG(_resource) (_resource)->tl_name, (_resource)->dev_name

/** Operations of the atomic calls. Bit (1 << op) of the masks in @ref uct_iface_attr. */
typedef enum uct_atomic_op {
    UCT_ATOMIC_OP_ADD,   /**< sum */
    UCT_ATOMIC_OP_AND,   /**< bitwise and */
    UCT_ATOMIC_OP_OR,    /**< bitwise or */
    UCT_ATOMIC_OP_XOR,   /**< bitwise exclusive or */
    UCT_ATOMIC_OP_SWAP,  /**< exchange */
    UCT_ATOMIC_OP_CSWAP, /**< compare and exchange */
    UCT_ATOMIC_OP_LAST
} uct_atomic_op_t;

/* ---- Interface capabilities: uct_iface_attr::cap.flags -------------------------------------- */

#define UCT_IFACE_FLAG_AM_SHORT UCS_BIT(0) /**< uct_ep_am_short(), uct_ep_am_short_iov() */
#define UCT_IFACE_FLAG_AM_BCOPY UCS_BIT(1) /**< uct_ep_am_bcopy() */
#define UCT_IFACE_FLAG_AM_ZCOPY UCS_BIT(2) /**< uct_ep_am_zcopy() */

#define UCT_IFACE_FLAG_PENDING UCS_BIT(3) /**< uct_ep_pending_add(), uct_ep_pending_purge() */

#define UCT_IFACE_FLAG_PUT_SHORT UCS_BIT(4) /**< uct_ep_put_short() */
#define UCT_IFACE_FLAG_PUT_BCOPY UCS_BIT(5) /**< uct_ep_put_bcopy() */
#define UCT_IFACE_FLAG_PUT_ZCOPY UCS_BIT(6) /**< uct_ep_put_zcopy() */

#define UCT_IFACE_FLAG_GET_SHORT UCS_BIT(8)  /**< uct_ep_get_short() */
#define UCT_IFACE_FLAG_GET_BCOPY UCS_BIT(9)  /**< uct_ep_get_bcopy() */
#define UCT_IFACE_FLAG_GET_ZCOPY UCS_BIT(10) /**< uct_ep_get_zcopy() */

/** Atomics are atomic with respect to the target's CPU. */
#define UCT_IFACE_FLAG_ATOMIC_CPU UCS_BIT(30)
/** Atomics are atomic only with respect to other atomics through the same device. */
#define UCT_IFACE_FLAG_ATOMIC_DEVICE UCS_BIT(31)

/* What the interface reports as an error instead of leaving it undefined. */
#define UCT_IFACE_FLAG_ERRHANDLE_SHORT_BUF UCS_BIT(32)    /**< bad buffer in a short call */
#define UCT_IFACE_FLAG_ERRHANDLE_BCOPY_BUF UCS_BIT(33)    /**< bad buffer in a bcopy call */
#define UCT_IFACE_FLAG_ERRHANDLE_ZCOPY_BUF UCS_BIT(34)    /**< bad buffer in a zcopy call */
#define UCT_IFACE_FLAG_ERRHANDLE_AM_ID UCS_BIT(35)        /**< no handler for an id at the target */
#define UCT_IFACE_FLAG_ERRHANDLE_REMOTE_MEM UCS_BIT(36)   /**< bad remote address or key */
#define UCT_IFACE_FLAG_ERRHANDLE_BCOPY_LEN UCS_BIT(37)    /**< bcopy longer than max_bcopy */
#define UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE UCS_BIT(38) /**< death of the peer */

#define UCT_IFACE_FLAG_EP_CHECK UCS_BIT(39) /**< uct_ep_check() */

#define UCT_IFACE_FLAG_CONNECT_TO_IFACE UCS_BIT(40)    /**< endpoints from an interface address */
#define UCT_IFACE_FLAG_CONNECT_TO_EP UCS_BIT(41)       /**< uct_ep_connect_to_ep() */
#define UCT_IFACE_FLAG_CONNECT_TO_SOCKADDR UCS_BIT(42) /**< endpoints to an address */

#define UCT_IFACE_FLAG_AM_DUP UCS_BIT(43) /**< an active message may be delivered twice */

#define UCT_IFACE_FLAG_CB_SYNC UCS_BIT(44)  /**< callbacks may be asked to run in progress */
#define UCT_IFACE_FLAG_CB_ASYNC UCS_BIT(45) /**< callbacks may be asked to run at any time */

#define UCT_IFACE_FLAG_EP_KEEPALIVE UCS_BIT(46) /**< notices a dead peer without traffic */

#define UCT_IFACE_FLAG_TAG_EAGER_SHORT UCS_BIT(50) /**< uct_ep_tag_eager_short() */
#define UCT_IFACE_FLAG_TAG_EAGER_BCOPY UCS_BIT(51) /**< uct_ep_tag_eager_bcopy() */
#define UCT_IFACE_FLAG_TAG_EAGER_ZCOPY UCS_BIT(52) /**< uct_ep_tag_eager_zcopy() */
#define UCT_IFACE_FLAG_TAG_RNDV_ZCOPY UCS_BIT(53)  /**< uct_ep_tag_rndv_zcopy() */

#define UCT_IFACE_FLAG_INTER_NODE UCS_BIT(54)  /**< reaches other hosts */
#define UCT_IFACE_FLAG_DEVICE_EP UCS_BIT(55)   /**< reserved: transfers started by accelerators */
#define UCT_IFACE_FLAG_DEVICE_LKEY UCS_BIT(56) /**< reserved: as above, needs a local key */

/* ---- Event capabilities: uct_iface_attr::cap.event_flags ------------------------------------ */

#define UCT_IFACE_FLAG_EVENT_SEND_COMP UCS_BIT(0) /**< UCT_EVENT_SEND_COMP */
#define UCT_IFACE_FLAG_EVENT_RECV UCS_BIT(1)      /**< UCT_EVENT_RECV */
#define UCT_IFACE_FLAG_EVENT_RECV_SIG UCS_BIT(2)  /**< UCT_EVENT_RECV_SIG */
#define UCT_IFACE_FLAG_EVENT_FD UCS_BIT(3)        /**< signalled by uct_iface_event_fd_get() */
#define UCT_IFACE_FLAG_EVENT_ASYNC_CB UCS_BIT(4)  /**< signalled by @ref uct_async_event_cb_t */

/** Where uct_mem_alloc() takes memory from. */
typedef enum {
    UCT_ALLOC_METHOD_THP,  /**< private pages, transparent huge pages asked for */
    UCT_ALLOC_METHOD_MD,   /**< a memory domain; the memory comes registered there */
    UCT_ALLOC_METHOD_HEAP, /**< malloc() */
    UCT_ALLOC_METHOD_MMAP, /**< private pages */
    UCT_ALLOC_METHOD_HUGE, /**< huge pages */
    UCT_ALLOC_METHOD_LAST,
    UCT_ALLOC_METHOD_DEFAULT = UCT_ALLOC_METHOD_LAST /**< what the library finds best */
} uct_alloc_method_t;

/** Events that can wake a sleeping thread, see uct_iface_event_arm(). */
enum uct_iface_event_types {
    UCT_EVENT_SEND_COMP = UCS_BIT(0),   /**< an operation of ours completed */
    UCT_EVENT_RECV = UCS_BIT(1),        /**< a message arrived */
    UCT_EVENT_RECV_SIG = UCS_BIT(2),    /**< one sent with UCT_SEND_FLAG_SIGNALED arrived */
    UCT_EVENT_SPEED_CHANGE = UCS_BIT(3) /**< the speed of the device changed */
};

/** Flags of uct_ep_flush() and uct_iface_flush(). */
enum uct_flush_flags {
    UCT_FLUSH_FLAG_LOCAL = 0, /**< done here: buffers are free, the target may still be working */
    /**
     * Give up what is outstanding: it completes with UCS_ERR_CANCELED, or as usual if it was
     * too late. The endpoint is failed afterwards and can only be destroyed.
     */
    UCT_FLUSH_FLAG_CANCEL = UCS_BIT(0),
    UCT_FLUSH_FLAG_REMOTE = UCS_BIT(1) /**< done there: the target's memory shows the result */
};

/** What to progress. */
enum uct_progress_types {
    UCT_PROGRESS_SEND = UCS_BIT(0),       /**< completions */
    UCT_PROGRESS_RECV = UCS_BIT(1),       /**< arrivals */
    UCT_PROGRESS_THREAD_SAFE = UCS_BIT(7) /**< another thread may be progressing the worker now */
};

/** Flags of message sends. */
enum uct_msg_flags {
    UCT_SEND_FLAG_SIGNALED = UCS_BIT(0),   /**< raise UCT_EVENT_RECV_SIG there, if it can */
    UCT_SEND_FLAG_PEER_CHECK = UCS_BIT(1), /**< report to the error handler if the peer is dead */
    /**
     * Not UCX's: the message announces what takes long, so it may wait for those that are sent
     * behind it and leave with them, at the latest with the next progress. Of uct_ep_am_bcopy().
     */
    UCT_SEND_FLAG_BATCH = UCS_BIT(16)
};

/** Where a callback may run. */
enum uct_cb_flags {
    UCT_CB_FLAG_RESERVED = UCS_BIT(1),
    /** In any thread at any time. Without it: only in progress of the worker. */
    UCT_CB_FLAG_ASYNC = UCS_BIT(2)
};

/** How to open an interface. */
enum uct_iface_open_mode {
    UCT_IFACE_OPEN_MODE_DEVICE = UCS_BIT(0),          /**< a transport on a device */
    UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER = UCS_BIT(1), /**< listens; new: uct_listener_create() */
    UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT = UCS_BIT(2), /**< connects; new: uct_cm_open() */
    UCT_IFACE_OPEN_MODE_STUB = UCS_BIT(3)             /**< no transport; every call fails */
};

/** Bits of @ref uct_iface_params::field_mask. */
enum uct_iface_params_field {
    UCT_IFACE_PARAM_FIELD_CPU_MASK = UCS_BIT(0),            /**< cpu_mask */
    UCT_IFACE_PARAM_FIELD_OPEN_MODE = UCS_BIT(1),           /**< open_mode */
    UCT_IFACE_PARAM_FIELD_DEVICE = UCS_BIT(2),              /**< mode.device */
    UCT_IFACE_PARAM_FIELD_SOCKADDR = UCS_BIT(3),            /**< mode.sockaddr */
    UCT_IFACE_PARAM_FIELD_STATS_ROOT = UCS_BIT(4),          /**< stats_root */
    UCT_IFACE_PARAM_FIELD_RX_HEADROOM = UCS_BIT(5),         /**< rx_headroom */
    UCT_IFACE_PARAM_FIELD_ERR_HANDLER_ARG = UCS_BIT(6),     /**< err_handler_arg */
    UCT_IFACE_PARAM_FIELD_ERR_HANDLER = UCS_BIT(7),         /**< err_handler */
    UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS = UCS_BIT(8),   /**< err_handler_flags */
    UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_ARG = UCS_BIT(9),     /**< eager_arg */
    UCT_IFACE_PARAM_FIELD_HW_TM_EAGER_CB = UCS_BIT(10),     /**< eager_cb */
    UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_ARG = UCS_BIT(11),     /**< rndv_arg */
    UCT_IFACE_PARAM_FIELD_HW_TM_RNDV_CB = UCS_BIT(12),      /**< rndv_cb */
    UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_ARG = UCS_BIT(13),    /**< async_event_arg */
    UCT_IFACE_PARAM_FIELD_ASYNC_EVENT_CB = UCS_BIT(14),     /**< async_event_cb */
    UCT_IFACE_PARAM_FIELD_KEEPALIVE_INTERVAL = UCS_BIT(15), /**< keepalive_interval */
    UCT_IFACE_PARAM_FIELD_AM_ALIGNMENT = UCS_BIT(16),       /**< am_alignment */
    UCT_IFACE_PARAM_FIELD_AM_ALIGN_OFFSET = UCS_BIT(17),    /**< am_align_offset */
    UCT_IFACE_PARAM_FIELD_FEATURES = UCS_BIT(18)            /**< features */
};

/** What uct_md_is_sockaddr_accessible() asks. */
typedef enum {
    UCT_SOCKADDR_ACC_LOCAL, /**< is it an address of this host, so that we can listen on it */
    UCT_SOCKADDR_ACC_REMOTE /**< is there a route to it, so that we can connect to it */
} uct_sockaddr_accessibility_t;

/** What a memory domain can do: @ref uct_md_attr::cap.flags. */
enum {
    UCT_MD_FLAG_ALLOC = UCS_BIT(0),         /**< allocates (UCT_ALLOC_METHOD_MD) */
    UCT_MD_FLAG_REG = UCS_BIT(1),           /**< registers */
    UCT_MD_FLAG_NEED_MEMH = UCS_BIT(2),     /**< zcopy calls need uct_iov::memh */
    UCT_MD_FLAG_NEED_RKEY = UCS_BIT(3),     /**< remote access needs a key */
    UCT_MD_FLAG_ADVISE = UCS_BIT(4),        /**< uct_md_mem_advise() */
    UCT_MD_FLAG_FIXED = UCS_BIT(5),         /**< allocates at a given address */
    UCT_MD_FLAG_RKEY_PTR = UCS_BIT(6),      /**< obsolete: UCT_COMPONENT_FLAG_RKEY_PTR */
    UCT_MD_FLAG_SOCKADDR = UCS_BIT(7),      /**< opens interfaces in the sockaddr modes */
    UCT_MD_FLAG_INVALIDATE = UCS_BIT(8),    /**< can revoke a registration */
    UCT_MD_FLAG_EXPORTED_MKEY = UCS_BIT(9), /**< can hand a registration to another process */
    UCT_MD_FLAG_REG_DMABUF = UCS_BIT(10),   /**< registers dma-buf file descriptors */
    UCT_MD_FLAG_LAST = UCS_BIT(11)
};

/** Flags of registration and allocation. */
enum uct_md_mem_flags {
    UCT_MD_MEM_FLAG_NONBLOCK = UCS_BIT(0),        /**< pages may be mapped later, on first use */
    UCT_MD_MEM_FLAG_FIXED = UCS_BIT(1),           /**< allocate exactly at the given address */
    UCT_MD_MEM_FLAG_LOCK = UCS_BIT(2),            /**< keep the pages in memory */
    UCT_MD_MEM_FLAG_HIDE_ERRORS = UCS_BIT(3),     /**< fail without a log message */
    UCT_MD_MEM_ACCESS_REMOTE_PUT = UCS_BIT(5),    /**< peers may write */
    UCT_MD_MEM_ACCESS_REMOTE_GET = UCS_BIT(6),    /**< peers may read */
    UCT_MD_MEM_ACCESS_REMOTE_ATOMIC = UCS_BIT(7), /**< peers may do atomics */
    UCT_MD_MEM_ACCESS_LOCAL_READ = UCS_BIT(8),    /**< we send from it */
    UCT_MD_MEM_ACCESS_LOCAL_WRITE = UCS_BIT(9),   /**< we receive into it */
    UCT_MD_MEM_SYMMETRIC_RKEY = UCS_BIT(10),      /**< hint: try to give it equal keys everywhere */
    UCT_MD_MEM_GVA = UCS_BIT(11),                 /**< cover the whole address space */

    /** Everything. */
    UCT_MD_MEM_ACCESS_ALL = (UCT_MD_MEM_ACCESS_REMOTE_PUT | UCT_MD_MEM_ACCESS_REMOTE_GET |
                             UCT_MD_MEM_ACCESS_REMOTE_ATOMIC | UCT_MD_MEM_ACCESS_LOCAL_READ |
                             UCT_MD_MEM_ACCESS_LOCAL_WRITE),
    /** Everything but atomics. */
    UCT_MD_MEM_ACCESS_RMA = (UCT_MD_MEM_ACCESS_REMOTE_PUT | UCT_MD_MEM_ACCESS_REMOTE_GET |
                             UCT_MD_MEM_ACCESS_LOCAL_READ | UCT_MD_MEM_ACCESS_LOCAL_WRITE)
};

/** Advice of uct_md_mem_advise(). */
typedef enum {
    UCT_MADV_NORMAL = 0, /**< none */
    UCT_MADV_WILLNEED    /**< map the pages now (memory made with UCT_MD_MEM_FLAG_NONBLOCK) */
} uct_mem_advice_t;

/** Bits of @ref uct_cm_attr::field_mask. */
enum uct_cm_attr_field {
    UCT_CM_ATTR_FIELD_MAX_CONN_PRIV = UCS_BIT(0) /**< max_conn_priv */
};

/** Bits of @ref uct_listener_attr::field_mask. */
enum uct_listener_attr_field {
    UCT_LISTENER_ATTR_FIELD_SOCKADDR = UCS_BIT(0) /**< sockaddr */
};

/** Bits of @ref uct_listener_params::field_mask. */
enum uct_listener_params_field {
    UCT_LISTENER_PARAM_FIELD_BACKLOG = UCS_BIT(0),         /**< backlog */
    UCT_LISTENER_PARAM_FIELD_CONN_REQUEST_CB = UCS_BIT(1), /**< conn_request_cb */
    UCT_LISTENER_PARAM_FIELD_USER_DATA = UCS_BIT(2)        /**< user_data */
};

/** Bits of @ref uct_ep_params::field_mask. */
enum uct_ep_params_field {
    UCT_EP_PARAM_FIELD_IFACE = UCS_BIT(0),                      /**< iface */
    UCT_EP_PARAM_FIELD_USER_DATA = UCS_BIT(1),                  /**< user_data */
    UCT_EP_PARAM_FIELD_DEV_ADDR = UCS_BIT(2),                   /**< dev_addr */
    UCT_EP_PARAM_FIELD_IFACE_ADDR = UCS_BIT(3),                 /**< iface_addr */
    UCT_EP_PARAM_FIELD_SOCKADDR = UCS_BIT(4),                   /**< sockaddr */
    UCT_EP_PARAM_FIELD_SOCKADDR_CB_FLAGS = UCS_BIT(5),          /**< sockaddr_cb_flags */
    UCT_EP_PARAM_FIELD_SOCKADDR_PACK_CB = UCS_BIT(6),           /**< sockaddr_pack_cb */
    UCT_EP_PARAM_FIELD_CM = UCS_BIT(7),                         /**< cm */
    UCT_EP_PARAM_FIELD_CONN_REQUEST = UCS_BIT(8),               /**< conn_request */
    UCT_EP_PARAM_FIELD_SOCKADDR_CONNECT_CB_CLIENT = UCS_BIT(9), /**< sockaddr_cb_client */
    UCT_EP_PARAM_FIELD_SOCKADDR_NOTIFY_CB_SERVER = UCS_BIT(10), /**< sockaddr_cb_server */
    UCT_EP_PARAM_FIELD_SOCKADDR_DISCONNECT_CB = UCS_BIT(11),    /**< disconnect_cb */
    UCT_EP_PARAM_FIELD_PATH_INDEX = UCS_BIT(12),                /**< path_index */
    UCT_EP_PARAM_FIELD_CM_RESOLVE_CB = UCS_BIT(13),             /**< cm_resolve_cb */
    UCT_EP_PARAM_FIELD_PRIV_DATA = UCS_BIT(14),                 /**< private_data */
    UCT_EP_PARAM_FIELD_PRIV_DATA_LENGTH = UCS_BIT(15),          /**< private_data_length */
    UCT_EP_PARAM_FIELD_LOCAL_SOCKADDR = UCS_BIT(16),            /**< local_sockaddr */
    UCT_EP_PARAM_FIELD_DEV_ADDR_LENGTH = UCS_BIT(17),           /**< dev_addr_length */
    UCT_EP_PARAM_FIELD_IFACE_ADDR_LENGTH = UCS_BIT(18)          /**< iface_addr_length */
};

/** Bits of @ref uct_ep_connect_params::field_mask. */
enum uct_ep_connect_params_field {
    UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA = UCS_BIT(0),       /**< private_data */
    UCT_EP_CONNECT_PARAM_FIELD_PRIVATE_DATA_LENGTH = UCS_BIT(1) /**< private_data_length */
};

/** What the program will use an interface for: @ref uct_iface_params::features. */
enum uct_iface_feature {
    UCT_IFACE_FEATURE_AM = UCS_BIT(0),           /**< active messages */
    UCT_IFACE_FEATURE_PUT = UCS_BIT(1),          /**< put */
    UCT_IFACE_FEATURE_GET = UCS_BIT(2),          /**< get */
    UCT_IFACE_FEATURE_AMO32 = UCS_BIT(3),        /**< 32-bit atomics */
    UCT_IFACE_FEATURE_AMO64 = UCS_BIT(4),        /**< 64-bit atomics */
    UCT_IFACE_FEATURE_TAG = UCS_BIT(5),          /**< tag matching offload */
    UCT_IFACE_FEATURE_FLUSH_REMOTE = UCS_BIT(6), /**< UCT_FLUSH_FLAG_REMOTE */
    UCT_IFACE_FEATURE_LAST = UCS_BIT(7)
};

/** Bandwidth in bytes per second with n processes on a host: dedicated + shared / n. */
typedef struct uct_ppn_bandwidth {
    double dedicated; /**< every process has it for itself */
    double shared;    /**< the processes share it */
} uct_ppn_bandwidth_t;

/**
 * What an interface can do, how much and how fast; see uct_iface_query().
 *
 * All members are filled. Limits of operations without their capability flag are meaningless.
 * opt_zcopy_align and align_mtu are hints: buffers aligned to the first, and fragments cut at
 * multiples of the second, move faster.
 */
struct uct_iface_attr {
    struct {
        struct {
            size_t max_short;       /**< length of put_short */
            size_t max_bcopy;       /**< length of put_bcopy */
            size_t min_zcopy;       /**< total length of put_zcopy, at least */
            size_t max_zcopy;       /**< total length of put_zcopy, at most */
            size_t opt_zcopy_align; /**< preferred alignment of buffers */
            size_t align_mtu;       /**< preferred fragment unit */
            size_t max_iov;         /**< iovcnt of put_zcopy */
        } put;

        struct {
            size_t max_short;       /**< length of get_short */
            size_t max_bcopy;       /**< length of get_bcopy */
            size_t min_zcopy;       /**< total length of get_zcopy, at least */
            size_t max_zcopy;       /**< total length of get_zcopy, at most */
            size_t opt_zcopy_align; /**< preferred alignment of buffers */
            size_t align_mtu;       /**< preferred fragment unit */
            size_t max_iov;         /**< iovcnt of get_zcopy */
        } get;

        /* Lengths of active messages include their headers. */
        struct {
            size_t max_short;       /**< am_short: 8 bytes of header + payload; am_short_iov */
            size_t max_bcopy;       /**< am_bcopy: bytes packed */
            size_t min_zcopy;       /**< am_zcopy: header + data, at least */
            size_t max_zcopy;       /**< am_zcopy: header + data, at most */
            size_t opt_zcopy_align; /**< preferred alignment of buffers */
            size_t align_mtu;       /**< preferred fragment unit */
            size_t max_hdr;         /**< am_zcopy: header */
            size_t max_iov;         /**< iovcnt of am_zcopy and am_short_iov */
        } am;

        struct {
            struct {
                size_t min_recv;        /**< shortest buffer that may be posted */
                size_t max_zcopy;       /**< longest one */
                size_t max_iov;         /**< iovcnt of tag_recv_zcopy */
                size_t max_outstanding; /**< receives posted at a time */
            } recv;

            struct {
                size_t max_short; /**< length of tag_eager_short */
                size_t max_bcopy; /**< length of tag_eager_bcopy */
                size_t max_zcopy; /**< length of tag_eager_zcopy */
                size_t max_iov;   /**< iovcnt of tag_eager_zcopy */
            } eager;

            struct {
                size_t max_zcopy; /**< length of tag_rndv_zcopy */
                size_t max_hdr;   /**< header of tag_rndv_zcopy and tag_rndv_request */
                size_t max_iov;   /**< iovcnt of tag_rndv_zcopy */
            } rndv;
        } tag;

        struct {
            uint64_t op_flags;  /**< operations of atomic*_post: bits (1 << UCT_ATOMIC_OP_x) */
            uint64_t fop_flags; /**< operations of atomic*_fetch and atomic_cswap* */
        } atomic32, atomic64;

        uint64_t flags;       /**< UCT_IFACE_FLAG_*, without the EVENT ones */
        uint64_t event_flags; /**< UCT_IFACE_FLAG_EVENT_* */
    } cap;

    size_t device_addr_len;                  /**< bytes written by uct_iface_get_device_address() */
    size_t iface_addr_len;                   /**< bytes written by uct_iface_get_address() */
    size_t ep_addr_len;                      /**< bytes written by uct_ep_get_address() */
    size_t max_conn_priv;                    /**< sockaddr modes only */
    struct sockaddr_storage listen_sockaddr; /**< sockaddr modes only */

    /* Estimates, to choose between interfaces by. */
    double overhead;               /**< CPU time of one message, seconds */
    uct_ppn_bandwidth_t bandwidth; /**< bytes per second */
    ucs_linear_func_t latency;     /**< seconds, as a function of the number of endpoints */
    uint8_t priority;              /**< decides between equals; larger is better */
    size_t max_num_eps;            /**< endpoints it can have */
    unsigned dev_num_paths;        /**< independent ways to one peer, see path_index */
    ucs_sys_device_t ctl_device;   /**< what starts its transfers, unless the CPU does */
};

/** How to open an interface, see uct_iface_open(). */
struct uct_iface_params {
    uint64_t field_mask;    /**< @ref uct_iface_params_field */
    ucs_cpu_set_t cpu_mask; /**< CPUs its threads may run on */
    uint64_t open_mode;     /**< @ref uct_iface_open_mode; selects a member of mode */

    union {
        struct {
            const char *tl_name;  /**< as in @ref uct_tl_resource_desc */
            const char *dev_name; /**< as in @ref uct_tl_resource_desc */
        } device;

        struct {
            ucs_sock_addr_t listen_sockaddr; /**< where to listen */
            void *conn_request_arg;          /**< for conn_request_cb */
            uct_sockaddr_conn_request_callback_t conn_request_cb;
            uint32_t cb_flags; /**< @ref uct_cb_flags */
        } sockaddr;

        struct {
            ucs_status_t status; /**< what every call returns */
        } stub;
    } mode;

    ucs_stats_node_t *stats_root; /**< where to hang statistics; ignored */
    size_t rx_headroom;           /**< bytes before the data of receive descriptors */
    void *err_handler_arg;        /**< for err_handler */

    /** Told when a peer fails; without it such failures are only logged. */
    uct_error_handler_t err_handler;
    uint32_t err_handler_flags; /**< @ref uct_cb_flags */

    void *eager_arg; /**< for eager_cb */
    uct_tag_unexp_eager_cb_t eager_cb;
    void *rndv_arg; /**< for rndv_cb */
    uct_tag_unexp_rndv_cb_t rndv_cb;

    void *async_event_arg; /**< for async_event_cb */
    uct_async_event_cb_t async_event_cb;

    ucs_time_t keepalive_interval; /**< time between checks of idle peers; 0: none */

    /**
     * Alignment of received active messages: (data + am_align_offset) % am_alignment == 0. A power
     * of two, am_align_offset below it; UCS_ERR_INVALID_PARAM otherwise. Where the transport cannot
     * align all messages, the others are just not aligned.
     */
    size_t am_alignment;
    size_t am_align_offset;

    /** @ref uct_iface_feature; without the bit in field_mask everything is set up. */
    uint64_t features;
};

/**
 * How to create an endpoint, see uct_ep_create(). Four kinds:
 *
 * | kind                       | members                                                         |
 * |----------------------------|-----------------------------------------------------------------|
 * | to an interface            | iface, dev_addr, iface_addr                                     |
 * | to be connected to an ep   | iface; then uct_ep_connect_to_ep()                              |
 * | by a connection manager    | cm, and sockaddr (client) or conn_request (server)              |
 * | to an address              | iface of UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT, sockaddr          |
 *
 * Addresses, private data and the structure itself are read only during the call.
 */
struct uct_ep_params {
    uint64_t field_mask; /**< @ref uct_ep_params_field */
    uct_iface_h iface;
    void *user_data; /**< argument of the connection manager's callbacks */
    const uct_device_addr_t *dev_addr;
    const uct_iface_addr_t *iface_addr;

    /* Connection manager only, from here to disconnect_cb. */
    const ucs_sock_addr_t *sockaddr; /**< client: the server's address */
    uint32_t sockaddr_cb_flags;      /**< must contain UCT_CB_FLAG_ASYNC */

    /** Writes the private data; give this, or cm_resolve_cb (client), or private_data (server). */
    uct_cm_ep_priv_data_pack_callback_t sockaddr_pack_cb;
    uct_cm_h cm;
    uct_conn_request_h conn_request; /**< server: the request to accept; used up, also on failure */
    uct_cm_ep_client_connect_callback_t sockaddr_cb_client;     /**< client: the answer */
    uct_cm_ep_server_conn_notify_callback_t sockaddr_cb_server; /**< server: the confirmation */
    uct_ep_disconnect_cb_t disconnect_cb;                       /**< the end */

    unsigned path_index; /**< 0 .. dev_num_paths - 1: which of the ways to the peer */

    uct_cm_ep_resolve_callback_t cm_resolve_cb; /**< client: resolved; call uct_ep_connect() */
    const void *private_data;                   /**< server: sent with the acceptance */
    size_t private_data_length;                 /**< at most @ref uct_cm_attr::max_conn_priv */
    const ucs_sock_addr_t *local_sockaddr;      /**< client: address (and port) to connect from */

    /** Bytes at dev_addr and iface_addr; without them the interface's own lengths are assumed. */
    size_t dev_addr_length;
    size_t iface_addr_length;
};

/** What to send with a connection request, see uct_ep_connect(). */
struct uct_ep_connect_params {
    uint64_t field_mask;        /**< @ref uct_ep_connect_params_field */
    const void *private_data;   /**< read during the call */
    size_t private_data_length; /**< at most @ref uct_cm_attr::max_conn_priv */
};

/** Attributes of a connection manager, see uct_cm_query(). */
struct uct_cm_attr {
    uint64_t field_mask;  /**< @ref uct_cm_attr_field */
    size_t max_conn_priv; /**< bytes of private data each side can send with a connection */
};

/** Attributes of a listener, see uct_listener_query(). */
struct uct_listener_attr {
    uint64_t field_mask;              /**< @ref uct_listener_attr_field */
    struct sockaddr_storage sockaddr; /**< where it listens; the port is the real one */
};

/** How to listen, see uct_listener_create(). */
struct uct_listener_params {
    uint64_t field_mask; /**< @ref uct_listener_params_field */
    int backlog; /**< requests that may wait, positive; without it, what the system allows */
    uct_cm_listener_conn_request_callback_t conn_request_cb; /**< required */
    void *user_data;                                         /**< for conn_request_cb */
};

/** Attributes of a memory domain, see uct_md_query(). All members are filled. */
struct uct_md_attr {
    struct {
        uint64_t max_alloc;        /**< longest allocation */
        size_t max_reg;            /**< longest registration */
        uint64_t flags;            /**< UCT_MD_FLAG_* */
        uint64_t reg_mem_types;    /**< bits of memory types it registers */
        uint64_t detect_mem_types; /**< ... it recognizes, see uct_md_detect_memory_type() */
        uint64_t alloc_mem_types;  /**< ... it allocates */
        uint64_t access_mem_types; /**< ... its transports can use as they are */
    } cap;
    ucs_linear_func_t reg_cost; /**< seconds of a registration, as a function of its length */
    char component_name[UCT_COMPONENT_NAME_MAX];
    size_t rkey_packed_size;  /**< bytes written by uct_md_mkey_pack() */
    ucs_cpu_set_t local_cpus; /**< CPUs close to the device */
};

/** Bits of @ref uct_md_mem_attr::field_mask. */
typedef enum uct_md_mem_attr_field {
    UCT_MD_MEM_ATTR_FIELD_MEM_TYPE = UCS_BIT(0),     /**< mem_type */
    UCT_MD_MEM_ATTR_FIELD_SYS_DEV = UCS_BIT(1),      /**< sys_dev */
    UCT_MD_MEM_ATTR_FIELD_BASE_ADDRESS = UCS_BIT(2), /**< base_address */
    UCT_MD_MEM_ATTR_FIELD_ALLOC_LENGTH = UCS_BIT(3), /**< alloc_length */
    UCT_MD_MEM_ATTR_FIELD_DMABUF_FD = UCS_BIT(4),    /**< dmabuf_fd */
    UCT_MD_MEM_ATTR_FIELD_DMABUF_OFFSET = UCS_BIT(5) /**< dmabuf_offset */
} uct_md_mem_attr_field_t;

/** What a piece of memory is, see uct_md_mem_query(). */
typedef struct uct_md_mem_attr {
    uint64_t field_mask; /**< @ref uct_md_mem_attr_field */
    ucs_memory_type_t mem_type;
    ucs_sys_device_t sys_dev; /**< the device it is on, or UCS_SYS_DEVICE_ID_UNKNOWN */
    void *base_address;       /**< start of the allocation it is in, or the address asked for */
    size_t alloc_length;      /**< length of that allocation, or the length asked for */
    int dmabuf_fd;            /**< the caller's to close; UCT_DMABUF_FD_INVALID if there is none */
    size_t dmabuf_offset;     /**< of the address within the dma-buf */
} uct_md_mem_attr_t;

/** Memory from uct_mem_alloc() or uct_iface_mem_alloc(); keep it for the matching free. */
typedef struct uct_allocated_memory {
    void *address;
    size_t length;              /**< what was allocated: at least what was asked for */
    uct_alloc_method_t method;  /**< how */
    ucs_memory_type_t mem_type; /**< of which type */
    uct_md_h md;                /**< the domain it comes from (UCT_ALLOC_METHOD_MD), or NULL */
    uct_mem_h memh;             /**< its registration there, or UCT_MEM_HANDLE_NULL */
    /**
     * Reserved for the device the memory is on. Not written: programs built with versions of the
     * interface before 1.19 have no room for it.
     */
    ucs_sys_device_t sys_device;
} uct_allocated_memory_t;

/** An unpacked remote key. Pass rkey to the data calls and the whole to uct_rkey_release(). */
typedef struct uct_rkey_bundle {
    uct_rkey_t rkey;
    void *handle; /**< of the library */
    void *type;   /**< of the library */
} uct_rkey_bundle_t;

/**
 * Tells when operations are done.
 *
 * The caller sets count to the number of operations it will attach, status to UCS_OK, and keeps the
 * structure until func runs. Each attached operation that RETURNED UCS_INPROGRESS takes one off
 * count when it is done; whoever takes off the last one calls func. For an operation that returned
 * anything else the caller adjusts count itself. status keeps the first failure.
 */
struct uct_completion {
    uct_completion_callback_t func;
    int count;
    ucs_status_t status;
};

/**
 * An operation waiting for resources, see uct_ep_pending_add(). Belongs to the library from there
 * until func returns UCS_OK or the request is purged; embed it in your own structure.
 */
struct uct_pending_req {
    uct_pending_callback_t func;
    char priv[UCT_PENDING_REQ_PRIV_LEN]; /**< of the library */
};

/** A posted tagged receive (tag offload), see uct_iface_tag_recv_zcopy(). */
struct uct_tag_context {
    /** A message matched; data may still be arriving. */
    void (*tag_consumed_cb)(uct_tag_context_t *self);

    /**
     * The receive is done.
     *
     * @param self        the context; the caller's again
     * @param stag        the sender's tag
     * @param imm         the sender's immediate value, for eager messages
     * @param length      bytes received
     * @param inline_data the data itself if it was not put in the buffer, or NULL
     * @param status      UCS_OK, UCS_ERR_MESSAGE_TRUNCATED, UCS_ERR_CANCELED or another error
     */
    void (*completed_cb)(uct_tag_context_t *self, uct_tag_t stag, uint64_t imm, size_t length,
                         void *inline_data, ucs_status_t status);

    /** A rendezvous announcement matched that the program has to carry out itself. */
    void (*rndv_cb)(uct_tag_context_t *self, uct_tag_t stag, const void *header,
                    unsigned header_length, ucs_status_t status, unsigned flags);

    char priv[UCT_TAG_PRIV_LEN]; /**< of the library */
};

/** Flags of the callbacks in @ref uct_tag_context. */
enum {
    UCT_TAG_RECV_CB_INLINE_DATA = UCS_BIT(0) /**< the header is valid only in the callback */
};

/** Names of @ref uct_alloc_method_t, indexed by it. */
extern const char *uct_alloc_method_names[];

/** Names of @ref uct_device_type_t, indexed by it. */
extern const char *uct_device_type_names[];

/**
 * Lists the components of the system.
 *
 * @param components_p     the list; release it by uct_release_component_list(), the components
 *                         themselves live as long as the library
 * @param num_components_p its length
 * @return UCS_OK, UCS_ERR_NO_MEMORY
 */
ucs_status_t uct_query_components(uct_component_h **components_p, unsigned *num_components_p);

/** Releases a list of uct_query_components(). */
void uct_release_component_list(uct_component_h *components);

/**
 * Reads attributes of a component.
 *
 * @param component      which
 * @param component_attr field_mask says what to fill
 * @return UCS_OK, UCS_ERR_NO_MEMORY, errors of looking for devices
 */
ucs_status_t uct_component_query(uct_component_h component, uct_component_attr_t *component_attr);

/**
 * Reads the configuration of a component's domains: defaults, changed by files and by variables of
 * the environment, UCT_<COMPONENT>_<NAME> or UCX_<COMPONENT>_<NAME>. With env_prefix,
 * UCT_<env_prefix>_<COMPONENT>_<NAME> and <env_prefix>_UCX_<COMPONENT>_<NAME> are looked up first.
 *
 * @param component  which
 * @param env_prefix prefix or NULL
 * @param filename   a file of UCX_<COMPONENT>_<NAME>=<value> lines, read after the ucx.conf files
 *                   and before the environment; ignored if it does not exist. Or NULL
 * @param config_p   the configuration; release it by uct_config_release()
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (a variable has a bad value), UCS_ERR_NO_MEMORY
 */
ucs_status_t uct_md_config_read(uct_component_h component, const char *env_prefix,
                                const char *filename, uct_md_config_t **config_p);

/**
 * Opens a memory domain.
 *
 * @param component its component
 * @param md_name   a name of uct_component_attr::md_resources
 * @param config    of uct_md_config_read(); read during the call
 * @param md_p      the domain; close it by uct_md_close()
 * @return UCS_OK, UCS_ERR_NO_DEVICE (no such domain), errors of the fabric
 */
ucs_status_t uct_md_open(uct_component_h component, const char *md_name,
                         const uct_md_config_t *config, uct_md_h *md_p);

/** Closes a domain. Its interfaces must be closed and its memory deregistered before. */
void uct_md_close(uct_md_h md);

/** Reads the attributes of a domain. */
ucs_status_t uct_md_query(uct_md_h md, uct_md_attr_t *md_attr);

/**
 * Lists the transports of a domain.
 *
 * @param md              the domain
 * @param resources_p     the list; release it by uct_release_tl_resource_list()
 * @param num_resources_p its length, may be 0
 * @return UCS_OK, UCS_ERR_NO_MEMORY
 */
ucs_status_t uct_md_query_tl_resources(uct_md_h md, uct_tl_resource_desc_t **resources_p,
                                       unsigned *num_resources_p);

/** Releases a list of uct_md_query_tl_resources(). */
void uct_release_tl_resource_list(uct_tl_resource_desc_t *resources);

/* ---- Worker --------------------------------------------------------------------------------- */

/**
 * Creates a worker.
 *
 * @param async       a context of ucs_async_context_create(); must outlive the worker. Only its
 *                    identity matters
 * @param thread_mode UCS_THREAD_MODE_SINGLE: only the creating thread uses the worker.
 *                    UCS_THREAD_MODE_SERIALIZED or UCS_THREAD_MODE_MULTI: any, one at a time;
 *                    the worker does not lock
 * @param worker_p    the worker; destroy it by uct_worker_destroy()
 * @return UCS_OK, UCS_ERR_NO_MEMORY, UCS_ERR_INVALID_PARAM
 */
ucs_status_t uct_worker_create(ucs_async_context_t *async, ucs_thread_mode_t thread_mode,
                               uct_worker_h *worker_p);

/** Destroys a worker. Its interfaces and connection managers must be closed before. */
void uct_worker_destroy(uct_worker_h worker);

/**
 * Adds a function that uct_worker_progress() calls. Any thread may call this at any time.
 *
 * @param worker the worker
 * @param func   called with arg; returns how much it did
 * @param arg    for func
 * @param flags  @ref ucs_callbackq_flags; UCS_CALLBACKQ_FLAG_ONESHOT: call it once
 * @param id_p   in: UCS_CALLBACKQ_ID_NULL; out: the id. If it is not NULL on entry, nothing is done
 */
void uct_worker_progress_register_safe(uct_worker_h worker, ucs_callback_t func, void *arg,
                                       unsigned flags, uct_worker_cb_id_t *id_p);

/**
 * Removes a function added by uct_worker_progress_register_safe(). Any thread may call this at any
 * time; the function may still run once if it is running now.
 *
 * @param worker the worker
 * @param id_p   in: the id, or UCS_CALLBACKQ_ID_NULL (nothing is done); out: UCS_CALLBACKQ_ID_NULL
 */
void uct_worker_progress_unregister_safe(uct_worker_h worker, uct_worker_cb_id_t *id_p);

/**
 * Progresses everything on a worker: completes operations, receives, runs callbacks. Never blocks.
 *
 * @return 0 if there was nothing to do, else not 0
 */
UCT_INLINE_API unsigned uct_worker_progress(uct_worker_h worker)
{
    return ucs_callbackq_dispatch(&worker->progress_q);
}

/* ---- Configuration objects ------------------------------------------------------------------ */

/**
 * Reads the configuration of a transport's interfaces; see uct_md_config_read() for the arguments.
 *
 * @param md      a domain that has the transport
 * @param tl_name the transport
 * @return UCS_OK, UCS_ERR_NO_DEVICE (no such transport), UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY
 */
ucs_status_t uct_md_iface_config_read(uct_md_h md, const char *tl_name, const char *env_prefix,
                                      const char *filename, uct_iface_config_t **config_p);

/** Releases a configuration of uct_md_config_read(), uct_md_iface_config_read() or
 * uct_cm_config_read(). */
void uct_config_release(void *config);

/**
 * Reads one value of a configuration.
 *
 * @param config the configuration
 * @param name   as in the environment, without the prefix up to UCX_: "TCP_SEG_SIZE"
 * @param value  where to write it, zero terminated
 * @param max    bytes at value
 * @return UCS_OK, UCS_ERR_NO_ELEM (no such name)
 */
ucs_status_t uct_config_get(void *config, const char *name, char *value, size_t max);

/**
 * Changes one value of a configuration.
 *
 * @param config the configuration
 * @param name   as in the environment, without the prefix up to UCX_: "TCP_SEG_SIZE"
 * @param value  as it would be written in the environment
 * @return UCS_OK, UCS_ERR_NO_ELEM (no such name), UCS_ERR_INVALID_PARAM (bad value)
 */
ucs_status_t uct_config_modify(void *config, const char *name, const char *value);

/* ---- Interface ------------------------------------------------------------------------------ */

/**
 * Opens an interface. Its progress is disabled at first, see uct_iface_progress_enable().
 *
 * @param md      the domain
 * @param worker  the worker that progresses it
 * @param params  open_mode and mode are required; read during the call
 * @param config  of uct_md_iface_config_read(); read during the call
 * @param iface_p the interface; close it by uct_iface_close()
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_NO_DEVICE, UCS_ERR_UNSUPPORTED (mode),
 *         UCS_ERR_BUSY (port in use), UCS_ERR_NO_MEMORY, errors of the fabric
 */
ucs_status_t uct_iface_open(uct_md_h md, uct_worker_h worker, const uct_iface_params_t *params,
                            const uct_iface_config_t *config, uct_iface_h *iface_p);

/** Closes an interface. Its endpoints must be destroyed before. Outstanding receives are dropped.
 */
void uct_iface_close(uct_iface_h iface);

/** Reads the attributes of an interface. */
ucs_status_t uct_iface_query(uct_iface_h iface, uct_iface_attr_t *iface_attr);

/**
 * Writes the address of the device an interface is on: what a peer needs to tell if and how it
 * reaches it. Equal for interfaces on one device.
 *
 * @param iface the interface
 * @param addr  room for @ref uct_iface_attr::device_addr_len bytes, any alignment
 */
ucs_status_t uct_iface_get_device_address(uct_iface_h iface, uct_device_addr_t *addr);

/**
 * Writes the address of an interface (UCT_IFACE_FLAG_CONNECT_TO_IFACE).
 *
 * @param iface the interface
 * @param addr  room for @ref uct_iface_attr::iface_addr_len bytes, any alignment
 */
ucs_status_t uct_iface_get_address(uct_iface_h iface, uct_iface_addr_t *addr);

/**
 * Tells if an endpoint to a peer could be made. Local and quick: nothing is sent, so "yes" does not
 * say that the peer is alive.
 *
 * @param iface      our interface
 * @param dev_addr   the peer's device address
 * @param iface_addr the peer's interface address, or NULL
 * @return not 0 if reachable
 */
int uct_iface_is_reachable(const uct_iface_h iface, const uct_device_addr_t *dev_addr,
                           const uct_iface_addr_t *iface_addr);

/**
 * Returns a file descriptor that becomes readable when an armed event happens
 * (UCT_IFACE_FLAG_EVENT_FD). It belongs to the interface; use it with poll() or epoll only.
 *
 * @return UCS_OK, UCS_ERR_UNSUPPORTED
 */
ucs_status_t uct_iface_event_fd_get(uct_iface_h iface, int *fd_p);

/**
 * Arms the file descriptor for the next event, once. The way to sleep:
 * progress until it returns 0; arm; on UCS_ERR_BUSY progress again, on UCS_OK wait for the
 * descriptor. An event that happens after UCS_OK is never lost.
 *
 * @param iface  the interface
 * @param events @ref uct_iface_event_types that shall wake; others may, too
 * @return UCS_OK, UCS_ERR_BUSY (there is something to progress; not armed), UCS_ERR_UNSUPPORTED
 */
ucs_status_t uct_iface_event_arm(uct_iface_h iface, unsigned events);

/**
 * Allocates memory registered for an interface's zcopy calls.
 *
 * @param iface  the interface
 * @param length bytes, not 0
 * @param flags  @ref uct_md_mem_flags
 * @param name   for messages
 * @param mem    the memory; free it by uct_iface_mem_free(). Its member sys_device is not written
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY
 */
ucs_status_t uct_iface_mem_alloc(uct_iface_h iface, size_t length, unsigned flags, const char *name,
                                 uct_allocated_memory_t *mem);

/** Frees memory of uct_iface_mem_alloc(). */
void uct_iface_mem_free(const uct_allocated_memory_t *mem);

/**
 * Sets the handler of an active message id. A message whose id has no handler is dropped with a
 * log message.
 *
 * @param iface the interface
 * @param id    0 .. UCT_AM_ID_MAX - 1
 * @param cb    the handler, or NULL to remove it
 * @param arg   for cb
 * @param flags @ref uct_cb_flags: UCT_CB_FLAG_ASYNC permits, but does not demand, to run cb outside
 *              of progress
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (id or flags)
 */
ucs_status_t uct_iface_set_am_handler(uct_iface_h iface, uint8_t id, uct_am_callback_t cb,
                                      void *arg, uint32_t flags);

/** Sets the function that describes active messages in traces, if any are written; NULL removes it.
 */
ucs_status_t uct_iface_set_am_tracer(uct_iface_h iface, uct_am_tracer_t tracer, void *arg);

/**
 * Accepts a connection request. The connection is the interface's, and lasts until the client
 * leaves or the interface is closed.
 *
 * @param iface        opened with UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER
 * @param conn_request as given to @ref uct_sockaddr_conn_request_callback_t; used up in every case
 * @return UCS_OK, UCS_ERR_CONNECTION_RESET (the client has gone), UCS_ERR_UNSUPPORTED (other modes)
 */
ucs_status_t uct_iface_accept(uct_iface_h iface, uct_conn_request_h conn_request);

/** Refuses a connection request: the client gets UCS_ERR_REJECTED. Else as uct_iface_accept(). */
ucs_status_t uct_iface_reject(uct_iface_h iface, uct_conn_request_h conn_request);

/**
 * Asks for progress of an interface by uct_worker_progress().
 *
 * @param iface the interface
 * @param flags @ref uct_progress_types; with UCT_PROGRESS_THREAD_SAFE any thread may call this
 */
UCT_INLINE_API void uct_iface_progress_enable(uct_iface_h iface, unsigned flags)
{
    iface->ops.iface_progress_enable(iface, flags);
}

/** Takes uct_iface_progress_enable() back: the worker's other interfaces are progressed faster. */
UCT_INLINE_API void uct_iface_progress_disable(uct_iface_h iface, unsigned flags)
{
    iface->ops.iface_progress_disable(iface, flags);
}

/** Progresses one interface. @return 0 if there was nothing to do, else not 0 */
UCT_INLINE_API unsigned uct_iface_progress(uct_iface_h iface)
{
    return iface->ops.iface_progress(iface);
}

/**
 * Waits for all operations started on an interface so far; see uct_ep_flush().
 *
 * @param iface the interface
 * @param flags UCT_FLUSH_FLAG_LOCAL or UCT_FLUSH_FLAG_REMOTE
 * @param comp  counted down when they are done, or NULL: just tell the state
 * @return UCS_OK (nothing outstanding), UCS_INPROGRESS, UCS_ERR_UNSUPPORTED
 * (UCT_FLUSH_FLAG_CANCEL), UCS_ERR_NO_RESOURCE (with comp: requests are pending)
 */
UCT_INLINE_API ucs_status_t uct_iface_flush(uct_iface_h iface, unsigned flags,
                                            uct_completion_t *comp)
{
    return iface->ops.iface_flush(iface, flags, comp);
}

/**
 * Orders an interface: operations started before it take effect before those started after it, for
 * each endpoint by itself.
 *
 * @param iface the interface
 * @param flags 0
 */
UCT_INLINE_API ucs_status_t uct_iface_fence(uct_iface_h iface, unsigned flags)
{
    return iface->ops.iface_fence(iface, flags);
}

/**
 * Gives a receive descriptor back that an active message handler kept by returning UCS_INPROGRESS.
 *
 * @param desc the start of the descriptor: the handler's data minus rx_headroom
 */
UCT_INLINE_API void uct_iface_release_desc(void *desc)
{
    uct_recv_desc_t *owner = uct_recv_desc(desc);
    owner->cb(owner, desc);
}

/* ---- Endpoint ------------------------------------------------------------------------------- */

/**
 * Creates an endpoint; see @ref uct_ep_params for the three kinds.
 *
 * An endpoint to an interface may be used at once; it connects when it is first needed. One made by
 * a connection manager carries no data: it is the connection, for which the program makes data
 * endpoints itself. Its callbacks may run before this call returns.
 *
 * @param params what and how
 * @param ep_p   the endpoint; destroy it by uct_ep_destroy()
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED (kind, or no UCT_CB_FLAG_ASYNC),
 *         UCS_ERR_UNREACHABLE, UCS_ERR_INVALID_ADDR (damaged address), UCS_ERR_NO_MEMORY;
 *         server also UCS_ERR_CONNECTION_RESET, UCS_ERR_NOT_CONNECTED (the client has gone),
 *         UCS_ERR_BUFFER_TOO_SMALL (private data too long)
 */
ucs_status_t uct_ep_create(const uct_ep_params_t *params, uct_ep_h *ep_p);

/**
 * Client: sends the connection request with its private data. To be called once, in
 * @ref uct_cm_ep_resolve_callback_t or after it.
 *
 * @param ep     an endpoint made with cm_resolve_cb
 * @param params private data
 * @return UCS_OK, UCS_ERR_BUFFER_TOO_SMALL (private data too long), UCS_ERR_NOT_CONNECTED (it has
 *         failed), UCS_ERR_INVALID_PARAM
 */
ucs_status_t uct_ep_connect(uct_ep_h ep, const uct_ep_connect_params_t *params);

/**
 * Ends a connection made by a connection manager. The peer's @ref uct_ep_disconnect_cb_t runs; the
 * peer calls this in turn; then ours runs, and the endpoint can be destroyed. (Destroyed before,
 * its callback does not run.)
 *
 * @param ep    the endpoint
 * @param flags 0
 * @return UCS_OK, UCS_INPROGRESS (already asked for), UCS_ERR_BUSY (not connected yet),
 *         UCS_ERR_NOT_CONNECTED (already ended or failed)
 */
ucs_status_t uct_ep_disconnect(uct_ep_h ep, unsigned flags);

/**
 * Destroys an endpoint at once. Outstanding operations are given up: each attached completion is
 * still counted down. Pending requests must be purged before. No callback for the endpoint runs
 * after this call. May be called in a callback of this endpoint.
 */
void uct_ep_destroy(uct_ep_h ep);

/**
 * Writes the address of an endpoint (UCT_IFACE_FLAG_CONNECT_TO_EP).
 *
 * @param ep   the endpoint
 * @param addr room for @ref uct_iface_attr::ep_addr_len bytes, any alignment
 */
ucs_status_t uct_ep_get_address(uct_ep_h ep, uct_ep_addr_t *addr);

/**
 * Connects an endpoint to one of the peer (UCT_IFACE_FLAG_CONNECT_TO_EP). Both sides call it, each
 * with the other's addresses.
 *
 * @param ep       an endpoint created with iface alone
 * @param dev_addr the peer's device address
 * @param ep_addr  the peer endpoint's address
 * @return UCS_OK, UCS_ERR_UNREACHABLE, UCS_ERR_INVALID_ADDR (damaged address),
 *         UCS_ERR_ALREADY_EXISTS (it is connected), UCS_ERR_UNSUPPORTED
 */
ucs_status_t uct_ep_connect_to_ep(uct_ep_h ep, const uct_device_addr_t *dev_addr,
                                  const uct_ep_addr_t *ep_addr);

/**
 * Asks if the peer is alive (UCT_IFACE_FLAG_EP_CHECK). A dead one is reported to the interface's
 * err_handler, now or later.
 *
 * @param ep    the endpoint
 * @param flags 0
 * @param comp  would be called after UCS_INPROGRESS, which no transport returns; may be NULL
 * @return UCS_OK, UCS_ERR_NO_RESOURCE, UCS_ERR_UNSUPPORTED, or the endpoint's failure
 */
ucs_status_t uct_ep_check(const uct_ep_h ep, unsigned flags, uct_completion_t *comp);

/* ---- Memory --------------------------------------------------------------------------------- */

/**
 * Tells what a piece of memory is.
 *
 * @param md       the domain
 * @param address  its start
 * @param length   its length
 * @param mem_attr field_mask says what to fill
 * @return UCS_OK, UCS_ERR_INVALID_ADDR (not mapped)
 */
ucs_status_t uct_md_mem_query(uct_md_h md, const void *address, size_t length,
                              uct_md_mem_attr_t *mem_attr);

/** Bits of @ref uct_mem_alloc_params_t::field_mask. */
typedef enum {
    UCT_MEM_ALLOC_PARAM_FIELD_FLAGS = UCS_BIT(0),     /**< flags */
    UCT_MEM_ALLOC_PARAM_FIELD_ADDRESS = UCS_BIT(1),   /**< address */
    UCT_MEM_ALLOC_PARAM_FIELD_MEM_TYPE = UCS_BIT(2),  /**< mem_type */
    UCT_MEM_ALLOC_PARAM_FIELD_MDS = UCS_BIT(3),       /**< mds */
    UCT_MEM_ALLOC_PARAM_FIELD_NAME = UCS_BIT(4),      /**< name */
    UCT_MEM_ALLOC_PARAM_FIELD_SYS_DEVICE = UCS_BIT(5) /**< sys_device */
} uct_mem_alloc_params_field_t;

/** How to allocate, see uct_mem_alloc(). */
typedef struct {
    uint64_t field_mask;        /**< @ref uct_mem_alloc_params_field_t */
    unsigned flags;             /**< @ref uct_md_mem_flags; default UCT_MD_MEM_ACCESS_ALL */
    void *address;              /**< hint, or with UCT_MD_MEM_FLAG_FIXED the exact address, as of
                                     MAP_FIXED */
    ucs_memory_type_t mem_type; /**< default UCS_MEMORY_TYPE_HOST */
    struct {
        const uct_md_h *mds; /**< domains to try for UCT_ALLOC_METHOD_MD, in this order */
        unsigned count;
    } mds;
    const char *name;            /**< for messages */
    ucs_sys_device_t sys_device; /**< where */
} uct_mem_alloc_params_t;

/**
 * Gives advice on memory (UCT_MD_FLAG_ADVISE).
 *
 * @param md     the domain
 * @param memh   its registration
 * @param addr   start, within the registration
 * @param length length
 * @param advice what is coming
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_UNSUPPORTED
 */
ucs_status_t uct_md_mem_advise(uct_md_h md, uct_mem_h memh, void *addr, size_t length,
                               uct_mem_advice_t advice);

/**
 * Registers memory with a domain (UCT_MD_FLAG_REG).
 *
 * @param md      the domain
 * @param address start; the memory stays the caller's
 * @param length  bytes, not 0
 * @param flags   @ref uct_md_mem_flags
 * @param memh_p  the registration; end it by uct_md_mem_dereg() before the memory is freed
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_INVALID_ADDR, UCS_ERR_NO_MEMORY,
 *         UCS_ERR_UNSUPPORTED, errors of the fabric
 */
ucs_status_t uct_md_mem_reg(uct_md_h md, void *address, size_t length, unsigned flags,
                            uct_mem_h *memh_p);

/**
 * Ends a registration. No operation may be using it; keys packed from it become invalid.
 *
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (memh is NULL)
 */
ucs_status_t uct_md_mem_dereg(uct_md_h md, uct_mem_h memh);

/**
 * Tells the type of a piece of memory.
 *
 * @param md         the domain
 * @param addr       its start
 * @param length     its length
 * @param mem_type_p its type
 * @return UCS_OK, UCS_ERR_INVALID_ADDR (unknown to the domain), UCS_ERR_UNSUPPORTED
 */
ucs_status_t uct_md_detect_memory_type(uct_md_h md, const void *addr, size_t length,
                                       ucs_memory_type_t *mem_type_p);

/**
 * Allocates memory by the first method that works.
 *
 * @param length      bytes, not 0
 * @param methods     methods in the order to try
 * @param num_methods their number
 * @param params      how
 * @param mem         the memory; free it by uct_mem_free(). Its member sys_device is not written
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_NO_MEMORY (no method worked)
 */
ucs_status_t uct_mem_alloc(size_t length, const uct_alloc_method_t *methods, unsigned num_methods,
                           const uct_mem_alloc_params_t *params, uct_allocated_memory_t *mem);

/** Frees memory of uct_mem_alloc(). */
ucs_status_t uct_mem_free(const uct_allocated_memory_t *mem);

/**
 * Obsolete: told if a domain with UCT_MD_FLAG_SOCKADDR could listen on or connect to an address.
 * Use uct_listener_create() and uct_ep_create() with a connection manager, which say so themselves.
 *
 * @return 0
 */
int uct_md_is_sockaddr_accessible(uct_md_h md, const ucs_sock_addr_t *sockaddr,
                                  uct_sockaddr_accessibility_t mode);

/**
 * Writes the key by which a peer reaches registered memory.
 *
 * @param md          the domain
 * @param memh        the registration
 * @param rkey_buffer room for @ref uct_md_attr::rkey_packed_size bytes, any alignment
 */
ucs_status_t uct_md_mkey_pack(uct_md_h md, uct_mem_h memh, void *rkey_buffer);

/**
 * Reads a key written by a peer's uct_md_mkey_pack() on the same kind of component.
 *
 * @param component   our component
 * @param rkey_buffer the key, any alignment
 * @param rkey_ob     the unpacked key; release it by uct_rkey_release()
 * @return UCS_OK, UCS_ERR_INVALID_PARAM (not a key of this component), UCS_ERR_UNREACHABLE,
 *         UCS_ERR_NO_MEMORY
 */
ucs_status_t uct_rkey_unpack(uct_component_h component, const void *rkey_buffer,
                             uct_rkey_bundle_t *rkey_ob);

/**
 * Finds where remote memory is mapped in our own address space
 * (UCT_COMPONENT_FLAG_RKEY_PTR). Loads and stores there are loads and stores of the peer's memory.
 *
 * @param component   our component
 * @param rkey_ob     the key
 * @param remote_addr an address in the peer
 * @param addr_p      the same byte in our process; valid until the key is released
 * @return UCS_OK, UCS_ERR_INVALID_ADDR (outside of the key's memory), UCS_ERR_UNSUPPORTED (it is
 *         not mapped)
 */
ucs_status_t uct_rkey_ptr(uct_component_h component, uct_rkey_bundle_t *rkey_ob,
                          uint64_t remote_addr, void **addr_p);

/** Releases an unpacked key. No operation may be using it. */
ucs_status_t uct_rkey_release(uct_component_h component, const uct_rkey_bundle_t *rkey_ob);

/* ---- Data: put and get ---------------------------------------------------------------------- */
/* Three forms: short copies a few bytes at once; bcopy goes through a buffer of the library that a
 * callback fills or reads; zcopy moves the caller's registered memory itself. Returns: see the top.
 */

/**
 * Writes a few bytes to remote memory; the buffer is free on return.
 *
 * @param ep          the endpoint
 * @param buffer      the bytes
 * @param length      at most cap.put.max_short
 * @param remote_addr where to
 * @param rkey        key of that memory
 */
UCT_INLINE_API ucs_status_t uct_ep_put_short(uct_ep_h ep, const void *buffer, unsigned length,
                                             uint64_t remote_addr, uct_rkey_t rkey)
{
    return ep->iface->ops.ep_put_short(ep, buffer, length, remote_addr, rkey);
}

/**
 * Writes what a callback packs, at most cap.put.max_bcopy bytes, to remote memory.
 *
 * @return bytes packed, or a negative status (then pack_cb did not run)
 */
UCT_INLINE_API ssize_t uct_ep_put_bcopy(uct_ep_h ep, uct_pack_callback_t pack_cb, void *arg,
                                        uint64_t remote_addr, uct_rkey_t rkey)
{
    return ep->iface->ops.ep_put_bcopy(ep, pack_cb, arg, remote_addr, rkey);
}

/**
 * Writes registered memory to remote memory.
 *
 * @param ep          the endpoint
 * @param iov         the memory, cap.put.min_zcopy .. max_zcopy bytes in all
 * @param iovcnt      at most cap.put.max_iov
 * @param remote_addr where to
 * @param rkey        key of that memory
 * @param comp        counted down when the memory may be reused
 */
UCT_INLINE_API ucs_status_t uct_ep_put_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                                             uint64_t remote_addr, uct_rkey_t rkey,
                                             uct_completion_t *comp)
{
    return ep->iface->ops.ep_put_zcopy(ep, iov, iovcnt, remote_addr, rkey, comp);
}

/** Reads at most cap.get.max_short bytes of remote memory; they are there on return. */
UCT_INLINE_API ucs_status_t uct_ep_get_short(uct_ep_h ep, void *buffer, unsigned length,
                                             uint64_t remote_addr, uct_rkey_t rkey)
{
    return ep->iface->ops.ep_get_short(ep, buffer, length, remote_addr, rkey);
}

/**
 * Reads at most cap.get.max_bcopy bytes of remote memory and hands them to a callback.
 *
 * @param ep          the endpoint
 * @param unpack_cb   gets the data, inside this call if it returns UCS_OK
 * @param arg         for unpack_cb
 * @param length      bytes to read
 * @param remote_addr where from
 * @param rkey        key of that memory
 * @param comp        counted down after unpack_cb
 */
UCT_INLINE_API ucs_status_t uct_ep_get_bcopy(uct_ep_h ep, uct_unpack_callback_t unpack_cb,
                                             void *arg, size_t length, uint64_t remote_addr,
                                             uct_rkey_t rkey, uct_completion_t *comp)
{
    return ep->iface->ops.ep_get_bcopy(ep, unpack_cb, arg, length, remote_addr, rkey, comp);
}

/** Reads remote memory into registered memory; comp is counted down when it is there. */
UCT_INLINE_API ucs_status_t uct_ep_get_zcopy(uct_ep_h ep, const uct_iov_t *iov, size_t iovcnt,
                                             uint64_t remote_addr, uct_rkey_t rkey,
                                             uct_completion_t *comp)
{
    return ep->iface->ops.ep_get_zcopy(ep, iov, iovcnt, remote_addr, rkey, comp);
}

/* ---- Data: active messages ------------------------------------------------------------------ */

/**
 * Sends an active message of 8 bytes of header and a few of payload.
 *
 * @param ep      the endpoint
 * @param id      selects the handler there
 * @param header  first 8 bytes of the message, in host order
 * @param payload the rest; free on return
 * @param length  bytes of payload; 8 + length is at most cap.am.max_short
 */
UCT_INLINE_API ucs_status_t uct_ep_am_short(uct_ep_h ep, uint8_t id, uint64_t header,
                                            const void *payload, unsigned length)
{
    return ep->iface->ops.ep_am_short(ep, id, header, payload, length);
}

/** Sends a short active message gathered from a list; the list and its buffers are free on return.
 */
UCT_INLINE_API ucs_status_t uct_ep_am_short_iov(uct_ep_h ep, uint8_t id, const uct_iov_t *iov,
                                                size_t iovcnt)
{
    return ep->iface->ops.ep_am_short_iov(ep, id, iov, iovcnt);
}

/**
 * Sends what a callback packs as an active message.
 *
 * @param ep      the endpoint
 * @param id      selects the handler there
 * @param pack_cb packs at most cap.am.max_bcopy bytes
 * @param arg     for pack_cb
 * @param flags   @ref uct_msg_flags
 * @return bytes packed, or a negative status (then pack_cb did not run)
 */
UCT_INLINE_API ssize_t uct_ep_am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack_cb,
                                       void *arg, unsigned flags)
{
    return ep->iface->ops.ep_am_bcopy(ep, id, pack_cb, arg, flags);
}

/**
 * Sends a header and registered memory as one active message.
 *
 * @param ep            the endpoint
 * @param id            selects the handler there
 * @param header        first bytes of the message; free on return
 * @param header_length at most cap.am.max_hdr
 * @param iov           the rest of the message; header and rest are at most cap.am.max_zcopy bytes
 * @param iovcnt        at most cap.am.max_iov
 * @param flags         @ref uct_msg_flags
 * @param comp          counted down when the memory may be reused
 */
UCT_INLINE_API ucs_status_t uct_ep_am_zcopy(uct_ep_h ep, uint8_t id, const void *header,
                                            unsigned header_length, const uct_iov_t *iov,
                                            size_t iovcnt, unsigned flags, uct_completion_t *comp)
{
    return ep->iface->ops.ep_am_zcopy(ep, id, header, header_length, iov, iovcnt, flags, comp);
}

/* ---- Data: atomics -------------------------------------------------------------------------- */
/* On 4 or 8 bytes of remote memory in the target's byte order, naturally aligned there
 * (UCS_ERR_INVALID_PARAM otherwise). Results are stored before comp is counted down.
 */

/** If 8 remote bytes equal compare, replaces them by swap; result gets what was there. */
UCT_INLINE_API ucs_status_t uct_ep_atomic_cswap64(uct_ep_h ep, uint64_t compare, uint64_t swap,
                                                  uint64_t remote_addr, uct_rkey_t rkey,
                                                  uint64_t *result, uct_completion_t *comp)
{
    return ep->iface->ops.ep_atomic_cswap64(ep, compare, swap, remote_addr, rkey, result, comp);
}

/** If 4 remote bytes equal compare, replaces them by swap; result gets what was there. */
UCT_INLINE_API ucs_status_t uct_ep_atomic_cswap32(uct_ep_h ep, uint32_t compare, uint32_t swap,
                                                  uint64_t remote_addr, uct_rkey_t rkey,
                                                  uint32_t *result, uct_completion_t *comp)
{
    return ep->iface->ops.ep_atomic_cswap32(ep, compare, swap, remote_addr, rkey, result, comp);
}

/** Changes 4 remote bytes by ADD, AND, OR or XOR with value; no result, uct_ep_flush() waits. */
UCT_INLINE_API ucs_status_t uct_ep_atomic32_post(uct_ep_h ep, uct_atomic_op_t opcode,
                                                 uint32_t value, uint64_t remote_addr,
                                                 uct_rkey_t rkey)
{
    return ep->iface->ops.ep_atomic32_post(ep, opcode, value, remote_addr, rkey);
}

/** Changes 8 remote bytes by ADD, AND, OR or XOR with value; no result, uct_ep_flush() waits. */
UCT_INLINE_API ucs_status_t uct_ep_atomic64_post(uct_ep_h ep, uct_atomic_op_t opcode,
                                                 uint64_t value, uint64_t remote_addr,
                                                 uct_rkey_t rkey)
{
    return ep->iface->ops.ep_atomic64_post(ep, opcode, value, remote_addr, rkey);
}

/** Changes 4 remote bytes by ADD, AND, OR, XOR or SWAP; result gets what was there. */
UCT_INLINE_API ucs_status_t uct_ep_atomic32_fetch(uct_ep_h ep, uct_atomic_op_t opcode,
                                                  uint32_t value, uint32_t *result,
                                                  uint64_t remote_addr, uct_rkey_t rkey,
                                                  uct_completion_t *comp)
{
    return ep->iface->ops.ep_atomic32_fetch(ep, opcode, value, result, remote_addr, rkey, comp);
}

/** Changes 8 remote bytes by ADD, AND, OR, XOR or SWAP; result gets what was there. */
UCT_INLINE_API ucs_status_t uct_ep_atomic64_fetch(uct_ep_h ep, uct_atomic_op_t opcode,
                                                  uint64_t value, uint64_t *result,
                                                  uint64_t remote_addr, uct_rkey_t rkey,
                                                  uct_completion_t *comp)
{
    return ep->iface->ops.ep_atomic64_fetch(ep, opcode, value, result, remote_addr, rkey, comp);
}

/* ---- Waiting for resources, order and completion -------------------------------------------- */

/**
 * Queues a request to be called when the endpoint can send again. While requests are queued on an
 * endpoint, its data calls return UCS_ERR_NO_RESOURCE outside of the requests' own callbacks, so
 * nothing overtakes them; requests of one endpoint run in the order they were queued in.
 *
 * @param ep    the endpoint
 * @param req   func is set; the library owns the request until func returns UCS_OK or it is purged
 * @param flags @ref uct_cb_flags
 * @return UCS_OK (queued), UCS_ERR_BUSY (not queued: sending is possible now)
 */
UCT_INLINE_API ucs_status_t uct_ep_pending_add(uct_ep_h ep, uct_pending_req_t *req, unsigned flags)
{
    return ep->iface->ops.ep_pending_add(ep, req, flags);
}

/** Dequeues all pending requests of an endpoint; cb gets each of them once (NULL: dropped). */
UCT_INLINE_API void uct_ep_pending_purge(uct_ep_h ep, uct_pending_purge_callback_t cb, void *arg)
{
    ep->iface->ops.ep_pending_purge(ep, cb, arg);
}

/**
 * Waits for all operations started on an endpoint so far.
 *
 * @param ep    the endpoint
 * @param flags @ref uct_flush_flags: how far they shall be done, or that they shall be given up
 * @param comp  counted down when they are, or NULL: just tell the state
 * @return UCS_OK (nothing outstanding), UCS_INPROGRESS, UCS_ERR_NO_RESOURCE, UCS_ERR_UNSUPPORTED
 *         (flags)
 */
UCT_INLINE_API ucs_status_t uct_ep_flush(uct_ep_h ep, unsigned flags, uct_completion_t *comp)
{
    return ep->iface->ops.ep_flush(ep, flags, comp);
}

/** Orders an endpoint: what was started before takes effect before what is started after. */
UCT_INLINE_API ucs_status_t uct_ep_fence(uct_ep_h ep, unsigned flags)
{
    return ep->iface->ops.ep_fence(ep, flags);
}

/* ---- Data: tag matching offload ------------------------------------------------------------- */
/* For interfaces that match tags themselves (UCT_IFACE_FLAG_TAG_*). */

/** Sends a short tagged message; the data is free on return. */
UCT_INLINE_API ucs_status_t uct_ep_tag_eager_short(uct_ep_h ep, uct_tag_t tag, const void *data,
                                                   size_t length)
{
    return ep->iface->ops.ep_tag_eager_short(ep, tag, data, length);
}

/**
 * Sends what a callback packs as a tagged message.
 *
 * @param ep      the endpoint
 * @param tag     the tag
 * @param imm     a value delivered with the message
 * @param pack_cb packs at most cap.tag.eager.max_bcopy bytes
 * @param arg     for pack_cb
 * @param flags   @ref uct_msg_flags
 * @return bytes packed, or a negative status
 */
UCT_INLINE_API ssize_t uct_ep_tag_eager_bcopy(uct_ep_h ep, uct_tag_t tag, uint64_t imm,
                                              uct_pack_callback_t pack_cb, void *arg,
                                              unsigned flags)
{
    return ep->iface->ops.ep_tag_eager_bcopy(ep, tag, imm, pack_cb, arg, flags);
}

/** Sends registered memory as a tagged message; comp is counted down when it may be reused. */
UCT_INLINE_API ucs_status_t uct_ep_tag_eager_zcopy(uct_ep_h ep, uct_tag_t tag, uint64_t imm,
                                                   const uct_iov_t *iov, size_t iovcnt,
                                                   unsigned flags, uct_completion_t *comp)
{
    return ep->iface->ops.ep_tag_eager_zcopy(ep, tag, imm, iov, iovcnt, flags, comp);
}

/**
 * Offers registered memory to the receiver, who fetches it when the tag is matched.
 *
 * @param ep            the endpoint
 * @param tag           the tag
 * @param header        delivered if the tag is unexpected; free on return
 * @param header_length at most cap.tag.rndv.max_hdr
 * @param iov           the memory
 * @param iovcnt        at most cap.tag.rndv.max_iov
 * @param flags         @ref uct_msg_flags
 * @param comp          counted down when the memory may be reused
 * @return a handle for uct_ep_tag_rndv_cancel(), or an error (UCS_PTR_IS_ERR())
 */
UCT_INLINE_API ucs_status_ptr_t uct_ep_tag_rndv_zcopy(uct_ep_h ep, uct_tag_t tag,
                                                      const void *header, unsigned header_length,
                                                      const uct_iov_t *iov, size_t iovcnt,
                                                      unsigned flags, uct_completion_t *comp)
{
    return ep->iface->ops.ep_tag_rndv_zcopy(ep, tag, header, header_length, iov, iovcnt, flags,
                                            comp);
}

/** Takes an offer of uct_ep_tag_rndv_zcopy() back; its completion is not counted down. */
UCT_INLINE_API ucs_status_t uct_ep_tag_rndv_cancel(uct_ep_h ep, void *op)
{
    return ep->iface->ops.ep_tag_rndv_cancel(ep, op);
}

/** Sends an announcement whose data the two programs transfer themselves. */
UCT_INLINE_API ucs_status_t uct_ep_tag_rndv_request(uct_ep_h ep, uct_tag_t tag, const void *header,
                                                    unsigned header_length, unsigned flags)
{
    return ep->iface->ops.ep_tag_rndv_request(ep, tag, header, header_length, flags);
}

/**
 * Posts a tagged receive.
 *
 * @param iface    the interface
 * @param tag      the tag
 * @param tag_mask bits of it that count
 * @param iov      registered memory
 * @param iovcnt   at most cap.tag.recv.max_iov
 * @param ctx      callbacks are set; the library's until completed_cb runs
 * @return UCS_OK, UCS_ERR_NO_RESOURCE, UCS_ERR_EXCEEDS_LIMIT (too many posted)
 */
UCT_INLINE_API ucs_status_t uct_iface_tag_recv_zcopy(uct_iface_h iface, uct_tag_t tag,
                                                     uct_tag_t tag_mask, const uct_iov_t *iov,
                                                     size_t iovcnt, uct_tag_context_t *ctx)
{
    return iface->ops.iface_tag_recv_zcopy(iface, tag, tag_mask, iov, iovcnt, ctx);
}

/**
 * Takes a posted receive back.
 *
 * @param iface the interface
 * @param ctx   the receive
 * @param force 0: completed_cb runs, with UCS_ERR_CANCELED or, if it was too late, as usual.
 *              Not 0: it does not run
 */
UCT_INLINE_API ucs_status_t uct_iface_tag_recv_cancel(uct_iface_h iface, uct_tag_context_t *ctx,
                                                      int force)
{
    return iface->ops.iface_tag_recv_cancel(iface, ctx, force);
}

/* ---- Connections by address and port --------------------------------------------------------
 *
 *       client                                      server
 *                                                   uct_cm_open, uct_listener_create
 *       uct_cm_open
 *       uct_ep_create(cm, sockaddr)
 *       cm_resolve_cb
 *       uct_ep_connect ─────────────────────────►   conn_request_cb
 *       sockaddr_cb_client  ◄────────────────────   uct_ep_create(cm, conn_request)
 *                           ◄────────────────────   or uct_listener_reject: UCS_ERR_REJECTED
 *       uct_cm_client_ep_conn_notify ───────────►   sockaddr_cb_server
 *                        ... either side: ...
 *       uct_ep_disconnect ──────────────────────►   disconnect_cb
 *       disconnect_cb  ◄─────────────────────────   uct_ep_disconnect
 *       uct_ep_destroy                              uct_ep_destroy
 *
 * Where the private data comes from: uct_ep_connect() on the client and private_data on the server,
 * or sockaddr_pack_cb on either. A failure is told once, by the callback that is due: cm_resolve_cb
 * before the route is known, sockaddr_cb_client or sockaddr_cb_server before the connection is
 * made, disconnect_cb after.
 */

/**
 * Opens a connection manager (UCT_COMPONENT_FLAG_CM).
 *
 * @param component its component
 * @param worker    the worker it belongs to
 * @param config    of uct_cm_config_read(); read during the call
 * @param cm_p      the connection manager; close it by uct_cm_close()
 * @return UCS_OK, UCS_ERR_UNSUPPORTED, UCS_ERR_NO_DEVICE, UCS_ERR_NO_MEMORY
 */
ucs_status_t uct_cm_open(uct_component_h component, uct_worker_h worker,
                         const uct_cm_config_t *config, uct_cm_h *cm_p);

/** Closes a connection manager. Its listeners and endpoints must be destroyed before. */
void uct_cm_close(uct_cm_h cm);

/** Reads attributes of a connection manager; field_mask says which. */
ucs_status_t uct_cm_query(uct_cm_h cm, uct_cm_attr_t *cm_attr);

/** Reads the configuration of a component's connection manager; as uct_md_config_read(). */
ucs_status_t uct_cm_config_read(uct_component_h component, const char *env_prefix,
                                const char *filename, uct_cm_config_t **config_p);

/**
 * Client: confirms the connection to the server. Call it once, in
 * @ref uct_cm_ep_client_connect_callback_t (status UCS_OK) or after it.
 *
 * @return UCS_OK, UCS_ERR_NOT_CONNECTED (the server has gone)
 */
ucs_status_t uct_cm_client_ep_conn_notify(uct_ep_h ep);

/**
 * Listens for connections. Requests may arrive before this call returns.
 *
 * @param cm         the connection manager
 * @param saddr      address and port; port 0: any free one, see uct_listener_query()
 * @param socklen    bytes at saddr
 * @param params     conn_request_cb is required
 * @param listener_p the listener; destroy it by uct_listener_destroy()
 * @return UCS_OK, UCS_ERR_INVALID_PARAM, UCS_ERR_BUSY (port in use), UCS_ERR_NO_DEVICE or
 *         UCS_ERR_INVALID_ADDR (not our address), UCS_ERR_IO_ERROR
 */
ucs_status_t uct_listener_create(uct_cm_h cm, const struct sockaddr *saddr, socklen_t socklen,
                                 const uct_listener_params_t *params, uct_listener_h *listener_p);

/**
 * Destroys a listener. Waits for a running conn_request_cb, unless called in it; none runs
 * afterwards. Requests already handed out stay valid.
 */
void uct_listener_destroy(uct_listener_h listener);

/**
 * Refuses a connection request: the client gets UCS_ERR_REJECTED.
 *
 * @param listener     where it came in
 * @param conn_request the request; used up
 * @return UCS_OK, UCS_ERR_NOT_CONNECTED or UCS_ERR_CONNECTION_RESET (the client has gone)
 */
ucs_status_t uct_listener_reject(uct_listener_h listener, uct_conn_request_h conn_request);

/** Reads attributes of a listener; field_mask says which. */
ucs_status_t uct_listener_query(uct_listener_h listener, uct_listener_attr_t *listener_attr);

/** Notes a status in a completion: the first failure stays. */
static UCS_F_ALWAYS_INLINE void uct_completion_update_status(uct_completion_t *comp,
                                                             ucs_status_t status)
{
    if ((status != UCS_OK) && (comp->status == UCS_OK)) {
        comp->status = status;
    }
}

UCS_END_API

#endif
