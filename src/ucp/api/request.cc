// SPDX-License-Identifier: BSD-3-Clause
//
// The calls on requests.
#include "ucp/core/request.h"

#include "ucp/core/worker.h"
#include "ucp/proto/proto.h"
#include "ucp/tag/tag.h"
#include "ucs/check.h"

#include <cstdio>

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
    case ucp::req_kind::other:
        break;
    }
    return "send";
}

size_t length_of(const ucp_request *req)
{
    return ucp::has_buffer(req->kind) ? static_cast<const ucp::data_request *>(req)->dt.length()
                                      : 0;
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
        *info = static_cast<ucp::recv_request *>(req)->info;
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
    if (status != UCS_INPROGRESS && req->kind == ucp::req_kind::stream_recv) {
        *length_p = static_cast<ucp::recv_request *>(req)->info.length;
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
    worker->proto->tags.remove(static_cast<ucp::tag_recv_request *>(req));
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
                     kind_name(req), length_of(req), "host",
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
