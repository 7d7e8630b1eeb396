// SPDX-License-Identifier: BSD-3-Clause
//
// Sending: the one function that all send calls reduce to, and the end of an operation.
#pragma once

#include "prov/ucxlike/endpoint.h"

namespace ucxlike {

// The peer answered an operation that waits for its word; error is 0 or a fabric errno.
void tx_answered(tx_op *op, int error);
// UCP is done with an operation's buffers.
void tx_sent(void *request, ucs_status_t status, void *op);
// Reports and frees an operation for which nothing is pending any more.
void tx_finish(tx_op *op);
// Hands an operation with its finished header to UCP. Negative: nothing was posted, the operation
// is free again.
ssize_t tx_post(tx_op *op, unsigned am, size_t header_length, const void *buffer, size_t count,
                bool is_iov, unsigned am_flags = 0);

// A fenced operation waits until what was posted to this peer has completed: the caller progresses.
inline bool held_by_fence(const conn *to, unsigned options)
{
    return UCS_UNLIKELY(options & tx_fence) && to->outstanding;
}

} // namespace ucxlike
