// SPDX-License-Identifier: BSD-3-Clause
//
// Puts and gets that the lanes do themselves, out of or into the user's registered buffer. A large
// one is spread over several rails if UCX_MAX_RMA_RAILS allows it: each lane in turn takes a share
// in proportion to its bandwidth, and there is one completion for all.
#pragma once

#include "ucp/rma/rma.h"

#include <algorithm>

namespace ucp {

// The operation is to be posted by a progress() that calls native_piece(). false: the buffer cannot
// be registered, nothing has changed. A fence waits for the end of what reads or uses several
// lanes.
bool start_native(rma_request *req, bool reads) noexcept;

// Posted are all bytes of the share that the current lane takes; some are left for the next one.
void next_share(rma_request *req) noexcept;

// At most `room` bytes over the current lane, by uct_ep_put_zcopy() or uct_ep_get_zcopy(); returns
// what progress() returns.
template <class Post>
UCS_ALWAYS_INLINE ucs_status_t native_piece(rma_request *req, const rkey_rail &rail, size_t room,
                                            Post post) noexcept
{
    uct_ep_h lane = req->ep->lanes[rail.lane].ep;
    uint64_t address = req->address + req->dt.offset();
    size_t share = req->share_end - req->dt.offset();
    ucs_status_t status =
        zcopy_piece(req, rail.lane, std::min(room, share), [&](const uct_iov_t *iov, size_t count) {
            return post(lane, iov, count, address, rail.bundle.rkey, &req->comp);
        });
    // Only a request with bytes left is still ours to look at.
    if (UCS_UNLIKELY(status == UCS_INPROGRESS) && req->dt.offset() == req->share_end) {
        next_share(req);
    }
    return status;
}

} // namespace ucp
