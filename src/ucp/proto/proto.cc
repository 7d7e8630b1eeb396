// SPDX-License-Identifier: BSD-3-Clause
//
// Shared services of the protocols: see proto.h.
#include "ucp/proto/proto.h"

#include "ucp/core/context.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep_control.h"
#include "ucs/log.h"

#include <cstdlib>
#include <new>

namespace ucp {

namespace {

void request_construct(void *arg, void *object)
{
    auto *context = static_cast<ucp_worker *>(arg)->context;
    if (context->request_init) {
        context->request_init(static_cast<char *>(object) + request_bytes);
    }
}

void request_destroy(void *arg, void *object)
{
    auto *context = static_cast<ucp_worker *>(arg)->context;
    if (context->request_cleanup) {
        context->request_cleanup(static_cast<char *>(object) + request_bytes);
    }
}

} // namespace

worker_proto::worker_proto(ucp_worker *w, size_t alignment)
    : worker(w), requests({.object_size = request_bytes + w->context->request_size,
                           .chunk = 128,
                           .arg = w,
                           .object_init = request_construct,
                           .object_fini = request_destroy}),
      descs(w, alignment), announced(w)
{
    fill_spare_requests();
    if (spare_count < spare_requests.size()) {
        throw std::bad_alloc();
    }
}

void worker_proto::fill_spare_requests() noexcept
{
    while (spare_count < spare_requests.size()) {
        void *memory = requests.get();
        if (!memory) {
            return;
        }
        spare_requests[spare_count++] = memory;
    }
}

worker_proto::~worker_proto()
{
    while (spare_count > 0) {
        requests.put(spare_requests[--spare_count]);
    }
    while (tag_matcher::recv_entry *e = tags.any_recv()) {
        tags.remove(e);
    }
    // A partial tag message's descriptor is among the matcher's messages, too.
    for (auto &[key, part] : partials) {
        free(part.header);
        if (part.desc && part.desc->what == recv_desc::content::am) {
            descs.put(part.desc);
        }
    }
    while (tag_matcher::msg_entry *m = tags.first_msg()) {
        tags.remove(m);
        descs.put(recv_desc::from_match(m));
    }
    if (requests.used() && !(worker->flags & UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK)) {
        ucs_warn("worker %p: %zu requests were not returned to mpool ucp_requests", (void *)worker,
                 requests.used());
    }
}

void ep_proto_gone(ucp_ep *ep) noexcept
{
    ep->worker->proto->announced.endpoint_gone(ep->control->peer_uuid);
}

void drop_stale(ucp_worker *worker, const char *what) noexcept
{
    ++worker->stale_messages;
    ucs_debug("worker %p: dropped %s for an endpoint or request that is gone", (void *)worker,
              what);
}

bool peer_fault(ucp_worker *worker) noexcept
{
    return ucs::log::worth_a_line(++worker->peer_faults);
}

ucs_status_t drop_damaged(ucp_worker *worker, const char *what, size_t length) noexcept
{
    ++worker->stale_messages;
    if (peer_fault(worker)) {
        ucs_warn("worker %p: dropped damaged %s message, length %zu", (void *)worker, what, length);
    }
    return UCS_OK;
}

ucp_ep *find_usable_ep(ucp_worker *worker, uint64_t id) noexcept
{
    ucp_ep *ep = worker->find_ep(id);
    return ep && ep->check_usable() == UCS_OK ? ep : nullptr;
}

ucp_request *find_request(ucp_worker *worker, uint64_t id, uint8_t phase) noexcept
{
    ucp_request *req = worker->proto->request_ids.find(id);
    return req && req->phase == phase ? req : nullptr;
}

ucp_request *find_asked(ucp_worker *worker, uint64_t ep, uint64_t id, uint8_t phase) noexcept
{
    ucp_request *req = find_request(worker, id, phase);
    return req && req->ep && req->ep->local_id == ep ? req : nullptr;
}

} // namespace ucp
