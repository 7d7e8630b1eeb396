// SPDX-License-Identifier: BSD-3-Clause
// Receive buffers that many messages share, where the core has FI_MULTI_RECV: memory is taken by
// the bytes that arrive, and not by the number of messages. The core puts each message behind the
// one before it and gives a buffer back when there is no room for a longest one. All its messages
// have been handled by then, because their completions come first; but where the last one failed,
// its error may have overtaken them, so that buffer is not posted before the queue was empty.
#pragma once

#include "uct/ofi/core/md.h"
#include "uct/ofi/core/op.h"

#include <cstddef>
#include <memory>
#include <rdma/fi_endpoint.h>

namespace uct::ofi {

class shared_receives {
  public:
    static constexpr unsigned buffers = 4;

    // Tells an endpoint that is not enabled how long a message may be. False: the core has no
    // shared buffers after all.
    static bool prepare(fid_ep *endpoint, size_t longest);

    // messages: of the greatest length, that all buffers together have room for at least.
    shared_receives(md &domain, fid_ep *endpoint, size_t longest, unsigned messages);
    shared_receives(const shared_receives &) = delete;
    shared_receives &operator=(const shared_receives &) = delete;
    ~shared_receives();

    // Posts what the core does not have; returns how many buffers it still does not have then.
    unsigned post();
    void returned(op *o);
    // The same with the error of its last message.
    void returned_early(op *o);
    // No completion is left.
    void queue_is_empty();
    size_t bytes() const { return buffers * length_; }

  private:
    enum class state { ours, posted, early };
    struct buffer : op {
        std::unique_ptr<memory> region; // where the core needs that
        char *data = nullptr;
        state is = state::ours;
    };
    bool post(buffer *b);

    fid_ep *endpoint_;
    const size_t length_; // of each
    bool has_failed_ = false;
    buffer all_[buffers];
};

} // namespace uct::ofi
