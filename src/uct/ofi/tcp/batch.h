// SPDX-License-Identifier: BSD-3-Clause
// Small active messages that were gathered (core/gathering.h), as one message of the core: a
// sequence of
//
//   0       4   5        8
//   length  id  0        payload ...  zeros up to a multiple of 8
//
// A batch leaves when it is full or batch_age_ns old, with the message that follows a longer pause
// or would have gone by itself, before anything else that the endpoint sends, at the next progress,
// and, when the program does not call in any more, in the background.
#pragma once

#include "uct/ofi/core/gathering.h"

#include <cstddef>
#include <cstdint>

namespace uct::ofi {

class ep;
class msg_iface;
class tcp_companion;

struct batch_record {
    uint32_t length; // of the payload
    uint8_t id;
    uint8_t reserved[3];
};
static_assert(sizeof(batch_record) == 8);

constexpr size_t batch_step(size_t length)
{
    return sizeof(batch_record) + (length + 7) / 8 * 8;
}

constexpr uint64_t batch_age_ns = 10'000;

class batch final : public gathering {
  public:
    // room: bytes it may grow to.
    batch(ep &sender, tcp_companion &tcp, size_t room) : sender_(sender), tcp_(tcp), room_(room) {}

    ucs_status_t add(uint8_t id, const void *head, size_t head_length, const void *payload,
                     size_t length, unsigned alone) override;
    void send() override;
    void drop() override;

  private:
    buffer_op *take();

    ep &sender_;
    tcp_companion &tcp_;
    const size_t room_;
    uint64_t begun_at_ = 0;
};

// Runs the handlers of what is in one that arrived. What does not look like it is dropped.
void deliver_batch(msg_iface &home, char *data, size_t length);

} // namespace uct::ofi
