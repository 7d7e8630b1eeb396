// SPDX-License-Identifier: BSD-3-Clause
//
// A receive of a tag message.
#pragma once

#include "ucp/core/request.h"
#include "ucp/rndv/rndv.h"

#include <cstdint>

namespace ucp {

// It waits in the matcher for its message, which comes whole, in fragments or by rendezvous.
struct tag_recv_request : rndv_recv_request, tag_matcher::recv_entry {
    static constexpr req_kind is = req_kind::tag_recv;
    using rndv_recv_request::rndv_recv_request;

    // These name the message whose fragments are written to its buffer (wire.h).
    uint64_t source;
    uint64_t msg_id;
};
static_assert(request_type<tag_recv_request>);

} // namespace ucp
