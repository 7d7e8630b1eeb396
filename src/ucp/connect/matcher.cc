// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/connect/matcher.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep_control.h"
#include "ucp/endpoint/hooks.h"
#include "ucs/error.h"

#include <algorithm>

namespace ucp {

void matcher::add(uint64_t uuid, uint32_t sn, ucp_ep *ep)
{
    peers[uuid].by_sn.emplace(sn, ep);
    ep->control->peer_uuid = uuid;
    ep->control->sn = sn;
    ep->control->matched = true;
}

void matcher::remove(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    auto &by_sn = peers.find(c.peer_uuid)->second.by_sn;
    auto [begin, end] = by_sn.equal_range(c.sn);
    by_sn.erase(std::find_if(begin, end, [&](const auto &entry) { return entry.second == ep; }));
    c.matched = false;
}

// Endpoints of a worker to itself pair within one count: 0 with 1, 2 with 3.
uint32_t partner_sn(const ucp_worker *worker, uint64_t uuid, uint32_t sn) noexcept
{
    return uuid == worker->uuid ? sn ^ 1 : sn;
}

void leave_matcher(ucp_ep *ep) noexcept
{
    ep_control &c = *ep->control;
    if (!c.matched) {
        return;
    }
    if (ep->status != UCS_OK && c.scarce && (c.todo & TODO_REPLY)) {
        (void)ucs::guard([&] { answer_later(ep); });
    }
    ep->worker->matcher->remove(ep);
}

} // namespace ucp
