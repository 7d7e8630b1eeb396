// SPDX-License-Identifier: BSD-3-Clause
//
// Tag receives and the arrival of tag messages. A message that finds a receive is unpacked into the
// user's buffer from the transport's memory; one that does not is kept (recv_desc) in the matcher.
// Fragments are collected by a `partial`, which unpacks directly once a receive was matched.
#include "ucp/core/nb.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/memory_type.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucp/tag/tag.h"
#include "ucs/check.h"
#include "ucs/copy.h"

#include <cstring>

namespace ucp {

namespace {

UCS_ALWAYS_INLINE tag_recv_request *match(worker_proto *proto, uint64_t tag) noexcept
{
    tag_matcher::recv_entry *e = proto->tags.match_recv(tag);
    if (!e) {
        return nullptr;
    }
    auto *req = static_cast<tag_recv_request *>(e);
    req->flags &= ~REQ_EXPECTED;
    return req;
}

void send_ack(ucp_worker *worker, uint64_t ep_id, uint64_t req_id) noexcept
{
    ucp_ep *ep = find_usable_ep(worker, ep_id);
    if (!ep) {
        return drop_stale(worker, "sync send");
    }
    send_control(ep, AM_ID_ACK, wire::answer_hdr{ep->remote_id, req_id, UCS_OK});
}

ucs_status_t unpack_whole(dt_iter &dt, const void *data, size_t length) noexcept
{
    if (UCS_UNLIKELY(length > dt.length())) {
        return UCS_ERR_MESSAGE_TRUNCATED;
    }
    return dt.unpack(0, data, length);
}

// ---- fragments

void part_unpack(partial *part, size_t offset, const void *data, size_t length) noexcept
{
    if (part->status == UCS_OK) {
        part->status = part->req->dt.unpack(offset, data, length);
    }
}

// The sender is gone in the middle of its message: what follows, if anything, is dropped.
void part_abort(tag_recv_request *req, ucs_status_t status) noexcept
{
    worker_proto *proto = req->worker->proto.get();
    proto->partials.erase({req->source, req->msg_id});
    complete(req, status);
}

void part_attach(partial *part, tag_recv_request *req) noexcept
{
    part->req = req;
    part->desc = nullptr;
    if (part->total > req->dt.length()) {
        part->status = UCS_ERR_MESSAGE_TRUNCATED;
    }
    req->source = part->key.source;
    req->msg_id = part->key.msg_id;
    req->abort = typed<part_abort>;
    if (ucp_ep *ep = find_usable_ep(req->worker, part->ep_id)) {
        req->ep = ep;
        ep->add_outstanding(req);
    }
}

void store(partial *part, size_t offset, const void *bytes, size_t length) noexcept
{
    if (part->req) {
        part_unpack(part, offset, bytes, length);
    } else {
        ucs::copy(static_cast<char *>(part->desc->data) + offset, bytes, length);
    }
}

void whole(ucp_worker *worker, partial *part) noexcept
{
    tag_recv_request *req = part->req;
    ucs_status_t status = part->status;
    if (recv_desc *desc = part->desc) {
        desc->what = desc->req_id != 0 ? recv_desc::content::tag_sync : recv_desc::content::tag;
        desc->part = nullptr;
    }
    partial_key key = part->key;
    worker->proto->partials.erase(key);
    if (req) {
        complete(req, status);
    }
}

void lost(ucp_worker *, partial *part, ucs_status_t status) noexcept
{
    part->desc->what = recv_desc::content::tag_lost;
    part->desc->lost = status;
    part->desc->part = nullptr;
}

constexpr fragmented fragments = {"tag first", "tag middle", store, whole, lost};

// ---- user's receive meets a kept message

// Takes a kept message that is whole and has no sender waiting for an acknowledgement.
UCS_ALWAYS_INLINE ucs_status_ptr_t recv_whole(ucp_worker *worker, void *buffer, size_t count,
                                              ucp_datatype_t datatype, recv_desc *desc,
                                              const ucp_request_param_t *param) noexcept
{
    ucp_tag_recv_info_t info = {desc->match.what(), desc->length};
    dt_iter dt;
    ucs_status_t status = dt.start_recv(buffer, count, datatype);
    if (UCS_LIKELY(status == UCS_OK)) {
        status = unpack_whole(dt, desc->data, desc->length);
    }
    dt.finish();
    worker->proto->descs.put(desc);
    return post_return_imm(worker, req_kind::tag_recv, status, param, &info);
}

UCS_NOINLINE ucs_status_ptr_t recv_kept(ucp_worker *worker, void *buffer, size_t count,
                                        ucp_datatype_t datatype, recv_desc *desc,
                                        const ucp_request_param_t *param) noexcept
{
    ucp_tag_recv_info_t info = {desc->match.what(), desc->length};
    if (desc->is_whole()) {
        dt_iter dt;
        ucs_status_t status = dt.start_recv(buffer, count, datatype);
        if (UCS_UNLIKELY(desc->what == recv_desc::content::tag_lost)) {
            status = desc->lost;
        } else if (status == UCS_OK) {
            status = unpack_whole(dt, desc->data, desc->length);
        }
        dt.finish();
        if (desc->what == recv_desc::content::tag_sync) {
            send_ack(worker, desc->ep_id, desc->req_id);
        }
        worker->proto->descs.put(desc);
        return post_return_imm(worker, req_kind::tag_recv, status, param, &info);
    }

    auto *req = request_get<tag_recv_request>(worker, param);
    if (!req) {
        return UCS_STATUS_PTR(UCS_ERR_NO_MEMORY); // the message is lost with the memory
    }
    ucs_status_t status = req->dt.start_recv(buffer, count, datatype);
    req->info = info;
    req->flags |= REQ_POSTING;
    if (desc->what == recv_desc::content::rts) {
        auto *rts = static_cast<const wire::rts_hdr *>(desc->data);
        if (status == UCS_OK) {
            rndv_recv(req, rts);
        } else {
            rndv_refuse(worker, rts, UCS_OK);
            complete(req, status);
        }
    } else {
        partial *part = desc->part;
        part_attach(part, req);
        if (status != UCS_OK) {
            part->status = status;
        }
        part_unpack(part, 0, desc->data, part->received);
        if (desc->req_id != 0) {
            send_ack(worker, desc->ep_id, desc->req_id);
        }
    }
    worker->proto->descs.put(desc);
    return post_return(req, param);
}

UCS_ALWAYS_INLINE ucs_status_ptr_t recv_host(ucp_worker *worker, void *buffer, size_t count,
                                             ucp_tag_t tag, ucp_tag_t mask,
                                             const ucp_request_param_t *param) noexcept
{
    ucp_datatype_t dt = datatype_of(param);
    ucs::opt_guard guard(worker->lock);
    worker_proto *proto = worker->proto.get();
    bool force = param->op_attr_mask & UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;

    if (tag_matcher::msg_entry *m = proto->tags.find_msg({tag, mask})) {
        recv_desc *desc = recv_desc::from_match(m);
        if (UCS_LIKELY(desc->what == recv_desc::content::tag)) {
            proto->tags.remove(m);
            return recv_whole(worker, buffer, count, dt, desc, param);
        }
        if (UCS_UNLIKELY(force) &&
            (desc->what == recv_desc::content::rts || desc->what == recv_desc::content::tag_part)) {
            return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
        }
        proto->tags.remove(m);
        return recv_kept(worker, buffer, count, dt, desc, param);
    }
    if (UCS_UNLIKELY(force)) {
        return UCS_STATUS_PTR(UCS_ERR_NO_RESOURCE);
    }
    tag_recv_request *req;
    ucs_status_t status = make_receive(worker, buffer, count, dt, param, &req);
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    req->flags |= REQ_EXPECTED;
    proto->tags.add_recv(req, {tag, mask});
    return req->user();
}

UCS_NOINLINE ucs_status_ptr_t recv_examined(const char *call, ucp_worker *worker, void *buffer,
                                            size_t count, ucp_tag_t tag, ucp_tag_t mask,
                                            const ucp_request_param_t *param) noexcept
{
    ucs_status_t status =
        examine(call, worker->context, UCP_FEATURE_TAG, param, buffer, count, datatype_of(param));
    return status == UCS_OK ? recv_host(worker, buffer, count, tag, mask, param)
                            : UCS_STATUS_PTR(status);
}

UCS_ALWAYS_INLINE ucs_status_ptr_t tag_recv(const char *call, ucp_worker *worker, void *buffer,
                                            size_t count, ucp_tag_t tag, ucp_tag_t mask,
                                            const ucp_request_param_t *param) noexcept
{
    UCS_CHECK_ARG_PTR(worker, "%s: worker must not be NULL", call);
    UCS_CHECK_ARG_PTR(param, "%s: param must not be NULL", call);
    return takes_as_is(worker->context, UCP_FEATURE_TAG, param)
               ? recv_host(worker, buffer, count, tag, mask, param)
               : recv_examined(call, worker, buffer, count, tag, mask, param);
}

ucs_status_ptr_t msg_recv(const char *call, ucp_worker *worker, void *buffer, size_t count,
                          ucp_tag_message_h message, const ucp_request_param_t *param) noexcept
{
    UCS_CHECK_ARG_PTR(worker, "%s: worker must not be NULL", call);
    UCS_CHECK_ARG_PTR(message, "%s: message must not be NULL", call);
    UCS_CHECK_ARG_PTR(param, "%s: param must not be NULL", call);
    ucs_status_t status = check_operation(call, worker->context, UCP_FEATURE_TAG, param, buffer,
                                          count, datatype_of(param));
    if (UCS_UNLIKELY(status != UCS_OK)) {
        return UCS_STATUS_PTR(status);
    }
    ucs::opt_guard guard(worker->lock);
    auto *desc = reinterpret_cast<recv_desc *>(message);
    UCS_CHECK_ARG_PTR(!desc->match.is_waiting(), "%s: message was not removed by ucp_tag_probe_nb",
                      call);
    return recv_kept(worker, buffer, count, datatype_of(param), desc, param);
}

// A whole message that came by itself.
UCS_ALWAYS_INLINE ucs_status_t arrived(ucp_worker *worker, uint64_t tag, void *msg, size_t head,
                                       size_t length, unsigned flags, uint64_t ep_id,
                                       uint64_t req_id) noexcept
{
    worker_proto *proto = worker->proto.get();
    tag_recv_request *req = match(proto, tag);
    if (UCS_LIKELY(req)) {
        req->info = {tag, length};
        ucs_status_t status = unpack_whole(req->dt, static_cast<char *>(msg) + head, length);
        if (req_id != 0) {
            send_ack(worker, ep_id, req_id);
        }
        complete(req, status);
        return UCS_OK;
    }
    bool keep;
    recv_desc *desc = worker->proto->descs.keep(msg, head, length, flags, &keep);
    if (!desc) {
        ucs_error("worker %p: no memory to keep a message of %zu bytes: it is lost", (void *)worker,
                  length);
        return UCS_OK;
    }
    desc->what = req_id ? recv_desc::content::tag_sync : recv_desc::content::tag;
    desc->ep_id = ep_id;
    desc->req_id = req_id;
    proto->tags.add_msg(&desc->match, tag);
    return keep ? UCS_INPROGRESS : UCS_OK;
}

// The first fragment of a message that no receive has asked for yet.
void keep_first(worker_proto *proto, partial *part, recv_desc *desc, const wire::tag_first_hdr &hdr,
                const char *payload, size_t length)
{
    ucs::copy(desc->data, payload, length);
    desc->what = recv_desc::content::tag_part;
    desc->part = part;
    desc->ep_id = hdr.ep;
    desc->req_id = hdr.req;
    part->desc = desc;
    proto->tags.add_msg(&desc->match, hdr.tag);
}

} // namespace

ucs_status_t tag_eager_handler(void *arg, void *data, size_t length, unsigned flags)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    uint64_t tag;
    if (UCS_UNLIKELY(length < sizeof(tag))) {
        return drop_damaged(worker, "tag eager", length);
    }
    memcpy(&tag, data, sizeof(tag));
    return arrived(worker, tag, data, sizeof(tag), length - sizeof(tag), flags, 0, 0);
}

