// SPDX-License-Identifier: BSD-3-Clause
// The tcp core of libfabric 1.17 makes the descriptor of a completion queue readable for each
// completion, for a thread that sleeps on it, and takes that back at the next poll: two system
// calls for each message, 0.3 us each way, though none sleeps. It does so through a descriptor of
// its own in the queue's epoll set, and writes nothing while what it wrote before has not been
// noticed. Taken out of the set, it is never noticed; put back, it works as before. The sockets
// stay in the set.
#pragma once

#include <rdma/fi_eq.h>
#include <ucs/type/status.h>

namespace uct::ofi {

class cq_signal {
  public:
    // Takes the descriptor out of a new queue's set, while it is the only one there. Does nothing
    // where the core is made differently; nor do the others then.
    void mute(fid_cq *cq);
    ucs_status_t unmute();
    void mute_again();

  private:
    int set_ = -1;
    int signal_ = -1;     // -1: it was not found
    void *tag_ = nullptr; // by which the core knows it
};

} // namespace uct::ofi
