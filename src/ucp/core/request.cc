// SPDX-License-Identifier: BSD-3-Clause
//
// Requests: taking, completing, giving back, and the public request calls. See request.h for the
// life of one.
#include "ucp/core/request.h"

#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/proto/proto.h"
#include "ucs/check.h"

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace ucp {

namespace {

// The last thing before other threads may take the request as ended.
void mark_done(ucp_request *req) noexcept
{
    __atomic_store_n(&req->done, uint8_t(1), __ATOMIC_RELEASE);
}

// A pooled object keeps its user area; everything else starts anew.
UCS_ALWAYS_INLINE void prepare(ucp_request *req, ucp_worker *worker, req_kind kind,
                               const ucp_request_param_t *param) noexcept
{
    req->worker = worker;
    req->ep = nullptr;
    req->flags = 0;
    req->done = 0;
    req->status = UCS_INPROGRESS;
    req->kind = kind;
    req->phase = PHASE_NONE;
    req->pend_lane = 0;
    req->progress = nullptr;
    req->abort = nullptr;
    req->comp.count = 0;
    req->comp.status = UCS_OK;
    req->dt.reset();
    req->id = 0;
    req->user_memh = nullptr;
    req->rndv.reg.memh = nullptr;
    req->rndv.rails = nullptr;
    req->rndv.zmemh = nullptr;
    req->rndv.cmpt = nullptr;
    if (!param) {
        return;
    }
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK && param->cb.send) {
        req->flags |= REQ_CALLBACK;
        req->cb.send = param->cb.send;
    }
    req->user_data = param->op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA ? param->user_data : nullptr;
    if (param->op_attr_mask & UCP_OP_ATTR_FIELD_MEMH) {
        req->user_memh = param->memh;
    }
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
        prepare(req, worker, kind, param);
        req->flags |= REQ_EXTERNAL;
        return req;
    }
    auto *req = static_cast<ucp_request *>(worker->proto->requests.get());
    if (UCS_LIKELY(req)) {
        prepare(req, worker, kind, param);
    }
    return req;
}

ucp_request *request_get_internal(ucp_worker *worker) noexcept
{
    auto *req = static_cast<ucp_request *>(worker->proto->requests.get());
    if (UCS_LIKELY(req)) {
        prepare(req, worker, req_kind::send, nullptr);
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
        req->id = req->worker->proto->request_ids.add(req);
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
    if (UCS_UNLIKELY(req->rndv.reg.memh || req->rndv.rails)) {
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

namespace {

const char *kind_name(const ucp_request *req)
{
    switch (req->kind) {
    case ucp::req_kind::send:
        return "send";
    case ucp::req_kind::tag_recv:
        return "tag recv";
    case ucp::req_kind::stream_recv:
        return "stream recv";
    case ucp::req_kind::am_recv:
        return "am recv";
    case ucp::req_kind::flush:
        return "flush";
    case ucp::req_kind::none:
        break;
    }
    return "idle";
}

void give_back(void *request, bool drop_callback) noexcept
{
    ucp_request *req = ucp_request::from_user(request);
    if (req->flags & ucp::REQ_EXTERNAL) {
        return;
    }
    ucs::opt_guard guard(req->worker->lock);
    if (req->flags & ucp::REQ_COMPLETED) {
        ucp::request_put(req);
        return;
    }
    if (drop_callback) {
        req->flags &= ~ucp::REQ_CALLBACK;
    }
    req->flags |= ucp::REQ_RELEASED;
}

// Status of a request that another thread may be completing.
ucs_status_t status_of(const ucp_request *req) noexcept
{
    return __atomic_load_n(&req->done, __ATOMIC_ACQUIRE) ? req->status : UCS_INPROGRESS;
}

} // namespace

extern "C" {

UCS_EXPORT ucs_status_t ucp_request_check_status(void *request)
{
    UCS_CHECK_ARG(request, "ucp_request_check_status: request must not be NULL");
    return status_of(ucp_request::from_user(request));
}

UCS_EXPORT int ucp_request_is_completed(void *request)
{
    return ucp_request_check_status(request) != UCS_INPROGRESS;
}

UCS_EXPORT ucs_status_t ucp_tag_recv_request_test(void *request, ucp_tag_recv_info_t *info)
{
    UCS_CHECK_ARG(request, "ucp_tag_recv_request_test: request must not be NULL");
    ucp_request *req = ucp_request::from_user(request);
    ucs_status_t status = status_of(req);
    if (status != UCS_INPROGRESS && info && req->kind == ucp::req_kind::tag_recv) {
        *info = req->info;
    }
    return status;
}

UCS_EXPORT ucs_status_t ucp_request_test(void *request, ucp_tag_recv_info_t *info)
{
    return ucp_tag_recv_request_test(request, info);
}

UCS_EXPORT ucs_status_t ucp_stream_recv_request_test(void *request, size_t *length_p)
{
    UCS_CHECK_ARG(request, "ucp_stream_recv_request_test: request must not be NULL");
    UCS_CHECK_ARG(length_p, "ucp_stream_recv_request_test: length_p must not be NULL");
    ucp_request *req = ucp_request::from_user(request);
    ucs_status_t status = status_of(req);
    if (status != UCS_INPROGRESS) {
        *length_p = req->info.length;
    }
    return status;
}

UCS_EXPORT void ucp_request_free(void *request)
{
    if (request) {
        give_back(request, true);
    }
}

UCS_EXPORT void ucp_request_release(void *request)
{
    if (request) {
        give_back(request, false);
    }
}

UCS_EXPORT void *ucp_request_alloc(ucp_worker_h)
{
    return nullptr; // never useful: every call that takes a request accepts the caller's memory
}

UCS_EXPORT void ucp_request_cancel(ucp_worker_h worker, void *request)
{
    if (!worker || !request) {
        ucs_error("ucp_request_cancel: worker and request must not be NULL");
        return;
    }
    ucs::opt_guard guard(worker->lock);
    ucp_request *req = ucp_request::from_user(request);
    if (req->flags & ucp::REQ_COMPLETED || !(req->flags & ucp::REQ_EXPECTED)) {
        return;
    }
    worker->proto->tags.remove(&req->match);
    req->flags &= ~ucp::REQ_EXPECTED;
    ucp::complete(req, UCS_ERR_CANCELED);
}

UCS_EXPORT ucs_status_t ucp_request_query(void *request, ucp_request_attr_t *attr)
{
    UCS_CHECK_ARG(request, "ucp_request_query: request must not be NULL");
    UCS_CHECK_ARG(attr, "ucp_request_query: attr must not be NULL");
    ucp_request *req = ucp_request::from_user(request);
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING) {
        UCS_CHECK_ARG(attr->field_mask & UCP_REQUEST_ATTR_FIELD_INFO_STRING_SIZE,
                      "ucp_request_query: attr->field_mask must have INFO_STRING_SIZE with "
                      "INFO_STRING");
        UCS_CHECK_ARG(attr->debug_string || attr->debug_string_size == 0,
                      "ucp_request_query: attr->debug_string must not be NULL");
        if (attr->debug_string_size > 0) {
            snprintf(attr->debug_string, attr->debug_string_size, "%s length %zu %s memory%s",
                     kind_name(req), req->dt.length(), "host",
                     req->flags & ucp::REQ_COMPLETED ? ", completed" : "");
        }
    }
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_STATUS) {
        attr->status = status_of(req);
    }
    if (attr->field_mask & UCP_REQUEST_ATTR_FIELD_MEM_TYPE) {
        attr->mem_type = UCS_MEMORY_TYPE_HOST;
    }
    return UCS_OK;
}

} // extern "C"