ucs_status_t tag_sync_handler(void *arg, void *data, size_t length, unsigned flags)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::tag_sync_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "tag sync", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    if (hdr.req == 0) {
        return drop_damaged(worker, "tag sync", length);
    }
    return arrived(worker, hdr.tag, data, sizeof(hdr), length - sizeof(hdr), flags, hdr.ep,
                   hdr.req);
}

ucs_status_t tag_first_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    worker_proto *proto = worker->proto.get();
    wire::tag_first_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "tag first", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    size_t n = length - sizeof(hdr);
    const char *payload = static_cast<const char *>(data) + sizeof(hdr);
    const partial begun = partial_of(fragments, hdr, n);
    if (!may_begin(worker, begun, length)) {
        return UCS_OK;
    }

    recv_desc *desc = nullptr;
    tag_recv_request *req = match(proto, hdr.tag);
    if (!req) {
        desc = worker->proto->descs.get(hdr.total);
        if (!desc) {
            ucs_error("worker %p: no memory to keep a message of %zu bytes: it is lost",
                      (void *)worker, (size_t)hdr.total);
            return UCS_OK;
        }
    }
    partial *part = &(proto->partials[begun.key] = begun);
    if (req) {
        req->info = {hdr.tag, hdr.total};
        part_attach(part, req);
        part_unpack(part, 0, payload, n);
        if (hdr.req != 0) {
            send_ack(worker, hdr.ep, hdr.req);
        }
    } else {
        keep_first(proto, part, desc, hdr, payload, n);
    }
    part_begun(worker, part);
    return UCS_OK;
}

