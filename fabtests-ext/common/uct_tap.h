// SPDX-License-Identifier: BSD-3-Clause
//
// A hook in front of a worker's transports, for programs that lie or die: it sees each operation
// when the transport takes it, may change an active message, or end the process. It is a part of
// test programs alone.
#pragma once

#include <uct/api/uct.h>

#include <cstddef>
#include <cstdint>

namespace uct_tap {

// Ids of active messages are below it.
constexpr unsigned remote_memory = 32; // a put, get or atomic of the transport

class observer {
  public:
    virtual ~observer() = default;
    // `bytes` are of an active message (of a zero-copy one its header alone); none for remote
    // memory. Returns the length, which is not grown. Called again when the transport had no room.
    virtual size_t before(unsigned id, uint8_t *bytes, size_t length) = 0;
    // The transport has taken it.
    virtual void after() = 0;
};

// All operations of the interface's endpoints, from now on. One observer a process.
void install(uct_iface_h iface, observer *seen);

} // namespace uct_tap
