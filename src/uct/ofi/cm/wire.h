// SPDX-License-Identifier: BSD-3-Clause
// What the connection manager says to its peer. One header serves the core provider's connection
// data (fi_connect, fi_accept, fi_reject) and the messages that follow on the connection, so that
// private data of any length goes over cores that carry 256 bytes (tcp) or 56 (verbs) at connect.
//
//   byte 0       4        5       6           8              12            16
//        | magic | version | type | chunk_len | total_len    | arg         | chunk ...
//
//   little-endian. chunk_len bytes of private data follow; total_len is the length of all of it,
//   which DATA messages complete in order. What arg means depends on the type.
//
//   where                type      direction          arg           private data
//   fi_connect           CONNECT   client to server   incarnation   all, or the first part
//   fi_accept            ACCEPT    server to client   incarnation   all, or the first part
//   fi_accept            CONTINUE  server to client   0             none: send me the rest
//   fi_accept/fi_reject  REJECT    server to client   0             none
//   message              REPLY     server to client   incarnation   after CONTINUE, as ACCEPT
//   message              REJECT    server to client   0             none
//   message              DATA      both               offset        the next part
//   message              NOTIFY    client to server   0             none
//   message              DISCONNECT both              0             none
//
//   incarnation: a random number of the process, so that a peer that died and came back on the same
//   address can be told from the one before.
#pragma once

#include "ucs/wire/protocol.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace uct::ofi::cm_wire {

enum class type : uint8_t {
    connect = 1,
    accept = 2,
    proceed = 3, // CONTINUE
    reject = 4,
    reply = 5,
    data = 6,
    notify = 7,
    disconnect = 8,
};

constexpr ucs::protocol protocol = {0x4d435855, // "UXCM"
                                    1, "the connection manager's protocol"};
constexpr size_t header_size = 16;
constexpr size_t chunk_max = 2032; // of one message, so that a message is 2 KiB
constexpr size_t message_max = header_size + chunk_max;

// A message that only the core's handshake carries.
constexpr bool with_handshake(type t)
{
    return t == type::connect || t == type::accept || t == type::proceed;
}

struct message {
    cm_wire::type type;
    uint32_t total_len;
    uint32_t arg;
    const void *chunk; // into the parsed buffer
    size_t chunk_len;
};

// Writes header and chunk to out, which holds header_size + m.chunk_len bytes. Returns that length.
size_t write(void *out, const message &m);

// False when the bytes are not one of ours: wrong magic or version, unknown type, or lengths that
// contradict each other or `length`. Bytes behind the chunk are ignored (rdma_cm pads).
bool parse(const void *in, size_t length, message &m);

} // namespace uct::ofi::cm_wire
