// SPDX-License-Identifier: BSD-3-Clause
//
// Remote memory access and atomics, by messages: the target's progress moves the data to or from
// the region that the key names, checks bounds and rights, and answers.
#pragma once

#include "prov/ucxlike/endpoint.h"

namespace ucxlike {

ucs_status_t rma_arrived(conn *from, const wire::message &m, void *data, size_t length,
                         const ucp_am_recv_param_t *param);
// Keeps a message until the writes before it have landed.
ucs_status_t defer(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                   const ucp_am_recv_param_t *param);
void drop_deferred(conn *c);
// The word that an operation of a peer waits for; error is 0 or a fabric errno.
void answer(conn *to, uint64_t ack, int error);
// A data message goes to its queue. An error: nobody has taken its data, which the caller lets go
// if they are a rendezvous. In engine.cc.
ucs_status_t dispatch(conn *c, unsigned am, const wire::message &m, void *data, size_t length,
                      const ucp_am_recv_param_t *param);
int query_atomic(fid_domain *dom, fi_datatype type, fi_op op, fi_atomic_attr *attr, uint64_t flags);

} // namespace ucxlike
