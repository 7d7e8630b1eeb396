// SPDX-License-Identifier: BSD-3-Clause
//
// Tag sends. Small messages go out inside the call: short without any copy of ours, else packed by
// the transport's callback (bcopy). Larger ones become requests: fragments (bcopy or zcopy), or a
// rendezvous. A synchronous send asks for an ACK, or is a rendezvous. The tables of the endpoint's
// configuration choose.
#include "ucp/core/nb.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/mem/mem.h"
#include "ucp/mem/memory_type.h"
#include "ucp/proto/pieces.h"
#include "ucp/proto/proto.h"
#include "ucp/proto/protocols.h"
#include "ucp/rndv/rndv.h"
#include "ucs/check.h"

#include <cstring>

namespace ucp {

namespace {

struct tag_send_request : rndv_send_request {
    using rndv_send_request::rndv_send_request;

    uint64_t tag;
    uint64_t msg_id; // of a message in fragments
};

size_t pack_eager_request(void *dest, void *arg)
{
    auto *req = static_cast<tag_send_request *>(arg);
    memcpy(dest, &req->tag, sizeof(uint64_t));
    return sizeof(uint64_t) +
           req->dt.pack(static_cast<char *>(dest) + sizeof(uint64_t), req->dt.length());
}

size_t pack_sync_request(void *dest, void *arg)
{
    auto *req = static_cast<tag_send_request *>(arg);
    wire::tag_sync_hdr hdr = {req->tag, req->ep->remote_id, req->id};
    memcpy(dest, &hdr, sizeof(hdr));
    return sizeof(hdr) + req->dt.pack(static_cast<char *>(dest) + sizeof(hdr), req->dt.length());
}

// One piece of a fragmented message, the first with the longer header.
size_t pack_fragment(void *dest, void *arg)
{
    auto *req = static_cast<tag_send_request *>(arg);
    size_t room = req->ep->limits().max_bcopy;
    size_t head;
    if (req->dt.offset() == 0) {
        wire::tag_first_hdr hdr = {req->tag,           req->dt.length(),
                                   source_of(req->ep), req->msg_id,
                                   req->ep->remote_id, req->flags & REQ_SYNC ? req->id : 0};
        head = sizeof(hdr);
        memcpy(dest, &hdr, head);
    } else {
        wire::frag_hdr hdr = {source_of(req->ep), req->msg_id, req->dt.offset()};
        head = sizeof(hdr);
        memcpy(dest, &hdr, head);
    }
    return head + req->dt.pack(static_cast<char *>(dest) + head, room - head);
}

ucs_status_t eager_progress(tag_send_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    req->dt.rewind(0);
    ssize_t n = uct_ep_am_bcopy(ep->am_ep, AM_ID_TAG_EAGER, pack_eager_request, req, 0);
    if (UCS_UNLIKELY(n < 0)) {
        return static_cast<ucs_status_t>(n);
    }
    complete(req, UCS_OK);
    return UCS_OK;
}

ucs_status_t short_progress(tag_send_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    req->pend_lane = ep->am_lane_index;
    ucs_status_t status =
        uct_ep_am_short(ep->am_ep, AM_ID_TAG_EAGER, req->tag, req->dt.contig_ptr(),
                        static_cast<unsigned>(req->dt.length()));
    if (UCS_LIKELY(status == UCS_OK)) {
        complete(req, UCS_OK);
    }
    return status;
}

ucs_status_t sync_progress(tag_send_request *req) noexcept
{
    return answered_piece(req, PHASE_SYNC, AM_ID_TAG_SYNC, pack_sync_request);
}

uint8_t fragment_id(const tag_send_request *req) noexcept
{
    return req->dt.offset() == 0 ? AM_ID_TAG_FIRST : AM_ID_TAG_MIDDLE;
}

ucs_status_t multi_progress(tag_send_request *req) noexcept
{
    return bcopy_piece(req, fragment_id(req), pack_fragment);
}

// The receiver may match, and answer, the first piece before the last one is sent.
ucs_status_t multi_sync_progress(tag_send_request *req) noexcept
{
    size_t left = req->dt.length() - req->dt.offset();
    size_t head = sizeof(wire::frag_hdr);
    if (req->dt.offset() == 0) {
        if (UCS_UNLIKELY(request_wire_id(req) == 0)) {
            return UCS_ERR_NO_MEMORY;
        }
        head = sizeof(wire::tag_first_hdr);
        req->phase = PHASE_SYNC_SENDING;
    }
    if (left + head > req->ep->limits().max_bcopy || req->phase == PHASE_SYNC_MATCHED) {
        return multi_progress(req);
    }
    return answered_piece(req, PHASE_SYNC, fragment_id(req), pack_fragment);
}

// Fragments, or the whole message, straight out of the user's buffer.
ucs_status_t zcopy_progress(tag_send_request *req) noexcept
{
    ucp_ep *ep = req->ep;
    size_t offset = req->dt.offset();
    size_t length = req->dt.length();
    union {
        wire::tag_first_hdr first;
        wire::frag_hdr frag;
        uint64_t tag;
    } hdr;
    size_t head;
    uint8_t id;
    if (offset == 0 && length <= ep->limits().max_zcopy - sizeof(uint64_t)) {
        hdr.tag = req->tag;
        head = sizeof(hdr.tag);
        id = AM_ID_TAG_EAGER;
    } else if (offset == 0) {
        hdr.first = {req->tag, length, source_of(req->ep), req->msg_id, ep->remote_id, 0};
        head = sizeof(hdr.first);
        id = AM_ID_TAG_FIRST;
    } else {
        hdr.frag = {source_of(req->ep), req->msg_id, offset};
        head = sizeof(hdr.frag);
        id = AM_ID_TAG_MIDDLE;
    }
    return zcopy_message(req, id, &hdr, head);
}

bool fragments_start(tag_send_request *req) noexcept
{
    req->msg_id = ++req->worker->proto->next_msg_id;
    return true;
}

bool zcopy_start(tag_send_request *req) noexcept
{
    return start_zcopy(req, req->ep->am_lane().md_index) && fragments_start(req);
}

// What the announcement of a rendezvous says of a tag message.
size_t announce(const rndv_send_request *req, wire::rts_hdr *hdr, char *) noexcept
{
    hdr->kind = wire::RTS_TAG;
    hdr->tag = static_cast<const tag_send_request *>(req)->tag;
    return 0;
}

constexpr protocol rndv_read = {rndv_read_name, true, typed<rndv_start<announce, true>>,
                                typed<rndv_rts_progress>, typed<rndv_rts_abort>};
constexpr protocol rndv_send = {rndv_send_name, false, typed<rndv_start<announce, false>>,
                                typed<rndv_rts_progress>, typed<rndv_rts_abort>};

// A generic type may pack less than it said, so only a rendezvous knows in advance which piece is
// the last.
bool sync_fragments_start(tag_send_request *req) noexcept
{
    if (req->dt.type() == dt_iter::kind::generic) {
        req->progress = rndv_send.progress;
        req->abort = rndv_send.abort;
        return rndv_start<announce, false>(req);
    }
    return fragments_start(req);
}

constexpr protocol eager_short = {"eager short", true, nullptr, typed<short_progress>,
                                  abort_simple};
constexpr protocol eager_copy = {"eager copy-in copy-out", true, nullptr, typed<eager_progress>,
                                 abort_simple};
constexpr protocol eager_fragments = {"multi-frag eager copy-in copy-out", true,
                                      typed<fragments_start>, typed<multi_progress>, abort_simple};
constexpr protocol eager_zcopy = {"eager zero-copy copy-out", true, typed<zcopy_start>,
                                  typed<zcopy_progress>, comp_abort};
constexpr protocol sync_copy = {"eager copy-in copy-out", true, nullptr, typed<sync_progress>,
                                abort_simple};
constexpr protocol sync_fragments = {"multi-frag eager copy-in copy-out", true,
                                     typed<sync_fragments_start>, typed<multi_sync_progress>,
                                     abort_simple};

ucs_status_t start_progress(tag_send_request *req) noexcept
{
    const ep_config &config = *req->ep->config;
    return start_protocol(req, req->flags & REQ_SYNC ? config.tag_sync : config.tag);
}

// Everything that does not go out inside the call, or is not contiguous.
UCS_NOINLINE ucs_status_ptr_t send_slow(ucp_ep *ep, const void *buffer, size_t count,
                                        ucp_datatype_t dt, uint64_t tag,
                                        const ucp_request_param_t *param, bool sync) noexcept
{
    tag_send_request *req;
    ucs_status_t status = make_request(ep, data_way::from_buffer, buffer, count, dt, param, &req);
    if (status != UCS_OK) {
        return UCS_STATUS_PTR(status);
    }
    req->tag = tag;
    if (sync) {
        req->flags |= REQ_SYNC;
    }
    req->progress = typed<start_progress>; // the lanes may not be known yet
    req->abort = abort_simple;
    return send_request(req, param);
}

UCS_ALWAYS_INLINE ucs_status_ptr_t send_host(const char *call, ucp_ep *ep, const void *buffer,
                                             size_t count, uint64_t tag,
                                             const ucp_request_param_t *param, bool sync) noexcept
{
    ucp_worker *worker = ep->worker;
    uint32_t mask = param->op_attr_mask;
    ucp_datatype_t dt = mask & UCP_OP_ATTR_FIELD_DATATYPE ? param->datatype : ucp_dt_make_contig(1);
    ucs::opt_guard guard(worker->lock);

    if (UCS_LIKELY((dt & UCP_DATATYPE_CLASS_MASK) == UCP_DATATYPE_CONTIG && !sync)) {
        size_t length = count * (dt >> UCP_DATATYPE_SHIFT);
        UCS_CHECK_ARG_PTR(buffer || length == 0, "%s: buffer must not be NULL", call);
        if (UCS_LIKELY(ep->can_send())) {
            ucs_status_t status = UCS_ERR_NO_RESOURCE;
            const proto_range *ranges = ep->config->tag[MEMORY_MAPPED].ranges;
            if (UCS_LIKELY(length < ranges[0].end)) {
                ++ranges[0].used;
                status = uct_ep_am_short(ep->am_ep, AM_ID_TAG_EAGER, tag, buffer,
                                         static_cast<unsigned>(length));
            } else if (length < ranges[1].end) {
                ++ranges[1].used;
                word_and_buffer pack = {tag, buffer, length};
                ssize_t n =
                    uct_ep_am_bcopy(ep->am_ep, AM_ID_TAG_EAGER, pack_word_and_buffer, &pack, 0);
                status = n >= 0 ? UCS_OK : static_cast<ucs_status_t>(n);
            }
            if (UCS_LIKELY(status != UCS_ERR_NO_RESOURCE)) {
                return post_return_imm(worker, req_kind::send, status, param);
            }
            uncount(ep->config->tag[MEMORY_MAPPED], length);
        }
    }
    UCS_CHECK_ARG_PTR((mask & (UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_MULTI_SEND)) !=
                          (UCP_OP_ATTR_FLAG_FAST_CMPL | UCP_OP_ATTR_FLAG_MULTI_SEND),
                      "%s: param->op_attr_mask must not have both FAST_CMPL and MULTI_SEND", call);
    return send_slow(ep, buffer, count, dt, tag, param, sync);
}

// Apart, so that the path of memory of the host keeps nothing for it.
UCS_NOINLINE ucs_status_ptr_t send_examined(const char *call, ucp_ep *ep, const void *buffer,
                                            size_t count, uint64_t tag,
                                            const ucp_request_param_t *param, bool sync) noexcept
{
    ucs_status_t status = examine(call, ep->worker->context, UCP_FEATURE_TAG, param, buffer, count,
                                  datatype_of(param));
    return status == UCS_OK ? send_host(call, ep, buffer, count, tag, param, sync)
                            : UCS_STATUS_PTR(status);
}

UCS_ALWAYS_INLINE ucs_status_ptr_t tag_send(const char *call, ucp_ep *ep, const void *buffer,
                                            size_t count, uint64_t tag,
                                            const ucp_request_param_t *param, bool sync) noexcept
{
    UCS_CHECK_ARG_PTR(ep, "%s: ep must not be NULL", call);
    UCS_CHECK_ARG_PTR(param, "%s: param must not be NULL", call);
    return takes_as_is(ep->worker->context, UCP_FEATURE_TAG, param)
               ? send_host(call, ep, buffer, count, tag, param, sync)
               : send_examined(call, ep, buffer, count, tag, param, sync);
}

} // namespace

const message_protocols tag_messages = {
    .short_ = &eager_short,
    .copy = &eager_copy,
    .fragments = &eager_fragments,
    .zcopy = &eager_zcopy,
    .read = &rndv_read,
    .send = &rndv_send,
    .copy_header = sizeof(uint64_t),
    .zcopy_header = sizeof(wire::tag_first_hdr),
    .short_first = true,
};
const message_protocols tag_sync_messages = {
    .short_ = nullptr,
    .copy = &sync_copy,
    .fragments = &sync_fragments,
    .zcopy = nullptr,
    .read = &rndv_read,
    .send = &rndv_send,
    .copy_header = sizeof(wire::tag_sync_hdr),
    .zcopy_header = 0,
};

ucs_status_t ack_handler(void *arg, void *data, size_t length, unsigned)
{
    auto *worker = static_cast<ucp_worker *>(arg);
    wire::answer_hdr hdr;
    if (length < sizeof(hdr)) {
        return drop_damaged(worker, "ack", length);
    }
    memcpy(&hdr, data, sizeof(hdr));
    if (ucp_request *req = find_asked(worker, hdr.ep, hdr.req, PHASE_SYNC)) {
        complete(req, UCS_OK);
    } else if (ucp_request *unsent = find_asked(worker, hdr.ep, hdr.req, PHASE_SYNC_SENDING)) {
        unsent->phase = PHASE_SYNC_MATCHED; // by its first piece
    } else {
        drop_stale(worker, "ack");
    }
    return UCS_OK;
}

} // namespace ucp

