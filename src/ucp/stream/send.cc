// SPDX-License-Identifier: BSD-3-Clause
//
// Sending of streams: active messages that name the receiver's endpoint.
#include "ucp/core/nb.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/mem/memory_type.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucp/proto/protocols.h"
#include "ucs/check.h"

#include <cstring>

namespace ucp {

namespace {

size_t pack_request(void *dest, void *arg)
{
    auto *req = static_cast<data_request *>(arg);
    memcpy(dest, &req->ep->remote_id, sizeof(uint64_t));
    return sizeof(uint64_t) + req->dt.pack(static_cast<char *>(dest) + sizeof(uint64_t),
                                           req->ep->limits().max_bcopy - sizeof(uint64_t));
}

ucs_status_t bcopy_progress(data_request *req) noexcept
{
    if (!req->dt.at_end()) {
        return bcopy_piece(req, AM_ID_STREAM, pack_request);
    }
    complete(req, UCS_OK);
    return UCS_OK;
}

ucs_status_t zcopy_progress(data_request *req) noexcept
{
    return zcopy_message(req, AM_ID_STREAM, &req->ep->remote_id, sizeof(uint64_t));
}

bool zcopy_start(data_request *req) noexcept
{
    return start_zcopy(req, req->ep->am_lane().md_index);
}

constexpr protocol eager_short = {"eager short", true, nullptr, typed<bcopy_progress>,
                                  abort_simple};
constexpr protocol eager_copy = {"eager copy-in copy-out", true, nullptr, typed<bcopy_progress>,
                                 abort_simple};
constexpr protocol eager_fragments = {"multi-frag eager copy-in copy-out", true, nullptr,
                                      typed<bcopy_progress>, abort_simple};
constexpr protocol eager_zcopy = {"eager zero-copy copy-out", true, typed<zcopy_start>,
                                  typed<zcopy_progress>, comp_abort};

ucs_status_t start_progress(data_request *req) noexcept
{
    return start_protocol(req, req->ep->config->stream);
}

ucs_status_ptr_t stream_send(const char *call, ucp_ep *ep, const void *buffer, size_t count,
                             ucp_datatype_t dt, const ucp_request_param_t *param) noexcept
{
    ucp_worker *worker = ep->worker;
    if (ucs_status_t kind =
            check_operation(call, worker->context, UCP_FEATURE_STREAM, param, buffer, count, dt);
        UCS_UNLIKELY(kind != UCS_OK)) {
        return UCS_STATUS_PTR(kind);
    }
    ucs::opt_guard guard(worker->lock);
    if (UCS_LIKELY((dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG)) {
        size_t length = count * (dt >> UCP_DATATYPE_SHIFT);
        UCS_CHECK_ARG_PTR(buffer || length == 0, "%s: buffer must not be NULL", call);
        if (UCS_LIKELY(ep->can_send())) {
            ucs_status_t status = UCS_ERR_NO_RESOURCE;
            const proto_range *ranges = ep->config->stream[MEMORY_MAPPED].ranges;
            if (length == 0) {
                status = UCS_OK;
            } else if (length < ranges[0].end) {
                ++ranges[0].used;
                status = uct_ep_am_short(ep->am_ep, AM_ID_STREAM, ep->remote_id, buffer,
                                         static_cast<unsigned>(length));
            } else if (length < ranges[1].end) {
                ++ranges[1].used;
                word_and_buffer pack = {ep->remote_id, buffer, length};
                ssize_t n =
                    uct_ep_am_bcopy(ep->am_ep, AM_ID_STREAM, pack_word_and_buffer, &pack, 0);
                status = n >= 0 ? UCS_OK : static_cast<ucs_status_t>(n);
            }
            if (status != UCS_ERR_NO_RESOURCE) {
                return post_return_imm(worker, req_kind::send, status, param);
            }
            uncount(ep->config->stream[MEMORY_MAPPED], length);
        }
    }
    data_request *req;
    ucs_status_t status = make_request(ep, data_way::from_buffer, buffer, count, dt, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    req->progress = typed<start_progress>;
    req->abort = abort_simple;
    return send_request(req, param);
}

} // namespace

const message_protocols stream_messages = {
    .short_ = &eager_short,
    .copy = &eager_copy,
    .fragments = &eager_fragments,
    .zcopy = &eager_zcopy,
    .read = nullptr,
    .send = nullptr,
    .copy_header = sizeof(uint64_t),
    .zcopy_header = sizeof(uint64_t),
};

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_stream_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                                const ucp_request_param_t *param)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_stream_send_nbx: ep must not be NULL");
    UCS_CHECK_ARG_PTR(param, "ucp_stream_send_nbx: param must not be NULL");
    ucp_datatype_t dt = ucp::datatype_of(param);
    return ucp::stream_send("ucp_stream_send_nbx", ep, buffer, count, dt, param);
}

UCS_EXPORT ucs_status_ptr_t ucp_stream_send_nb(ucp_ep_h ep, const void *buffer, size_t count,
                                               ucp_datatype_t datatype, ucp_send_callback_t cb,
                                               unsigned)
{
    UCS_CHECK_ARG_PTR(ep, "ucp_stream_send_nb: ep must not be NULL");
    ucp_request_param_t param = ucp::nb_param(cb);
    return ucp::stream_send("ucp_stream_send_nb", ep, buffer, count, datatype, &param);
}

} // extern "C"
