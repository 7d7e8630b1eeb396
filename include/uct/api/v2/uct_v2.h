/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file uct_v2.h
 * Calls of UCT that newer UCX has in a header it does not install. Neither is this one: it is for
 * the layer above in this tree, and for UCX's own tools, which have the header. The layouts are
 * those of UCX 1.18 and later.
 */
#ifndef UCT_V2_H_
#define UCT_V2_H_

#include <uct/api/uct.h>

#include <stdint.h>
#include <sys/socket.h>

BEGIN_C_DECLS

/** Bits of @ref uct_ep_attr::field_mask. */
enum uct_ep_attr_field {
    UCT_EP_ATTR_FIELD_LOCAL_SOCKADDR = UCS_BIT(0),  /**< local_address */
    UCT_EP_ATTR_FIELD_REMOTE_SOCKADDR = UCS_BIT(1), /**< remote_address */
    UCT_EP_ATTR_FIELD_TX_TOKEN = UCS_BIT(2)         /**< tx_token */
};

/** What uct_ep_query() tells. */
struct uct_ep_attr {
    uint64_t field_mask;                    /**< @ref uct_ep_attr_field */
    struct sockaddr_storage local_address;  /**< ours */
    struct sockaddr_storage remote_address; /**< the peer's */
    void *tx_token;                         /**< not supported */
};

/**
 * Reads attributes of an endpoint that a connection manager made; field_mask says which.
 *
 * @param ep      the endpoint
 * @param ep_attr what to fill
 * @return UCS_OK, UCS_ERR_NOT_CONNECTED, UCS_ERR_UNSUPPORTED (any other endpoint)
 */
ucs_status_t uct_ep_query(uct_ep_h ep, uct_ep_attr_t *ep_attr);

/** Bits of @ref uct_md_attr_v2_t::field_mask. */
typedef enum {
    UCT_MD_ATTR_FIELD_MAX_ALLOC = UCS_BIT(0),
    UCT_MD_ATTR_FIELD_MAX_REG = UCS_BIT(1),
    UCT_MD_ATTR_FIELD_FLAGS = UCS_BIT(2),
    UCT_MD_ATTR_FIELD_REG_MEM_TYPES = UCS_BIT(3),
    UCT_MD_ATTR_FIELD_REG_NONBLOCK_MEM_TYPES = UCS_BIT(4),
    UCT_MD_ATTR_FIELD_CACHE_MEM_TYPES = UCS_BIT(5),
    UCT_MD_ATTR_FIELD_DETECT_MEM_TYPES = UCS_BIT(6),
    UCT_MD_ATTR_FIELD_ALLOC_MEM_TYPES = UCS_BIT(7),
    UCT_MD_ATTR_FIELD_ACCESS_MEM_TYPES = UCS_BIT(8),
    UCT_MD_ATTR_FIELD_DMABUF_MEM_TYPES = UCS_BIT(9),
    UCT_MD_ATTR_FIELD_REG_COST = UCS_BIT(10),
    UCT_MD_ATTR_FIELD_COMPONENT_NAME = UCS_BIT(11),
    UCT_MD_ATTR_FIELD_RKEY_PACKED_SIZE = UCS_BIT(12),
    UCT_MD_ATTR_FIELD_LOCAL_CPUS = UCS_BIT(13),
    UCT_MD_ATTR_FIELD_EXPORTED_MKEY_PACKED_SIZE = UCS_BIT(14),
    UCT_MD_ATTR_FIELD_GLOBAL_ID = UCS_BIT(15),
    UCT_MD_ATTR_FIELD_REG_ALIGNMENT = UCS_BIT(16),
    UCT_MD_ATTR_FIELD_GVA_MEM_TYPES = UCS_BIT(17)
} uct_md_attr_field_t;

