// SPDX-License-Identifier: BSD-3-Clause
//
// Rails: lanes over several network devices that share the bytes of one large message, put or get
// (those: rma/native.h). The announcement of a rendezvous carries a key for each of the sender's
// rails; the receiver reads a piece over each of its own, in proportion to their bandwidth, and
// confirms when all are there.
#pragma once

#include "ucp/mem/rail_memory.h"
#include "ucp/proto/wire.h"
#include "ucp/rndv/rndv.h"

namespace ucp {

// Registers the sender's buffer for its further rails, if the message is worth it.
void rails_register(rndv_send_request *req) noexcept;
// Keys of the first registration and of the further ones, as rkey_lane() reads them; returns their
// bytes.
size_t rails_pack_keys(rndv_send_request *req, uint8_t md_index, uct_mem_h memh,
                       void *dest) noexcept;

// Starts reading the announced message over two rails or more; `done` runs when every piece has
// ended. false: nothing was started, one lane shall do it.
bool rails_get(rndv_recv_request *req, const wire::rts_hdr *rts,
               uct_completion_callback_t done) noexcept;

} // namespace ucp
