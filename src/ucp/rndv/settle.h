// SPDX-License-Identifier: BSD-3-Clause
//
// Messages that were read out of the memory of another process of this host. That process has no
// part in such a read: if it has closed its endpoint by force, its user may have changed the buffer
// before it was read. The close notice was posted before that, so the read counts once everything
// that the sender had posted is read, too. Where the user is not to be called inside of the call
// that posted it, a read that ended there counts in the next round.
#pragma once

#include <cstdint>
#include <vector>

struct ucp_worker;

namespace ucp {

struct rndv_recv_request;

class settling {
  public:
    // Whether this finished read has to wait.
    static bool concerns(const rndv_recv_request *req) noexcept;

    // False: there is no memory to remember it with, and nothing has changed.
    bool add(rndv_recv_request *req) noexcept;
    bool empty() const noexcept { return reads_.empty(); }
    // After a round of the transports that found `transport_count` events.
    void run_round(ucp_worker *worker, unsigned transport_count) noexcept;

  private:
    struct read {
        uint64_t id; // of the request, which may be gone by now
        unsigned rounds;
    };
    std::vector<read> reads_;
    bool running_ = false; // a callback of run_round() may progress the worker
};

} // namespace ucp
