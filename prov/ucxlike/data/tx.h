// SPDX-License-Identifier: BSD-3-Clause
//
// Operations that carry data out: the one function that sends and accesses to memory reduce to, and
// the end of an operation.
#pragma once

#include "prov/ucxlike/endpoint.h"
#include "prov/ucxlike/queue/cntr.h"
#include "prov/ucxlike/queue/cq.h"

namespace ucxlike {

// The peer answered an operation that waits for its word; error is 0 or a fabric errno.
void tx_answered(tx_op *op, int error);
// UCP is done with an operation's buffers.
void tx_sent(void *request, ucs_status_t status, void *op);
// Reports and frees an operation for which nothing is pending any more.
void tx_finish(tx_op *op);
// One receiver's share of a message to a group has ended. A receiver that has died is in the group
// no more: that does not fail the message.
void tx_part_finished(tx_op *whole, endpoint *owner);
// Hands an operation with its finished header to UCP. Negative: nothing was posted, the operation
// is free again.
ssize_t tx_post(tx_op *op, unsigned am, size_t header_length, const void *buffer, size_t count,
                bool is_iov, unsigned am_flags = 0);

// What counts operations of this kind; nullptr: nothing.
inline cntr *counter_of(endpoint *ep, uint64_t cq_flags)
{
    return cq_flags & FI_READ    ? ep->read_cntr
           : cq_flags & FI_WRITE ? ep->write_cntr
                                 : ep->send_cntr;
}

// Tells the application of a success, by its queue unless that is silenced, and by its counter.
UCS_ALWAYS_INLINE void report_success(endpoint *ep, void *context, uint64_t cq_flags, bool silent)
{
    if (UCS_LIKELY(!silent && ep->tx_cq)) {
        ep->tx_cq->write({context, cq_flags, 0, nullptr, 0, 0, FI_ADDR_NOTAVAIL});
    }
    cntr *counter = counter_of(ep, cq_flags);
    if (UCS_UNLIKELY(counter)) {
        counter->count();
    }
}

// What an operation keeps of the options of its call.
constexpr uint8_t op_options(unsigned options)
{
    return static_cast<uint8_t>((options & tx_complete ? 0 : tx_op::silent) |
                                (options & tx_inject ? tx_op::injected : 0));
}

// The options of calls without flags.
UCS_ALWAYS_INLINE unsigned defaults(fid_ep *f)
{
    return static_cast<endpoint *>(f)->tx_defaults;
}

// A fenced operation waits until what was posted to this peer has completed: the caller progresses.
inline bool held_by_fence(const conn *to, unsigned options)
{
    return UCS_UNLIKELY(options & tx_fence) && to->outstanding;
}

} // namespace ucxlike