ucs_status_t tag_middle_handler(void *arg, void *data, size_t length, unsigned)
{
    return add_fragment(static_cast<ucp_worker *>(arg), fragments, data, length);
}

ucs_status_t tag_rts(ucp_worker *worker, const wire::rts_hdr *rts, size_t length) noexcept
{
    worker_proto *proto = worker->proto.get();
    tag_recv_request *req = match(proto, rts->tag);
    if (req) {
        req->info = {rts->tag, rts->size};
        rndv_recv(req, rts);
        return UCS_OK;
    }
    recv_desc *desc = worker->proto->descs.get(length);
    if (!desc) {
        rndv_refuse(worker, rts, UCS_ERR_NO_MEMORY);
        return UCS_OK;
    }
    memcpy(desc->data, rts, length);
    desc->what = recv_desc::content::rts;
    desc->length = rts->size;
    proto->tags.add_msg(&desc->match, rts->tag);
    return UCS_OK;
}

namespace {

ucp_request_param_t nb_recv_param(ucp_datatype_t datatype, ucp_tag_recv_callback_t cb)
{
    ucp_request_param_t param;
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.datatype = datatype;
    param.cb.recv = newer_callback<ucp_tag_recv_nbx_callback_t>(cb);
    return param;
}

} // namespace

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_tag_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
                                             ucp_tag_t tag, ucp_tag_t tag_mask,
                                             const ucp_request_param_t *param)
{
    return ucp::tag_recv("ucp_tag_recv_nbx", worker, buffer, count, tag, tag_mask, param);
}

