// SPDX-License-Identifier: BSD-3-Clause
// Counting of what an interface sends and receives, for UCX_STATS_DEST. Nothing on the data path
// asks whether it is wanted: an interface that counts has other functions in its table and other
// handlers.
#pragma once

#include "ucs/stats/stats.h"
#include "uct/base/am_trace.h"

#include <uct/api/uct.h>

namespace uct {

class iface;

class traffic {
  public:
    // From here to its end the interface counts.
    traffic(iface &counted, const char *transport, const char *device);
    traffic(const traffic &) = delete;
    traffic &operator=(const traffic &) = delete;
    ~traffic();

    // What stands in the place of a handler.
    am_handler counting(uint8_t id, const am_handler &handler);

  private:
    struct slot {
        ucs::stats::traffic *counted;
        am_handler handler; // the user's
    };
    struct sent {
        unsigned flow; // of ucs::stats
        size_t length;
    };
    template <class Slot>
    struct call;

    static traffic &of(uct_ep_h ep);
    static ucs::stats::lane *lane_of(uct_ep_h ep);
    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned flags);
    static ucs_status_t create_ep(const uct_ep_params_t *params, uct_ep_h *ep_p);
    void count_messages(uct_iface_ops_t &ops);
    void count_rma(uct_iface_ops_t &ops);
    void count_atomics(uct_iface_ops_t &ops);

    ucs::stats::interface *const record_;
    const uct_iface_ops_t uncounted_;
    slot slots_[UCT_AM_ID_MAX];
};

} // namespace uct