/** Attributes of a memory domain; members whose bit is not set stay as they are. */
typedef struct {
    uint64_t field_mask;             /**< @ref uct_md_attr_field_t */
    uint64_t max_alloc;              /**< longest allocation */
    size_t max_reg;                  /**< longest registration */
    uint64_t flags;                  /**< UCT_MD_FLAG_* */
    uint64_t reg_mem_types;          /**< bits of memory types it registers */
    uint64_t reg_nonblock_mem_types; /**< ... and may do so without all pages; none */
    uint64_t cache_mem_types;        /**< ... whose registrations may be cached */
    uint64_t gva_mem_types;          /**< ... registered as a whole; none */
    uint64_t detect_mem_types;       /**< ... it recognizes */
    uint64_t alloc_mem_types;        /**< ... it allocates */
    uint64_t access_mem_types;       /**< ... its transports can use as they are */
    uint64_t dmabuf_mem_types;       /**< ... it exports as a dma-buf; none */
    ucs_linear_func_t reg_cost;      /**< seconds of a registration */
    char component_name[UCT_COMPONENT_NAME_MAX];
    size_t rkey_packed_size;              /**< bytes written by uct_md_mkey_pack_v2() */
    ucs_cpu_set_t local_cpus;             /**< CPUs close to the device */
    size_t exported_mkey_packed_size;     /**< 0: no key can be exported */
    char global_id[UCT_MD_GLOBAL_ID_MAX]; /**< zeros: unknown */
    size_t reg_alignment;                 /**< 1: any address can be registered */
} uct_md_attr_v2_t;

/** Bits of @ref uct_md_mem_reg_params_t::field_mask. */
typedef enum {
    UCT_MD_MEM_REG_FIELD_FLAGS = UCS_BIT(0),
    UCT_MD_MEM_REG_FIELD_DMABUF_FD = UCS_BIT(1),
    UCT_MD_MEM_REG_FIELD_DMABUF_OFFSET = UCS_BIT(2)
} uct_md_mem_reg_field_mask_t;

/** How memory is registered. */
typedef struct uct_md_mem_reg_params {
    uint64_t field_mask;  /**< @ref uct_md_mem_reg_field_mask_t */
    uint64_t flags;       /**< @ref uct_md_mem_flags; default: none */
    int dmabuf_fd;        /**< not supported */
    size_t dmabuf_offset; /**< not supported */
} uct_md_mem_reg_params_t;

/** Bits of @ref uct_md_mkey_pack_params_t::field_mask. */
typedef enum { UCT_MD_MKEY_PACK_FIELD_FLAGS = UCS_BIT(0) } uct_md_mkey_pack_field_mask_t;

/** What kind of key is packed. */
typedef struct uct_md_mkey_pack_params {
    uint64_t field_mask; /**< @ref uct_md_mkey_pack_field_mask_t */
    unsigned flags;      /**< none is supported: no key can be revoked or exported */
} uct_md_mkey_pack_params_t;

UCS_BEGIN_API

/**
 * Reads attributes of a memory domain; field_mask says which. The structure had other layouts
 * before UCX 1.18: where the UCX of the program is older, which the libucs beside it tells, nothing
 * is written.
 *
 * @return UCS_OK, UCS_ERR_UNSUPPORTED (the program belongs to an older UCX)
 */
ucs_status_t uct_md_query_v2(uct_md_h md, uct_md_attr_v2_t *md_attr);

/**
 * As uct_md_mem_reg(), with more parameters.
 *
 * @return UCS_OK, UCS_ERR_UNSUPPORTED (a dma-buf), and what uct_md_mem_reg() returns
 */
ucs_status_t uct_md_mem_reg_v2(uct_md_h md, void *address, size_t length,
                               const uct_md_mem_reg_params_t *params, uct_mem_h *memh_p);

/**
 * As uct_md_mkey_pack(), with more parameters. The key is one for all that @a memh covers.
 *
 * @param address NULL, or where the memory begins that the peer may use
 * @param length  its length, or SIZE_MAX
 * @return UCS_OK, UCS_ERR_UNSUPPORTED (flags), UCS_ERR_INVALID_PARAM (memory that is not in memh)
 */
ucs_status_t uct_md_mkey_pack_v2(uct_md_h md, uct_mem_h memh, void *address, size_t length,
                                 const uct_md_mkey_pack_params_t *params, void *mkey_buffer);

UCS_END_API

END_C_DECLS

#endif
