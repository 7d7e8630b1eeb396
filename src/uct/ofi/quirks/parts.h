// SPDX-License-Identifier: BSD-3-Clause
// On-node, a message that is longer than the core injects and finds no queue (fifo.h) leaves in
// parts, each of which the core injects. What the core does not inject it has the receiver fetch,
// and until that is done it holds back the completions of everything that was posted later, to
// whomever: a peer that is stopped would stop us. Each part is a message of the core whose
// completion data has am_part:
//
//   0       8         12     16      24
//   sender  endpoint  total  offset  bytes of the message ...
//
// The parts of a message come in their order; those of other endpoints may come in between.
#pragma once

#include "ucs/mpool.h"
#include "uct/ofi/core/op.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace uct::ofi {

struct part_header {
    uint64_t sender;   // id of its interface
    uint32_t endpoint; // of which that is the number there
    uint32_t total;    // length of the message
    uint64_t offset;   // of the part in it
};
static_assert(sizeof(part_header) == 24);

constexpr size_t largest_part = 4096; // bytes, with the header

// Puts messages together. For one thread at a time.
class part_assembly {
  public:
    // buffers: receive_ops with room for `most` bytes.
    part_assembly(ucs::mpool_base &buffers, size_t most) : buffers_(buffers), most_(most) {}

    struct message {
        receive_op *buffer; // the caller's; nullptr: it is not whole yet
        size_t length;
    };
    // A part, header and all, has come. One that does not fit what came before is dropped with a
    // warning, and its message with it.
    message add(const char *part, size_t length);
    // The interface died: nothing comes from it any more.
    void sender_died(uint64_t sender);

  private:
    struct unfinished {
        receive_op *buffer;
        size_t total;
        size_t have;
    };
    using key = std::pair<uint64_t, uint32_t>; // sender, endpoint

    bool begin(const key &from, size_t total);
    void drop(std::map<key, unfinished>::iterator which);

    ucs::mpool_base &buffers_;
    size_t most_;
    std::map<key, unfinished> messages_;
};

} // namespace uct::ofi
