// SPDX-License-Identifier: BSD-3-Clause
//
// Shared services of the protocols: see proto.h.
#include "ucp/proto/proto.h"

#include "ucp/core/context.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep_control.h"
#include "ucs/checked.h"
#include "ucs/log.h"

#include <cstdlib>
#include <cstring>
#include <new>

namespace ucp {

namespace {

constexpr size_t SMALL_DESC = 1024; // data bytes of a pooled descriptor
constexpr size_t KEEP_MIN =
    2048; // below this a copy is cheaper than keeping the transport's descriptor

void request_construct(void *arg, void *object)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    auto *req = new (object) ucp_request;
    req->worker = worker;
    if (worker->context->request_init) {
        worker->context->request_init(req->user());
    }
}

void request_destroy(void *arg, void *object)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    if (worker->context->request_cleanup) {
        worker->context->request_cleanup(static_cast<ucp_request *>(object)->user());
    }
}

// The pool is named: the worker has let go of it when it is destroyed.
void free_into(worker_proto &proto, recv_desc *desc) noexcept
{
    desc->state = recv_desc::use::free;
    switch (desc->from) {
    case recv_desc::origin::uct:
        // The transport gave us the memory from RX_HEADROOM bytes in front of the message on.
        uct_iface_release_desc(desc->uct_head);
        break;
    case recv_desc::origin::pool:
        proto.small_descs.put(desc);
        break;
    case recv_desc::origin::heap:
        free(desc);
        break;
    }
}

// Memory of its own for `length` bytes of data.
recv_desc *heap_desc(size_t length, size_t align) noexcept
{
    size_t front, bytes;
    if (!ucs::checked_round_up(&front, sizeof(recv_desc) + sizeof(void *), align) ||
        !ucs::checked_sum(&bytes, front, length) || !ucs::checked_round_up(&bytes, bytes, align)) {
        return nullptr;
    }
    char *mem = static_cast<char *>(align <= 16 ? malloc(bytes) : aligned_alloc(align, bytes));
    if (!mem) {
        return nullptr;
    }
    auto *desc = new (mem) recv_desc;
    desc->from = recv_desc::origin::heap;
    desc->data = mem + front;
    return desc;
}

} // namespace

worker_proto::worker_proto(ucp_worker *w, size_t alignment)
    : worker(w), requests({.object_size = sizeof(ucp_request) + w->context->request_size,
                           .chunk = 128,
                           .arg = w,
                           .object_init = request_construct,
                           .object_fini = request_destroy}),
      small_descs({.object_size = sizeof(recv_desc) + SMALL_DESC + 2 * sizeof(void *),
                   .align = 64,
                   .chunk = 64}),
      align(alignment), announced(w)
{
    fill_spare_requests();
    if (spare_count < spare_requests.size()) {
        throw std::bad_alloc();
    }
}

void worker_proto::fill_spare_requests() noexcept
{
    while (spare_count < spare_requests.size()) {
        void *req = requests.get();
        if (!req) {
            return;
        }
        spare_requests[spare_count++] = static_cast<ucp_request *>(req);
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
            free_into(*this, part.desc);
        }
    }
    while (tag_matcher::msg_entry *m = tags.first_msg()) {
        tags.remove(m);
        free_into(*this, reinterpret_cast<recv_desc *>(m));
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

recv_desc *desc_alloc(ucp_worker *worker, size_t length, bool user_aligned) noexcept
{
    worker_proto *proto = worker->proto.get();
    recv_desc *desc;
    bool aligned = !user_aligned || proto->align <= 16;
    if (length <= SMALL_DESC && aligned) {
        desc = static_cast<recv_desc *>(proto->small_descs.get());
        if (!desc) {
            return nullptr;
        }
        new (desc) recv_desc;
        desc->from = recv_desc::origin::pool;
        desc->data = reinterpret_cast<char *>(desc) + sizeof(recv_desc) + 2 * sizeof(void *);
        desc->data =
            reinterpret_cast<void *>(reinterpret_cast<uintptr_t>(desc->data) & ~uintptr_t(15));
    } else {
        desc = heap_desc(length, aligned ? 16 : proto->align);
        if (!desc) {
            return nullptr;
        }
    }
    desc->worker = worker;
    desc->length = length;
    desc->part = nullptr;
    desc->ep_id = desc->req_id = 0;
    desc->state = recv_desc::use::callback;
    static_cast<recv_desc **>(desc->data)[-1] = desc;
    return desc;
}

recv_desc *desc_keep(ucp_worker *worker, void *msg, size_t hdr_len, size_t length,
                     unsigned uct_flags, bool *keep_uct) noexcept
{
    char *data = static_cast<char *>(msg) + hdr_len;
    *keep_uct = false;
    if (uct_flags & UCT_CB_PARAM_FLAG_DESC && length >= KEEP_MIN &&
        reinterpret_cast<uintptr_t>(data) % worker->proto->align == 0) {
        char *head = static_cast<char *>(msg) - RX_HEADROOM;
        // UCT aligns the payload, not the headroom: the struct goes to the first aligned place in
        // it.
        auto at = (reinterpret_cast<uintptr_t>(head) + alignof(recv_desc) - 1) &
                  ~uintptr_t(alignof(recv_desc) - 1);
        auto *desc = reinterpret_cast<recv_desc *>(at);
        if (at + sizeof(recv_desc) + sizeof(void *) <= reinterpret_cast<uintptr_t>(data) &&
            reinterpret_cast<uintptr_t>(data) % alignof(void *) == 0) {
            new (desc) recv_desc;
            desc->worker = worker;
            desc->from = recv_desc::origin::uct;
            desc->uct_head = head;
            desc->data = data;
            desc->length = length;
            desc->part = nullptr;
            desc->ep_id = desc->req_id = 0;
            desc->state = recv_desc::use::callback;
            static_cast<recv_desc **>(desc->data)[-1] = desc;
            *keep_uct = true;
            return desc;
        }
    }
    recv_desc *desc = desc_alloc(worker, length);
    if (desc && length != 0) {
        memcpy(desc->data, data, length);
    }
    return desc;
}

void desc_free(recv_desc *desc) noexcept
{
    free_into(*desc->worker->proto, desc);
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
