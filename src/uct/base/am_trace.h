// SPDX-License-Identifier: BSD-3-Clause
// Tracing of active messages at the log level "data": every message that is sent or arrives is
// described by the tracer of uct_iface_set_am_tracer(). Nothing on the data path asks whether there
// is one: an interface that traces has other functions in its table and other handlers.
#pragma once

#include "ucs/compiler.h"

#include <uct/api/uct.h>

namespace uct {

class iface;

struct am_handler {
    uct_am_callback_t callback;
    void *arg;
};

class am_trace {
  public:
    // From here to its end the interface traces.
    am_trace(iface &traced, uct_am_tracer_t tracer, void *arg);
    am_trace(const am_trace &) = delete;
    am_trace &operator=(const am_trace &) = delete;
    ~am_trace();

    void set_handler(uint8_t id, const am_handler &handler) { slots_[id].handler = handler; }

  private:
    struct slot {
        am_trace *home;
        uint8_t id;
        am_handler handler; // the user's
    };

    static am_trace &of(uct_ep_h ep);
    static ucs_status_t receive(void *arg, void *data, size_t length, unsigned flags);
    static ucs_status_t am_short(uct_ep_h ep, uint8_t id, uint64_t header, const void *payload,
                                 unsigned length);
    static ucs_status_t am_short_iov(uct_ep_h ep, uint8_t id, const uct_iov_t *iov, size_t count);
    static ssize_t am_bcopy(uct_ep_h ep, uint8_t id, uct_pack_callback_t pack, void *arg,
                            unsigned flags);
    static ucs_status_t am_zcopy(uct_ep_h ep, uint8_t id, const void *header,
                                 unsigned header_length, const uct_iov_t *iov, size_t count,
                                 unsigned flags, uct_completion_t *completion);
    void describe(uct_am_trace_type_t type, uint8_t id, const void *data, size_t length) const;

    iface &traced_;
    const uct_am_tracer_t tracer_;
    void *const arg_;
    const uct_iface_ops_t untraced_;
    slot slots_[UCT_AM_ID_MAX];
};

} // namespace uct
