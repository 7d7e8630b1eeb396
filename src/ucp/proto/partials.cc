// SPDX-License-Identifier: BSD-3-Clause
//
// Messages of which only a part has arrived when the endpoint of their sender goes. The rest never
// comes: what the user has not seen is freed, and a tag message, which a probe may have shown, ends
// the receive that takes it.
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/proto/proto.h"

#include <cstdlib>

namespace ucp {

void partials_abandon(ucp_ep *ep, ucs_status_t status) noexcept
{
    auto &partials = ep->worker->proto->partials;
    for (auto it = partials.begin(); it != partials.end();) {
        partial &part = it->second;
        if (part.ep_id != ep->local_id || part.req) { // a matched one ends with its request
            ++it;
            continue;
        }
        if (part.am_handler) {
            free(part.header);
            ep->worker->proto->descs.put(part.desc);
        } else if (part.desc) {
            part.desc->what = recv_desc::content::tag_lost;
            part.desc->lost = status;
            part.desc->part = nullptr;
        }
        it = partials.erase(it);
    }
}

} // namespace ucp
