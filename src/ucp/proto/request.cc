// SPDX-License-Identifier: BSD-3-Clause
//
// Requests: taking, completing, giving back. See request.h for the life of one.
#include "ucp/core/request.h"

#include "ucp/core/worker.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto.h"

#include <cstdlib>
#include <new>

namespace ucp {

namespace {

// The last thing before other threads may take the request as ended.
void mark_done(ucp_request *req) noexcept
{
    __atomic_store_n(&req->done, uint8_t(1), __ATOMIC_RELEASE);
}

// Of a receive.
const ucp_tag_recv_info_t &info_of(const ucp_request *req) noexcept
{
    return static_cast<const recv_request *>(req)->info;
}

void call_back(ucp_request *req) noexcept
{
    switch (req->kind) {
    case req_kind::tag_recv:
        req->cb.recv(req->user(), req->status, &info_of(req), req->user_data);
        break;
    case req_kind::stream_recv:
        req->cb.recv_stream(req->user(), req->status, info_of(req).length, req->user_data);
        break;
    case req_kind::am_recv:
        req->cb.recv_am(req->user(), req->status, info_of(req).length, req->user_data);
        break;
    default:
        req->cb.send(req->user(), req->status, req->user_data);
        break;
    }
}

bool is_receive(req_kind kind) noexcept
{
    return has_buffer(kind) && kind != req_kind::send;
}

void store_info(const ucp_request_param_t *param, req_kind kind,
                const ucp_tag_recv_info_t &info) noexcept
{
    if (kind == req_kind::tag_recv) {
        *param->recv_info.tag_info = info;
    } else if (kind == req_kind::am_recv || kind == req_kind::stream_recv) {
        *param->recv_info.length = info.length;
    }
}

// What the operation had for its buffer.
void end_buffer(data_request *req) noexcept
{
    req->dt.finish();
    if (UCS_UNLIKELY(req->memory.reg.memh || req->memory.rails)) {
        release_memh(req);
    }
    if (UCS_UNLIKELY(req->flags & REQ_OWN_COPY)) {
        free(req->own_copy);
        req->flags &= ~REQ_OWN_COPY;
    }
}

} // namespace

void *request_memory(ucp_worker *worker) noexcept
{
    return worker->proto->requests.get();
}

void *request_memory_or_spare(ucp_worker *worker) noexcept
{
    worker_proto &proto = *worker->proto;
    void *memory = proto.requests.get();
    if (UCS_UNLIKELY(!memory && proto.spare_count > 0)) {
        memory = proto.spare_requests[--proto.spare_count];
    } else if (UCS_UNLIKELY(proto.spare_count < proto.spare_requests.size())) {
        proto.fill_spare_requests();
    }
    return memory;
}

void request_put(ucp_request *req) noexcept
{
    if (!(req->flags & REQ_EXTERNAL)) {
        req->worker->proto->requests.put(req);
    }
}

uint64_t request_wire_id(ucp_request *req) noexcept
{
    if (req->id == 0) {
        try {
            req->id = req->worker->proto->request_ids.add(req);
        } catch (const std::bad_alloc &) {
            return 0;
        }
    }
    return req->id;
}

void complete(ucp_request *req, ucs_status_t status) noexcept
{
    request_unlist(req);
    if (req->id != 0) {
        req->worker->proto->request_ids.erase(req->id);
        req->id = 0;
    }
    if (UCS_LIKELY(has_buffer(req->kind))) {
        end_buffer(static_cast<data_request *>(req));
    }
    req->phase = PHASE_NONE;
    req->status = status;
    uint32_t flags = req->flags | REQ_COMPLETED;
    req->flags = flags;
    mark_done(req);
    if (flags & REQ_POSTING) {
        return;
    }
    // The user may free the request in its callback: only what was released before is given back
    // here.
    if (flags & REQ_CALLBACK) {
        call_back(req);
    }
    if (flags & REQ_RELEASED) {
        request_put(req);
    }
}

ucs_status_ptr_t post_return(ucp_request *req, const ucp_request_param_t *param) noexcept
{
    req->flags &= ~REQ_POSTING;
    if (!(req->flags & REQ_COMPLETED)) {
        return req->user();
    }
    ucs_status_t status = req->status;
    if (param->op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
        void *user = req->user();
        if (req->flags & REQ_CALLBACK) {
            call_back(req); // may free it
        }
        return user;
    }
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_RECV_INFO && status == UCS_OK &&
        is_receive(req->kind)) {
        store_info(param, req->kind, info_of(req));
    }
    request_put(req);
    return UCS_STATUS_PTR(status);
}

ucs_status_ptr_t post_return_imm_slow(ucp_worker *worker, req_kind kind, ucs_status_t status,
                                      const ucp_request_param_t *param,
                                      const ucp_tag_recv_info_t *info) noexcept
{
    uint32_t mask = param->op_attr_mask;
    if (mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) {
        recv_request *req = request_get<recv_request>(worker, param, kind);
        if (!req) {
            return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY);
        }
        req->status = status;
        if (info) {
            req->info = *info;
        }
        req->flags |= REQ_COMPLETED;
        mark_done(req);
        void *user = req->user();
        if (req->flags & REQ_CALLBACK) {
            call_back(req);
        }
        return user;
    }
    if (mask & UCP_OP_ATTR_FIELD_RECV_INFO && status == UCS_OK && info) {
        store_info(param, kind, *info);
    }
    if (mask & UCP_OP_ATTR_FIELD_REQUEST) {
        // Open MPI looks at its request whatever the call returned.
        auto *req = static_cast<recv_request *>(ucp_request::from_user(param->request));
        req->flags = REQ_COMPLETED | REQ_EXTERNAL;
        req->status = status;
        req->kind = kind;
        req->dt.reset();
        if (info) {
            req->info = *info;
        }
        mark_done(req);
    }
    return UCS_STATUS_PTR(status);
}

} // namespace ucp
