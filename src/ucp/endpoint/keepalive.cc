// SPDX-License-Identifier: BSD-3-Clause
//
// The timer runs on the helper thread and only leaves an event; the checks run in progress.
#include "ucp/endpoint/keepalive.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/endpoint/hooks.h"

#include <algorithm>
#include <vector>

namespace ucp {

keepalive::keepalive(ucp_worker *worker, double interval, unsigned eps_per_round)
    : worker_(worker), eps_per_round_(std::max(eps_per_round, 1u)), promise_(worker, 1),
      timer_(ucs::async_watch::timer(
          static_cast<uint64_t>(std::max(interval, 1e-3) * 1e9),
          [](void *arg, uint32_t) {
              auto *self = static_cast<keepalive *>(arg);
              if (!self->due_.exchange(true)) {
                  self->worker_->post_event({event::kind::keepalive});
              }
          },
          this))
{
}

// The check of its lane asks the peer, if that needs it.
static bool checks_itself(const ucp_ep *ep) noexcept
{
    return ep->lane_count > 0 && ep->am_lane().attr().cap.flags & UCT_IFACE_FLAG_EP_KEEPALIVE;
}

void keepalive::run_round() noexcept
{
    due_ = false;
    size_t seen = 0;
    size_t checked = 0;
    worker_->ep_ids.for_each([&](ucp_ep *ep) {
        if (seen++ < next_ || checked == eps_per_round_) {
            return;
        }
        ++next_;
        if (ep->status != UCS_OK || ep->err_mode == UCP_ERR_HANDLING_MODE_NONE) {
            return;
        }
        ++checked;
        if (!checks_itself(ep)) {
            send_ping(ep);
        }
        for (unsigned i = 0; i < ep->lane_count; ++i) {
            // What it finds, the interface reports as the error of the lane.
            (void)uct_ep_check(ep->lanes[i].ep, 0, nullptr);
        }
    });
    if (next_ >= seen) {
        next_ = 0;
    }
}

} // namespace ucp
