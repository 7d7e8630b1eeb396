// SPDX-License-Identifier: BSD-3-Clause
//
// All protocols. Each is defined beside its functions; src/ucp/proto/ep_config.cc gives it the
// sizes that it serves.
#pragma once

#include "ucp/core/protocol.h"

namespace ucp {

extern const message_protocols tag_messages;
extern const message_protocols tag_sync_messages;
extern const message_protocols am_messages;
extern const message_protocols stream_messages;
extern const message_protocols rndv_messages; // the bytes that an RTR asks for
extern const message_protocols put_messages;
extern const message_protocols get_messages;

extern const protocol put_short, put_zcopy; // of a lane
extern const protocol get_zcopy;
extern const protocol put_store, get_load, atomic_mapped; // of memory that is mapped here
extern const protocol atomic_message;

} // namespace ucp
