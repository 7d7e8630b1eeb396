/* SPDX-License-Identifier: BSD-3-Clause */

/**
 * @file uct_v2.h
 * Calls of UCT that newer UCX has in a header it does not install. Neither is this one: it is for
 * the layer above in this tree.
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

END_C_DECLS

#endif
