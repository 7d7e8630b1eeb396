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

void call_back(ucp_request *req) noexcept
{
    switch (req->kind) {
    case req_kind::tag_recv:
        req->cb.recv(req->user(), req->status, &req->info, req->user_data);
        break;
    case req_kind::stream_recv:
        req->cb.recv_stream(req->user(), req->status, req->info.length, req->user_data);
        break;
    case req_kind::am_recv:
        req->cb.recv_am(req->user(), req->status, req->info.length, req->user_data);
        break;
    default:
        req->cb.send(req->user(), req->status, req->user_data);
        break;
    }
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

} // namespace

ucp_request *request_get(ucp_worker *worker, req_kind kind,
                         const ucp_request_param_t *param) noexcept
{
    if (param && param->op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) {
        auto *req = new (ucp_request::from_user(param->request)) ucp_request;
        req->begin(worker, kind, param);
        req->flags |= REQ_EXTERNAL;
        return req;
    }
    return worker->proto->take_request(kind, param);
}

ucp_request *request_get_internal(ucp_worker *worker) noexcept
{
    worker_proto &proto = *worker->proto;
    auto *req = static_cast<ucp_request *>(proto.requests.get());
    if (UCS_UNLIKELY(!req && proto.spare_count > 0)) {
        req = proto.spare_requests[--proto.spare_count];
    } else if (UCS_UNLIKELY(proto.spare_count < proto.spare_requests.size())) {
        proto.fill_spare_requests();
    }
    if (UCS_LIKELY(req)) {
        req->begin(worker, req_kind::send, nullptr);
        req->flags = REQ_INTERNAL | REQ_RELEASED;
    }
    return req;
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
    req->dt.finish();
    if (UCS_UNLIKELY(req->memory.reg.memh || req->memory.rails)) {
        release_memh(req);
    }
    if (UCS_UNLIKELY(req->flags & REQ_OWN_COPY)) {
        free(const_cast<void *>(req->send.header));
        req->flags &= ~REQ_OWN_COPY;
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
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_RECV_INFO && status == UCS_OK) {
        store_info(param, req->kind, req->info);
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
        ucp_request *req = request_get(worker, kind, param);
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
        ucp_request *req = ucp_request::from_user(param->request);
        req->flags = REQ_COMPLETED | REQ_EXTERNAL;
        req->status = status;
        req->kind = kind;
        if (info) {
            req->info = *info;
        }
        mark_done(req);
    }
    return UCS_STATUS_PTR(status);
}

} // namespace ucp
