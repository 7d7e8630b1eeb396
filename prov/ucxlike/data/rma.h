// SPDX-License-Identifier: BSD-3-Clause
//
// Remote memory access and atomics, by messages: the target's progress moves the data to or from
// the region that the key names, checks bounds and rights, and answers.
//
//   initiator                        target
//   fi_write   -- write, data -->    checks, moves, [remote CQ data]
//   completion <-- acked -----
//   fi_read    -- read -->           checks
//   completion <-- read_data, data --
//   fi_atomic  -- atomic, operands --> executes
//   completion <-- acked / read_data, old values --
//
// Data too large for one message moves by UCP's rendezvous, straight between the two buffers. While
// such data is under way to the target's memory, later messages of the same sender wait, so that
// what was ordered behind a write is seen behind it.
#pragma once

#include "prov/ucxlike/endpoint.h"

namespace ucxlike {

// An operation that waits for the target's word. nullptr: `error` says why.
tx_op *begin_access(endpoint *ep, fi_addr_t dest, unsigned options, ssize_t *error);
// The length of its header, and the flags that UCP sends it with.
size_t finish_access_header(endpoint *ep, tx_op *op, wire::builder &b, uint16_t what,
                            unsigned *flags);

// A message of am_rma has come.
ucs_status_t rma_arrived(conn *from, const wire::message &m, void *data, size_t length,
                         const ucp_am_recv_param_t *param);
// Keeps a message until the writes before it have landed.
ucs_status_t defer(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                   const ucp_am_recv_param_t *param);
// The last of those writes has landed.
void replay_deferred(conn *c);
// What one has kept arrives as the other's.
void pass_deferred(conn *from, conn *to);
void drop_deferred(conn *c);
// The word that an operation of a peer waits for; error is 0 or a fabric errno.
void answer(conn *to, uint64_t ack, int error);
// A data message goes to its queue. An error: its data were not taken, and the caller lets them go
// if they are a rendezvous. In engine.cc.
ucs_status_t dispatch(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                      const ucp_am_recv_param_t *param);
// The same for a message that has just come: its group is looked at, and its arrival is answered.
ucs_status_t arrive(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                    const ucp_am_recv_param_t *param);
int query_atomic(fid_domain *dom, fi_datatype type, fi_op op, fi_atomic_attr *attr, uint64_t flags);

} // namespace ucxlike
