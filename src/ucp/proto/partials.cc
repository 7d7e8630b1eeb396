// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/proto/partials.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/proto/proto.h"

#include <cstring>

namespace ucp {

bool may_begin(ucp_worker *worker, const partial &part, size_t length) noexcept
{
    if (part.received > part.total || part.total > wire::max_message ||
        worker->proto->partials.contains(part.key)) {
        drop_damaged(worker, part.of->first, length);
        return false;
    }
    if (part.ep_id != 0 && !find_usable_ep(worker, part.ep_id)) {
        drop_stale(worker, "a fragmented message");
        return false;
    }
    return true;
}

void part_begun(ucp_worker *worker, partial *part) noexcept
{
    if (part->received == part->total) { // short, and posted before the sender knew its lanes
        part->of->whole(worker, part);
    }
}

ucs_status_t add_fragment(ucp_worker *worker, const fragmented &of, const void *data,
                          size_t length) noexcept
{
    wire::frag_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, of.further, length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    auto &partials = worker->proto->partials;
    auto it = partials.find({hdr.source, hdr.msg_id});
    if (it == partials.end()) {
        drop_stale(worker, "fragment");
        return UCS_OK;
    }
    partial *part = &it->second;
    size_t n = length - sizeof(hdr);
    if (part->of != &of || hdr.offset != part->received || n > part->total - part->received) {
        return drop_damaged(worker, of.further, length);
    }
    of.store(part, hdr.offset, static_cast<const char *>(data) + sizeof(hdr), n);
    part->received += n;
    if (part->received == part->total) {
        of.whole(worker, part);
    }
    return UCS_OK;
}

// A tag message, which a probe may have shown, ends the receive that takes it.
void partials_abandon(ucp_ep *ep, ucs_status_t status) noexcept
{
    auto &partials = ep->worker->proto->partials;
    for (auto it = partials.begin(); it != partials.end();) {
        partial &part = it->second;
        if (part.ep_id != ep->local_id || part.req) { // a matched one ends with its request
            ++it;
            continue;
        }
        part.of->lost(ep->worker, &part, status);
        it = partials.erase(it);
    }
}

} // namespace ucp
