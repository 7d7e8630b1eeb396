// SPDX-License-Identifier: BSD-3-Clause
//
// What sending and receiving of user active messages share.
#pragma once

#include "ucp/mem/mem.h"
#include "ucp/proto/wire.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ucp {

// The longest user header where bcopy takes messages of max_bcopy bytes: one whole, with an RTS and
// its keys. ucp_worker_query tells as MAX_AM_HEADER what it is for all of the worker's transports;
// a peer that takes less may take less of it.
inline size_t max_am_header(size_t max_bcopy) noexcept
{
    constexpr size_t most = 3072, beside = sizeof(wire::rts_hdr) + RTS_RKEY_MAX;
    return std::min(most, max_bcopy - std::min(max_bcopy, beside));
}
// User headers up to this go with zero-copy fragments.
constexpr size_t ZCOPY_HEADER_MAX = 256;

enum : uint16_t { AM_WIRE_REPLY = 1 };

} // namespace ucp
