// SPDX-License-Identifier: BSD-3-Clause
//
// Constants that sending and receiving of user active messages share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucp {

// What ucp_worker_query tells as MAX_AM_HEADER. An RTS with such a header still fits every lane's
// bcopy.
constexpr size_t MAX_AM_HEADER = 3072;
// User headers up to this go with zero-copy fragments.
constexpr size_t ZCOPY_HEADER_MAX = 256;

enum : uint16_t { AM_WIRE_REPLY = 1 };

} // namespace ucp
