// SPDX-License-Identifier: BSD-3-Clause
// The descriptor on which a program waits for an interface: an epoll set of those of the core's
// queues. For each packet that comes over a socket the kernel, on the sender's time if that is on
// the same host, runs a callback for every level of sets above the socket, though no thread sleeps:
// 1 to 1.5 % of the bandwidth a level. And the tcp core signals each completion (cq_signal.h). So
// both are away while no thread may sleep, which is so when something came after the last arm() and
// the program has polled for a while without another.
#pragma once

#include "ucs/compiler.h"
#include "uct/ofi/core/cq_signal.h"

#include <rdma/fabric.h>
#include <ucs/type/status.h>
#include <vector>

namespace uct::ofi {

class wait_set {
  public:
    wait_set() = default;
    wait_set(const wait_set &) = delete;
    wait_set &operator=(const wait_set &) = delete;
    ~wait_set();

    // Once, with a new queue, where the core signals too much.
    void mute(fid_cq *cq) { signal_.mute(cq); }
    // Makes the set, armed. `always`, unless negative, is a descriptor that stays in it. False if
    // they cannot be waited on; throws ucs::error without a set.
    bool open(const std::vector<fid_t> &queues, int always);
    int fd() const { return fd_; } // -1 before open()

    // UCS_OK: from here on a thread may sleep.
    ucs_status_t arm();
    // The queues were polled, and so much was there.
    void polled(unsigned found)
    {
        if (UCS_UNLIKELY(armed_)) {
            count_poll(found);
        }
    }

  private:
    static constexpr unsigned awake_after = 256; // polls

    bool add(int fd);
    UCS_NOINLINE void count_poll(unsigned found);
    void disarm();

    int fd_ = -1;
    std::vector<int> queues_; // their descriptors
    cq_signal signal_;
    bool armed_ = false;
    bool met_ = false;   // something since arm(), which holds for one event
    unsigned polls_ = 0; // since arm()
};

} // namespace uct::ofi
