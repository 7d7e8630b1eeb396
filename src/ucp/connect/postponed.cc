// SPDX-License-Identifier: BSD-3-Clause
#include "ucp/connect/postponed.h"

#include "ucp/connect/wireup.h"
#include "ucs/sys.h"

#include <cstring>
#include <utility>

namespace ucp {

bool postponed_requests::is_needed()
{
    constexpr unsigned of_an_endpoint = 8; // more than any transport takes
    return !ucs::descriptors_left(of_an_endpoint);
}

bool postponed_requests::keep(const void *request, size_t length)
{
    constexpr size_t most_bytes = 512 << 10; // of some 1,000 requests
    if (length > most_bytes - bytes_) {
        return false;
    }
    const auto *bytes = static_cast<const uint8_t *>(request);
    requests_.emplace_back(bytes, bytes + length);
    bytes_ += length;
    return true;
}

void postponed_requests::drop(uint64_t uuid, uint64_t ep) noexcept
{
    std::erase_if(requests_, [&](const std::vector<uint8_t> &request) {
        wireup_hdr hdr;
        memcpy(&hdr, request.data(), sizeof(hdr));
        bool found = hdr.src_uuid == uuid && hdr.src_ep == ep;
        bytes_ -= found ? request.size() : 0;
        return found;
    });
}

std::vector<std::vector<uint8_t>> postponed_requests::take(bool room)
{
    constexpr uint64_t pause_ns = 100000000;
    uint64_t now = ucs::monotonic_ns();
    if (now < next_look_ns_) {
        return {};
    }
    next_look_ns_ = now + pause_ns;
    if (!room || is_needed()) {
        return {};
    }
    bytes_ = 0;
    return std::exchange(requests_, {});
}

void postpone(ucp_worker *worker, const void *request, size_t length, shortage of)
{
    postponed_requests &all = worker->matcher->postponed;
    if (!all.keep(request, length)) {
        if (all.worth_a_line()) {
            ucs_error("worker %s has no room for a peer's handshake", worker->name.c_str());
        }
    } else if (all.worth_a_line()) {
        ucs_warn("worker %s: peers that connect wait until %s", worker->name.c_str(),
                 of == shortage::descriptors
                     ? "the process has descriptors left (limit: RLIMIT_NOFILE)"
                     : "there are fewer endpoints that only peers use (limit: UCX_MAX_PEER_EPS)");
    }
    if (of == shortage::descriptors) { // of those no event tells
        worker->schedule();
    }
}

void answer_later(const ucp_ep *ep)
{
    const ep_control &c = *ep->control;
    wireup_hdr hdr = {};
    hdr.kind = wireup_kind::request;
    size_t length = address_length(c.peer_address.get());
    hdr.tail_length = static_cast<uint16_t>(length);
    hdr.sn = partner_sn(ep->worker, c.peer_uuid, c.sn);
    hdr.src_uuid = c.peer_uuid;
    hdr.src_ep = ep->remote_id;
    std::vector<uint8_t> request(sizeof(hdr) + length);
    memcpy(request.data(), &hdr, sizeof(hdr));
    memcpy(request.data() + sizeof(hdr), c.peer_address.get(), length);
    postpone(ep->worker, request.data(), request.size(), shortage::descriptors);
}

} // namespace ucp