extern "C" {

UCS_EXPORT ucs_status_ptr_t ucp_tag_send_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                             ucp_tag_t tag, const ucp_request_param_t *param)
{
    return ucp::tag_send("ucp_tag_send_nbx", ep, buffer, count, tag, param, false);
}

UCS_EXPORT ucs_status_ptr_t ucp_tag_send_sync_nbx(ucp_ep_h ep, const void *buffer, size_t count,
                                                  ucp_tag_t tag, const ucp_request_param_t *param)
{
    return ucp::tag_send("ucp_tag_send_sync_nbx", ep, buffer, count, tag, param, true);
}

UCS_EXPORT ucs_status_ptr_t ucp_tag_send_nb(ucp_ep_h ep, const void *buffer, size_t count,
                                            ucp_datatype_t datatype, ucp_tag_t tag,
                                            ucp_send_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_param(cb);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = datatype;
    return ucp::tag_send("ucp_tag_send_nb", ep, buffer, count, tag, &param, false);
}

UCS_EXPORT ucs_status_ptr_t ucp_tag_send_sync_nb(ucp_ep_h ep, const void *buffer, size_t count,
                                                 ucp_datatype_t datatype, ucp_tag_t tag,
                                                 ucp_send_callback_t cb)
{
    ucp_request_param_t param = ucp::nb_param(cb);
    param.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = datatype;
    return ucp::tag_send("ucp_tag_send_sync_nb", ep, buffer, count, tag, &param, true);
}

UCS_EXPORT ucs_status_t ucp_tag_send_nbr(ucp_ep_h ep, const void *buffer, size_t count,
                                         ucp_datatype_t datatype, ucp_tag_t tag, void *req)
{
    UCS_CHECK_ARG(req, "ucp_tag_send_nbr: req must not be NULL");
    ucp_request_param_t param;
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REQUEST;
    param.datatype = datatype;
    param.request = req;
    ucs_status_ptr_t ptr = ucp::tag_send("ucp_tag_send_nbr", ep, buffer, count, tag, &param, false);
    return UCS_PTR_IS_PTR(ptr) ? UCS_INPROGRESS : UCS_PTR_STATUS(ptr);
}

} // extern "C"