UCS_EXPORT ucs_status_ptr_t ucp_tag_recv_nb(ucp_worker_h worker, void *buffer, size_t count,
                                            ucp_datatype_t datatype, ucp_tag_t tag,
                                            ucp_tag_t tag_mask, ucp_tag_recv_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_recv_param(datatype, cb);
    return ucp::tag_recv("ucp_tag_recv_nb", worker, buffer, count, tag, tag_mask, &param);
}

UCS_EXPORT ucs_status_t ucp_tag_recv_nbr(ucp_worker_h worker, void *buffer, size_t count,
                                         ucp_datatype_t datatype, ucp_tag_t tag, ucp_tag_t tag_mask,
                                         void *req)
{
    UCS_CHECK_ARG(req, "ucp_tag_recv_nbr: req must not be NULL");
    ucp_request_param_t param;
    param.op_attr_mask =
        UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REQUEST | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.datatype = datatype;
    param.request = req;
    ucs_status_ptr_t ptr =
        ucp::tag_recv("ucp_tag_recv_nbr", worker, buffer, count, tag, tag_mask, &param);
    return UCS_PTR_STATUS(ptr);
}

UCS_EXPORT ucs_status_ptr_t ucp_tag_msg_recv_nbx(ucp_worker_h worker, void *buffer, size_t count,
                                                 ucp_tag_message_h message,
                                                 const ucp_request_param_t *param)
{
    return ucp::msg_recv("ucp_tag_msg_recv_nbx", worker, buffer, count, message, param);
}

UCS_EXPORT ucs_status_ptr_t ucp_tag_msg_recv_nb(ucp_worker_h worker, void *buffer, size_t count,
                                                ucp_datatype_t datatype, ucp_tag_message_h message,
                                                ucp_tag_recv_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_recv_param(datatype, cb);
    return ucp::msg_recv("ucp_tag_msg_recv_nb", worker, buffer, count, message, &param);
}

} // extern "C"
