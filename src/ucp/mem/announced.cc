// SPDX-License-Identifier: BSD-3-Clause
//
// Keeping announced memory registered: see announced.h.
#include "ucp/mem/announced.h"

#include "ucp/endpoint/ep_control.h"
#include "ucp/mem/rail_memory.h"

namespace ucp {

namespace {

bool reaches(ucp_worker *worker, uint64_t peer_uuid, const ucp_ep *except) noexcept
{
    bool found = false;
    worker->ep_ids.for_each([&](ucp_ep *ep) {
        found = found || (ep != except && ep->control->peer_uuid == peer_uuid);
    });
    return found;
}

} // namespace

announced_memory::~announced_memory()
{
    for (const entry &e : entries_) {
        release(e);
    }
}

void announced_memory::release(const entry &e) noexcept
{
    if (e.rails) {
        rail_memory_release(e.rails);
    }
    if (e.reg.memh) {
        drop_registration(worker_->context, e.md, e.reg);
    }
}

void announced_memory::keep(data_request *req) noexcept
{
    uint64_t peer = req->ep->control->peer_uuid;
    if ((!req->memory.reg.memh && !req->memory.rails) || !reaches(worker_, peer, req->ep)) {
        return;
    }
    try {
        entries_.push_back({req->id, peer, req->memory.md, req->memory.reg, req->memory.rails});
    } catch (const std::bad_alloc &) {
        return; // the others may suffer
    }
    req->memory.reg = {};
    req->memory.rails = nullptr;
}

void announced_memory::answered(uint64_t request_id) noexcept
{
    std::erase_if(entries_, [&](const entry &e) {
        if (e.request_id != request_id) {
            return false;
        }
        release(e);
        return true;
    });
}

void announced_memory::endpoint_gone(uint64_t peer_uuid) noexcept
{
    if (entries_.empty() || reaches(worker_, peer_uuid, nullptr)) {
        return;
    }
    std::erase_if(entries_, [&](const entry &e) {
        if (e.peer_uuid != peer_uuid) {
            return false;
        }
        release(e);
        return true;
    });
}

} // namespace ucp
